from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from accelkit.core.preference import Topology
from accelkit.core.preference.key import fold
from tests.core.preference.brute import score, topologies


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(topology=topologies(most=6), data=st.data())
def test_keys_order_sets_as_preference_does(topology: Topology, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(topology.ids)))
    key = fold(topology.levels, topology.groups, {}, size, None)
    bit = {name: 1 << key.width - 1 - position for position, name in enumerate(topology.ids)}
    group = dict(zip(topology.ids, topology.groups, strict=True))

    def number(some: tuple[str, ...]) -> int:
        pairs = sum(key.pair(group[a], group[b]) for a, b in combinations(some, 2))
        return pairs + sum(key.linear[group[name]] + bit[name] for name in some)

    sets = list(combinations(topology.ids, size))
    by_preference = sorted(
        sets, key=lambda some: (score(topology, set(topology.ids), some, None), number(some))
    )
    numbers = [number(some) for some in by_preference]
    assert numbers == sorted(set(numbers))
    names = [sum(bit[name] for name in some) for some in by_preference]
    assert [value & ((1 << key.width) - 1) for value in numbers] == names


def test_table_goes_no_further_than_the_size() -> None:
    key = fold((((3, 0), (0, 0)),), [0, 0, 0, 0], {}, 2, None)

    assert len(key.table(0)) == 3
    assert key.table(1) == [0]
