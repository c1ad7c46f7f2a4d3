"""Where the partitions of a layout go on one device, or why not. Not here: who wants the layout."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import groupby

from accelkit.core.errors import Misfit, UnsatisfiableLayout
from accelkit.core.model import Device, Placement
from accelkit.core.partition.arranging import (
    Arrangement,
    Present,
    arranged,
    arrangement,
    first_fit,
)
from accelkit.core.partition.table import (
    MOST_STEPS,
    Counts,
    Table,
    TooMuchError,
    table_of,
)
from accelkit.core.values import FrozenMap


def place(
    device: Device,
    layout: Mapping[str, int],
    existing: Iterable[Placement] = (),
    pinned: Iterable[Placement] = (),
    *,
    offered: Collection[str] | None = None,
) -> Arrangement:
    """Find the places for exactly the partitions of *layout*.

    Of all arrangements that contain the pinned partitions the one that keeps most existing ones,
    then leaves most openings, then has the smallest first slots, bigger profiles first. If finding
    that one would take too long, the first that is found.

    Args:
        device: A whole device.
        layout: How many of each profile; profiles that are not named: none.
        existing: What is there.
        pinned: What must stay, because somebody uses it.
        offered: Profiles whose openings count; None: all.

    Raises:
        UnsatisfiableLayout: There is no such arrangement; names the reason and the largest part.
    """
    table = table_of(device)
    present = Present(existing=frozenset(existing), pinned=frozenset(pinned))
    counts = tuple(layout.get(profile.name, 0) for profile in table.profiles)
    misfit = next(_misfits(table, layout, counts, table.counted(present.pinned)), None)
    if misfit is not None:
        raise _refused(device, counts, present, *misfit)
    weights, starts = table.weights(counts, offered), None
    misfit = Misfit.GEOMETRY, "there are no places for all of it"
    try:
        starts = arranged(table, counts, present, weights)
    except TooMuchError:
        misfit = Misfit.UNDECIDED, "finding out takes too long"
        starts = first_fit(table, counts, present)
    if starts is None:
        raise _refused(device, counts, present, *misfit)
    return arrangement(table, starts, present, weights)


def _misfits(
    table: Table, layout: Mapping[str, int], counts: Counts, pinned: Counts
) -> Iterator[tuple[Misfit, str]]:
    """Why a layout cannot be, without looking at places; cheapest first."""
    for name in sorted(layout):
        if layout[name] and name not in table.index:
            known = ", ".join(table.index) or "none"
            yield Misfit.PROFILE, f"it has no profile {name!r}; there is {known}"
    asked = [*zip(table.profiles, counts, pinned, strict=True)]
    for profile, n, least in asked:
        if least > n:
            yield Misfit.PINNED, f"{least} of {profile.name} must stay, the layout has {n}"
    yield from (
        (Misfit.LIMIT, f"there can be {profile.limit} of {profile.name}, not {n}")
        for profile, n, _ in asked
        if profile.limit is not None and n > profile.limit
    )
    for key, (total, needs) in zip(table.totals, table.needs, strict=True):
        if (needed := sum(map(int.__mul__, counts, needs))) > total:
            yield Misfit.COUNTER, f"it has {total} {key}, the layout needs {needed}"
    slots = sum(profile.size * n for profile, n, _ in asked)
    if slots > table.slots:
        yield Misfit.SLOTS, f"it has {table.slots} slots, the layout needs {slots}"
    if table.reach is not None and table.shaped(counts) not in table.reach:
        yield Misfit.GEOMETRY, "there are no places for all of it"


def _refused(
    device: Device, counts: Counts, present: Present, why: Misfit, said: str
) -> UnsatisfiableLayout:
    fitting = largest(table_of(device), counts, present)
    most = ", ".join(f"{n} x {profile}" for profile, n in fitting.items())
    return UnsatisfiableLayout(
        f"{device.id} cannot be cut so: {said}",
        why=why,
        largest=fitting,
        device=str(device.id),
        remedy=f"ask for what fits: {most}" if fitting else "",
    )


def largest(table: Table, wanted: Counts, present: Present) -> FrozenMap[str, int]:
    """The largest part of *wanted* that fits beside the pinned partitions, which count, too.

    Most partitions, then most slots, then earlier profiles of the table first. Nothing, if that
    cannot be found out in time.
    """
    least = table.counted(present.pinned)
    most = tuple(
        max(low, min(n, limit)) for low, n, limit in zip(least, wanted, table.limits, strict=True)
    )
    lowest, highest = table.shaped(least), table.shaped(most)
    found = None
    with suppress(TooMuchError):
        shapes = [v for v in table.reach or () if _between(lowest, v, highest)]
        ranks = groupby(sorted(shapes, key=partial(_rank, table)), partial(_rank, table))
        found = next(
            filter(None, (_best_split(table, [*r], least, most, present) for _, r in ranks)), None
        )
    return FrozenMap((p.name, n) for p, n in zip(table.profiles, found or (), strict=False) if n)


def _between(low: Counts, counts: Counts, high: Counts) -> bool:
    return all(a <= n <= b for a, n, b in zip(low, counts, high, strict=True))


def _rank(table: Table, shaped: Counts) -> tuple[int, int]:
    return -sum(shaped), -sum(map(int.__mul__, shaped, table.sizes))


def _best_split(
    table: Table, rank: Iterable[Counts], least: Counts, most: Counts, present: Present
) -> Counts | None:
    """The greatest counts of profiles with one of these shapes that can be; None: none can."""
    found = (
        next((c for c in _splits(table, shaped, least, most) if _can_be(table, c, present)), None)
        for shaped in rank
    )
    return max(filter(None, found), default=None)


def _can_be(table: Table, counts: Counts, present: Present) -> bool:
    return not present.pinned or arranged(table, counts, present, ()) is not None


def _splits(table: Table, shaped: Counts, least: Counts, most: Counts) -> Iterator[Counts]:
    """Counts of profiles with these shapes within limits and totals, greatest first.

    Raises:
        TooMuchError: There are too many to look at.
    """
    steps = 0

    def deeper(counts: Counts, left: Counts) -> Iterator[Counts]:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise TooMuchError
        position = len(counts)
        rest = least[position:]
        if table.exhausted((*counts, *rest)):
            return
        if position == len(least):
            yield counts
            return
        shape = table.shape_of[position]
        later = [n for n in range(position + 1, len(least)) if table.shape_of[n] == shape]
        low = max(least[position], left[shape] - sum(most[n] for n in later))
        high = min(most[position], left[shape] - sum(least[n] for n in later))
        for n in range(high, low - 1, -1):
            yield from deeper((*counts, n), _less(left, shape, n))

    return deeper((), shaped)


def _less(counts: Counts, position: int, amount: int) -> Counts:
    return (*counts[:position], counts[position] - amount, *counts[position + 1 :])
