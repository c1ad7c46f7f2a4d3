"""How devices are connected, as a matrix of text. Not here: the drawing."""

from collections.abc import Iterable, Mapping, Sequence

import click

from accelkit.cli.finding import in_order
from accelkit.cli.showing import NONE, aligned, show_table
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import LinkKind
from accelkit.core.view import View

SELF = "X"
APART = "·"
WORDS: Mapping[LinkKind, tuple[str, str]] = {
    LinkKind.ONDIE: ("DIE", "the same package"),
    LinkKind.DIRECT: ("D", "so many links of the vendor between the two"),
    LinkKind.FABRIC: ("F", "so many links of the vendor through its switches"),
    LinkKind.SWITCH: ("SW", "one PCIe switch"),
    LinkKind.BRIDGE: ("BR", "several PCIe switches below one root"),
    LinkKind.HOST: ("HOST", "one PCIe root"),
    LinkKind.SOCKET: ("NUMA", "one NUMA node"),
}
"""What a kind is in a cell, and what that means; closest first."""
_DOWN = "!"
_COUNTED = frozenset({LinkKind.DIRECT, LinkKind.FABRIC})

Pair = tuple[DeviceId, DeviceId]


def whole_devices(view: View) -> tuple[Device, ...]:
    """Devices that are not partitions, in the order in which they are numbered."""
    return in_order(d for d in view.snapshot.devices if d.parent is None)


def closest_links(links: Iterable[Link]) -> dict[Pair, Link]:
    """Of each pair, both ways round, the link of the closest kind, be it up or down."""
    order = {kind: number for number, kind in enumerate(WORDS)}
    found: dict[Pair, Link] = {}
    for link in sorted(links, key=lambda k: -order[k.kind]):
        found[link.a, link.b] = link
        found[link.b, link.a] = link
    return found


def show_matrix(view: View) -> None:
    """Print who is connected with whom and how, what the words mean, and the groups."""
    devices = whole_devices(view)
    best = closest_links(view.snapshot.links)
    numbers = {device.id: str(number) for number, device in enumerate(devices)}
    show_table(
        ("#", "DEVICE", *numbers.values(), "NUMA", "ROOT"),
        (
            (
                numbers[one.id],
                str(one.id),
                *(_cell(one, other, best) for other in devices),
                NONE if one.locality.numa_node is None else str(one.locality.numa_node),
                one.locality.pcie_root or NONE,
            )
            for one in devices
        ),
    )
    legend = _legend(best, len(devices), view.snapshot.links)
    if legend:
        click.echo()
    for line in legend:
        click.echo(line)
    _show_groups(view, numbers)


def word_of(link: Link) -> str:
    """*link* in a cell: ``F18``, ``D2``, ``SW``; with ``!`` where it is down."""
    word = WORDS[link.kind][0]
    count = str(link.count) if link.kind in _COUNTED else ""
    return f"{word}{count}{'' if link.up else _DOWN}"


def _cell(one: Device, other: Device, best: Mapping[Pair, Link]) -> str:
    if one.id == other.id:
        return SELF
    link = best.get((one.id, other.id))
    return APART if link is None else word_of(link)


def _legend(shown: Mapping[Pair, Link], devices: int, links: Iterable[Link]) -> Sequence[str]:
    rows = [
        (f"{word}{'n' if kind in _COUNTED else ''}", said)
        for kind, (word, said) in WORDS.items()
        if any(link.kind is kind for link in shown.values())
    ]
    if len(shown) < devices * (devices - 1):
        rows.append((APART, "nothing but the machine itself"))
    if any(not link.up for link in shown.values()):
        rows.append((_DOWN, "down"))
    if len(tuple(links)) * 2 > len(shown):
        rows.append(("", "of two connections the closer one is shown"))
    width = max((len(word) for word, _ in rows), default=0)
    return tuple(aligned(row, (width, 0)) for row in rows)


def _show_groups(view: View, numbers: Mapping[DeviceId, str]) -> None:
    if not view.snapshot.groups:
        return
    click.echo()
    show_table(
        ("GROUP", "KIND", "RULE", "MEMBERS"),
        (
            (
                group.name,
                group.kind,
                "law" if group.rule.value == "LAW" else "hint",
                ", ".join(numbers.get(member, str(member)) for member in group.members),
            )
            for group in view.snapshot.groups
        ),
    )
