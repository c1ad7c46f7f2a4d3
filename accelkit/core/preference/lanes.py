"""Exact preferred allocation for any shape: every set is tried, many in one addition.

Classes of interchangeable members are cut into two halves. All ways to take some of the right
half stand side by side in one long integer, a lane each; adding one member of the left half to
all of them is one addition. Nothing is pruned, so the cost is known before starting.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import attrs

Option = tuple[int, int]
"""How many of a class are taken, and the key of that many."""
MS_PER_NODE = 0.0025
"""Milliseconds for one step through the left half; all three measured with CPython 3.11."""
MS_PER_LANE = 4e-5
"""Milliseconds for one lane at the end of such a step."""
MS_PER_VECTOR = 2e-5
"""Milliseconds to set up one lane, for each number that it is kept for."""
FEW_HITS = 16
"""Up to so many lanes are looked at one by one, so that no order of them takes long."""
LEAN = 4
"""How many times fewer ways the left half has: a step costs more than a lane."""


@attrs.frozen(kw_only=True)
class Plan:
    """How the classes are cut, and what trying everything will cost."""

    options: tuple[tuple[Option, ...], ...]
    """Of each class what may be taken of it, nothing first."""
    size: int
    left: tuple[int, ...]
    right: tuple[int, ...]
    ms: float
    """Estimated milliseconds."""


@attrs.frozen(kw_only=True)
class _Right:
    """All ways to take some of the right half, by how many are taken in total."""

    width: int
    """Bits of a lane; the highest is a guard that no sum reaches."""
    value: dict[int, int]
    """Per total: lanes with the key of each way by itself."""
    count: dict[int, int]
    """Per total: how many lanes."""
    rows: dict[int, dict[int, int]]
    """Per left class and total: lanes with what one member adds by its pairs to each way."""


def plan(options: Sequence[Sequence[Option]], size: int) -> Plan:
    """Cut classes into two halves that cost about the same."""
    halves: tuple[list[int], list[int]] = ([], [])
    ways = [1, 1]
    for index in sorted(range(len(options)), key=lambda index: -len(options[index])):
        side = 0 if LEAN * ways[0] <= ways[1] else 1
        halves[side].append(index)
        ways[side] *= len(options[index])
    left, right = (tuple(sorted(half)) for half in halves)
    return Plan(
        options=tuple(tuple(some) for some in options),
        size=size,
        left=left,
        right=right,
        ms=_estimate(options, left, right, size),
    )


def _estimate(
    options: Sequence[Sequence[Option]], left: Sequence[int], right: Sequence[int], size: int
) -> float:
    ends = _totals([options[index] for index in right], size)[-1]
    rising = sorted(ends)
    steps = _totals([options[index] for index in left], size)
    lanes = sum(ways * ends.get(size - total, 0) for total, ways in steps[-1].items())
    nodes = sum(ways for total, ways in steps[-1].items() if size - total in ends)
    for depth, totals in enumerate(steps[:-1]):
        more = sum(options[index][-1][0] for index in left[depth:])
        for total, ways in totals.items():
            # A branch ends where nothing more is needed.
            need = bisect_left(rising, size - total) - bisect_left(rising, size - total - more)
            nodes += ways * need
    least = size - sum(options[index][-1][0] for index in left)
    vectors = sum(ways for total, ways in ends.items() if total >= least)
    return MS_PER_NODE * nodes + MS_PER_LANE * lanes + MS_PER_VECTOR * (len(left) + 1) * vectors


def _totals(options: Sequence[Sequence[Option]], size: int) -> list[dict[int, int]]:
    """Return after 0, 1, 2, … classes how many ways there are to each total up to *size*."""
    steps = [{0: 1}]
    for some in options:
        ways: dict[int, int] = {}
        for total, before in steps[-1].items():
            for count, _ in some:
                if total + count <= size:
                    ways[total + count] = ways.get(total + count, 0) + before
        steps.append(ways)
    return steps


def solve(plan: Plan, cross: Sequence[Sequence[int]], best: int = -1) -> int:
    """Return the greatest key of all ways to take the plan's size; *best* if none is greater.

    Args:
        plan: What to try.
        cross: What a member of one class and one of another add by being together; symmetric,
            at least 0, as are the keys of the options.
        best: The greatest key known so far.
    """
    right = _right(plan, cross)
    for total in sorted(right.value):
        best = _through(plan, cross, right, total, best)
    return best


def _ones(lanes: int, width: int) -> int:
    """Return 1 in every lane."""
    return ((1 << width * lanes) - 1) // ((1 << width) - 1)


def _width(plan: Plan, cross: Sequence[Sequence[int]]) -> int:
    """Return how wide a lane must be for the greatest sum there can be, with one bit to spare."""
    tops = [some[-1][0] for some in plan.options]
    bound = sum(max(value for _, value in some) for some in plan.options)
    bound += sum(
        weight * tops[a] * tops[b]
        for a, row in enumerate(cross)
        for b, weight in enumerate(row[:a])
    )
    return bound.bit_length() + 2


def _right(plan: Plan, cross: Sequence[Sequence[int]]) -> _Right:
    """Set up the lanes class by class; totals that the left half cannot complete are dropped."""
    width = _width(plan, cross)
    most = {index: plan.options[index][-1][0] for index in (*plan.left, *plan.right)}
    least = plan.size - sum(most[index] for index in plan.left)
    to_come = sum(most[index] for index in plan.right)
    count, value = {0: 1}, {0: 0}
    rows = {index: {0: 0} for index in (*plan.left, *plan.right)}
    for index in plan.right:
        to_come -= most[index]
        mine = rows.pop(index)
        next_count: dict[int, int] = {}
        next_value: dict[int, int] = {}
        next_rows: dict[int, dict[int, int]] = {other: {} for other in rows}
        for taken, own, before in _ways(plan.options[index], count):
            total = before + taken
            if not least - to_come <= total <= plan.size:
                continue
            ones = _ones(count[before], width)
            offset = next_count.get(total, 0)
            lanes = value[before] + taken * mine[before] + own * ones
            next_value[total] = next_value.get(total, 0) | lanes << offset * width
            for other, row in next_rows.items():
                lanes = rows[other][before] + taken * cross[other][index] * ones
                row[total] = row.get(total, 0) | lanes << offset * width
            next_count[total] = offset + count[before]
        count, value, rows = next_count, next_value, next_rows
    return _Right(width=width, value=value, count=count, rows=rows)


def _ways(options: Sequence[Option], totals: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    for taken, own in options:
        for before in totals:
            yield taken, own, before


def _through(
    plan: Plan, cross: Sequence[Sequence[int]], right: _Right, total: int, best: int
) -> int:
    """Walk through the left half, depth first, with all right ways of one *total* beside it."""
    width, ones = right.width, _ones(right.count[total], right.width)
    guards = ones << width - 1
    unit = (1 << width) - 1
    last = len(plan.left)
    options = [plan.options[index] for index in plan.left]
    rows = [right.rows[index][total] for index in plan.left]
    later = _later(plan.left, cross, width)
    more = [sum(some[-1][0] for some in options[depth + 1 :]) for depth in range(last)]
    stack = [(0, plan.size - total, right.value[total] | guards, 0, 0)]
    while stack:
        depth, need, lanes, mine, met = stack.pop()
        if need == 0:
            best = _raise(lanes, guards, ones, mine, best)
            continue
        # What one more member of this class adds by its pairs to the left members so far.
        each = (met >> depth * width) & unit
        for taken, own in options[depth]:
            if not need - more[depth] <= taken <= need:
                continue
            if taken == 0:
                stack.append((depth + 1, need, lanes, mine, met))
                continue
            stack.append(
                (
                    depth + 1,
                    need - taken,
                    lanes + taken * rows[depth],
                    mine + own + taken * each,
                    met + taken * later[depth],
                )
            )
    return best


def _later(left: Sequence[int], cross: Sequence[Sequence[int]], width: int) -> list[int]:
    """Return for each left class its pairs to the classes after it, packed by their depth."""
    return [
        sum(cross[a][b] << depth * width for depth, b in enumerate(left) if depth > here)
        for here, a in enumerate(left)
    ]


def _raise(lanes: int, guards: int, ones: int, mine: int, best: int) -> int:
    """Return the greatest of *best* and of all lanes plus *mine*.

    A lane keeps its guard bit exactly when it is not below what is subtracted from all.
    """
    wanted = best + 1 - mine
    hits = (lanes - wanted * ones) & guards if wanted > 0 else guards
    if not hits:
        return best
    guard = guards & -guards
    width = guard.bit_length()
    if hits.bit_count() > FEW_HITS:
        return _greatest(lanes, hits >> width - 1, width - 1) + mine
    while hits:
        low = hits & -hits
        hits ^= low
        lane = (lanes >> low.bit_length() - width) & (2 * guard - 1)
        best = max(best, lane - guard + mine)
    return best


def _greatest(lanes: int, some: int, width: int) -> int:
    """Return the greatest of *some* lanes, bit by bit from the highest of *width*."""
    value = 0
    for bit in reversed(range(width)):
        having = lanes >> bit & some
        if having:
            some = having
            value |= 1 << bit
    return value
