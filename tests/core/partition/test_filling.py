"""Where one more partition goes."""

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.model import Device, Placement, Profile
from accelkit.core.partition import choose_start, filling_order
from accelkit.core.values import FrozenMap
from tests.core.partition.brute import (
    GRID,
    UNEVEN,
    can_be,
    devices,
    every_place,
    everything,
    room_left,
)


@given(devices(), st.data())
def test_one_more_partition_goes_where_most_openings_are_left(
    one: Device, data: st.DataObject
) -> None:
    some = data.draw(st.sampled_from(everything(one)))
    profile = data.draw(st.sampled_from(one.profiles)).name
    names = [p.name for p in one.profiles]
    offered = data.draw(st.none() | st.sets(st.sampled_from(names)))

    start = choose_start(one, some, profile, offered=offered)

    possible = [
        place
        for place in every_place(one)
        if place.profile == profile and place not in some and can_be(one, {*some, place})
    ]
    best = min(
        possible, key=lambda p: (-room_left(one, some | {p}, offered), p.start), default=None
    )
    assert start == (None if best is None else best.start)


@given(devices(), st.data())
def test_every_start_of_every_listed_profile_is_in_order_once(
    one: Device, data: st.DataObject
) -> None:
    names = [p.name for p in one.profiles]
    offered = data.draw(st.none() | st.sets(st.sampled_from(names)))

    order = filling_order(one, offered=offered)

    assert {name: sorted(starts) for name, starts in order.items()} == {
        p.name: [*p.starts] for p in one.profiles if offered is None or p.name in offered
    }


@given(devices())
def test_an_empty_device_is_filled_as_if_slots_alone_mattered(one: Device) -> None:
    possible = [p.name for p in one.profiles if can_be(one, [first_place(p)])]
    free = attrs.evolve(
        one,
        counters=FrozenMap(),
        profiles=tuple(attrs.evolve(p, limit=None) for p in one.profiles),
    )

    for name, order in filling_order(one).items():
        there: list[Placement] = []
        while (start := choose_start(free, there, name, offered=possible)) is not None:
            size = next(p.size for p in one.profiles if p.name == name)
            there.append(Placement(profile=name, start=start, size=size))
        starts = [place.start for place in there]
        assert order == (*starts, *sorted({*order} - {*starts}))


def first_place(profile: Profile) -> Placement:
    return Placement(profile=profile.name, start=profile.starts[0], size=profile.size)


def test_profiles_that_there_can_be_one_of_are_listed_as_if_there_could_be_more() -> None:
    """A claim of the second kind may come when the first places are taken by others."""
    order = filling_order(GRID)

    assert order["1g.5gb+me"] == order["1g.5gb"] == (6, 4, 5, 0, 1, 2, 3)


@pytest.mark.parametrize(
    "profile,order", [("xs", (9, 6, 3, 0)), ("s", (6, 8, 4, 2, 0)), ("l", (0, 5)), ("xl", (0,))]
)
def test_small_partitions_are_listed_where_they_are_least_in_the_way(
    profile: str, order: tuple[int, ...]
) -> None:
    assert filling_order(UNEVEN)[profile] == order


def test_there_is_no_room_for_more_than_the_limit() -> None:
    there = [Placement(profile="1g.5gb+me", start=6, size=1)]

    assert choose_start(GRID, there, "1g.5gb+me") is None
    assert choose_start(GRID, there, "1g.5gb") == 4
