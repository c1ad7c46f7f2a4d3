"""The drawing of how devices are connected, as SVG. Not here: where boxes stand."""

from collections.abc import Iterator, Mapping

from accelkit.cli import layout, svg
from accelkit.cli.layout import Level, Rect
from accelkit.cli.scene import TITLE, Scene, height_of, rise, scene_of
from accelkit.cli.showing import amount, counted
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import Health, LinkKind
from accelkit.core.view import View

ROW = 18
"""Height of a line of text below the drawing."""

_INK, _FAINT = "#1f2933", "#64748b"
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


def draw(view: View) -> str:
    """Draw how the whole devices of *view* are connected.

    Returns:
        An SVG document with a light background; equal views give equal texts.
    """
    scene = scene_of(view)
    body = [
        *_title(scene),
        *_framed(scene),
        *_fabric(scene),
        *_linked(scene),
        *_labelled(scene),
        *_boxed(scene),
    ]
    below = max(
        (
            line.rect.bottom + (rise(line, scene.links) if line.outward > 0 else 0)
            for line in scene.lines
        ),
        default=TITLE,
    )
    below = max((below, *(bar.rect.bottom for bar in scene.bars)))
    foot, height = _foot(scene, below + 22)
    width, tall = round(scene.width), round(height)
    size = f'width="{width}" height="{tall}" viewBox="0 0 {width} {tall}"'
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{svg.escaped(_headline(scene))}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *body,
        *foot,
        "</svg>",
    )
    return "\n".join((*whole, ""))


# What is painted.


def _headline(scene: Scene) -> str:
    products: dict[str, int] = {}
    for device in scene.devices:
        name = device.product or device.kind
        products[name] = products.get(name, 0) + 1
    what = ", ".join(f"{count} × {name}" for name, count in products.items())  # noqa: RUF001 - times
    return f"{scene.view.snapshot.node or 'node'}: {what or 'no devices'}"


def _title(scene: Scene) -> Iterator[str]:
    yield svg.text(layout.MARGIN, 32, _headline(scene), size=18, weight="bold")
    software = ", ".join(f"{k} {v}" for k, v in scene.view.snapshot.software.items())
    yield svg.text(layout.MARGIN, 51, software, size=12, fill=_FAINT)


def _framed(scene: Scene) -> Iterator[str]:
    for line in scene.lines:
        for frame in line.frames:
            fill, border, dashes = _FRAMES[frame.level]
            yield svg.rect(frame.rect, fill=fill, stroke=border, dashes=dashes, radius=7)


def _labelled(scene: Scene) -> Iterator[str]:
    """Names of frames, over the links that cross them."""
    for line in scene.lines:
        for frame in line.frames:
            rect = frame.rect
            y = rect.bottom - 6 if line.outward < 0 else rect.y + 13
            yield svg.text(rect.x + 9, y, frame.label, size=11, fill=_FAINT, css=frame.level.value)


def _boxed(scene: Scene) -> Iterator[str]:
    boxes = scene.boxes
    for number, device in enumerate(scene.devices):
        yield from _device(scene.view, number, device, boxes[device.id])


def _device(view: View, number: int, device: Device, box: Rect) -> Iterator[str]:
    health = view.verdicts[device.id].health
    yield f"<g><title>{svg.escaped(_hover(view, device))}</title>"
    fill = "#ffffff" if health is Health.HEALTHY else "#fdecec"
    yield svg.rect(box, fill=fill, stroke=_HEALTH[health], radius=6, thick=2)
    yield svg.text(box.x + 9, box.y + 22, str(number), size=17, weight="bold")
    yield f'<circle cx="{box.right - 12:g}" cy="{box.y + 13:g}" r="4.5" fill="{_HEALTH[health]}"/>'
    room = int((box.width - 16) / 6)
    name = svg.short(device.id.name, room)
    yield svg.text(box.x + 9, box.y + 39, name, size=10, css="id")
    place = device.locality.pci_address or device.kind
    yield svg.text(box.x + 9, box.y + 53, svg.short(place, room), size=10, fill=_FAINT, css="id")
    yield from _parts(view, device, box)
    yield "</g>"


def _parts(view: View, device: Device, box: Rect) -> Iterator[str]:
    """A strip with the device's partitions in their slots."""
    parts = [d for d in view.snapshot.devices if d.parent == device.id and d.placement]
    if not parts or not device.slots:
        return
    width = (box.width - 16) / device.slots
    strip = Rect(x=box.x + 8, y=box.bottom - 9, width=box.width - 16, height=6)
    yield svg.rect(strip, fill="#eef2f6", stroke="#cbd5e1", radius=1)
    for part in parts:
        assert part.placement is not None
        place = Rect(
            x=strip.x + part.placement.start * width,
            y=strip.y,
            width=part.placement.size * width - 1,
            height=6,
        )
        yield svg.rect(place, fill=_HEALTH[view.verdicts[part.id].health], stroke="none", radius=1)


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


def _fabric(scene: Scene) -> Iterator[str]:
    boxes = scene.boxes
    for bar in scene.bars:
        most = max(bar.counts.values(), default=1)
        for device, count in bar.counts.items():
            box, line = boxes[device], scene.line_of(device)
            start = box.bottom if line.outward < 0 else box.y
            end = bar.rect.y if line.outward < 0 else bar.rect.bottom
            path = f"M{box.middle:g} {start:g}V{end:g}"
            yield svg.path(path, LinkKind.FABRIC, count, most, up=bar.up and count > 0)
            y = (end + (line.rect.bottom if line.outward < 0 else line.rect.y)) / 2 + 4
            yield svg.text(box.middle + 9, y, f"×{count}", size=11, css="halo")  # noqa: RUF001 - times
        yield svg.rect(bar.rect, fill="#d9f2ea", stroke=svg.ink(LinkKind.FABRIC, 1, 1), radius=8)
        words = f"switches of the vendor: {counted(len(bar.counts), 'device')}, all to all"
        middle = bar.rect.middle
        yield svg.text(middle, bar.rect.y + 22, words, size=12, anchor="middle", css="halo")


def _linked(scene: Scene) -> Iterator[str]:
    """Lines between two devices; their counts on top of all lines."""
    ends = _ends(scene)
    counts: list[str] = []
    for link in sorted(scene.links, key=lambda k: (k.count, k.a, k.b)):
        path, middle = _way(scene, link, ends)
        yield svg.path(path, link.kind, link.count, scene.most, up=link.up)
        said = f"×{link.count}"  # noqa: RUF001 - times
        counts.append(
            svg.text(*middle, said if link.up else "down", size=11, anchor="middle", css="halo")
        )
    yield from counts


Ends = Mapping[tuple[Link, DeviceId], float]


def _ends(scene: Scene) -> Ends:
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


def _way(scene: Scene, link: Link, ends: Ends) -> tuple[str, tuple[float, float]]:
    """The curve of *link*, and where its count is written."""
    boxes = scene.boxes
    a, b = sorted((link.a, link.b), key=lambda i: (boxes[i].y, boxes[i].x))
    x1, x2 = ends[link, a], ends[link, b]
    one, other = scene.line_of(a), scene.line_of(b)
    if one is other:
        y = boxes[a].y if one.outward < 0 else boxes[a].bottom
        outside = y - one.rect.y if one.outward < 0 else one.rect.bottom - y
        # A curve of this form goes three quarters of the way to its control points.
        control = y + one.outward * (outside + height_of(one, link)) / 0.75
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


def _foot(scene: Scene, y: float) -> tuple[list[str], float]:
    """The legend, the groups and all ids; and where the drawing ends."""
    texts: list[str] = []
    x: float = layout.MARGIN
    for sample, words in _samples(scene):
        room = 44 + 7 * len(words)
        if x + room > scene.width - layout.MARGIN and x > layout.MARGIN:
            x, y = layout.MARGIN, y + ROW
        texts.append(f'<g transform="translate({x:g} {y:g})">{sample}</g>')
        texts.append(svg.text(x + 44, y + 4, words, size=12))
        x += room + 24
    y += ROW + 8
    numbers = {device.id: str(n) for n, device in enumerate(scene.devices)}
    for group in (g for g in scene.view.snapshot.groups if len(g.members) > 1):
        members = " ".join(numbers.get(i, str(i)) for i in group.members)
        words = f"group {group.name} ({group.kind}, {group.rule.lower()}): {members}"
        texts.append(svg.text(layout.MARGIN, y, words, size=12, fill=_FAINT))
        y += ROW
    longest = max((len(_row(scene, n, d)) for n, d in enumerate(scene.devices)), default=0)
    columns = max(1, min(2, int((scene.width - 2 * layout.MARGIN) / (longest * 6.7 + 20))))
    each = -(-len(scene.devices) // columns)
    for number, device in enumerate(scene.devices):
        column, row = divmod(number, max(1, each))
        left = layout.MARGIN + column * (longest * 6.7 + 30)
        words = _row(scene, number, device)
        texts.append(svg.text(left, y + 6 + row * ROW, words, size=11, css="id"))
    return texts, y + each * ROW + 14


def _row(scene: Scene, number: int, device: Device) -> str:
    health = scene.view.verdicts[device.id].health
    return f"{number:>2} {device.id}" + ("" if health is Health.HEALTHY else f" {health.value}")


def _samples(scene: Scene) -> Iterator[tuple[str, str]]:
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
        yield svg.path("M0 0H34", kind, count, most, up=True), words[kind] + times
    if any(not k.up for k in scene.links):
        yield svg.path("M0 0H34", LinkKind.DIRECT, 1, 1, up=False), "down"
    shown = {scene.view.verdicts[d.id].health for d in scene.devices}
    for health in Health:
        if health in shown:
            dot = f'<circle cx="26" cy="0" r="5" fill="{_HEALTH[health]}"/>'
            yield dot, health.value.lower()
