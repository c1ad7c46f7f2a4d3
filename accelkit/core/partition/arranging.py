"""The best places for counts of partitions that may fit. Not here: why others do not."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from accelkit.core.model import Placement
from accelkit.core.partition.table import (
    MOST_STEPS,
    Counts,
    Table,
    TooMuchError,
    Weights,
    free_worth,
)
from accelkit.core.values import freeze

Starts: TypeAlias = tuple[Counts, ...]
"""First slots of each profile, in the order in which profiles are decided on."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Arrangement:
    """A layout with places."""

    places: tuple[Placement, ...]
    """By profile and first slot."""
    kept: int
    """How many of them exist already."""
    openings: int
    """How much room is left: the sizes of all that could still be made, at each place."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Present:
    """What is on a device while it is looked at."""

    existing: frozenset[Placement] = frozenset()
    pinned: frozenset[Placement] = frozenset()
    """Must stay where they are."""


def arrangement(
    table: Table, starts: Mapping[int, Counts], present: Present, weights: Weights
) -> Arrangement:
    """The arrangement of profiles, by position, at *starts*."""
    places = sorted(table.place(n, start) for n, each in starts.items() for start in each)
    occupied = sum(table.mask(place) for place in places)
    return Arrangement(
        places=tuple(places),
        kept=len(present.existing.intersection(places)),
        openings=free_worth(weights, occupied),
    )


def arranged(
    table: Table, counts: Counts, present: Present, weights: Weights
) -> Mapping[int, Counts] | None:
    """First slots of each profile in the best arrangement; None: there is none.

    What the profiles that are decided on later can do depends on the occupied slots alone, and
    so do openings: each pair of profile and occupied slots is solved once.

    Raises:
        TooMuchError: It would take too long.
    """
    existing = _starts(table, present.existing)
    pinned = _starts(table, present.pinned)
    order = [n for n in table.order if counts[n]]
    solved: dict[tuple[int, int], tuple[int, int, Starts] | None] = {}
    steps = 0

    def best(depth: int, occupied: int) -> tuple[int, int, Starts] | None:
        nonlocal steps
        if depth == len(order):
            return 0, free_worth(weights, occupied), ()
        if (depth, occupied) in solved:
            return solved[depth, occupied]
        position, top = order[depth], None
        there = existing.get(position, frozenset())
        more = counts[position] - len(pinned.get(position, ()))
        for chosen, mask in table.ways(position, occupied, more):
            steps += 1
            if steps > MOST_STEPS:
                raise TooMuchError
            later = best(depth + 1, occupied | mask)
            if later is None:
                continue
            kept = later[0] + len(there.intersection(chosen))
            # The first of equals has the smallest starts, because ways come in that order.
            if top is None or (kept, later[1]) > top[:2]:
                top = (kept, later[1], (chosen, *later[2]))
        solved[depth, occupied] = top
        return top

    occupied = _occupied(table, present.pinned)
    found = None if occupied is None else best(0, occupied)
    if found is None:
        return None
    return {
        position: (*pinned.get(position, ()), *chosen)
        for position, chosen in zip(order, found[2], strict=True)
    }


def first_fit(table: Table, counts: Counts, present: Present) -> Mapping[int, Counts] | None:
    """First slots of each profile as they come, existing ones first; None: none were found so."""
    existing, chosen = _starts(table, present.existing), _starts(table, present.pinned)
    occupied = _occupied(table, present.pinned) or 0
    found = {}
    for position in table.order:
        mine = [*chosen.get(position, ())]
        there = existing.get(position, frozenset())
        for start in sorted(table.masks[position], key=lambda s: (s not in there, s)):
            mask = table.masks[position][start]
            if len(mine) < counts[position] and not mask & occupied:
                occupied |= mask
                mine.append(start)
        if len(mine) < counts[position]:
            return None
        found[position] = tuple(mine)
    return found


def _occupied(table: Table, places: Iterable[Placement]) -> int | None:
    """The slots of *places*; None: some overlap."""
    masks = [table.mask(place) for place in places]
    occupied = sum(masks)
    # Where two overlap the sum carries, and a carry costs a bit.
    overlap = occupied.bit_count() != sum(mask.bit_count() for mask in masks)
    return None if overlap else occupied


def _starts(table: Table, places: Iterable[Placement]) -> dict[int, frozenset[int]]:
    """First slots by position of the profile, of profiles that the table has."""
    starts: dict[int, frozenset[int]] = {}
    for place in places:
        position = table.index.get(place.profile)
        if position is not None:
            starts[position] = starts.get(position, frozenset()) | {place.start}
    return starts
