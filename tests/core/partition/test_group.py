"""Layouts over several devices, held against all ways to divide them."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import Misfit, UnsatisfiableLayout
from accelkit.core.model import Placement
from accelkit.core.partition import Member, place_group
from tests.core.partition.brute import (
    A30,
    GRID,
    Some,
    devices,
    everything,
    layout_of,
)
from tests.core.partition.test_placing import LONG, winding


def most_kept(members: Sequence[Member], layout: dict[str, int]) -> int | None:
    """By trying everything on every device; None: nothing makes up the layout."""
    wanted = Counter({name: n for name, n in layout.items() if n})
    each = []
    for member in members:
        best: dict[tuple[tuple[str, int], ...], int] = {}
        for some in everything(member.device):
            if member.pinned <= some:
                key = tuple(layout_of(some).items())
                best[key] = max(best.get(key, 0), len(some & member.existing))
        each.append(best)
    found = [
        sum(kept for _, kept in choice)
        for choice in product(*(best.items() for best in each))
        if sum((Counter(dict(key)) for key, _ in choice), Counter()) == wanted
    ]
    return max(found, default=None)


def check(members: Sequence[Member], layout: dict[str, int]) -> None:
    best = most_kept(members, layout)
    if best is None:
        with pytest.raises(UnsatisfiableLayout):
            place_group(members, layout)
        return
    found = place_group(members, layout)

    assert sum(arrangement.kept for arrangement in found) == best
    together = [place for arrangement in found for place in arrangement.places]
    assert layout_of(together) == {name: n for name, n in sorted(layout.items()) if n}
    for member, arrangement in zip(members, found, strict=True):
        assert frozenset(arrangement.places) in everything(member.device)
        assert member.pinned <= {*arrangement.places}


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Member], dict[str, int]]:
    """One to three members of one or two products, and a layout that often fits."""
    kinds = draw(st.lists(devices(), min_size=1, max_size=2))
    members, wish = [], Counter[str]()
    for _ in range(draw(st.integers(1, 3))):
        one = draw(st.sampled_from(kinds))
        sets = everything(one)
        existing = draw(st.sampled_from(sets))
        pinned = draw(st.sets(st.sampled_from(sorted(existing)))) if existing else set()
        members.append(Member(device=one, existing=existing, pinned=frozenset(pinned)))
        holding = [some for some in sets if pinned <= some]
        wish += Counter(layout_of(draw(st.sampled_from(holding))))
    names = sorted({p.name for one in kinds for p in one.profiles})
    odd = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 2), max_size=1))
    return members, {**wish, **odd}


@given(groups())
def test_any_layout_over_any_devices_keeps_as_much_as_can_be(
    group: tuple[list[Member], dict[str, int]],
) -> None:
    members, layout = group
    small = 1
    for member in members:
        small *= len(everything(member.device))
    if small <= 20_000:
        check(members, layout)


def test_a_pair_of_a30_is_cut_as_well_as_can_be() -> None:
    random, sets = Random(30), everything(A30)
    for _ in range(20):
        members, wish = [], Counter[str]()
        for _ in range(2):
            existing = random.choice(sets)
            pinned = frozenset(p for p in sorted(existing) if random.random() < 0.2)
            members.append(Member(device=A30, existing=existing, pinned=pinned))
            wish += Counter(layout_of(random.choice(sets)))
        check(members, dict(wish))


def test_a_profile_that_one_product_does_not_have_goes_to_the_other() -> None:
    members = [Member(device=A30), Member(device=GRID)]

    first, second = place_group(members, {"1g.6gb": 1, "1g.5gb": 2})

    assert [p.profile for p in first.places] == ["1g.6gb"]
    assert [p.profile for p in second.places] == ["1g.5gb", "1g.5gb"]


def test_what_has_no_place_beside_a_pinned_partition_goes_to_another_device() -> None:
    there = frozenset({Placement(profile="1g.5gb", start=1, size=1)})
    members = [Member(device=GRID, existing=there, pinned=there), Member(device=GRID)]

    first, second = place_group(members, {"1g.5gb": 1, "4g.20gb": 1})

    assert (frozenset(first.places), first.kept) == (there, 1)
    assert [p.profile for p in second.places] == ["4g.20gb"]


@pytest.mark.parametrize(
    "members,layout,why,text",
    [
        (
            [Member(device=A30), Member(device=A30)],
            {"4g.24gb": 3},
            Misfit.GEOMETRY,
            "there is no room for all of it",
        ),
        (
            [],
            {"4g.24gb": 1},
            Misfit.GEOMETRY,
            "there is no room for all of it",
        ),
        ([Member(device=A30)], {"5g": 1}, Misfit.GEOMETRY, "there is no room for all of it"),
        (
            [Member(device=winding(8))],
            {"1x": 3},
            Misfit.UNDECIDED,
            "finding out takes too long",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused(
    members: list[Member], layout: dict[str, int], why: Misfit, text: str
) -> None:
    with pytest.raises(UnsatisfiableLayout) as refused:
        place_group(members, layout)

    assert refused.value.why is why
    assert str(refused.value).endswith(text)


def test_what_must_stay_and_is_not_in_the_layout_is_told() -> None:
    there: Some = everything(A30)[1]
    member = Member(device=A30, existing=there, pinned=there)

    with pytest.raises(UnsatisfiableLayout, match="must stay") as refused:
        place_group([member], {"4g.24gb": 1})

    assert refused.value.why is Misfit.PINNED


def test_an_empty_layout_clears_what_is_not_pinned() -> None:
    assert place_group([Member(device=A30, existing=everything(A30)[1])], {})[0].places == ()


def test_too_many_ways_to_divide_stay_undecided() -> None:
    members = [
        Member(device=GRID, existing=some) for some in Random(1).sample(everything(GRID), 12)
    ]
    layout = {"1g.5gb": 31, "1g.10gb": 7, "2g.10gb": 9, "3g.20gb": 3, "1g.5gb+me": 5}

    with pytest.raises(UnsatisfiableLayout) as refused:
        place_group(members, layout)

    assert refused.value.why is Misfit.UNDECIDED


def test_a_long_device_is_filled() -> None:
    assert len(place_group([Member(device=LONG)], {"core": 60})[0].places) == 60
