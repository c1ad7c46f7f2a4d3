"""How fields are spelt in files, how paths are, and what was probably meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LENIENT = "lenient"
"""Metadata of a field of alternatives: one may stand without its list."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def key_of(field: str) -> str:
    """The key of a field: ``numa_node`` is ``numaNode``, ``not_`` is ``not``."""
    first, *rest = field.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def child(path: str, key: object) -> str:
    """The path of what is at *key* of *path*: ``$.a``, ``$.a[1]``, ``$.a["1g.10gb"]``."""
    if isinstance(key, int) and not isinstance(key, bool):
        return f"{path}[{key}]"
    text = str(key)
    return f"{path}.{text}" if _PLAIN.fullmatch(text) else f'{path}["{text}"]'


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """``, did you mean 'x'?`` if one of *known* is close to *word*, else nothing."""
    lower = {k.lower(): k for k in sorted(known)}
    close = get_close_matches(str(word).replace("_", "").lower(), lower, n=1)
    return f", did you mean {lower[close[0]]!r}?" if close else ""
