"""Counters, held against an enumeration of all that can be on a device."""

from collections.abc import Iterable, Mapping
from itertools import combinations

import attrs
import pytest
from hypothesis import given

from accelkit.core.model import Device, DeviceId, Mode, Placement, Profile
from accelkit.core.partition import Counters, counters
from accelkit.core.values import FrozenMap, is_dns_label
from tests.core.partition.brute import (
    A30,
    GRID,
    RTX,
    can_be,
    device,
    devices,
    every_place,
    everything,
)


def part(parent: Device, profile: str, start: int) -> Device:
    size = next(p.size for p in parent.profiles if p.name == profile)
    return Device(
        id=DeviceId(vendor=parent.id.vendor, name=f"{parent.id.name}-x-{start}"),
        kind="part",
        parent=parent.id,
        placement=Placement(profile=profile, start=start, size=size),
    )


def fits(found: Counters, takes: Iterable[Mapping[str, int]]) -> bool:
    takes = [*takes]
    return all(sum(t.get(key, 0) for t in takes) <= most for key, most in found.totals.items())


def allowed(one: Device) -> set[frozenset[Placement]]:
    """Every set of places that the counters allow."""
    found = counters(one)
    places = every_place(one)
    sets = {frozenset[Placement]()}
    for place in places:
        sets |= {
            some | {place}
            for some in sets
            if fits(found, [found.takes[p.profile, p.start] for p in (*some, place)])
        }
    return sets


@given(devices())
def test_counters_allow_exactly_what_can_be_on_any_device(one: Device) -> None:
    assert allowed(one) == {*everything(one)}


@given(devices())
def test_nothing_takes_nothing_or_more_than_there_is_and_the_whole_device_takes_all(
    one: Device,
) -> None:
    found = counters(one)

    assert found.of(one) == found.totals
    assert all(is_dns_label(key) for key in found.totals)
    for place in every_place(one):
        takes = found.takes[place.profile, place.start]
        assert takes
        assert all(amount > 0 for amount in takes.values())
        assert takes.keys() <= found.totals.keys()
        # A partition that cannot be there even alone must not fit either.
        assert fits(found, [takes]) == can_be(one, [place])
        assert not fits(found, [takes, found.totals])


@pytest.mark.parametrize(
    "one,keys",
    [
        (A30, ["ofa", "slot-0", "slot-1", "slot-2", "slot-3"]),
        (GRID, ["ofa", *(f"slot-{n}" for n in range(7))]),
        (RTX, ["dec", "ofa", "slot-0", "slot-3", "slot-6", "slot-9"]),
    ],
    ids=["A30", "grid", "RTX"],
)
def test_counters_have_the_names_of_slots_and_of_the_engines_that_bind(
    one: Device, keys: list[str]
) -> None:
    assert [*counters(one).totals] == keys


def test_what_a_partition_takes_follows_from_its_place() -> None:
    found = counters(GRID)

    assert found.of(part(GRID, "1g.5gb+me", 3)) == {"slot-3": 1, "ofa": 1}
    assert found.of(part(GRID, "1g.10gb", 6)) == {"slot-6": 1}
    assert found.of(part(GRID, "7g.40gb", 0)) == found.of(GRID) == found.totals


def test_a_full_device_uses_every_slot_counter() -> None:
    found = counters(GRID)

    used = {key for n in range(7) for key in found.takes["1g.5gb", n]}
    assert used == {f"slot-{n}" for n in range(7)}


def test_profiles_that_exclude_each_other_collide_in_a_counter() -> None:
    found = counters(RTX)

    for one, other in combinations(every_place(RTX), 2):
        takes = [found.takes[p.profile, p.start] for p in (one, other)]
        assert fits(found, takes) == can_be(RTX, [one, other])


def test_a_device_that_cannot_be_cut_has_no_counters() -> None:
    assert counters(device(slots=0)) == Counters()


def test_neighbouring_slots_are_one_counter_where_that_loses_nothing() -> None:
    chip = device(
        Profile(name="chip", slug="chip", size=8, starts=(0,)),
        Profile(name="core", slug="core", size=1, starts=tuple(range(8))),
        slots=8,
    )

    assert counters(chip).totals == {"slot-0": 8}
    assert counters(chip).takes["core", 5] == {"slot-0": 1}


def test_limits_that_slots_do_not_imply_are_counters() -> None:
    one = device(Profile(name="1g", slug="1g", size=1, starts=(0, 1, 2, 3), limit=2), slots=4)

    assert counters(one).totals == {"limit-1g": 2, "slot-0": 4}
    assert counters(one).takes["1g", 3] == {"limit-1g": 1, "slot-0": 1}


def test_a_total_that_a_looser_one_implies_is_no_counter() -> None:
    one = device(
        Profile(
            name="p", slug="p", size=1, starts=(0, 1, 2, 3), counters=FrozenMap({"a": 1, "b": 2})
        ),
        Profile(name="q", slug="q", size=1, starts=(4, 5, 6, 7), counters=FrozenMap({"b": 1})),
        slots=8,
        a=2,
        b=5,
    )

    assert {*counters(one).totals} == {"b", "slot-0"}
    assert allowed(one) == {*everything(one)}


def test_engines_whose_names_are_no_labels_or_taken_get_some() -> None:
    needs = FrozenMap({"copyEngines": 1, "copyengines": 2, "slot-0": 3})
    one = device(
        Profile(name="1g", slug="1g", size=1, starts=(0, 1, 2, 3), counters=needs),
        slots=4,
        **{"copyEngines": 2, "copyengines": 5, "slot-0": 8},
    )

    assert allowed(one) == {*everything(one)}
    assert all(is_dns_label(key) for key in counters(one).totals)


def test_tables_that_take_too_long_have_more_counters_that_say_the_same() -> None:
    profiles = [
        Profile(
            name=f"{n}x",
            slug=f"{n}x",
            size=1,
            starts=tuple(range(64)),
            limit=60 - n,
            counters=FrozenMap({f"e{m}": 1 + (n * m) % 7 for m in range(6)}),
        )
        for n in range(8)
    ]
    one = device(*profiles, slots=64, **{f"e{m}": 90 + m for m in range(6)})

    assert {f"e{m}" for m in range(6)} <= {*counters(one).totals}


# Modes that are a fixed cut.


def in_modes(**cuts: int) -> Device:
    slots = max(cuts.values(), default=1)
    profiles = [
        Profile(
            name=name,
            slug=name,
            size=slots // n,
            starts=tuple(range(0, slots, slots // n)),
            mode=name,
        )
        for name, n in cuts.items()
    ]
    modes = [Mode(name=name, cut=name, count=n) for name, n in cuts.items()]
    return attrs.evolve(device(*profiles, slots=slots), modes=(Mode(name="spx"), *modes))


@pytest.mark.parametrize(
    "cuts,count,total",
    [
        ({"dpx": 2, "qpx": 4, "cpx": 8}, 4, 56),
        ({"tpx": 3, "cpx": 6}, 3, 18),
        ({"dpx": 2, "cpx": 4}, 2, 8),
        ({"cpx": 8}, 1, 8),
        ({"left": 4, "right": 4}, 4, 16),
    ],
)
def test_partitions_of_one_mode_go_together_and_exclude_all_others(
    cuts: dict[str, int], count: int, total: int
) -> None:
    one = in_modes(**cuts)
    found = counters(one)

    assert found.totals == {f"mode-{n}": total for n in range(count)}
    for mode, other in combinations(cuts, 2):
        for a, b in [
            (a, b) for a in found.takes if a[0] == mode for b in found.takes if b[0] == other
        ]:
            assert not fits(found, [found.takes[a], found.takes[b]])
    for mode in cuts:
        assert fits(found, [takes for (name, _), takes in found.takes.items() if name == mode])
    assert not any(fits(found, [takes, found.totals]) for takes in found.takes.values())


def test_partitions_that_no_mode_cuts_exclude_everything() -> None:
    one = in_modes(dpx=2)
    free = Profile(name="free", slug="free", size=1, starts=(0,))

    found = counters(attrs.evolve(one, profiles=(*one.profiles, free)))

    assert found.takes["free", 0] == found.totals
