"""The choice among the ways to an answer, and the cases that need none.

Which way is taken follows from structure and an estimate of work, never from a clock, so equal
requests have equal answers.
"""

from collections.abc import Collection, Sequence

import attrs

from accelkit.core.preference import lanes, lists, search, tree
from accelkit.core.preference.classes import classes, ends, everything
from accelkit.core.preference.key import Key, fold
from accelkit.core.preference.topology import (
    Choice,
    Legality,
    Method,
    Topology,
    closeness,
    counted,
)

REMEMBERED = 256
"""Answers kept per topology."""
FEW_GROUPS = 18
"""Up to so many free groups the lanes are quicker than a new look for a hierarchy."""
BUDGET_MS = 18.0
"""Estimated milliseconds up to which every set is tried."""


@attrs.frozen(kw_only=True)
class _Request:
    available: int
    must: int
    size: int
    unit: tuple[int, ...] | None
    legal: Legality | None


def prefer(
    topology: Topology,
    available: Collection[str],
    must: Collection[str],
    size: int,
    *,
    unit: Sequence[int] | None = None,
    legal: Legality | None = None,
) -> Choice:
    """Choose the *size* available devices that are closest to each other.

    Among equally close sets the one that leaves most closeness to the others (with *legal*: that
    leaves most legal sets whole, the largest sizes first), then the same on each further level,
    then the lowest ids. The order of the ids given makes no difference. Never fails on a request.

    Args:
        topology: How close the devices are.
        available: Ids to choose from; one that *topology* does not know is taken only where
            those it knows do not suffice.
        must: Ids that the answer contains, available or not; if there are more than *size*, the
            first of them.
        size: How many; more than there are gives all of them, flagged as not legal.
        unit: Worth of one member of each group, added to closeness.
        legal: Sets that may be used; if none of *size* is, the closest set, flagged.
    """
    known = _mask(topology, available) | _mask(topology, must)
    needed = _mask(topology, must)
    missing = max(0, size - known.bit_count())
    request = _Request(
        available=known,
        must=needed,
        size=max(0, size) - missing,
        unit=None if unit is None else tuple(unit),
        legal=legal,
    )
    choice = topology.answers.get(request)
    if choice is None:
        choice = _answer(topology, request)
        if len(topology.answers) >= REMEMBERED:
            topology.answers.clear()
        topology.answers[request] = choice
    if missing == 0:
        return choice
    strangers = (*_unknown(topology, must), *_unknown(topology, {*available} - {*must}))
    return attrs.evolve(
        choice,
        ids=(*choice.ids, *strangers[:missing]),
        legal=legal is None and len(strangers) >= missing,
    )


def _mask(topology: Topology, ids: Collection[str]) -> int:
    mask = 0
    for position in {topology.rank[name] for name in ids if name in topology.rank}:
        mask |= 1 << position
    return mask


def _unknown(topology: Topology, ids: Collection[str]) -> list[str]:
    return sorted(name for name in set(ids) if name not in topology.rank)


def _answer(topology: Topology, request: _Request) -> Choice:
    """Answer a request for as many as there are, or fewer."""
    if request.must.bit_count() >= request.size:
        chosen, method = _first(request.must, request.size), Method.FIXED
    elif request.available.bit_count() == request.size:
        chosen, method = request.available, Method.FIXED
    else:
        return _listed(topology, request) or _closest(topology, request)
    return _choice(topology, request, chosen, method)


def _first(mask: int, size: int) -> int:
    """Return the *size* lowest bits of *mask*."""
    return sum(1 << position for position, _ in zip(tree.members(mask), range(size), strict=False))


def _choice(
    topology: Topology,
    request: _Request,
    chosen: int,
    method: Method,
    upper: int | None = None,
) -> Choice:
    close = closeness(topology, chosen, unit=request.unit)
    legal = request.legal
    return Choice(
        ids=tuple(topology.ids[position] for position in tree.members(chosen)),
        closeness=close,
        rest=closeness(topology, request.available & ~request.must & ~chosen),
        legal=legal is None or chosen == 0 or chosen in legal.at(chosen.bit_count()),
        exact=method is not Method.SEARCH,
        upper=close if upper is None else upper,
        method=method,
    )


def _listed(topology: Topology, request: _Request) -> Choice | None:
    if request.legal is None:
        return None
    chosen = lists.listed(
        topology,
        request.legal,
        request.available,
        request.must,
        size=request.size,
        unit=request.unit,
    )
    return None if chosen is None else _choice(topology, request, chosen, Method.LIST)


def _closest(topology: Topology, request: _Request) -> Choice:
    """Choose among all sets of the size."""
    positions = tuple(tree.members(request.available & ~request.must))
    free = [topology.groups[position] for position in positions]
    size = request.size - request.must.bit_count()
    key = fold(topology.levels, free, counted(topology, request.must), size, request.unit)
    best, method = _best(topology, key)
    # The lowest id has the highest name bit.
    chosen = request.must
    for bit in tree.members(best & ((1 << key.width) - 1)):
        chosen |= 1 << positions[key.width - 1 - bit]
    upper = _upper(topology, request, free, size) if method is Method.SEARCH else None
    return _choice(topology, request, chosen, method, upper)


def _best(topology: Topology, key: Key) -> tuple[int, Method]:
    program = topology.program
    if program is None and len(key.bits) > FEW_GROUPS:
        program = tree.split(topology.pairs, sum(1 << group for group in key.bits))
    if program is not None:
        return tree.solve(program, key), Method.TREE
    found = classes(key)
    ways = [(everything(found), Method.LANES), (ends(found), Method.LANES_ENDS)]
    cost, plans, method = min(
        ((sum(plan.ms for plan in plans), plans, method) for plans, method in ways if plans),
        key=lambda way: way[0],
    )
    if cost > BUDGET_MS:
        return search.search(key), Method.SEARCH
    best = -1
    for plan in plans:
        best = lanes.solve(plan, found.cross, best)
    return best, method


def _upper(topology: Topology, request: _Request, free: Sequence[int], size: int) -> int:
    """Return a closeness that no set of the request exceeds."""
    matrix, unit = topology.levels[0], request.unit
    must = counted(topology, request.must)
    own = [
        (unit[a] if unit else 0) + sum(matrix[a][b] * count for b, count in must.items())
        for a in free
    ]
    weights = [[matrix[a][b] for b in free] for a in free]
    fixed = closeness(topology, request.must, unit=unit)
    return fixed + search.upper_bound(weights, own, size)
