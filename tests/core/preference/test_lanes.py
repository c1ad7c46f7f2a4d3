from itertools import product
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from accelkit.core.preference import Topology
from accelkit.core.preference.choose import BUDGET_MS
from accelkit.core.preference.classes import classes, ends, everything
from accelkit.core.preference.key import Key, fold
from accelkit.core.preference.lanes import Option, plan, solve
from accelkit.core.preference.tree import solve as climb
from tests.core.preference.brute import topologies


def key_of(topology: Topology, size: int) -> Key:
    return fold(topology.levels, topology.groups, {}, size, None)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_greatest_sum_of_all_ways_is_found(data: st.DataObject) -> None:
    classes_count = data.draw(st.integers(1, 5))
    keys = st.integers(0, 10**6)
    options: list[list[Option]] = [
        [(0, 0), *((count, data.draw(keys)) for count in sorted(some))]
        for some in data.draw(
            st.lists(
                st.sets(st.integers(1, 4), max_size=3),
                min_size=classes_count,
                max_size=classes_count,
            )
        )
    ]
    half = [[data.draw(keys) for _ in range(a)] for a in range(classes_count)]
    cross = [
        [half[max(a, b)][min(a, b)] if a != b else 0 for b in range(classes_count)]
        for a in range(classes_count)
    ]
    size = data.draw(st.integers(0, 8))

    found = solve(plan(options, size), cross)

    sums = [
        sum(value for _, value in way)
        + sum(way[a][0] * way[b][0] * cross[a][b] for a in range(classes_count) for b in range(a))
        for way in product(*options)
        if sum(count for count, _ in way) == size
    ]
    assert found == max(sums, default=-1)


def test_nothing_greater_leaves_what_is_known() -> None:
    assert solve(plan([[(0, 0), (1, 5)], [(0, 0), (1, 3)]], 1), [[0, 0], [0, 0]], 7) == 7


def test_greatest_of_very_many_ways_at_once_is_found() -> None:
    random = Random(1)
    options = [[(0, 0), (1, random.randrange(1000))] for _ in range(20)]
    flat = [[0] * 20 for _ in range(20)]

    best = solve(plan(options, 10), flat)

    assert best == sum(sorted(key for _, (_, key) in options)[-10:])


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(topology=topologies(), data=st.data())
def test_lanes_agree_with_the_tree_wherever_there_is_one(
    topology: Topology, data: st.DataObject
) -> None:
    key = key_of(topology, data.draw(st.integers(1, len(topology.ids))))
    found = classes(key)
    plans = everything(found)

    best = solve(plans[0], found.cross)

    if topology.program is not None:
        assert best == climb(topology.program, key)
    for some in ends(found):
        assert solve(some, found.cross) <= best


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_ends_agree_with_all_ways_where_insides_are_closer(data: st.DataObject) -> None:
    parents = data.draw(st.integers(1, 4))
    weights = st.integers(0, 30)
    matrix = [[data.draw(weights) for _ in range(parents)] for _ in range(parents)]
    for parent in range(parents):
        matrix[parent][parent] = data.draw(st.integers(31, 60))
    counts = [data.draw(st.integers(1, 4)) for _ in range(parents)]
    groups = [parent for parent, count in enumerate(counts) for _ in range(count)]
    topology = Topology(
        ids=[f"d{position}" for position in range(len(groups))], groups=groups, levels=[matrix]
    )
    found = classes(key_of(topology, data.draw(st.integers(1, len(groups)))))

    best = -1
    for some in ends(found):
        best = solve(some, found.cross, best)

    if any(count > 1 for count in found.count):
        assert best == solve(everything(found)[0], found.cross)
    else:
        assert ends(found) == ()


@pytest.mark.parametrize("count,size", [(16, 8), (20, 10), (22, 7), (24, 5), (28, 4), (32, 3)])
def test_every_set_of_so_many_irregular_devices_is_within_the_budget(count: int, size: int) -> None:
    assert plan([[(0, 0), (1, 1)]] * count, size).ms <= BUDGET_MS
    assert plan([[(0, 0), (1, 1)]] * count, count - size).ms <= BUDGET_MS


def test_every_set_of_a_dozen_of_two_dozen_is_over_the_budget() -> None:
    assert plan([[(0, 0), (1, 1)]] * 24, 12).ms > BUDGET_MS


def test_equals_are_one_class() -> None:
    topology = Topology(
        ids="abcd",
        groups=range(4),
        levels=[[[0, 5, 1, 1], [5, 0, 1, 1], [1, 1, 0, 3], [1, 1, 3, 0]]],
    )

    found = classes(key_of(topology, 2))

    assert found.count == (2, 2)
    assert [len(table) for table in found.tables] == [3, 3]


def test_members_of_groups_that_are_closer_inside_are_no_equals() -> None:
    topology = Topology(ids="abcd", groups=[0, 0, 1, 1], levels=[[[5, 1], [1, 5]]])

    assert classes(key_of(topology, 2)).count == (2, 2)
