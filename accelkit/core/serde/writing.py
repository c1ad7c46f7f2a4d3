"""Values to trees. The order of keys is that of the fields; of sets and maps, ascending."""

from collections.abc import Callable, Mapping, Set as AbstractSet
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeAlias

import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from accelkit.core.serde import kinds
from accelkit.core.serde.keys import key_of
from accelkit.core.units import Bytes, Seconds, format_duration, format_quantity
from accelkit.core.values import Version

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"
Writer: TypeAlias = Callable[[Any], Any]  # type: ignore[explicit-any]  # as cattrs types hooks


def to_tree(value: object) -> Tree:
    """*value* as what JSON can say: lowerCamelCase keys, None left out, times in UTC.

    ``from_tree(type(value), to_tree(value)) == value`` for every value of the model and the policy.
    """
    tree: Tree = _CONVERTER.unstructure(value)
    return tree


def _write_time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _write_enum(value: Enum) -> str:
    return value.value if isinstance(value.value, str) else value.name


def _write_key(key: object) -> str:
    return _write_enum(key) if isinstance(key, Enum) else str(key)


def _write_tagged(value: object) -> object:
    """A member of a union: a version beside plain text says what it is."""
    return {"version": str(value)} if isinstance(value, Version) else to_tree(value)


def _list_writer(kind: Any) -> Writer:  # type: ignore[explicit-any]  # any type
    item = kinds.item_of(kind)

    def write(value: object) -> list[object]:
        assert isinstance(value, (tuple, list, AbstractSet))
        trees = [_CONVERTER.unstructure(v, unstructure_as=item) for v in value]
        return sorted(trees, key=str) if isinstance(value, AbstractSet) else trees

    return write


def _map_writer(kind: Any) -> Writer:  # type: ignore[explicit-any]  # any type
    item = kinds.value_of(kind)

    def write(value: Mapping[object, object]) -> dict[str, object]:
        return {
            _write_key(k): _CONVERTER.unstructure(v, unstructure_as=item) for k, v in value.items()
        }

    return write


def _choice_writer(kind: Any) -> Writer:  # type: ignore[explicit-any]  # any type
    members = kinds.choices_of(kind)

    def write(value: object) -> object:
        if value is None:
            return None
        if len(members) == 1:
            return _CONVERTER.unstructure(value, unstructure_as=members[0])
        return _write_tagged(value)

    return write


def _fields_writer(kind: Any) -> Writer:  # type: ignore[explicit-any]  # any class of fields
    names = {f.name: override(rename=key_of(f.name)) for f in kinds.fields_of(kind)}
    write_all = make_dict_unstructure_fn(
        kind,
        _CONVERTER,
        _cattrs_use_linecache=False,
        **names,  # type: ignore[arg-type]  # the library takes options and fields as one
    )

    def write(value: object) -> dict[str, object]:
        return {key: tree for key, tree in write_all(value).items() if tree is not None}

    return write


def _converter() -> cattrs.Converter:
    made = cattrs.Converter()
    for test, factory in (
        (kinds.is_fields, _fields_writer),
        (kinds.is_list, _list_writer),
        (kinds.is_map, _map_writer),
        (kinds.is_choice, _choice_writer),
    ):
        made.register_unstructure_hook_factory(test, factory)
    for test, writer in (
        (kinds.is_written, str),
        (kinds.is_anything, to_tree),
        (lambda kind: kind is datetime, _write_time),
        (lambda kind: kind is Seconds, format_duration),
        (lambda kind: kind is Bytes, format_quantity),
    ):
        made.register_unstructure_hook_func(test, writer)
    made.register_unstructure_hook(str, _write_text)
    made.register_unstructure_hook(Enum, _write_enum)
    return made


def _write_text(value: str) -> str:
    # Enumerations of text are text to the library.
    return _write_enum(value) if isinstance(value, Enum) else value


_CONVERTER = _converter()
