"""What sort of type a field has: the one question that reading, writing and schemas share."""

import types
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Protocol, Self, TypeGuard, Union, get_args, get_origin

import attrs


class Written(Protocol):
    """A value that is one word in a file: ``vendor/name``, ``1.2.3``."""

    @classmethod
    def parse(cls, text: str) -> Self: ...


def is_written(kind: object) -> TypeGuard[type[Written]]:
    return isinstance(kind, type) and attrs.has(kind) and hasattr(kind, "parse")


def is_fields(kind: object) -> bool:
    """Whether *kind* is a class of fields: a mapping with known keys."""
    return isinstance(kind, type) and attrs.has(kind) and not hasattr(kind, "parse")


def is_enum(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def is_choice(kind: object) -> bool:
    """Whether *kind* is a union."""
    return get_origin(kind) in {Union, types.UnionType}


def is_literal(kind: object) -> bool:
    return get_origin(kind) is Literal


def is_map(kind: object) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_list(kind: object) -> bool:
    origin = get_origin(kind) or kind
    return (
        isinstance(origin, type)
        and issubclass(origin, Collection)
        and (origin in {Collection, Sequence} or issubclass(origin, (tuple, list, set, frozenset)))
    )


def is_anything(kind: object) -> bool:
    """Whether *kind* is no type in particular: a tree that somebody else reads."""
    return kind is object or kind is Any


def item_of(kind: object) -> object:
    """The type of the items of a list."""
    return next(iter(get_args(kind)), object)


def places_of(kind: object) -> tuple[object, ...]:
    """The types of the items of a tuple of fixed length; of any other list none."""
    args = get_args(kind)
    return () if get_origin(kind) is not tuple or Ellipsis in args else args


def value_of(kind: object) -> object:
    """The type of the values of a map."""
    return get_args(kind)[1] if get_args(kind) else object


def key_type_of(kind: object) -> object:
    return get_args(kind)[0] if get_args(kind) else str


def choices_of(kind: object) -> tuple[object, ...]:
    """The members of a union but None."""
    return tuple(member for member in get_args(kind) if member is not types.NoneType)


def admits_none(kind: object) -> bool:
    return is_anything(kind) or (is_choice(kind) and types.NoneType in get_args(kind))


def words_of(kind: type[Enum]) -> dict[str, Enum]:
    """What the members of an enumeration are called in files; numbers are for machines."""
    return {m.value if isinstance(m.value, str) else m.name: m for m in kind}


def fields_of(kind: type) -> tuple["attrs.Attribute[object]", ...]:
    """The fields of a class, every type resolved."""
    attrs.resolve_types(kind, include_extras=False)
    return tuple(f for f in attrs.fields(kind) if f.init)
