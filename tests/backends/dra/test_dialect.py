"""What servers keep of slices, and what they dropped."""

from typing import Any

import attrs
import pytest

from accelkit.backends.dra.dialect import OTHER, PLAIN, dropped, narrowed, of_release
from accelkit.backends.dra.pool import (
    Capacity,
    Consumption,
    CounterSet,
    Dialect,
    Effect,
    PoolDevice,
    RequestPolicy,
    Slice,
    Taint,
)
from accelkit.core.errors import ConfigError
from accelkit.core.model import Binding
from accelkit.core.values import AttributeValue, FrozenMap

ONE = FrozenMap({"a": 1})
LISTS = FrozenMap[str, AttributeValue]([("modes", ("a", "b")), ("vendor", "acme")])
POLICY = RequestPolicy(default=1, values=(1,))
FULL = PoolDevice(
    name="gpu-0",
    attributes=LISTS,
    capacity=FrozenMap({"shares": Capacity(value=4, policy=POLICY)}),
    consumes=(Consumption(counter_set="gpu-0", counters=ONE),),
    taints=(Taint(key="accelkit.dev/burnt", effect=Effect.NO_SCHEDULE),),
    shareable=True,
    binding=Binding(conditions=("ready",), failures=("failed",), node=True),
)
SETS = Slice(counter_sets=(CounterSet(name="gpu-0", counters=ONE),))


def without(**fields: Any) -> Slice:  # type: ignore[explicit-any]  # of PoolDevice
    return Slice(devices=(attrs.evolve(FULL, **fields),))


LOSSES = {
    "taints": without(taints=()),
    "consumesCounters": without(consumes=()),
    "allowMultipleAllocations": without(shareable=False),
    "bindingConditions": without(binding=None),
    "requestPolicy": without(capacity=FrozenMap({"shares": Capacity(value=4)})),
    "attributes": without(attributes=FrozenMap({"vendor": "acme"})),
}


@pytest.mark.parametrize("field,kept", LOSSES.items(), ids=LOSSES.keys())
def test_field_that_was_dropped_is_named(field: str, kept: Slice) -> None:
    assert dropped(without(), kept) == {field}


def test_fields_that_go_together_are_all_named() -> None:
    kept = without(taints=(), shareable=False, capacity={"shares": Capacity(value=4)})

    assert dropped(without(), kept) == {"taints", "allowMultipleAllocations", "requestPolicy"}


def test_counter_sets_that_were_dropped_leave_an_empty_slice() -> None:
    assert dropped(SETS, Slice()) == {"sharedCounters"}


def test_device_that_is_only_bound_to_its_node_is_named() -> None:
    bound = attrs.evolve(FULL, binding=Binding(conditions=(), failures=(), node=True))

    assert dropped(Slice(devices=(bound,)), without(binding=None)) == {"bindsToNode"}


def test_nothing_was_dropped() -> None:
    assert dropped(without(), without()) == frozenset()
    added = tuple(attrs.evolve(taint, added=None) for taint in FULL.taints)
    assert dropped(without(), without(taints=added)) == frozenset()


@pytest.mark.parametrize(
    "kept",
    [
        None,
        Slice(),
        without(name="gpu-1"),
        without(taints=(Taint(key="a/b", effect=Effect.NONE),)),
        without(consumes=(Consumption(counter_set="gpu-1", counters=ONE),)),
        without(capacity={"shares": Capacity(value=5, policy=POLICY)}),
        without(attributes=FrozenMap({**LISTS, "vendor": "other"})),
    ],
)
def test_other_difference_is_no_dialect(kept: Slice | None) -> None:
    assert dropped(without(), kept) == {OTHER}


def test_other_counter_sets_are_no_dialect() -> None:
    other = Slice(counter_sets=(CounterSet(name="gpu-1", counters=ONE),))

    assert dropped(SETS, other) == {OTHER}


def test_dialect_loses_what_a_field_is_for() -> None:
    lists = Dialect(list_attributes=True)

    assert narrowed(lists, LOSSES) == attrs.evolve(PLAIN, most_taints=16)
    assert narrowed(lists, ["sharedCounters", OTHER]) == attrs.evolve(lists, counters=False)
    assert narrowed(lists, ["bindsToNode"]) == attrs.evolve(lists, bindings=False)
    assert narrowed(lists, []) == lists


@pytest.mark.parametrize(
    "release,dialect",
    [
        ("1.34", PLAIN),
        ("v1.34.4", PLAIN),
        ("1.35", PLAIN),
        ("1.36", Dialect()),
        ("v1.37.2", Dialect()),
    ],
)
def test_release_keeps_what_its_gates_keep_by_default(release: str, dialect: Dialect) -> None:
    assert of_release(release) == dialect


@pytest.mark.parametrize("release", ["1.33", "2", "", "latest"])
def test_release_that_was_not_tried_is_refused(release: str) -> None:
    with pytest.raises(ConfigError, match=r"none of 1\.34, 1\.35, 1\.36, 1\.37"):
        of_release(release)
