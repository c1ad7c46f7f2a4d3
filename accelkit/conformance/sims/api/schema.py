"""The structs of the resource API, read from their table. Not here: how JSON becomes one."""

import re
from collections.abc import Mapping
from functools import cache

from attrs import frozen

from accelkit.conformance.sims.api.types import TABLE

_FIELD = re.compile(
    r"(?P<name>\w+) (?P<pointer>\*?)(?P<many>\[(?P<keys>[\w,]*)\]|\{\})?(?P<type>\w+)(?P<keep>!?)"
)
_COMMA = re.compile(r",\s*(?![\w,]*\])")


@frozen
class Field:
    """A field of a struct."""

    name: str
    type: str
    """A scalar's name or a struct's."""
    many: str
    """Empty, ``list`` or ``map``."""
    keys: tuple[str, ...]
    """What tells the items of a list apart; without them a list is one value."""
    pointer: bool
    """Whether an empty value differs from none."""
    keep: bool
    """Whether it is written even when it is empty."""


@cache
def structs() -> Mapping[str, tuple[Field, ...]]:
    """The fields of every struct, in the order in which a server writes them."""
    lines = "\n".join(line for line in TABLE.splitlines() if line and line[0] != "#")
    whole = re.sub(r"\n\s+", " ", lines)
    return {
        name: tuple(_field(text) for text in _COMMA.split(fields))
        for name, _, fields in (line.partition(": ") for line in whole.splitlines())
    }


def _field(text: str) -> Field:
    found = _FIELD.fullmatch(text)
    assert found, text
    many = {"[": "list", "{": "map", "": ""}[(found["many"] or "")[:1]]
    keys = tuple(filter(None, (found["keys"] or "").split(",")))
    return Field(
        found["name"], found["type"], many, keys, bool(found["pointer"]), bool(found["keep"])
    )


def field_of(struct: str, name: str) -> Field | None:
    """The field, if the struct has it."""
    return next((known for known in structs().get(struct, ()) if known.name == name), None)
