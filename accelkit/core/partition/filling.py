"""Where one more partition goes, so that most can still be made. Not here: whole layouts."""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from accelkit.core.model import Device, Placement
from accelkit.core.partition.table import (
    PRODUCTS,
    Table,
    Weights,
    free_worth,
    one_more,
    table_of,
)
from accelkit.core.values import FrozenMap


def openings(
    device: Device, existing: Iterable[Placement], *, offered: Collection[str] | None = None
) -> int:
    """How much room is left beside *existing*: the sizes of all that could be made, at each place.

    Args:
        device: A whole device.
        existing: What is there.
        offered: Profiles that count; None: all.
    """
    table, existing = table_of(device), tuple(existing)
    weights = table.weights(table.counted(existing), offered)
    return free_worth(weights, sum(table.mask(place) for place in existing))


def choose_start(
    device: Device,
    existing: Iterable[Placement],
    profile: str,
    *,
    offered: Collection[str] | None = None,
) -> int | None:
    """The first slot for one more partition of *profile* that leaves most openings.

    Args:
        device: A whole device.
        existing: What is there.
        profile: Its name.
        offered: Profiles whose openings count; None: all. Those that nobody can ask for are
            better left out.

    Returns:
        The smallest of equally good ones; None: there is no room.
    """
    table, existing = table_of(device), tuple(existing)
    position = table.index[profile]
    counts = one_more(table.counted(existing), position)
    if table.limited(counts) or table.exhausted(counts):
        return None
    weights = table.weights(counts, offered)
    return _best(table.masks[position], weights, sum(table.mask(place) for place in existing))


def filling_order(
    device: Device, *, offered: Collection[str] | None = None
) -> FrozenMap[str, tuple[int, ...]]:
    """First slots of each profile in the order in which an empty device is best filled with it.

    Whoever takes the first that fits, as the scheduler does, leaves most openings so. Starts that
    do not fit any more when it is full come last.

    Args:
        device: A whole device.
        offered: Profiles that are listed, and whose openings count; None: all.
    """
    return _order(table_of(device), None if offered is None else frozenset(offered))


@lru_cache(maxsize=PRODUCTS)
def _order(table: Table, offered: frozenset[str] | None) -> FrozenMap[str, tuple[int, ...]]:
    weights = table.weights((0,) * len(table.profiles), offered)
    return FrozenMap(
        (profile.name, _filled(table.masks[n], weights))
        for n, profile in enumerate(table.profiles)
        if offered is None or profile.name in offered
    )


def _filled(masks: Mapping[int, int], weights: Weights) -> tuple[int, ...]:
    """As if there could be any number of the profile: a second one may come to a fuller device."""
    occupied, starts = 0, []
    while (start := _best(masks, weights, occupied)) is not None:
        occupied |= masks[start]
        starts.append(start)
    return (*starts, *(s for s in masks if s not in starts))


def _best(masks: Mapping[int, int], weights: Weights, occupied: int) -> int | None:
    free = [start for start, mask in masks.items() if not mask & occupied]
    return max(free, key=lambda s: (free_worth(weights, occupied | masks[s]), -s), default=None)
