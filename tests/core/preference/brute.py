"""Preferred allocation by trying every set, from the wording of the order alone."""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from hypothesis import strategies as st

from accelkit.core.preference import Topology


def pairs_sum(topology: Topology, level: int, some: Collection[str]) -> int:
    """Sum of the weights of all pairs."""
    matrix = topology.levels[level]
    group = dict(zip(topology.ids, topology.groups, strict=True))
    return sum(matrix[group[a]][group[b]] for a, b in combinations(some, 2))


def score(
    topology: Topology, available: set[str], chosen: tuple[str, ...], unit: Sequence[int] | None
) -> list[int]:
    """Closeness and rest of each level."""
    group = dict(zip(topology.ids, topology.groups, strict=True))
    result = []
    for level in range(len(topology.levels)):
        worth = sum(unit[group[name]] for name in chosen) if unit and level == 0 else 0
        left = [name for name in available if name not in chosen]
        result += [
            pairs_sum(topology, level, chosen) + worth,
            pairs_sum(topology, level, left),
        ]
    return result


def first_of_best(
    topology: Topology,
    available: Collection[str],
    must: Collection[str],
    size: int,
    *,
    unit: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """The greatest set in the order of preference, in rank order; size fits."""
    free = {*available, *must}
    candidates = _sets(topology, free, set(must), size)
    # The first of equals has the lowest ids, because sets are tried in that order.
    return max(candidates, key=lambda some: score(topology, free - set(must), some, unit))


def first_of_legal(
    topology: Topology,
    available: Collection[str],
    must: Collection[str],
    size: int,
    legal: Collection[frozenset[str]],
) -> tuple[str, ...] | None:
    """The same among legal sets: the rest is how many of them stay whole."""
    free = {*available, *must}
    sizes = sorted({len(some) for some in legal}, reverse=True)

    def rank(some: tuple[str, ...]) -> list[int]:
        left = free - set(some)
        whole = [sum(other <= left for other in legal if len(other) == n) for n in sizes]
        close = [pairs_sum(topology, level, some) for level in range(len(topology.levels))]
        return [close[0], *whole, *close[1:]]

    allowed = [some for some in _sets(topology, free, set(must), size) if frozenset(some) in legal]
    return max(allowed, key=rank, default=None)


def _sets(
    topology: Topology, free: set[str], must: set[str], size: int
) -> Iterator[tuple[str, ...]]:
    for some in combinations([name for name in topology.ids if name in free], size):
        if must <= set(some):
            yield some


@st.composite
def topologies(draw: st.DrawFn, *, most: int = 8, levels: int = 3) -> Topology:
    """Random, few-valued or hierarchical weights, whole devices or members of few parents."""
    count = draw(st.integers(1, most))
    parents = draw(st.integers(1, count))
    whole = draw(st.booleans())
    groups = (
        list(range(count))
        if whole
        else draw(st.lists(st.integers(0, parents - 1), min_size=count, max_size=count))
    )
    size = count if whole else parents
    return Topology(
        ids=[f"d{position}" for position in range(count)],
        groups=groups,
        levels=draw(st.lists(_matrices(size), min_size=1, max_size=levels)),
    )


def _matrices(size: int) -> st.SearchStrategy[list[list[int]]]:
    def square(weights: st.SearchStrategy[int]) -> st.SearchStrategy[list[list[int]]]:
        row = st.lists(weights, min_size=size, max_size=size)
        return st.lists(row, min_size=size, max_size=size)

    def nested(heights: list[int]) -> list[list[int]]:
        # Closer the more leading digits of the position agree in base 2.
        return [
            [heights[min((a ^ b).bit_length(), len(heights) - 1)] for b in range(size)]
            for a in range(size)
        ]

    return st.one_of(
        square(st.integers(-20, 300)),
        square(st.sampled_from([0, 1])),
        square(st.integers(0, 10**9)),
        st.lists(st.integers(-5, 50), min_size=5, max_size=5).map(nested),
    )


@st.composite
def requests(
    draw: st.DrawFn, shapes: st.SearchStrategy[Topology]
) -> tuple[Topology, list[str], list[str], int]:
    """A topology, what is available, what must be in the answer, and a size that fits."""
    topology = draw(shapes)
    ids = st.sampled_from(topology.ids)
    available = draw(st.lists(ids, min_size=1, unique=True))
    must = draw(st.lists(ids, max_size=2))
    size = draw(st.integers(len(set(must)), len({*available, *must})))
    return topology, available, must, size
