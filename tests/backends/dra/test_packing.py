"""Units in slices: a change writes one of them."""

import attrs
from hypothesis import given, strategies as st

from accelkit.backends.dra.checking import check_slice
from accelkit.backends.dra.packing import MOST_DEVICES, PARENT, Unit, changed, pack
from accelkit.backends.dra.pool import (
    Consumption,
    CounterSet,
    Effect,
    PoolDevice,
    Slice,
    Taint,
)
from accelkit.core.values import FrozenMap

TAINT = Taint(key="accelkit.dev/burnt", effect=Effect.NO_SCHEDULE)
TOTALS = FrozenMap({"slot-0": 1, "slot-1": 1})


def unit(name: str, devices: int, *, counters: bool = False, room: int = 0) -> Unit:
    consumes = (Consumption(counter_set=name, counters=TOTALS),) if counters else ()
    return Unit(
        name=name,
        devices=tuple(
            PoolDevice(name=f"{name}-{n}", attributes=FrozenMap({PARENT: name}), consumes=consumes)
            for n in range(devices)
        ),
        counters=TOTALS if counters else FrozenMap(),
        room=room,
    )


def several(count: int, devices: int, *, counters: bool = False) -> list[Unit]:
    return [unit(f"gpu-{n:02}", devices, counters=counters) for n in range(count)]


def shape(slices: tuple[Slice, ...]) -> list[list[str]]:
    """Names of the units or counter sets of each slice."""
    return [
        [s.name for s in one.counter_sets]
        or list(dict.fromkeys(str(d.attributes[PARENT]) for d in one.devices))
        for one in slices
    ]


UNITS = st.lists(
    st.builds(
        unit,
        st.sampled_from([f"gpu-{n}" for n in range(12)]),
        st.integers(0, 140),
        counters=st.booleans(),
        room=st.integers(0, 80),
    ),
    max_size=12,
    unique_by=lambda one: one.name,
)


@given(UNITS, UNITS)
def test_packing_twice_changes_nothing(before: list[Unit], after: list[Unit]) -> None:
    slices = pack(after, pack(before))

    assert pack(after, slices) == slices


@given(UNITS, UNITS)
def test_everything_is_in_one_slice_and_every_slice_obeys_the_limits(
    before: list[Unit], after: list[Unit]
) -> None:
    slices = pack(after, pack(before))

    packed = [d.name for one in slices for d in one.devices]
    assert sorted(packed) == sorted(d.name for one in after for d in one.devices)
    sets = [s.name for one in slices for s in one.counter_sets]
    assert {one.name for one in after if one.counters} <= set(sets)
    assert len(sets) == len(set(sets))
    assert [check_slice(one) for one in slices] == [()] * len(slices)


@given(UNITS)
def test_fresh_packing_depends_on_the_set_of_units_alone(units: list[Unit]) -> None:
    assert pack(units) == pack(reversed(units))


@given(UNITS, UNITS, st.data())
def test_change_inside_a_unit_writes_one_slice(
    before: list[Unit], after: list[Unit], data: st.DataObject
) -> None:
    small = [one for one in after if 0 < len(one.devices) <= MOST_DEVICES]
    slices = pack(after, pack(before))
    for one in small[: data.draw(st.integers(0, 3))]:
        tainted = tuple(attrs.evolve(d, taints=(TAINT,)) for d in one.devices)
        rest = [other for other in after if other is not one]

        again = pack([*rest, attrs.evolve(one, devices=tainted)], slices)

        assert (len(again), len(changed(again, slices))) == (len(slices), 1)


def test_whole_units_stay_together_and_counters_come_first() -> None:
    assert shape(pack(several(5, 26, counters=True))) == [
        ["gpu-00", "gpu-01", "gpu-02", "gpu-03", "gpu-04"],
        ["gpu-00", "gpu-01"],
        ["gpu-02", "gpu-03"],
        ["gpu-04"],
    ]


def test_unit_that_is_gone_leaves_a_hole_which_the_next_one_fills() -> None:
    full = pack(several(6, 26))
    holed = pack([one for one in several(6, 26) if one.name != "gpu-01"], full)

    assert shape(holed) == [["gpu-00"], ["gpu-02", "gpu-03"], ["gpu-04", "gpu-05"]]
    assert shape(pack([*several(6, 26)[2:], unit("a", 26), several(6, 26)[0]], holed)) == [
        ["a", "gpu-00"],
        ["gpu-02", "gpu-03"],
        ["gpu-04", "gpu-05"],
    ]


def test_slice_that_empties_stays_until_all_are_written_anyway() -> None:
    full = pack(several(4, 40))
    one_gone = pack(several(3, 40), full)
    two_gone = pack(several(1, 40), one_gone)

    assert shape(one_gone) == [["gpu-00"], ["gpu-01"], ["gpu-02"], []]
    assert shape(two_gone) == [["gpu-00"]]


def test_counter_set_of_a_vanished_unit_stays_until_its_slice_is_written() -> None:
    full = pack(several(3, 5, counters=True))
    gone = pack(several(2, 5, counters=True), full)
    other = pack([*several(2, 5, counters=True), unit("other", 5, counters=True)], gone)

    assert shape(gone) == [["gpu-00", "gpu-01", "gpu-02"], ["gpu-00", "gpu-01"]]
    assert shape(other) == [["gpu-00", "gpu-01", "other"], ["gpu-00", "gpu-01", "other"]]


def test_counter_set_never_goes_before_the_devices_that_consume_it() -> None:
    """One publication takes a unit away and brings another: the slice of sets goes first."""
    full = pack(several(2, 5, counters=True))

    swapped = pack([several(2, 5, counters=True)[0], unit("other", 5, counters=True)], full)

    assert shape(swapped) == [["gpu-00", "gpu-01", "other"], ["gpu-00", "other"]]


def test_unit_that_loses_its_counters_leaves_the_set() -> None:
    full = pack(several(1, 5, counters=True))

    assert shape(pack(several(1, 5), full)) == [["gpu-00"], ["gpu-00"]]


def test_unit_whose_partitions_are_all_others_stays_where_it_is() -> None:
    full = pack(several(4, 40))
    cut = attrs.evolve(
        several(4, 40)[2],
        devices=tuple(
            PoolDevice(name=f"new-{n}", attributes=FrozenMap({PARENT: "gpu-02"})) for n in range(50)
        ),
    )

    again = pack([*several(2, 40), cut, several(4, 40)[3]], full)

    assert changed(again, full) == (2,)


def test_unit_with_room_for_more_keeps_others_out() -> None:
    growing = [unit("a", 10, room=40), unit("b", 10, room=40)]

    assert shape(pack(growing)) == [["a"], ["b"]]


def test_unit_that_outgrows_its_slice_moves() -> None:
    before = pack([unit("a", 30), unit("b", 30)])

    assert shape(pack([unit("a", 30), unit("b", 40)], before)) == [["a"], ["b"]]


def test_empty_slice_serves_counter_sets_too() -> None:
    without = pack([], pack(several(1, 5)))

    assert shape(without) == [[]]
    assert shape(pack(several(1, 5, counters=True), without)) == [["gpu-00"], ["gpu-00"]]


def test_slice_that_somebody_wrote_with_sets_and_devices_is_taken_for_one_of_devices() -> None:
    mixed = Slice(
        counter_sets=(CounterSet(name="gpu-00", counters=TOTALS),),
        devices=several(1, 5, counters=True)[0].devices,
    )

    assert shape(pack(several(1, 5, counters=True), [mixed])) == [["gpu-00"], ["gpu-00"]]
