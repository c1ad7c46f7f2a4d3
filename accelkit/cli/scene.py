"""What of a node is drawn, and where each thing stands. Not here: how it is painted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import attrs

from accelkit.cli import layout
from accelkit.cli.layout import Line, Rect
from accelkit.cli.matrix import whole_devices
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import LinkKind
from accelkit.core.view import View

TITLE = 64
"""Height of what stands above everything."""
BAR = 34
"""Height of the box of a vendor's switches."""
ARCS = 108
"""Most that a link on one line goes beyond it."""
BETWEEN = 150
"""Between two lines that links connect."""
LEAST_WIDTH = 720

_LINES = frozenset({LinkKind.ONDIE, LinkKind.DIRECT, LinkKind.FABRIC})


@attrs.frozen(kw_only=True)
class Scene:
    """All that is painted."""

    view: View
    devices: tuple[Device, ...]
    lines: tuple[Line, ...]
    links: tuple[Link, ...]
    """Those that are painted between two devices."""
    bars: tuple["Bar", ...]
    width: float

    @property
    def boxes(self) -> dict[DeviceId, Rect]:
        return {i: rect for line in self.lines for i, rect in line.boxes.items()}

    def line_of(self, device: DeviceId) -> Line:
        return next(line for line in self.lines if device in line.boxes)

    @property
    def most(self) -> int:
        return max((link.count for link in self.links), default=1)


@attrs.frozen(kw_only=True)
class Bar:
    """A vendor's switches, to which all of some devices are connected."""

    counts: Mapping[DeviceId, int]
    """How many links each has."""
    up: bool
    rect: Rect


def scene_of(view: View) -> Scene:
    devices = whole_devices(view)
    there = {device.id for device in devices}
    drawn = [k for k in view.snapshot.links if k.kind in _LINES and {k.a, k.b} <= there]
    sets = tuple(_fabrics([k for k in drawn if k.kind is LinkKind.FABRIC]))
    in_bars = {frozenset(pair) for some in sets for pair in combinations(some, 2)}
    links = tuple(
        k for k in drawn if k.kind is not LinkKind.FABRIC or frozenset((k.a, k.b)) not in in_bars
    )
    lines = _lines(devices, view.snapshot.links, links, bool(sets))
    right = max((line.rect.right for line in lines), default=0.0)
    bars = tuple(_bars(sets, drawn, lines))
    return Scene(
        view=view,
        devices=devices,
        lines=lines,
        links=links,
        bars=bars,
        width=max(right + layout.MARGIN, LEAST_WIDTH),
    )


def _fabrics(links: Sequence[Link]) -> Iterator[tuple[DeviceId, ...]]:
    """Sets of devices that are linked all to all: one box of switches stands for each."""
    pairs = {frozenset((k.a, k.b)) for k in links}
    left = sorted({end for k in links for end in (k.a, k.b)})
    while left:
        some = [left[0]]
        for other in left[1:]:
            if all(frozenset((one, other)) in pairs for one in some):
                some.append(other)
        left = [i for i in left if i not in some]
        if len(some) > 2:
            yield tuple(some)


def _lines(
    devices: Sequence[Device], every: Sequence[Link], links: Sequence[Link], bars: bool
) -> tuple[Line, ...]:
    branches = layout.branches_of(devices, every)
    few = not links and not bars and len(devices) <= layout.FEW
    rows = (branches,) if few else layout.lines_of(branches)
    if not rows:
        return ()
    above = rise(layout.place(rows[0], TITLE, -1), links)
    top = layout.place(rows[0], TITLE + above, -1)
    if len(rows) == 1:
        return (top,)
    across = any((k.a in top.boxes) != (k.b in top.boxes) for k in links)
    y = top.rect.bottom + (BETWEEN if across else BAR + 56 if bars else 28)
    ways = (layout.place(row, y, 1) for row in (rows[1], layout.mirrored(rows[1])))
    bottom = min(ways, key=lambda way: _length(top, way, links))
    return (top, bottom)


def rise(line: Line, links: Iterable[Link]) -> float:
    """How far beyond *line* the links between its own devices go, with their counts."""
    own = [height_of(line, k) for k in links if {k.a, k.b} <= line.boxes.keys()]
    return max(own, default=-14) + 14


def height_of(line: Line, link: Link) -> float:
    """How far beyond *line* a link between two of its devices goes: the wider, the farther."""
    aside = abs(line.boxes[link.a].middle - line.boxes[link.b].middle)
    return 20 + (ARCS - 20) * min(1.0, aside / max(line.rect.width, 1) * 1.2)


def _length(top: Line, bottom: Line, links: Iterable[Link]) -> float:
    """How far links between the lines go sideways."""
    boxes = {**top.boxes, **bottom.boxes}
    return sum(abs(boxes[k.a].middle - boxes[k.b].middle) * k.count for k in links)


def _bars(
    sets: Iterable[tuple[DeviceId, ...]], links: Iterable[Link], lines: Sequence[Line]
) -> Iterator[Bar]:
    boxes = {i: rect for line in lines for i, rect in line.boxes.items()}
    fabric = [k for k in links if k.kind is LinkKind.FABRIC]
    for members in sets:
        own = [k for k in fabric if k.a in members and k.b in members]
        counts = {
            i: max((k.count for k in own if k.up and i in {k.a, k.b}), default=0) for i in members
        }
        left = min(boxes[i].x for i in members)
        right = max(boxes[i].right for i in members)
        y = lines[0].rect.bottom + 28
        if len(lines) > 1:
            y = (lines[0].rect.bottom + lines[1].rect.y - BAR) / 2
        yield Bar(
            counts=counts,
            up=any(k.up for k in own),
            rect=Rect(x=left, y=y, width=right - left, height=BAR),
        )
