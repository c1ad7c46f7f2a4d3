"""Where things stand in the drawing of a node: boxes in frames, on one or two lines. Pure.

Devices stand on lines, those of one NUMA node side by side. Frames are nested: NUMA node, PCIe
root, switches. Not here: links, and how anything is painted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby

import attrs

from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import LinkKind, freeze

BOX_HEIGHT = 66
WIDE, NARROW = 136, 96
"""Width of a device's box; narrow where a line is long."""
FEW = 8
"""So many devices on a line have wide boxes."""
GAP = 12
PAD = 9
LABEL = 17
"""Height of a frame's label."""
MARGIN = 28


class Level(StrEnum):
    """What a frame stands for, outermost first."""

    NUMA = "numa"
    ROOT = "root"
    BRIDGE = "bridge"
    SWITCH = "switch"


@attrs.frozen(kw_only=True)
class Rect:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Branch:
    """Devices that have something in common, and what parts of them have in common beside."""

    level: Level
    label: str
    inside: "tuple[Branch | Device, ...]"

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(d for i in self.inside for d in ((i,) if isinstance(i, Device) else i.devices))


@attrs.frozen(kw_only=True)
class Frame:
    level: Level
    label: str
    rect: Rect


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Line:
    """Devices on one line; *outward* is -1 where their free side is above, 1 where it is below."""

    frames: tuple[Frame, ...]
    """Outer ones first."""
    boxes: Mapping[DeviceId, Rect]
    rect: Rect
    outward: int


def branches_of(devices: Sequence[Device], links: Iterable[Link]) -> tuple[Branch | Device, ...]:
    """*devices*, in their order, by NUMA node, root and switches, as far as they are known."""
    several = tuple(links)
    switch = _together(devices, several, {LinkKind.SWITCH})
    bridge = _together(devices, several, {LinkKind.SWITCH, LinkKind.BRIDGE})

    def switches(some: Sequence[Device]) -> tuple[Branch | Device, ...]:
        return _cut(Level.SWITCH, some, lambda d: switch.get(d.id), lambda _d: "switch")

    def bridges(some: Sequence[Device]) -> tuple[Branch | Device, ...]:
        def key(device: Device) -> int | None:
            group = bridge.get(device.id)
            return (
                None
                if {switch.get(d.id) for d in some if bridge.get(d.id) == group}
                == {switch.get(device.id)}
                else group
            )

        found = _cut(Level.BRIDGE, some, key, lambda _d: "switches")
        return _deeper(found, switches)

    def roots(some: Sequence[Device]) -> tuple[Branch | Device, ...]:
        found = _cut(
            Level.ROOT,
            some,
            lambda d: d.locality.pcie_root,
            lambda d: d.locality.pcie_root or "",
        )
        return _deeper(found, bridges)

    found = _cut(
        Level.NUMA,
        devices,
        lambda d: d.locality.numa_node,
        lambda d: f"NUMA {d.locality.numa_node}",
    )
    return _deeper(found, roots)


def _together(
    devices: Iterable[Device], links: Iterable[Link], kinds: set[LinkKind]
) -> dict[DeviceId, int]:
    """For each device that has a link of *kinds* the number of its set of linked ones."""
    number = {device.id: n for n, device in enumerate(devices)}
    group = dict(number)
    linked: set[DeviceId] = set()
    for link in links:
        if link.kind in kinds and link.a in group and link.b in group:
            linked |= {link.a, link.b}
            old, new = group[link.b], group[link.a]
            group = {i: new if g == old else g for i, g in group.items()}
    return {i: g for i, g in group.items() if i in linked}


def _cut(
    level: Level,
    devices: Sequence[Device],
    key: Callable[[Device], object],
    label: Callable[[Device], str],
) -> tuple[Branch | Device, ...]:
    """*devices* with those of one key in a branch, where its first stood; those without stay."""
    found: dict[object, list[Device]] = {}
    for device in devices:
        # A device without a key is in a group of its own.
        found.setdefault(device.id if key(device) is None else key(device), []).append(device)
    return tuple(
        some[0]
        if key(some[0]) is None
        else Branch(level=level, label=label(some[0]), inside=tuple(some))
        for some in found.values()
    )


def _deeper(
    found: Iterable[Branch | Device],
    divide: Callable[[Sequence[Device]], tuple[Branch | Device, ...]],
) -> tuple[Branch | Device, ...]:
    """*found* with the inside of each branch divided, and devices in a row without one, too."""
    made: list[Branch | Device] = []
    for in_branch, several in groupby(found, key=lambda one: isinstance(one, Branch)):
        if in_branch:
            branches = (one for one in several if isinstance(one, Branch))
            made += [attrs.evolve(one, inside=divide(one.devices)) for one in branches]
        else:
            made += divide([one for one in several if isinstance(one, Device)])
    return tuple(made)


def lines_of(branches: Sequence[Branch | Device]) -> tuple[tuple[Branch | Device, ...], ...]:
    """The outermost branches on one line, or on two if there are several."""
    if len(branches) < 2 or not any(isinstance(one, Branch) for one in branches):
        return (tuple(branches),) if branches else ()
    half = (len(branches) + 1) // 2
    return (tuple(branches[:half]), tuple(branches[half:]))


def mirrored(branches: Iterable[Branch | Device]) -> tuple[Branch | Device, ...]:
    """The same from right to left."""
    return tuple(
        attrs.evolve(one, inside=mirrored(one.inside)) if isinstance(one, Branch) else one
        for one in reversed(tuple(branches))
    )


def place(branches: Sequence[Branch | Device], y: float, outward: int) -> Line:
    """Place one line with its upper edge at *y*; labels are on the side of the other line."""
    depth = _depth(branches)
    count = sum(1 if isinstance(b, Device) else len(b.devices) for b in branches)
    width = WIDE if count <= FEW else NARROW
    frames: list[Frame] = []
    boxes: dict[DeviceId, Rect] = {}
    right = _fill(branches, MARGIN, (y, depth, outward, width), frames, boxes) - GAP
    height = BOX_HEIGHT + depth * (2 * PAD + LABEL)
    return Line(
        frames=tuple(frames),
        boxes=boxes,
        rect=Rect(x=MARGIN, y=y, width=right - MARGIN, height=height),
        outward=outward,
    )


def _depth(branches: Iterable[Branch | Device]) -> int:
    return max((1 + _depth(b.inside) for b in branches if isinstance(b, Branch)), default=0)


def _fill(
    branches: Iterable[Branch | Device],
    x: float,
    room: tuple[float, int, int, int],
    frames: list[Frame],
    boxes: dict[DeviceId, Rect],
) -> float:
    """Place *branches* from *x* on, in what *room* leaves: y, depth, outward, width of a box.

    Returns:
        Where the next thing can stand.
    """
    y, depth, outward, width = room
    inner = y + PAD + (LABEL if outward > 0 else 0)
    for one in branches:
        if isinstance(one, Device):
            # Boxes stand on one height, however many frames are around each.
            top = y + depth * (PAD + (LABEL if outward > 0 else 0))
            boxes[one.id] = Rect(x=x, y=top, width=width, height=BOX_HEIGHT)
            x += width + GAP
            continue
        height = BOX_HEIGHT + depth * (2 * PAD + LABEL)
        at = len(frames)
        end = _fill(one.inside, x + PAD, (inner, depth - 1, outward, width), frames, boxes)
        end += PAD - GAP
        rect = Rect(x=x, y=y, width=end - x, height=height)
        frames.insert(at, Frame(level=one.level, label=one.label, rect=rect))
        x = end + GAP
    return x
