"""Places for layouts, held against an enumeration of all that can be on a device."""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from random import Random

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import Misfit, UnsatisfiableLayout
from accelkit.core.model import Device, Placement, Profile
from accelkit.core.partition import Arrangement, openings, place
from accelkit.core.values import FrozenMap
from tests.core.partition.brute import (
    A30,
    GRID,
    RTX,
    UNEVEN,
    Some,
    device,
    devices,
    everything,
    largest,
    layout_of,
    rank,
    room_left,
)

PRODUCTS = {"A30": A30, "grid": GRID, "RTX": RTX, "uneven": UNEVEN}


class World:
    """All that can be on a device, by layout."""

    def __init__(self, one: Device) -> None:
        self.device = one
        self.sets = everything(one)
        self.by_layout: dict[tuple[tuple[str, int], ...], list[Some]] = {}
        for some in self.sets:
            self.by_layout.setdefault(tuple(layout_of(some).items()), []).append(some)
        self.layouts = [dict(layout) for layout in self.by_layout]
        self._ranks: dict[Some, tuple[int, list[list[int]]]] = {}

    def best(self, layout: Mapping[str, int], existing: Some, pinned: Some) -> Some | None:
        return min(
            (some for some in self._of(layout) if pinned <= some),
            key=lambda some: (-len(some & existing), self._rest(some)),
            default=None,
        )

    def _of(self, layout: Mapping[str, int]) -> list[Some]:
        return self.by_layout.get(tuple(sorted((k, n) for k, n in layout.items() if n)), [])

    def _rest(self, some: Some) -> tuple[int, list[list[int]]]:
        if some not in self._ranks:
            _, room, starts = rank(self.device, some, frozenset())
            self._ranks[some] = room, starts
        return self._ranks[some]

    def check(self, layout: Mapping[str, int], existing: Some, pinned: Some = frozenset()) -> None:
        """Ask for *layout*, and compare all that is answered."""
        best = self.best(layout, existing, pinned)
        if best is not None:
            assert place(self.device, layout, existing, pinned) == Arrangement(
                places=tuple(sorted(best)),
                kept=len(best & existing),
                openings=room_left(self.device, best),
            )
            return
        with pytest.raises(UnsatisfiableLayout) as refused:
            place(self.device, layout, existing, pinned)
        assert refused.value.largest == largest(self.device, self.sets, layout, pinned)
        assert refused.value.why is why_not(self.device, layout, pinned)


def why_not(one: Device, layout: Mapping[str, int], pinned: Some) -> Misfit:
    """The cheapest reason, for layouts that cannot be."""
    profiles = {p.name: p for p in one.profiles}
    asked = [(profiles[name], n) for name, n in layout.items()]
    if any(n > layout.get(name, 0) for name, n in layout_of(pinned).items()):
        return Misfit.PINNED
    if any(p.limit is not None and n > p.limit for p, n in asked):
        return Misfit.LIMIT
    for key, total in one.counters.items():
        if sum(p.counters.get(key, 0) * n for p, n in asked) > total:
            return Misfit.COUNTER
    return Misfit.SLOTS if sum(p.size * n for p, n in asked) > one.slots else Misfit.GEOMETRY


@cache
def world(name: str) -> World:
    return World(PRODUCTS[name])


def sampled(name: str, times: int) -> Iterable[tuple[World, Random]]:
    random = Random(name)
    here = world(name)
    for _ in range(times):
        yield here, random


def some_of(random: Random, places: Iterable[Placement]) -> Some:
    return frozenset(p for p in sorted(places) if random.random() < 0.4)


def test_every_layout_beside_everything_that_can_be_on_an_a30_is_placed_best() -> None:
    here = world("A30")
    assert (len(here.sets), len(here.layouts)) == (76, 20)

    for existing, layout in product(here.sets, here.layouts):
        here.check(layout, existing)


def test_every_wish_up_to_one_too_many_on_an_a30_is_placed_or_told_what_fits() -> None:
    wishes = product(*(range(p.limit + 2) for p in A30.profiles if p.limit is not None))

    for wish in wishes:
        layout = {p.name: n for p, n in zip(A30.profiles, wish, strict=True)}
        world("A30").check(layout, frozenset())


@pytest.mark.parametrize("name", ["grid", "RTX", "uneven"])
def test_layouts_are_placed_best_beside_what_is_there(name: str) -> None:
    for here, random in sampled(name, 150):
        existing = random.choice(here.sets)
        here.check(random.choice(here.layouts), existing, frozenset())


@pytest.mark.parametrize("name", PRODUCTS)
def test_layouts_are_placed_best_beside_what_must_stay(name: str) -> None:
    for here, random in sampled(name, 150):
        existing = random.choice(here.sets)
        pinned = some_of(random, existing)
        layout: Mapping[str, int] = random.choice(here.layouts)
        if random.random() < 0.7:  # one that has them
            layout = layout_of(random.choice([some for some in here.sets if pinned <= some]))
        here.check(layout, existing, pinned)


@pytest.mark.parametrize("name", ["grid", "RTX"])
def test_what_does_not_fit_is_told_with_the_largest_part(name: str) -> None:
    for here, random in sampled(name, 25):
        layout = {p.name: random.randint(0, (p.limit or 0) + 1) for p in here.device.profiles}
        here.check(layout, frozenset())


@given(devices(), st.data())
def test_any_device_is_cut_as_well_as_can_be(one: Device, data: st.DataObject) -> None:
    here = World(one)
    existing = data.draw(st.sampled_from(here.sets))
    pinned = frozenset(data.draw(st.sets(st.sampled_from(sorted(existing)))) if existing else ())
    names = st.sampled_from([p.name for p in one.profiles])
    layout = data.draw(st.sampled_from(here.layouts) | st.dictionaries(names, st.integers(0, 3)))

    here.check(layout, existing, pinned)


@given(devices(), st.data())
def test_what_was_placed_is_kept_when_it_is_placed_again(one: Device, data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from([layout_of(some) for some in everything(one)]))

    first = place(one, layout)
    again = place(one, layout, first.places)

    assert again == attrs.evolve(first, kept=len(first.places))


@given(devices(), st.data())
def test_openings_are_as_defined_and_never_grow_with_another_partition(
    one: Device, data: st.DataObject
) -> None:
    sets = everything(one)
    some = data.draw(st.sampled_from(sets))
    names = [p.name for p in one.profiles]
    offered = data.draw(st.none() | st.sets(st.sampled_from(names)))

    left = openings(one, some, offered=offered)

    assert left == room_left(one, some, offered)
    more = [other for other in sets if len(other) == len(some) + 1 and some < other]
    assert all(openings(one, other, offered=offered) <= left for other in more)


def test_an_empty_device_has_all_its_openings() -> None:
    assert openings(GRID, []) == 48
    assert openings(GRID, [], offered=["1g.5gb", "3g.20gb"]) == 15


def test_only_openings_of_what_is_offered_count() -> None:
    layout = {"1g.5gb": 1}

    assert [p.start for p in place(GRID, layout).places] == [6]
    assert [p.start for p in place(GRID, layout, offered=["1g.5gb", "3g.20gb"]).places] == [0]


@pytest.mark.parametrize(
    "layout,pinned,why,text,remedy",
    [
        (
            {"1g.6gb": 1, "1g.6g": 1},
            [],
            Misfit.PROFILE,
            "it has no profile '1g.6g'; there is 1g.6gb, 1g.6gb+me, 2g.12gb, 2g.12gb+me, 4g.24gb",
            "ask for what fits: 1 x 1g.6gb",
        ),
        (
            {"2g.12gb": 1},
            [("1g.6gb", 0)],
            Misfit.PINNED,
            "1 of 1g.6gb must stay, the layout has 0",
            "ask for what fits: 1 x 1g.6gb, 1 x 2g.12gb",
        ),
        (
            {"1g.6gb": 5},
            [],
            Misfit.LIMIT,
            "there can be 4 of 1g.6gb, not 5",
            "ask for what fits: 4 x 1g.6gb",
        ),
        (
            {"4g.24gb": 1, "1g.6gb": 1},
            [],
            Misfit.COUNTER,
            "it has 4 ce, the layout needs 5",
            "ask for what fits: 1 x 4g.24gb",
        ),
        (
            {"2g.12gb": 1},
            [("2g.12gb", 0), ("2g.12gb", 2)],
            Misfit.PINNED,
            "2 of 2g.12gb must stay, the layout has 1",
            "ask for what fits: 2 x 2g.12gb",
        ),
    ],
)
def test_refusals_say_what_is_wrong_and_what_fits(
    layout: dict[str, int],
    pinned: list[tuple[str, int]],
    why: Misfit,
    text: str,
    remedy: str,
) -> None:
    sizes = {p.name: p.size for p in A30.profiles}
    must = [Placement(profile=name, start=start, size=sizes[name]) for name, start in pinned]

    with pytest.raises(UnsatisfiableLayout) as refused:
        place(A30, layout, must, must)

    error = refused.value
    assert (error.why, error.device, error.remedy) == (why, "vectors/device", remedy)
    assert str(error) == f"vectors/device cannot be cut so: {text}"


def test_partitions_of_profiles_that_are_gone_are_not_kept() -> None:
    old = Placement(profile="1g.5gb", start=0, size=1)

    assert place(A30, {"1g.6gb": 1}, [old]).kept == 0


def test_slots_may_be_too_few_though_engines_suffice() -> None:
    one = device(Profile(name="2x", slug="2x", size=2, starts=(0, 1)), slots=3)

    with pytest.raises(UnsatisfiableLayout, match="3 slots, the layout needs 4") as refused:
        place(one, {"2x": 2})

    assert (refused.value.why, refused.value.largest) == (Misfit.SLOTS, {"2x": 1})


def test_places_may_overlap_though_slots_suffice() -> None:
    one = device(Profile(name="3x", slug="3x", size=3, starts=(0, 1, 2)), slots=6)

    with pytest.raises(UnsatisfiableLayout, match="no places for all of it") as refused:
        place(one, {"3x": 2})

    assert (refused.value.why, refused.value.largest) == (Misfit.GEOMETRY, {"3x": 1})


def test_nothing_fits_beside_partitions_that_are_said_to_overlap() -> None:
    both = [
        Placement(profile="1g.6gb", start=0, size=1),
        Placement(profile="1g.6gb+me", start=0, size=1),
    ]

    with pytest.raises(UnsatisfiableLayout) as refused:
        place(A30, {"1g.6gb": 1, "1g.6gb+me": 1}, both, both)

    assert (refused.value.why, refused.value.largest, refused.value.remedy) == (
        Misfit.GEOMETRY,
        {},
        "",
    )


# Devices like no product that is known.

LONG = device(Profile(name="core", slug="core", size=1, starts=range(64)), slots=64)


def test_a_device_that_would_take_too_long_is_cut_as_it_comes() -> None:
    there = [Placement(profile="core", start=n, size=1) for n in (40, 50)]

    found = place(LONG, {"core": 32}, there, there[:1])

    assert [p.start for p in found.places] == [*range(30), 40, 50]
    assert found.kept == 2


def alike(amount: int, **totals: int) -> Device:
    """Profiles that differ in nothing but their names, one of each at most."""
    profiles = [
        Profile(
            name=f"p{n:02}",
            slug=f"p{n:02}",
            size=1,
            starts=tuple(range(64)),
            limit=1,
            counters=FrozenMap(dict.fromkeys(totals, 1)),
        )
        for n in range(amount)
    ]
    return device(*profiles, slots=64, **totals)


def test_partitions_with_too_many_places_are_placed_as_they_come() -> None:
    names = [f"p{n:02}" for n in range(4)]

    found = place(alike(4), dict.fromkeys(names, 1))

    assert [(p.profile, p.start) for p in found.places] == [*zip(names, range(4), strict=True)]


def test_the_largest_part_is_not_told_where_finding_it_takes_too_long() -> None:
    layout = {f"p{n:02}": 1 for n in range(20)}

    with pytest.raises(UnsatisfiableLayout) as refused:
        place(alike(20, engines=10), layout)

    assert (refused.value.why, refused.value.largest) == (Misfit.COUNTER, {})


def winding(amount: int) -> Device:
    """Profiles of many sizes that start anywhere."""
    profiles = [
        Profile(name=f"{n}x", slug=f"{n}x", size=n, starts=range(64 - n + 1))
        for n in range(1, amount + 1)
    ]
    return device(*profiles, slots=64)


def test_where_finding_out_takes_too_long_it_stays_undecided() -> None:
    there = [Placement(profile="1x", start=n, size=1) for n in range(5, 64, 6)]

    with pytest.raises(UnsatisfiableLayout) as refused:
        place(winding(8), {"4x": 4, "3x": 8, "1x": len(there)}, there, there)

    assert (refused.value.why, refused.value.largest) == (Misfit.UNDECIDED, {})
    assert str(refused.value) == "toy/a cannot be cut so: finding out takes too long"
