"""Texts that people paste: decoding, and looking into JSON and XML. Not here: what they say."""

import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from typing import TypeGuard
from xml.parsers import expat

import attrs

from accelkit.core.errors import ConfigError

MOST_BYTES = 8 << 20
"""Of a text; the slices of a large cluster fill some megabytes."""
_DEEPEST = 64
"""Elements within each other."""
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9AB]"
    r"|\[\d{1,3}(?:;\d{1,3})*m"
)
"""Colours and titles of a terminal; of colours web forms often leave all but the escape."""
_JSON = re.compile(r"\[\s*\{|\{\s*\"")
"""How a list of mappings begins, or a mapping: a prompt such as ``[me@host ~]$`` does not."""


def decoded(found: bytes) -> str:
    """What a file holds: UTF-8, or what Windows makes when output is sent to a file.

    Raises:
        ConfigError: It is no such text.
    """
    if len(found) > MOST_BYTES:
        raise ConfigError([("text", f"is longer than {MOST_BYTES} bytes")])
    wide = found.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        return found.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([("text", f"is no text: {error.reason}")]) from error


def plain(text: str) -> str:
    """*text* without what a terminal reads as colours and titles."""
    return _ESCAPES.sub("", text)


def json_in(text: str) -> object:
    """The JSON in *text*, which may have something around it, such as a prompt.

    Raises:
        ConfigError: There is none.
    """
    start = _JSON.search(text)
    try:
        return json.JSONDecoder().raw_decode(text, start.start() if start else 0)[0]
    except (ValueError, RecursionError) as error:
        raise ConfigError([("text", f"is no whole JSON: {error}")]) from error


def mapping(value: object) -> dict[str, object]:
    """*value*, if it is a mapping; else an empty one."""
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, object]]:
    """The mappings in *value*, if it is a list."""
    return [mapping(one) for one in value if isinstance(one, dict)] if _is_list(value) else []


def numbers(value: object) -> list[int]:
    """The whole numbers in *value*, if it is a list."""
    return [one for one in value if type(one) is int] if _is_list(value) else []


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def word(value: object) -> str:
    """*value* as a text, if it is a text or a number; else an empty one."""
    if isinstance(value, str):
        return value
    # Python refuses to print numbers of thousands of digits.
    small = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 64
    return str(value) if small else ""


@attrs.define
class Element:
    """An element of XML."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = attrs.field(factory=list)
    text: str = ""
    """Its own, without that of its children."""

    def all(self, tag: str) -> Iterator["Element"]:
        return (child for child in self.children if child.tag == tag)

    def at(self, path: str) -> "Element":
        """The first element at *path*, as in ``mig_mode/current_mig``; an empty one if none is."""
        here = self
        for tag in path.split("/"):
            here = next(here.all(tag), Element(tag, {}))
        return here

    def word(self, path: str) -> str:
        """The text at *path*, without blanks around it and without breaks."""
        return "".join(self.at(path).text.splitlines()).strip()


def parse_xml(text: str) -> Element:
    """The root of *text*. Entities are neither declared nor fetched: such a text is refused.

    Raises:
        ConfigError: It is no well-formed XML, or one with entities of its own.
    """
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.doctype
    try:
        parser.Parse(text.encode(errors="replace"), True)
    except expat.ExpatError as error:
        where = f"line {error.lineno}, column {error.offset + 1}"
        raise ConfigError(
            [(where, f"is no well-formed XML: {expat.ErrorString(error.code)}")]
        ) from error
    return builder.root.children[0]


class _Builder:
    def __init__(self) -> None:
        self.root = Element("", {})
        self._open = [self.root]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) > _DEEPEST:
            raise ConfigError([("text", f"has more than {_DEEPEST} elements within each other")])
        element = Element(tag, attributes)
        self._open[-1].children.append(element)
        self._open.append(element)

    def end(self, _: str) -> None:
        self._open.pop()

    def characters(self, text: str) -> None:
        self._open[-1].text += text

    def doctype(self, _name: str, _system: str | None, _public: str | None, own: int) -> None:
        # Entities can only be declared there: without it none can grow, and none is fetched.
        if own:
            raise ConfigError([("text", "declares a document type of its own")])
