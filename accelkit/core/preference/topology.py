"""The values of preferred allocation: a topology, a family of legal sets, an answer.

How an answer is found is not here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import attrs

from accelkit.core.errors import ModelError
from accelkit.core.preference.key import Levels
from accelkit.core.preference.tree import Alike, Program, alike, members, split


class Method(StrEnum):
    """The way an answer was found; which one is decided by structure and size alone."""

    FIXED = "fixed"
    """There was nothing to choose."""
    LIST = "list"
    """The best of the legal sets."""
    TREE = "tree"
    """Table by table up a hierarchy."""
    LANES = "lanes"
    """Every set, many at a time."""
    LANES_ENDS = "lanes-ends"
    """Every set that takes at most one class of equals in part."""
    SEARCH = "search"
    """Greedy starts and exchanges: good, and bounded, but not proven best."""


@attrs.frozen(kw_only=True)
class Choice:
    """An answer to a request."""

    ids: tuple[str, ...]
    """What to take, in rank order, then ids that the topology does not know."""
    closeness: int
    """Sum of the first level's weights over all pairs taken, plus the worth of each."""
    rest: int
    """The same sum over the pairs left, without worth."""
    legal: bool
    """Whether the set may be used: of the wanted size and in the family, if there is one."""
    exact: bool
    """Whether nothing better exists."""
    upper: int
    """No set of this size is closer than this; *closeness* itself if the answer is exact."""
    method: Method


class Legality(Protocol):
    """Sets that may be used together; equal families have equal hashes.

    A set is a bit mask over the ranks of a topology: bit 0 is its first id.
    """

    @property
    def hard(self) -> bool:
        """Return whether a set outside the family is refused (law), not merely worse (hint)."""

    def at(self, size: int) -> frozenset[int]:
        """Return the legal sets of *size*."""

    def sizes_down(self) -> Sequence[int]:
        """Return the sizes that have legal sets, the largest first."""


def _symmetric(levels: Iterable[Sequence[Sequence[int]]]) -> Levels:
    """Let the smaller reading of every pair count."""
    return tuple(_smaller(level) for level in levels)


def _smaller(level: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    rows = tuple(map(tuple, level))
    if any(len(row) != len(rows) for row in rows):
        return rows  # refused later
    columns = zip(*rows, strict=True)
    return tuple(
        row if row == column else tuple(map(min, row, column))
        for row, column in zip(rows, columns, strict=True)
    )


def _ids(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(ids)


def _numbers(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(numbers)


def _masks(masks: Iterable[int]) -> frozenset[int]:
    return frozenset(masks)


@attrs.frozen(kw_only=True)
class Topology:
    """How close devices are to each other, as a value; made once, asked often.

    Raises:
        ModelError: An id occurs twice, there is no level, or a level is not a square over the
            groups.
    """

    ids: tuple[str, ...] = attrs.field(converter=_ids)
    """Rank order: among equals the first are taken."""
    groups: tuple[int, ...] = attrs.field(converter=_numbers)
    """Of each id the number of its physical parent; 0, 1, 2, … for whole devices."""
    levels: Levels = attrs.field(converter=_symmetric)
    """Weights of pairs of groups, larger is closer, the diagonal is the weight inside a group.

    The first level decides, each further one breaks ties only.
    Of two readings of a pair the smaller counts.
    """
    rank: Mapping[str, int] = attrs.field(init=False, eq=False, repr=False)
    """Position of every id."""
    pairs: Alike = attrs.field(init=False, eq=False, repr=False)
    """Groups by weight towards each group."""
    program: Program | None = attrs.field(init=False, eq=False, repr=False)
    """The hierarchy of all groups; None if there is none."""
    answers: dict[object, Choice] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    """Answers given lately, by request."""

    @rank.default
    def _rank_ids(self) -> Mapping[str, int]:
        rank = {name: position for position, name in enumerate(self.ids)}
        if len(rank) < len(self.ids):
            twice = next(name for n, name in enumerate(self.ids) if rank[name] != n)
            raise ModelError(f"a topology names {twice} twice")
        return rank

    @pairs.default
    def _sort_pairs(self) -> Alike:
        if len(self.groups) != len(self.ids):
            raise ModelError(f"a topology has {len(self.ids)} ids but {len(self.groups)} groups")
        if not self.levels:
            raise ModelError("a topology has no level of weights")
        size = len(self.levels[0])
        if any(len(row) != size for level in self.levels for row in (level, *level)):
            raise ModelError("the levels of a topology are not squares of one size")
        if any(not 0 <= group < size for group in self.groups):
            raise ModelError(f"a topology has weights for {size} groups, an id is in another")
        return alike(self.levels)

    @program.default
    def _split_all(self) -> Program | None:
        return split(self.pairs, (1 << len(self.levels[0])) - 1)


@attrs.frozen(kw_only=True)
class Family:
    """Legal sets given one by one."""

    hard: bool
    masks: frozenset[int] = attrs.field(converter=_masks)
    _by_size: Mapping[int, frozenset[int]] = attrs.field(init=False, eq=False, repr=False)

    @_by_size.default
    def _sort_masks(self) -> Mapping[int, frozenset[int]]:
        sizes = sorted({mask.bit_count() for mask in self.masks}, reverse=True)
        return {
            size: frozenset(mask for mask in self.masks if mask.bit_count() == size)
            for size in sizes
        }

    def at(self, size: int) -> frozenset[int]:
        """Return the legal sets of *size* as bit masks."""
        return self._by_size.get(size, frozenset())

    def sizes_down(self) -> Sequence[int]:
        """Return the sizes that have legal sets, the largest first."""
        return tuple(self._by_size)


def family(topology: Topology, sets: Iterable[Collection[str]], *, hard: bool) -> Family:
    """Make a family of the sets of ids that *topology* knows in full; others cannot be chosen."""
    masks = {
        sum(1 << topology.rank[name] for name in set(some))
        for some in sets
        if some and all(name in topology.rank for name in some)
    }
    return Family(hard=hard, masks=masks)


def counted(topology: Topology, mask: int) -> dict[int, int]:
    """Return how many members of *mask* each group has, groups without one left out."""
    counts: dict[int, int] = {}
    for position in members(mask):
        group = topology.groups[position]
        counts[group] = counts.get(group, 0) + 1
    return counts


def closeness(
    topology: Topology, mask: int, *, level: int = 0, unit: Sequence[int] | None = None
) -> int:
    """Return the sum of the weights of all pairs in *mask*, plus the worth of each member."""
    matrix = topology.levels[level]
    counts = counted(topology, mask)
    total = 0
    for a, n in counts.items():
        row = matrix[a]
        total += n * sum(row[b] * m for b, m in counts.items() if b < a)
        total += n * (n - 1) // 2 * row[a] + (n * unit[a] if unit else 0)
    return total
