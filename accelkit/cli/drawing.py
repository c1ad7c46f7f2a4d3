"""The drawing of how devices are connected, as SVG. Not here: where boxes stand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import combinations

import attrs

from accelkit.cli import layout
from accelkit.cli.layout import Level, Line, Rect
from accelkit.cli.matrix import whole_devices
from accelkit.cli.showing import amount, counted
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import Health, LinkKind
from accelkit.core.view import View

TITLE = 64
"""Height of what stands above everything."""
ROW = 18
"""Height of a line of text below the drawing."""
BAR = 34
"""Height of the box of a vendor's switches."""
ARCS = 108
"""Most that a link on one line rises above its devices."""
BETWEEN = 150
"""Between two lines that links connect."""

_LINES = frozenset({LinkKind.ONDIE, LinkKind.DIRECT, LinkKind.FABRIC})
_INK, _FAINT = "#1f2933", "#64748b"
_DOWN = "#c81e1e"
_LIGHT_TO_DARK: Mapping[LinkKind, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    LinkKind.DIRECT: ((126, 176, 232), (17, 78, 156)),
    LinkKind.FABRIC: ((92, 190, 166), (8, 110, 92)),
    LinkKind.ONDIE: ((178, 148, 224), (96, 48, 168)),
}
_FRAMES: Mapping[Level, tuple[str, str, str]] = {
    Level.NUMA: ("#f1f5f9", "#cbd5e1", ""),
    Level.ROOT: ("#e2e8f0", "#b6c2d1", ""),
    Level.BRIDGE: ("#dbe3ec", "#9aa9bc", "6 3"),
    Level.SWITCH: ("#fdf6e3", "#c9a95b", "4 3"),
}
"""Fill, border and dashes of a frame."""
_HEALTH: Mapping[Health, str] = {
    Health.HEALTHY: "#1a9c5b",
    Health.UNHEALTHY: "#c81e1e",
    Health.UNKNOWN: "#d08700",
}
_STYLE = (
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:" + _INK + "}"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}"
    ".numa,.root,.bridge,.switch{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}"
    ".numa{stroke:#f1f5f9}.root{stroke:#e2e8f0}.bridge{stroke:#dbe3ec}.switch{stroke:#fdf6e3}"
    ".id{font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace}"
)


@attrs.frozen(kw_only=True)
class _Scene:
    """All that is painted."""

    view: View
    devices: tuple[Device, ...]
    lines: tuple[Line, ...]
    links: tuple[Link, ...]
    """Those that are painted between two devices."""
    bars: tuple["_Bar", ...]
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
class _Bar:
    """A vendor's switches, to which all of some devices are connected."""

    counts: Mapping[DeviceId, int]
    """How many links each has."""
    up: bool
    rect: Rect


def draw(view: View) -> str:
    """Draw how the whole devices of *view* are connected.

    Returns:
        An SVG document with a light background; equal views give equal texts.
    """
    scene = _scene(view)
    body = [
        *_title(scene),
        *_framed(scene),
        *_fabric(scene),
        *_linked(scene),
        *_labelled(scene),
        *_boxed(scene),
    ]
    below = max((line.rect.bottom + _arcs(scene, line) for line in scene.lines), default=TITLE)
    below = max((below, *(bar.rect.bottom for bar in scene.bars)))
    foot, height = _foot(scene, below + 22)
    width = round(scene.width)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{round(height)}" '
            f'viewBox="0 0 {width} {round(height)}" role="img">',
            f"<title>{escape(_headline(scene))}</title>",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *body,
            *foot,
            "</svg>",
            "",
        )
    )


# What stands where.


def _scene(view: View) -> _Scene:
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
    return _Scene(
        view=view,
        devices=devices,
        lines=lines,
        links=links,
        bars=bars,
        width=max(right + layout.MARGIN, 720),
    )


def _fabrics(links: Sequence[Link]) -> Iterator[tuple[DeviceId, ...]]:
    """Sets of devices of which each is linked with each other: one box of switches stands for it."""
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
    rise = _rise(layout.place(rows[0], TITLE, -1), links)
    top = layout.place(rows[0], TITLE + rise, -1)
    if len(rows) == 1:
        return (top,)
    across = any((k.a in top.boxes) != (k.b in top.boxes) for k in links)
    y = top.rect.bottom + (BETWEEN if across else BAR + 56 if bars else 28)
    ways = (layout.place(row, y, 1) for row in (rows[1], layout.mirrored(rows[1])))
    bottom = min(ways, key=lambda way: _length(top, way, links))
    return (top, bottom)


def _rise(line: Line, links: Iterable[Link]) -> float:
    """How far beyond *line* the links between its own devices go, with their counts."""
    own = [_height(line, k) for k in links if {k.a, k.b} <= line.boxes.keys()]
    return max(own, default=-14) + 14


def _height(line: Line, link: Link) -> float:
    """How far beyond *line* a link between two of its devices goes: the wider, the farther."""
    aside = abs(line.boxes[link.a].middle - line.boxes[link.b].middle)
    return 20 + (ARCS - 20) * min(1.0, aside / max(line.rect.width, 1) * 1.2)


def _length(top: Line, bottom: Line, links: Iterable[Link]) -> float:
    """How far links between the lines go sideways."""
    boxes = {**top.boxes, **bottom.boxes}
    return sum(abs(boxes[k.a].middle - boxes[k.b].middle) * k.count for k in links)


def _arcs(scene: _Scene, line: Line) -> float:
    return _rise(line, scene.links) if line.outward > 0 else 0


def _bars(
    sets: Iterable[tuple[DeviceId, ...]], links: Iterable[Link], lines: Sequence[Line]
) -> Iterator[_Bar]:
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
        yield _Bar(
            counts=counts,
            up=any(k.up for k in own),
            rect=Rect(x=left, y=y, width=right - left, height=BAR),
        )


# What is painted.


def _headline(scene: _Scene) -> str:
    products: dict[str, int] = {}
    for device in scene.devices:
        name = device.product or device.kind
        products[name] = products.get(name, 0) + 1
    what = ", ".join(f"{count} × {name}" for name, count in products.items())  # noqa: RUF001 - times
    return f"{scene.view.snapshot.node or 'node'}: {what or 'no devices'}"


def _title(scene: _Scene) -> Iterator[str]:
    yield _text(layout.MARGIN, 32, _headline(scene), size=18, weight="bold")
    software = ", ".join(f"{k} {v}" for k, v in scene.view.snapshot.software.items())
    yield _text(layout.MARGIN, 51, software, size=12, fill=_FAINT)


def _framed(scene: _Scene) -> Iterator[str]:
    for line in scene.lines:
        for frame in line.frames:
            fill, border, dashes = _FRAMES[frame.level]
            yield _rect(frame.rect, fill=fill, stroke=border, dashes=dashes, radius=7)


def _labelled(scene: _Scene) -> Iterator[str]:
    """Names of frames, over the links that cross them."""
    for line in scene.lines:
        for frame in line.frames:
            rect = frame.rect
            y = rect.bottom - 6 if line.outward < 0 else rect.y + 13
            yield _text(rect.x + 9, y, frame.label, size=11, fill=_FAINT, css=frame.level.value)


def _boxed(scene: _Scene) -> Iterator[str]:
    boxes = scene.boxes
    for number, device in enumerate(scene.devices):
        yield from _device(scene.view, number, device, boxes[device.id])


def _device(view: View, number: int, device: Device, box: Rect) -> Iterator[str]:
    health = view.verdicts[device.id].health
    yield f"<g><title>{escape(_hover(view, device))}</title>"
    fill = "#ffffff" if health is Health.HEALTHY else "#fdecec"
    yield _rect(box, fill=fill, stroke=_HEALTH[health], radius=6, thick=2)
    yield _text(box.x + 9, box.y + 22, str(number), size=17, weight="bold")
    yield f'<circle cx="{box.right - 12:g}" cy="{box.y + 13:g}" r="4.5" fill="{_HEALTH[health]}"/>'
    room = int((box.width - 16) / 6)
    name = _short(device.id.name, room)
    yield _text(box.x + 9, box.y + 39, name, size=10, css="id")
    place = device.locality.pci_address or device.kind
    yield _text(box.x + 9, box.y + 53, _short(place, room), size=10, fill=_FAINT, css="id")
    yield from _parts(view, device, box)
    yield "</g>"


def _parts(view: View, device: Device, box: Rect) -> Iterator[str]:
    """A strip with the device's partitions in their slots."""
    parts = [d for d in view.snapshot.devices if d.parent == device.id and d.placement]
    if not parts or not device.slots:
        return
    width = (box.width - 16) / device.slots
    strip = Rect(x=box.x + 8, y=box.bottom - 9, width=box.width - 16, height=6)
    yield _rect(strip, fill="#eef2f6", stroke="#cbd5e1", radius=1)
    for part in parts:
        assert part.placement is not None
        place = Rect(
            x=strip.x + part.placement.start * width,
            y=strip.y,
            width=part.placement.size * width - 1,
            height=6,
        )
        yield _rect(place, fill=_HEALTH[view.verdicts[part.id].health], stroke="none", radius=1)


def _hover(view: View, device: Device) -> str:
    verdict = view.verdicts[device.id]
    reasons = ", ".join(condition.code for condition in verdict.reasons)
    said = (
        str(device.id),
        device.product or device.kind,
        amount(device.capacity.get("memory")),
        f"{verdict.health.value} {reasons}".strip(),
    )
    return "\n".join(said)


def _fabric(scene: _Scene) -> Iterator[str]:
    boxes = scene.boxes
    for bar in scene.bars:
        most = max(bar.counts.values(), default=1)
        for device, count in bar.counts.items():
            box, line = boxes[device], scene.line_of(device)
            start = box.bottom if line.outward < 0 else box.y
            end = bar.rect.y if line.outward < 0 else bar.rect.bottom
            path = f"M{box.middle:g} {start:g}V{end:g}"
            yield _path(path, LinkKind.FABRIC, count, most, up=bar.up and count > 0)
            y = (end + (line.rect.bottom if line.outward < 0 else line.rect.y)) / 2 + 4
            yield _text(box.middle + 9, y, f"×{count}", size=11, css="halo")  # noqa: RUF001 - times
        yield _rect(bar.rect, fill="#d9f2ea", stroke=_ink(LinkKind.FABRIC, 1, 1), radius=8)
        words = f"switches of the vendor: {counted(len(bar.counts), 'device')}, all to all"
        middle = bar.rect.middle
        yield _text(middle, bar.rect.y + 22, words, size=12, anchor="middle", css="halo")


def _linked(scene: _Scene) -> Iterator[str]:
    """Lines between two devices; their counts on top of all lines."""
    ends = _ends(scene)
    counts: list[str] = []
    for link in sorted(scene.links, key=lambda k: (k.count, k.a, k.b)):
        path, middle = _way(scene, link, ends)
        yield _path(path, link.kind, link.count, scene.most, up=link.up)
        said = f"×{link.count}"  # noqa: RUF001 - times
        counts.append(
            _text(*middle, said if link.up else "down", size=11, anchor="middle", css="halo")
        )
    yield from counts


Ends = Mapping[tuple[Link, DeviceId], float]


def _ends(scene: _Scene) -> Ends:
    """Where on its box each link ends, so that no two end in one point."""
    boxes = scene.boxes
    sides: dict[tuple[DeviceId, bool], list[tuple[float, Link]]] = {}
    for link in scene.links:
        one_line = scene.line_of(link.a) is scene.line_of(link.b)
        for mine, other in ((link.a, link.b), (link.b, link.a)):
            sides.setdefault((mine, one_line), []).append((boxes[other].middle, link))
    found: dict[tuple[Link, DeviceId], float] = {}
    for (device, _), several in sides.items():
        box = boxes[device]
        step = min(22.0, (box.width - 24) / max(1, len(several) - 1))
        ordered = sorted(several, key=lambda pair: (pair[0], pair[1].kind))
        for n, (_, link) in enumerate(ordered):
            found[link, device] = box.middle + (n - (len(several) - 1) / 2) * step
    return found


def _way(scene: _Scene, link: Link, ends: Ends) -> tuple[str, tuple[float, float]]:
    """The curve of *link*, and where its count is written."""
    boxes = scene.boxes
    a, b = sorted((link.a, link.b), key=lambda i: (boxes[i].y, boxes[i].x))
    x1, x2 = ends[link, a], ends[link, b]
    one, other = scene.line_of(a), scene.line_of(b)
    if one is other:
        y = boxes[a].y if one.outward < 0 else boxes[a].bottom
        outside = y - one.rect.y if one.outward < 0 else one.rect.bottom - y
        # A curve of this form goes three quarters of the way to its control points.
        control = y + one.outward * (outside + _height(one, link)) / 0.75
        middle = y + 0.75 * (control - y) + 4
        return (
            f"M{x1:g} {y:g}C{x1:g} {control:g} {x2:g} {control:g} {x2:g} {y:g}",
            ((x1 + x2) / 2, middle),
        )
    y1, y2 = boxes[a].bottom, boxes[b].y
    half = (one.rect.bottom + other.rect.y) / 2
    return (
        f"M{x1:g} {y1:g}C{x1:g} {half:g} {x2:g} {half:g} {x2:g} {y2:g}",
        (x1 + (x2 - x1) * 0.28, one.rect.bottom + (other.rect.y - one.rect.bottom) * 0.34),
    )


# What stands below.


def _foot(scene: _Scene, y: float) -> tuple[list[str], float]:
    """The legend, the groups and all ids; and where the drawing ends."""
    texts: list[str] = []
    x: float = layout.MARGIN
    for sample, words in _samples(scene):
        room = 44 + 7 * len(words)
        if x + room > scene.width - layout.MARGIN and x > layout.MARGIN:
            x, y = layout.MARGIN, y + ROW
        texts.append(f'<g transform="translate({x:g} {y:g})">{sample}</g>')
        texts.append(_text(x + 44, y + 4, words, size=12))
        x += room + 24
    y += ROW + 8
    numbers = {device.id: str(n) for n, device in enumerate(scene.devices)}
    for group in (g for g in scene.view.snapshot.groups if len(g.members) > 1):
        members = " ".join(numbers.get(i, str(i)) for i in group.members)
        words = f"group {group.name} ({group.kind}, {group.rule.lower()}): {members}"
        texts.append(_text(layout.MARGIN, y, words, size=12, fill=_FAINT))
        y += ROW
    longest = max((len(_row(scene, n, d)) for n, d in enumerate(scene.devices)), default=0)
    columns = max(1, min(2, int((scene.width - 2 * layout.MARGIN) / (longest * 6.7 + 20))))
    each = -(-len(scene.devices) // columns)
    for number, device in enumerate(scene.devices):
        column, row = divmod(number, max(1, each))
        left = layout.MARGIN + column * (longest * 6.7 + 30)
        words = _row(scene, number, device)
        texts.append(_text(left, y + 6 + row * ROW, words, size=11, css="id"))
    return texts, y + each * ROW + 14


def _row(scene: _Scene, number: int, device: Device) -> str:
    health = scene.view.verdicts[device.id].health
    return f"{number:>2} {device.id}" + ("" if health is Health.HEALTHY else f" {health.value}")


def _samples(scene: _Scene) -> Iterator[tuple[str, str]]:
    """What is drawn how: a piece of SVG, and words."""
    words = {
        LinkKind.DIRECT: "direct link",
        LinkKind.FABRIC: "link through switches",
        LinkKind.ONDIE: "same package",
    }
    seen = {(k.kind, k.count) for k in scene.links if k.up}
    seen |= {(LinkKind.FABRIC, n) for bar in scene.bars for n in bar.counts.values() if n}
    for kind, count in sorted(seen, key=lambda s: (s[0].value, s[1])):
        times = f" ×{count}"  # noqa: RUF001 - times
        most = max(n for k, n in seen if k is kind)
        yield _path("M0 0H34", kind, count, most, up=True), words[kind] + times
    if any(not k.up for k in scene.links):
        yield _path("M0 0H34", LinkKind.DIRECT, 1, 1, up=False), "down"
    shown = {scene.view.verdicts[d.id].health for d in scene.devices}
    for health in Health:
        if health in shown:
            dot = f'<circle cx="26" cy="0" r="5" fill="{_HEALTH[health]}"/>'
            yield dot, health.value.lower()


# SVG.


def _text(  # noqa: PLR0917 - as SVG has them
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    fill: str = "",
    weight: str = "",
    anchor: str = "",
    css: str = "",
) -> str:
    keys = {"fill": fill, "font-weight": weight, "text-anchor": anchor, "class": css}
    # The style sheet wins over attributes, so a colour of its own is a style.
    said = "".join(f' {key}="{value}"' for key, value in keys.items() if value and key != "fill")
    colour = f' style="fill:{fill}"' if fill else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{said}{colour}>{escape(words)}</text>'


def _rect(
    rect: Rect, *, fill: str, stroke: str, radius: float, dashes: str = "", thick: float = 1.2
) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<rect x="{rect.x:g}" y="{rect.y:g}" width="{rect.width:g}" height="{rect.height:g}" '
        f'rx="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="{thick:g}"{dashed}/>'
    )


def _path(path: str, kind: LinkKind, count: int, most: int, *, up: bool) -> str:
    width = 2 + 5 * (count - 1) / max(most - 1, 2)
    dashes = "" if up else ' stroke-dasharray="5 4"'
    colour = _ink(kind, count, most) if up else _DOWN
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'stroke-linecap="round"{dashes}/>'
    )


def _ink(kind: LinkKind, count: int, most: int) -> str:
    """Darker where there are more links."""
    light, dark = _LIGHT_TO_DARK[kind]
    share = 1.0 if most <= 1 else (count - 1) / (most - 1)
    mixed = (round(a + (b - a) * share) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
