from hypothesis import given, settings, strategies as st

from accelkit.core.preference import Topology, closeness
from accelkit.core.preference.classes import classes, everything
from accelkit.core.preference.key import fold
from accelkit.core.preference.lanes import solve
from accelkit.core.preference.search import search, upper_bound
from tests.core.preference.brute import topologies


@settings(deadline=None, max_examples=150)
@given(topology=topologies(most=9), data=st.data())
def test_search_finds_a_set_that_is_not_above_the_best_nor_the_bound(
    topology: Topology, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(topology.ids)))
    key = fold(topology.levels, topology.groups, {}, size, None)
    found = classes(key)

    value = search(key)

    best = solve(everything(found)[0], found.cross)
    assert value <= best
    names = value & ((1 << key.width) - 1)
    assert names.bit_count() == size
    mask = sum(
        1 << position for position in range(key.width) if names >> key.width - 1 - position & 1
    )
    weights = [[topology.levels[0][a][b] for b in topology.groups] for a in topology.groups]
    assert closeness(topology, mask) <= upper_bound(weights, [0] * len(weights), size)


def test_exchange_leaves_the_greedy_trap() -> None:
    """The heaviest pair is not in the best three."""
    matrix = [
        [0, 100, 0, 0, 0],
        [100, 0, 0, 0, 0],
        [0, 0, 0, 60, 60],
        [0, 0, 60, 0, 60],
        [0, 0, 60, 60, 0],
    ]
    key = fold((tuple(map(tuple, matrix)),), range(5), {}, 3, None)

    assert search(key) & 0b11111 == 0b00111


def test_bound_is_reached_where_weights_are_a_hierarchy() -> None:
    weights = [[0, 50, 10, 10], [50, 0, 10, 10], [10, 10, 0, 50], [10, 10, 50, 0]]

    assert upper_bound(weights, [0, 0, 0, 0], 3) == 70
    assert upper_bound(weights, [0, 0, -7, 5], 2) == 50
    assert upper_bound(weights, [-1, -2, -7, -5], 1) == -1
