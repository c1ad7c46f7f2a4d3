from accelkit.core.preference import Topology
from accelkit.core.preference.tree import Join, members, merge, split

PATH = [[int(abs(a - b) == 1) for b in range(5)] for a in range(5)]


def test_switches_on_sockets_are_a_hierarchy() -> None:
    heights = [0, 50, 30, 10]
    matrix = [[heights[(a ^ b).bit_length()] for b in range(8)] for a in range(8)]

    program = Topology(ids="abcdefgh", groups=range(8), levels=[matrix]).program

    assert program is not None
    assert sorted(step for step in program if isinstance(step, int)) == list(range(8))
    assert [step.parts for step in program if isinstance(step, Join)] == [2] * 7


def test_equal_weights_join_all_at_once() -> None:
    program = Topology(ids="abc", groups=range(3), levels=[[[5] * 3] * 3]).program

    assert program is not None
    assert program[-1] == Join(a=0, b=1, parts=3)


def test_path_is_no_hierarchy_but_its_ends_are() -> None:
    topology = Topology(ids="abcde", groups=range(5), levels=[PATH])

    assert topology.program is None
    assert split(topology.pairs, 0b11011) is not None
    assert split(topology.pairs, 0) == ()


def test_pairs_are_told_apart_by_all_levels_together() -> None:
    """Each level alone is a hierarchy, both together are the path of four."""
    one = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    other = [[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]

    assert Topology(ids="abcd", groups=range(4), levels=[one]).program is not None
    assert Topology(ids="abcd", groups=range(4), levels=[other]).program is not None
    assert Topology(ids="abcd", groups=range(4), levels=[one, other]).program is None


def test_merge_takes_the_best_of_both_and_stops_at_the_size() -> None:
    assert merge([0, 5, 7], [0, 4, 9], 10, 3) == [0, 5, 19, 34]
    assert merge([0, 5], [0, 4], 10, 2) == [0, 5, 19]
    assert merge([0], [0, 4, 9], 10, 2) == [0, 4, 9]
    assert merge([0, 5, 7], [0, 9], 1, 2) == [0, 9, 15]


def test_members_are_the_set_bits_from_the_lowest() -> None:
    assert list(members(0b10110)) == [1, 2, 4]
