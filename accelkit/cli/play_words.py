"""How the play words what devices there are, why some were chosen, what a container got.

Not here: the story.
"""

from collections.abc import Collection
from itertools import combinations
from math import comb

from accelkit.cli.play_stage import NotSeen
from accelkit.cli.showing import counted
from accelkit.conformance.sims import events
from accelkit.core.model import Device
from accelkit.core.values import LinkKind
from accelkit.core.view import View


def short(name: str) -> str:
    """A device's name for people: of a UUID only the beginning."""
    name, share, number = name.partition("::")
    return f"{name[:12]}{share}{number}"


def why(view: View, free: Collection[str], chosen: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Why *chosen* of *free*, as far as links and NUMA nodes tell.

    Raises:
        NotSeen: They are not on one NUMA node.
    """
    devices = {device.id.name: device for device in view.snapshot.devices}
    links = {
        frozenset((link.a.name, link.b.name)): (link.kind, link.count)
        for link in view.snapshot.links
        if link.kind in {LinkKind.FABRIC, LinkKind.DIRECT}
    }
    pairs = {links.get(frozenset(pair)) for pair in combinations(free, 2)}
    nodes = [devices[name].locality.numa_node for name in free]
    own = {devices[name].locality.numa_node for name in chosen}
    if len(own) != 1 or own == {None}:
        raise NotSeen("train: its GPUs are not on one NUMA node")
    size = len(chosen)
    within = sum(comb(nodes.count(node), size) for node in {*nodes})
    most, where = max((nodes.count(node), node) for node in {*nodes} - own)
    links_say = [f"each two GPUs have {_link(*pairs)}: alike"] if len(pairs) == 1 else []
    return f"there are {comb(len(free), size)} sets of {size}", (
        *links_say,
        f"{within} sets are on one NUMA node; this one is, on node {own.pop()}",
        f"it leaves {most} GPUs together on node {where} for the next pod",
    )


def _link(link: tuple[LinkKind, int] | None) -> str:
    if link is None:
        return "no link"
    kind, count = link
    return counted(count, "NVLink") + (" through NVSwitch" if kind is LinkKind.FABRIC else "")


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


def _begin(text: str) -> str:
    return text if short(text) == text else f"{short(text)}…"


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
