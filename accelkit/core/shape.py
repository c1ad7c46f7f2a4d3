"""Whether a value is what its class declares: plugins are not always type-checked.

Not here: whether it makes sense.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import TypeAlias, Union, get_args, get_origin, get_type_hints

import attrs

from accelkit.core.values import FrozenMap

_Test: TypeAlias = Callable[[object], str]
"""Where a value is not as it should be, and how; empty: nowhere."""


def misfit(kind: object, value: object) -> str:
    """Say where *value* is not of *kind*, down to every field; empty if it is.

    Exactly: a text that looks like a member of an enumeration is none, True is no number, and a
    text must be one that can be written as UTF-8.

    Args:
        kind: A class, or an annotation made of tuples, frozen sets, frozen maps and unions.
        value: Of which nothing is called but what Python's own types have.

    Returns:
        One line, as in ``locality.numa_node: expected int or None, found float``.
    """
    return _test(kind)(value).removeprefix(".").removeprefix(": ")


@cache
def _test(kind: object) -> _Test:
    origin, args = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return _one_of(args)
    if origin is tuple and args[1:] != (...,):
        return _fixed(args)
    if origin in {tuple, frozenset}:
        return _several(origin, args[0])
    if origin is FrozenMap:
        return _map(args[0], args[1])
    if isinstance(kind, type) and attrs.has(kind):
        return _fields(kind)
    return _plain(kind)


def _plain(kind: object) -> _Test:
    if not isinstance(kind, type) or kind is object:
        return lambda _value: ""
    taken = _class_of(kind)

    def test(value: object) -> str:
        if not isinstance(value, taken) or (type(value) is bool and kind is not bool):
            return _expected((kind,), value)
        if isinstance(value, str) and not _writable(value):
            return ": expected text that UTF-8 can write"
        return ""

    return test


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _one_of(kinds: tuple[object, ...]) -> _Test:
    others = [kind for kind in kinds if kind is not NoneType]
    tests = [(_class_of(kind), _test(kind)) for kind in others]
    optional = len(others) < len(kinds)

    def test(value: object) -> str:
        # Most fields of most values are None: there are thousands of them at each read.
        if value is None and optional:
            return ""
        # What is wrong with it, of the class that it was meant to be, says most.
        faults = [one(value) for kind, one in tests if isinstance(value, kind)]
        if not faults:
            return _expected(kinds, value)
        return "" if "" in faults else faults[0]

    return test


def _class_of(kind: object) -> type | tuple[type, ...]:
    """What is worth a test whether it is of *kind*: an annotation says more than its class."""
    plain = get_origin(kind) or kind
    if not isinstance(plain, type):
        return object
    return (int, float) if plain is float else plain


def _several(container: object, kind: object) -> _Test:
    each = _test(kind)

    def test(value: object) -> str:
        if type(value) is not container:
            return _expected((container,), value)
        assert isinstance(value, Iterable)
        return next((f"[{n}]{fault}" for n, one in enumerate(value) if (fault := each(one))), "")

    return test


def _fixed(kinds: tuple[object, ...]) -> _Test:
    tests = [_test(kind) for kind in kinds]

    def test(value: object) -> str:
        if not isinstance(value, tuple) or len(value) != len(tests):
            return f": expected {len(tests)} values in a tuple"
        found = (
            f"[{n}]{test(one)}"
            for n, (test, one) in enumerate(zip(tests, value, strict=True))
            if test(one)
        )
        return next(found, "")

    return test


def _map(key_kind: object, value_kind: object) -> _Test:
    key_test, value_test = _test(key_kind), _test(value_kind)

    def test(value: object) -> str:
        if not isinstance(value, FrozenMap):
            return _expected((FrozenMap,), value)
        for n, (key, one) in enumerate(value.items()):
            if fault := key_test(key):
                return f" key {n}{fault}"
            if fault := value_test(one):
                return f"[{key}]{fault}"
        return ""

    return test


def _fields(kind: type) -> _Test:
    hints: Mapping[str, object] = get_type_hints(kind)
    tests = [
        (f".{field.name}", field.name, _test(hints[field.name])) for field in attrs.fields(kind)
    ]

    def test(value: object) -> str:
        if not isinstance(value, kind):
            return _expected((kind,), value)
        for path, name, of_field in tests:
            if fault := of_field(getattr(value, name)):
                return f"{path}{fault}"
        return ""

    return test


def _expected(kinds: Iterable[object], value: object) -> str:
    words = " or ".join("None" if kind is NoneType else _word(kind) for kind in kinds)
    # The name of its type alone: what a value says of itself may be endless, or raise.
    return f": expected {words}, found {'None' if value is None else type(value).__name__}"


def _word(kind: object) -> str:
    plain = get_origin(kind) or kind
    return plain.__name__ if isinstance(plain, type) else str(plain)
