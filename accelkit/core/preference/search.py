"""Preferred allocation for many devices of no regular shape: a good answer and a proven bound.

The one method that may miss the best answer; it always gives the same one.
"""

from collections.abc import Sequence
from heapq import nlargest

from accelkit.core.preference.key import Key
from accelkit.core.preference.tree import merge

STARTS = 20_000
"""Starts times free members times members wanted: bounds the work."""


def search(key: Key) -> int:
    """Return the greatest key found by greedy growth from good starts, then exchanges."""
    pairs, own = _spread(key)
    potential = [
        own[member] + sum(nlargest(key.size - 1, (*row[:member], *row[member + 1 :])))
        for member, row in enumerate(pairs)
    ]
    starts = sorted(range(key.width), key=lambda member: (-potential[member], -own[member]))
    return max(
        _climb(pairs, own, start, key.size)
        for start in starts[: max(1, STARTS // (key.width * key.size))]
    )


def _spread(key: Key) -> tuple[list[list[int]], list[int]]:
    """Write the key out over single members: what each pair and each member adds."""
    whose = [(group, bit) for group, bits in key.bits.items() for bit in bits]
    between = {a: {b: key.pair(a, b) for b in key.bits} for a in key.bits}
    pairs = [[between[a][b] for b, _ in whose] for a, _ in whose]
    return pairs, [key.linear[group] + bit for group, bit in whose]


def _climb(pairs: list[list[int]], own: list[int], start: int, size: int) -> int:
    """Grow a set from *start* by the greatest gain, then exchange while that helps."""
    chosen, others = [start], [member for member in range(len(own)) if member != start]
    gains = [own[member] + weight for member, weight in enumerate(pairs[start])]
    gains[start] = own[start]
    total = own[start]
    while len(chosen) < size:
        best = max(others, key=gains.__getitem__)
        total += gains[best]
        _let(gains, pairs[best], best, 1)
        others.remove(best)
        chosen.append(best)
    while (swap := _exchange(pairs, gains, chosen, others)) is not None:
        better, out, into = swap
        total += better
        _let(gains, pairs[out], out, -1)
        _let(gains, pairs[into], into, 1)
        chosen[chosen.index(out)] = into
        others[others.index(into)] = out
    return total


def _let(gains: list[int], row: list[int], member: int, sign: int) -> None:
    """Count the pairs of a *member* that came (1) or went (-1) into everybody else's gain."""
    own = gains[member]
    for other, weight in enumerate(row):
        gains[other] += sign * weight
    gains[member] = own


def _exchange(
    pairs: list[list[int]], gains: list[int], chosen: list[int], others: list[int]
) -> tuple[int, int, int] | None:
    """Find the exchange that helps most: by how much, who goes, who comes."""
    best: tuple[int, int, int] | None = None
    least = 0
    going = sorted(chosen, key=gains.__getitem__)
    for into in sorted(others, key=gains.__getitem__, reverse=True):
        # Being together is never worth less than nothing, so nobody after this can do better.
        if gains[into] - gains[going[0]] <= least:
            break
        for out in going:
            better = gains[into] - gains[out]
            if better <= least:
                break
            if better - pairs[into][out] > least:
                least = better - pairs[into][out]
                best = (least, out, into)
    return best


def upper_bound(weights: Sequence[Sequence[int]], own: Sequence[int], size: int) -> int:
    """Return what no *size* members can exceed in the sum of their pairs and their own.

    Args:
        weights: Of each pair; symmetric, the diagonal does not count.
        own: Of each member by itself.
        size: How many, at least 1.
    """
    least = min((w for a, row in enumerate(weights) for w in row[:a]), default=0)
    lowest = min(own)
    shifted = [[weight - least for weight in row] for row in weights]
    above = [value - lowest for value in own]
    bound = min(_star(shifted, above, size), _laminar(shifted, above, size))
    return bound + lowest * size + least * size * (size - 1) // 2


def _star(weights: Sequence[Sequence[int]], own: Sequence[int], size: int) -> int:
    """Let every member count half of its heaviest pairs."""
    twice = [
        2 * own[member] + sum(nlargest(size - 1, (*row[:member], *row[member + 1 :])))
        for member, row in enumerate(weights)
    ]
    return sum(nlargest(size, twice)) // 2


def _laminar(weights: Sequence[Sequence[int]], own: Sequence[int], size: int) -> int:
    """Raise weights until they form a hierarchy, by single linkage, and solve that exactly."""
    tables = {member: [0, value] for member, value in enumerate(own)}
    part = list(range(len(own)))
    heaviest = sorted(
        ((w, a, b) for a, row in enumerate(weights) for b, w in enumerate(row[:a])),
        key=lambda pair: (-pair[0], pair[1:]),
    )
    for weight, a, b in heaviest:
        one, other = part[a], part[b]
        if one == other:
            continue
        part = [one if mine == other else mine for mine in part]
        tables[one] = merge(tables[one], tables.pop(other), weight, size)
    return next(iter(tables.values()))[size]
