"""Preferred allocation among legal sets that are given one by one."""

from collections.abc import Sequence

from accelkit.core.preference.topology import Legality, Topology, closeness
from accelkit.core.preference.tree import members


def listed(
    topology: Topology,
    legal: Legality,
    available: int,
    must: int,
    *,
    size: int,
    unit: Sequence[int] | None,
) -> int | None:
    """Choose the closest legal set of *size* that contains *must*.

    Among equally close sets the one that leaves most legal sets whole, the largest sizes first;
    then the closest on the further levels; then the lowest ids.

    Returns:
        A mask; None if no set is legal.
    """
    sets = [some for some in legal.at(size) if some & must == must and some & ~available == 0]
    if not sets:
        return None
    sets = _best(sets, [closeness(topology, some, unit=unit) for some in sets])
    for other in legal.sizes_down():
        if len(sets) == 1:
            return sets[0]
        whole = [some for some in legal.at(other) if some & ~available == 0]
        sets = _best(sets, [sum(not some & left for left in whole) for some in sets])
    for level in range(1, len(topology.levels)):
        sets = _best(sets, [closeness(topology, some, level=level) for some in sets])
    return min(sets, key=lambda some: tuple(members(some)))


def _best(sets: Sequence[int], scores: Sequence[int]) -> list[int]:
    best = max(scores)
    return [some for some, score in zip(sets, scores, strict=True) if score == best]
