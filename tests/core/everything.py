"""Values of any type that a file may hold, made at random."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args, get_origin

import attrs
from hypothesis import strategies as st

from accelkit.core.model import Device, DeviceId, Link, Locality, Placement
from accelkit.core.serde import kinds
from accelkit.core.units import Bytes, Seconds
from accelkit.core.values import FrozenMap, LinkKind, Version

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
LABELS = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
DEEP = 4
_LEAVES: dict[object, st.SearchStrategy[object]] = {
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(-1e9, 1e9),
    Seconds: st.integers(0, 10**9).map(lambda ms: Seconds(ms / 1000)),
    Bytes: st.integers(0, 2**63 - 1).map(Bytes),
    datetime: st.datetimes(timezones=st.just(UTC)),
    Version: st.builds(Version, *[st.integers(0, 999)] * 3),
    DeviceId: st.builds(DeviceId, vendor=LABELS, name=LABELS),
}


def values_of(kind: object, depth: int = 0) -> st.SearchStrategy[object]:
    """Any value of *kind*; what may hold itself does so a few times at most."""
    if kind in _LEAVES:
        return _LEAVES[kind]
    for test, make in _SORTS:
        if test(kind):
            return make(kind, depth)
    return _fields(kind, depth + 1)


def _choice(kind: object, depth: int) -> st.SearchStrategy[object]:
    members = [values_of(m, depth) for m in kinds.choices_of(kind)]
    return st.one_of(*members, *([st.none()] if kinds.admits_none(kind) else []))


def _map(kind: object, depth: int) -> st.SearchStrategy[object]:
    keys = values_of(kinds.key_type_of(kind), depth)
    pairs = st.dictionaries(keys, values_of(kinds.value_of(kind), depth), max_size=2)
    made: Callable[[dict[Any, object]], object] = (  # type: ignore[explicit-any]  # keys of any type
        FrozenMap if get_origin(kind) is FrozenMap else dict
    )
    return pairs.map(made)


def _list(kind: object, depth: int) -> st.SearchStrategy[object]:
    if depth > DEEP:
        return st.just(())
    items = st.lists(values_of(get_args(kind)[0], depth + 1), max_size=2)
    return items.map(frozenset if get_origin(kind) is frozenset else tuple)


_SORTS: tuple[  # type: ignore[explicit-any]  # of any type
    tuple[Callable[[object], bool], Callable[[Any, int], st.SearchStrategy[object]]], ...
] = (
    (kinds.is_anything, lambda _kind, _depth: TREES),
    (kinds.is_enum, lambda kind, _depth: st.sampled_from(list(kind))),
    (kinds.is_literal, lambda kind, _depth: st.sampled_from(get_args(kind))),
    (kinds.is_choice, _choice),
    (kinds.is_map, _map),
    (kinds.is_list, _list),
)


def _fields(kind: object, depth: int) -> st.SearchStrategy[object]:
    assert isinstance(kind, type)
    own: dict[str, st.SearchStrategy[object]] = {
        field.name: st.just(None)
        if depth > DEEP and kinds.admits_none(field.type)
        else values_of(field.type, depth)
        for field in kinds.fields_of(kind)
    }
    return st.builds(kind, **{**own, **_LEGAL.get(kind, {})})


_LEGAL: dict[type, dict[str, st.SearchStrategy[object]]] = {
    Device: {"parent": st.none(), "placement": st.none()},
    Locality: {"numa_node": st.none() | st.integers(0, 9)},
    Link: {
        "a": st.just(DeviceId(vendor="a", name="a")),
        "b": st.just(DeviceId(vendor="a", name="b")),
        "kind": st.sampled_from(list(LinkKind)),
    },
}
PARTITIONS = st.builds(
    attrs.evolve,
    values_of(Device),
    parent=_LEAVES[DeviceId],
    placement=values_of(Placement),
)
