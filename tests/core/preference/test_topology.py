import pytest

from accelkit.core.errors import ModelError
from accelkit.core.preference import Family, Topology, closeness, family

PAIR = Topology(ids=["a", "b"], groups=[0, 1], levels=[[[0, 4], [6, 0]]])


def test_smaller_of_two_readings_counts() -> None:
    assert Topology(ids=("a", "b"), groups=(0, 1), levels=[[[0, 6], [4, 0]]]) == PAIR
    assert PAIR.levels == (((0, 4), (4, 0)),)


def test_equal_topologies_have_equal_hashes() -> None:
    again = Topology(ids=("a", "b"), groups=(0, 1), levels=PAIR.levels)

    assert (again, hash(again)) == (PAIR, hash(PAIR))


@pytest.mark.parametrize(
    "ids,groups,levels,text",
    [
        (["a", "b", "a"], [0, 1, 2], [[[0] * 3] * 3], "names a twice"),
        (["a", "b"], [0], [[[0]]], "2 ids but 1 groups"),
        (["a"], [0], [], "no level"),
        (["a", "b"], [0, 1], [[[0, 1], [1]]], "not squares of one size"),
        (["a"], [0], [[[0]], [[0, 1], [1, 0]]], "not squares of one size"),
        (["a"], [1], [[[0]]], "weights for 1 groups"),
        (["a"], [-1], [[[0]]], "weights for 1 groups"),
    ],
)
def test_contradicting_topology_is_refused(
    ids: list[str], groups: list[int], levels: list[list[list[int]]], text: str
) -> None:
    with pytest.raises(ModelError, match=text):
        Topology(ids=ids, groups=groups, levels=levels)


def test_closeness_counts_pairs_inside_and_across_and_worth() -> None:
    topology = Topology(
        ids=["a", "b", "c"], groups=[0, 0, 1], levels=[[[7, 2], [2, 0]], [[1] * 2] * 2]
    )

    assert closeness(topology, 0b111) == 7 + 2 + 2
    assert closeness(topology, 0b111, level=1) == 3
    assert closeness(topology, 0b101, unit=(10, 100)) == 2 + 110
    assert closeness(topology, 0) == 0


def test_family_holds_sets_by_size_and_drops_what_cannot_be_chosen() -> None:
    some = family(PAIR, [["a"], ["b", "a"], ["a", "stranger"], [], ["b", "a", "a"]], hard=True)

    assert some == Family(hard=True, masks=[0b01, 0b11])
    assert some.sizes_down() == (2, 1)
    assert (some.at(1), some.at(2), some.at(3)) == (
        frozenset({0b01}),
        frozenset({0b11}),
        frozenset(),
    )
