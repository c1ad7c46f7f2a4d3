"""JSON texts: read with what a server sees in them, and written as it writes them.

Not here: what an object may hold.
"""

import json

from attrs import field, frozen

RAW_FIELDS = frozenset({"parameters", "data"})
"""Where a server keeps the text as it came, down to its spaces."""
_SPACES = " \t\n\r"


@frozen
class RawJson:
    """JSON that a server neither reads nor changes: equal only if the texts are."""

    text: str
    value: object = field(eq=False, hash=False)

    @classmethod
    def of(cls, value: object) -> "RawJson":
        """As an API server writes *value* itself: keys in order, no spaces."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return cls(_go(text), json.loads(text))

    def compact(self) -> "RawJson":
        """As it comes back from a server: without spaces."""
        text = "".join(_compacted(self.text))
        return RawJson(_go(text), self.value)


def _go(text: str) -> str:
    """*text* with what Go's encoder does not leave as it is."""
    pairs = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
    return "".join(pairs.get(c, c) for c in text)


def _compacted(text: str) -> list[str]:
    parts, inside, escaped = [], False, False
    for c in text:
        if inside:
            inside = escaped or c != '"'
            escaped = not escaped and c == "\\"
        elif c in _SPACES:
            continue
        else:
            inside = c == '"'
        parts.append(c)
    return parts


def write(document: object) -> bytes:
    """*document* as one line of JSON."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, default=_value).encode()


def _value(item: object) -> object:
    if isinstance(item, RawJson):
        return item.value
    raise TypeError(f"{item!r} is not JSON")


@frozen
class Parsed:
    """A text that was read."""

    tree: object
    """Of dicts, lists and scalars; what stands under one of RAW_FIELDS is `RawJson`."""
    duplicates: tuple[str, ...]
    """Paths of keys that came twice; the last one counts."""


def parse(text: str) -> Parsed:
    """Read JSON.

    Raises:
        ValueError: It is none.
    """
    special = False

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal special
        made = dict(found)
        special |= len(made) != len(found) or not RAW_FIELDS.isdisjoint(made)
        return made

    tree = json.loads(text, object_pairs_hook=pairs)
    if not special:
        return Parsed(tree, ())
    reader = _Reader(text)
    return Parsed(reader.read("")[0], tuple(reader.duplicates))


class _Reader:
    """Reads a text that is valid, with an eye on where things stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.duplicates: list[str] = []
        self._scalars = json.JSONDecoder()

    def read(self, path: str) -> tuple[object, str]:
        """The value here, and its text."""
        self._skip()
        begin = self.at
        match self.text[self.at]:
            case "{":
                value: object = self._object(path)
            case "[":
                value = self._array(path)
            case _:
                value, self.at = self._scalars.raw_decode(self.text, self.at)
        return value, self.text[begin : self.at]

    def _object(self, path: str) -> dict[str, object]:
        made: dict[str, object] = {}
        self.at += 1
        while self._next() != "}":
            key, self.at = self._scalars.raw_decode(self.text, self.at)
            assert self._next() == ":"
            self.at += 1
            here = f"{path}.{key}" if path else key
            if key in made:
                self.duplicates.append(here)
            value, text = self.read(here)
            made[key] = RawJson(text, _unwrapped(value)) if key in RAW_FIELDS else value
            if self._next() == ",":
                self.at += 1
        self.at += 1
        return made

    def _array(self, path: str) -> list[object]:
        made: list[object] = []
        self.at += 1
        while self._next() != "]":
            made.append(self.read(f"{path}[{len(made)}]")[0])
            if self._next() == ",":
                self.at += 1
        self.at += 1
        return made

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self.at += 1

    def _next(self) -> str:
        self._skip()
        return self.text[self.at]


def _unwrapped(tree: object) -> object:
    """*tree* without raw parts: what is in a raw part is not looked at."""
    if isinstance(tree, RawJson):
        return tree.value
    if isinstance(tree, dict):
        return {key: _unwrapped(value) for key, value in tree.items()}
    return [_unwrapped(item) for item in tree] if isinstance(tree, list) else tree


plain = _unwrapped
