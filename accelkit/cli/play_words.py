"""How the play words what devices there are, why some were chosen, what a container got.

Not here: the story.
"""

import re
from collections.abc import Collection

from accelkit.backends.kubelet.document import catalog_of
from accelkit.cli.picked import why
from accelkit.cli.picking import Wish, pick
from accelkit.cli.play_stage import NotSeen
from accelkit.cli.showing import counted
from accelkit.conformance.sims import events
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.core.model import Device
from accelkit.core.view import View

_UUID = re.compile(r"([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST = 12
"""Of a value that is told whole."""


def short(name: str) -> str:
    """A device's name for people: of a UUID only the beginning."""
    return _UUID.sub(r"\1", name)


def choice(
    view: View, resource: str, available: Collection[str], chosen: Collection[str]
) -> tuple[str, tuple[str, ...]]:
    """Why *chosen* of *available* are closest to each other, as `accelkit topology --pick` says.

    Raises:
        NotSeen: Others are.
    """
    entries = catalog_of(view)[resource]
    taken = tuple({entry.wire.id for entry in entries} - {*available})
    answer = pick(view, Wish(size=len(chosen), resource=resource, taken=taken))
    if {*answer.ids} != {*chosen}:
        raise NotSeen(f"{resource}: others are closest: {' '.join(answer.ids)}")
    left = [view.devices[answer.devices[name]].locality.numa_node for name in answer.left]
    most, where = max((left.count(node), node) for node in {*left} - {None})
    return f"there are {answer.decision.sets} sets of {answer.size}", (
        *why(answer.decision),
        f"it leaves {most} together on NUMA node {where} for the next pod",
    )


def given(answer: events.Answer) -> tuple[str, ...]:
    """What a container got, the likes of it together."""
    lines = []
    if answer.devices:
        lines.append(f"devices {' '.join(path for path, _, _ in sorted(answer.devices))}")
    for name, value in answer.envs:
        lines.append(f"env {name}: {' '.join(_begin(part) for part in value.split(','))}")
    if answer.mounts:
        names = sorted(path.rpartition("/")[2] for path, _, _ in answer.mounts)
        lines.append(f"mounts {counted(len(names), 'file')}: {names[0]} … {names[-1]}")
    if answer.cdi_devices:
        lines.append(f"CDI {' '.join(answer.cdi_devices)}")
    return tuple(lines)


def injected(what: Injected) -> tuple[str, ...]:
    """What a container got of CDI files, the likes of it together."""
    lines = [f"devices {' '.join(path for path, _ in what.nodes)}"] if what.nodes else []
    lines += [f"env {name}: {_begin(value)}" for name, value in what.env]
    return (*lines, f"mounts {counted(len(what.mounts), 'file')}")


def _begin(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def kinds(devices: Collection[Device]) -> tuple[str, ...]:
    """How many there are of each product, and where."""
    nodes: dict[str, list[str]] = {}
    for device in devices:
        numa = device.locality.numa_node
        nodes.setdefault(device.product or device.kind, []).append(f"{numa}")
    return tuple(
        f"{len(on)} {product}: "
        + ", ".join(f"{on.count(node)} on NUMA node {node}" for node in sorted({*on}))
        for product, on in nodes.items()
    )
