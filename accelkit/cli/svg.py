"""Pieces of SVG. Not here: what they show."""

from collections.abc import Mapping
from html import escape

from accelkit.cli.layout import Rect
from accelkit.core.foreign import printable
from accelkit.core.values import LinkKind

DOWN = "#c81e1e"
"""Ink of what is broken."""

_LIGHT_TO_DARK: Mapping[LinkKind, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    LinkKind.DIRECT: ((126, 176, 232), (17, 78, 156)),
    LinkKind.FABRIC: ((92, 190, 166), (8, 110, 92)),
    LinkKind.ONDIE: ((178, 148, 224), (96, 48, 168)),
}


def escaped(words: str) -> str:
    """*words* in XML, which has no place for control characters."""
    return escape(printable(words))


def text(
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
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{said}{colour}>{escaped(words)}</text>'


def rect(
    place: Rect, *, fill: str, stroke: str, radius: float, dashes: str = "", thick: float = 1.2
) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<rect x="{place.x:g}" y="{place.y:g}" width="{place.width:g}" height="{place.height:g}" '
        f'rx="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="{thick:g}"{dashed}/>'
    )


def path(way: str, kind: LinkKind, count: int, most: int, *, up: bool) -> str:
    width = 2 + 5 * (count - 1) / max(most - 1, 2)
    dashes = "" if up else ' stroke-dasharray="5 4"'
    colour = ink(kind, count, most) if up else DOWN
    return (
        f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'stroke-linecap="round"{dashes}/>'
    )


def ink(kind: LinkKind, count: int, most: int) -> str:
    """Darker where there are more links."""
    light, dark = _LIGHT_TO_DARK[kind]
    share = 1.0 if most <= 1 else (count - 1) / (most - 1)
    mixed = (round(a + (b - a) * share) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def short(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
