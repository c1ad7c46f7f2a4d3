"""The whole order of preference as one integer per set, and that integer as a quadratic form.

What is best by this integer is found elsewhere; what it is made of is here alone.
"""

from collections.abc import Mapping, Sequence

import attrs

Levels = tuple[tuple[tuple[int, ...], ...], ...]
"""Weights of pairs of groups, the diagonal inside a group; symmetric; the first level decides."""


@attrs.frozen(kw_only=True)
class Term:
    """One level's part of the key: weights are counted from *least*, times *factor*."""

    matrix: tuple[tuple[int, ...], ...]
    least: int
    factor: int


@attrs.frozen(kw_only=True)
class Key:
    """A request as a quadratic form: the greatest key is the set to choose.

    The key of a set is the sum of its members' and its pairs' numbers, all at least 0.
    Its low *width* bits name the members, so the greatest key is itself the answer.
    """

    size: int
    """How many members are wanted, at least 1."""
    width: int
    """How many members are free to choose from."""
    bits: Mapping[int, tuple[int, ...]]
    """Per group with free members the name bit of each, first in rank first."""
    linear: Mapping[int, int]
    """Per group what any one of its members adds, without its name bit."""
    terms: tuple[Term, ...]

    def pair(self, a: int, b: int) -> int:
        """Return what a member of group *a* and another of group *b* add by being together."""
        return sum((term.matrix[a][b] - term.least) * term.factor for term in self.terms)

    def table(self, group: int) -> list[int]:
        """Return the greatest keys of 0, 1, 2, … members of *group*, up to the size."""
        return tabulate(
            self.bits.get(group, ())[: self.size],
            self.linear.get(group, 0),
            self.pair(group, group),
        )


def tabulate(bits: Sequence[int], linear: int, inside: int) -> list[int]:
    """Return the keys of the first 0, 1, 2, … of members that differ in their name bit only."""
    table = [0]
    for count, bit in enumerate(bits):
        table.append(table[-1] + linear + bit + inside * count)
    return table


def fold(
    levels: Levels,
    free: Sequence[int],
    must: Mapping[int, int],
    size: int,
    unit: Sequence[int] | None,
) -> Key:
    """Fold closeness, rest, further levels and ids into one key.

    Args:
        levels: Weights of pairs, the first level decides.
        free: The group of every free member, in rank order.
        must: How many members of each group are chosen already.
        size: How many of the free to choose, 1 to all.
        unit: Worth of one member of each group.
    """
    width = len(free)
    bits: dict[int, list[int]] = {}
    for position, group in enumerate(free):
        bits.setdefault(group, []).append(1 << (width - 1 - position))
    counts = {group: len(some) for group, some in bits.items()}
    worths = [unit, *[None] * (len(levels) - 1)]
    # A later level must not reach what an earlier one says, so the scale grows from the last;
    # the names of the members are the last of all.
    scale = 1 << width
    linear = dict.fromkeys(counts, 0)
    terms: list[Term] = []
    for matrix, worth in zip(reversed(levels), reversed(worths), strict=True):
        least, factor, own = _level(matrix, counts, must, worth)
        for group, value in own.items():
            linear[group] += value * scale
        terms.append(Term(matrix=matrix, least=least, factor=factor * scale))
        heaviest = max(matrix[a][b] for a in counts for b in counts) - least
        top = size * max(own.values()) + size * (size - 1) // 2 * factor * heaviest
        scale *= top + 1
    return Key(
        size=size,
        width=width,
        bits={group: tuple(some) for group, some in bits.items()},
        linear=linear,
        terms=tuple(terms),
    )


def _level(
    matrix: tuple[tuple[int, ...], ...],
    counts: Mapping[int, int],
    must: Mapping[int, int],
    unit: Sequence[int] | None,
) -> tuple[int, int, dict[int, int]]:
    """Fold one level: closeness C first, then the rest R, as B·C + R.

    The size is fixed, so weights may be counted from the least without changing any order.
    With W the sum over a set's pairs and deg a member's sum towards all that is free,
    R = W(free) - sum of deg + W(set) lies in [0, B) for B = W(free) + 1:
    a pair adds (B + 1)·w, a member adds B times its own worth less deg.

    Returns:
        Least weight, factor of a pair, and per group what a member adds (least: 0).
    """
    least = min(
        (matrix[a][b] for a in counts for b in counts if a != b or counts[a] > 1), default=0
    )
    total = sum(counts.values()) - 1
    degrees = {
        a: sum(matrix[a][b] * count for b, count in counts.items()) - matrix[a][a] - least * total
        for a in counts
    }
    base = sum(degrees[group] * count for group, count in counts.items()) // 2 + 1
    linear = {
        a: base * ((unit[a] if unit else 0) + sum(matrix[a][b] * n for b, n in must.items()))
        - degrees[a]
        for a in counts
    }
    lowest = min(linear.values())
    return least, base + 1, {group: value - lowest for group, value in linear.items()}
