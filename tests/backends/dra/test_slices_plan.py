"""Which slices are written, in which order."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.backends.dra.objects import Owner, slice_name, slice_object
from accelkit.backends.dra.packing import Unit, pack
from accelkit.backends.dra.pool import (
    CounterSet,
    Effect,
    Pool,
    PoolDevice,
    Slice,
    Taint,
)
from accelkit.backends.dra.slices_plan import Plan, Verb, Write, plan
from accelkit.backends.dra.stored import Stored, read_slice
from accelkit.core.values import FrozenMap
from tests.backends.dra.test_packing import UNITS, several
from tests.backends.dra.views import DRIVER, NODE

Devices: TypeAlias = tuple[PoolDevice, ...]

OWNER = Owner(name=NODE, uid="u1")
TAINT = Taint(key="accelkit.dev/burnt", effect=Effect.NO_SCHEDULE)


def pool(slices: Iterable[Slice]) -> Pool:
    return Pool(driver=DRIVER, name=NODE, slices=tuple(slices))


def stored(of: Pool, generation: int = 1, owner: Owner = OWNER) -> list[Stored]:
    """What a server keeps of a whole pool; versions are a, b and so on."""
    return [
        attrs.evolve(
            read_slice(slice_object(of, n, generation=generation, owner=owner)),
            version=chr(ord("a") + n),
        )
        for n in range(len(of.slices))
    ]


def done(todo: Plan, of: Pool, before: Iterable[Stored]) -> Iterator[list[Stored]]:
    """What is there after each write."""
    there = {one.name: one for one in before}
    for write in todo.writes:
        if write.verb is Verb.DELETE:
            del there[write.name]
        else:
            item = slice_object(of, write.number, generation=todo.generation, owner=OWNER)
            there[write.name] = read_slice(item)
        yield list(there.values())


def believed(there: Iterable[Stored]) -> tuple[Slice, ...] | None:
    """What a scheduler makes of slices; None: the pool is not complete."""
    found = sorted(there, key=lambda one: one.name)
    newest = max((one.generation for one in found), default=0)
    current = [one for one in found if one.generation == newest]
    if not current or {one.count for one in current} != {len(current)}:
        return None
    return tuple(one.slice or Slice() for one in current)


def valid(slices: Iterable[Slice]) -> bool:
    """Whether a scheduler takes a pool: every counter that is consumed is there."""
    every = tuple(slices)
    totals = {s.name: s.counters for one in every for s in one.counter_sets}
    return all(
        taken.counter_set in totals and taken.counters.keys() <= totals[taken.counter_set].keys()
        for one in every
        for device in one.devices
        for taken in device.consumes
    )


def verbs(todo: Plan) -> list[tuple[str, int]]:
    return [(write.verb.value, write.number) for write in todo.writes]


def tainted(one: Unit) -> Unit:
    first, *rest = one.devices
    return attrs.evolve(one, devices=(attrs.evolve(first, taints=(TAINT,)), *rest))


def test_first_publication_creates_all_in_generation_one() -> None:
    todo = plan(pool(pack(several(3, 40))), [], OWNER)

    assert (verbs(todo), todo.generation) == ([("create", 0), ("create", 1), ("create", 2)], 1)
    assert not todo.alters


def test_generation_never_goes_back() -> None:
    """Slices that were all wiped come back above those that somebody may remember."""
    assert plan(pool([Slice()]), [], OWNER, least=7).generation == 8


def test_slices_that_are_as_they_should_be_are_left_alone() -> None:
    there = pool(pack(several(3, 40)))

    assert plan(there, stored(there, 5), OWNER) == Plan(generation=5)


def test_one_slice_of_devices_changes_in_its_generation() -> None:
    before = pack(several(3, 40))
    after = pool(pack([tainted(several(3, 40)[1]), *several(3, 40)[::2]], before))

    todo = plan(after, stored(pool(before), 5), OWNER)

    name = slice_name(DRIVER, NODE, 1)
    assert todo == Plan(
        writes=(Write(verb=Verb.UPDATE, name=name, number=1, version="b"),), generation=5
    )
    assert todo.alters


def test_two_slices_of_devices_are_a_new_generation_of_all() -> None:
    before = pack(several(3, 40))
    after = pool(pack([*map(tainted, several(2, 40)), several(3, 40)[2]], before))

    todo = plan(after, stored(pool(before), 5), OWNER)

    assert (verbs(todo), todo.generation) == ([("update", 0), ("update", 1), ("update", 2)], 6)


def test_new_slice_is_created_after_all_others_are_of_its_generation() -> None:
    before = pack(several(2, 40))
    after = pool(pack(several(3, 40), before))

    todo = plan(after, stored(pool(before), 5), OWNER)

    assert (verbs(todo), todo.generation) == ([("update", 0), ("update", 1), ("create", 2)], 6)


def test_unit_that_comes_brings_its_counter_set_first() -> None:
    before = pack(several(1, 5, counters=True))
    after = pool(pack(several(2, 5, counters=True), before))

    todo = plan(after, stored(pool(before), 5), OWNER)

    assert (verbs(todo), todo.generation) == ([("update", 0), ("update", 1)], 5)


def test_counter_set_that_changes_is_a_new_generation() -> None:
    """Its devices cannot consume of the old and of the new."""
    before = pool([Slice(counter_sets=(CounterSet(name="a", counters=FrozenMap({"x": 1})),))])
    after = pool([Slice(counter_sets=(CounterSet(name="a", counters=FrozenMap({"x": 2})),))])

    assert plan(after, stored(before, 5), OWNER).generation == 6


def test_slices_that_are_none_of_the_pool_go_first() -> None:
    there = pool(pack(several(1, 40)))
    more = pool(pack(several(2, 40)))
    other = attrs.evolve(stored(more)[1], pool="other", count=1)

    todo = plan(there, [stored(there, 5)[0], attrs.evolve(stored(more, 4)[1], count=1)], OWNER)
    renamed = plan(more, [*stored(more, 5)[:1], other], OWNER)

    assert (verbs(todo), todo.generation) == ([("delete", -1)], 5)
    assert verbs(renamed) == [("delete", -1), ("update", 0), ("create", 1)]


def test_slice_of_another_node_with_our_name_is_given_to_ours() -> None:
    """A node that was made anew has another uid: its slices would be collected."""
    there = pool(pack(several(1, 40)))

    todo = plan(there, stored(there, 5, Owner(name=NODE, uid="old")), OWNER)

    assert (verbs(todo), todo.generation) == ([("update", 0)], 5)


def test_slice_that_the_server_keeps_otherwise_is_not_sent_again() -> None:
    there = pool(pack(several(1, 40)))
    (kept,) = stored(pool([Slice()]), 5)

    accepted = {kept.name: (there.slices[0], "a")}

    assert plan(there, [kept], OWNER, accepted=accepted).writes == ()
    assert plan(there, [attrs.evolve(kept, version="z")], OWNER, accepted=accepted).writes
    assert plan(pool([Slice()]), [kept], OWNER, accepted=accepted).writes == ()


def test_slice_with_foreign_parts_is_written_anew() -> None:
    there = pool(pack(several(1, 40)))
    (one,) = stored(there, 5)

    assert verbs(plan(there, [attrs.evolve(one, slice=None)], OWNER)) == [("update", 0)]


@pytest.mark.slow
@given(UNITS, UNITS, UNITS)
def test_nobody_ever_sees_half_a_change(
    first: list[Unit], second: list[Unit], third: list[Unit]
) -> None:
    """SL11, SL05: after each write the pool is the old one, the new one, or not complete.

    Where a counter set comes or stays by itself, devices are the old ones with one set more.
    """
    there: list[Stored] = []
    slices: tuple[Slice, ...] = ()
    for units in (first, second, third):
        before, slices = slices, pack(units, slices)
        wanted = pool(slices)
        todo = plan(wanted, there, OWNER)
        for there in done(todo, wanted, there):  # noqa: B020 - what is there after the last write
            seen = believed(there)
            devices = None if seen is None else [one.devices for one in seen]
            old, new = ([one.devices for one in pool] for pool in (before, slices))
            assert devices in (None, _filled(old, devices), _filled(new, devices))
            assert seen is None or valid(seen)
        assert believed(there) == slices
        assert plan(wanted, there, OWNER).writes == ()


def _filled(some: list[Devices], like: list[Devices] | None) -> list[Devices]:
    return some + [()] * (len(like or ()) - len(some))


@pytest.mark.slow
@given(UNITS, UNITS, st.integers(0, 20))
def test_whoever_is_stopped_in_the_middle_ends_where_all_end(
    before: list[Unit], after: list[Unit], stop: int
) -> None:
    old = pool(pack(before))
    new = pool(pack(after, old.slices))
    states = [stored(old, 3), *done(plan(new, stored(old, 3), OWNER), new, stored(old, 3))]
    there = states[min(stop, len(states) - 1)]

    todo = plan(new, there, OWNER)
    *_, last = [there, *done(todo, new, there)]

    assert believed(last) == new.slices
