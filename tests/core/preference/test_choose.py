from random import Random

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from accelkit.core.preference import Method, Topology, closeness, family, prefer
from accelkit.core.preference.choose import REMEMBERED
from tests.core.preference.brute import first_of_best, requests, topologies

# Two switches with two devices each, and one device apart.
SWITCHES = Topology(
    ids=["a", "b", "c", "d", "e"],
    groups=range(5),
    levels=[
        [
            [0, 50, 10, 10, 10],
            [50, 0, 10, 10, 10],
            [10, 10, 0, 50, 10],
            [10, 10, 50, 0, 10],
            [10, 10, 10, 10, 0],
        ]
    ],
)


def irregular(count: int, seed: int = 7, most: int = 1000) -> Topology:
    random = Random(seed)
    return Topology(
        ids=[f"d{position:02}" for position in range(count)],
        groups=range(count),
        levels=[[[random.randrange(most) for _ in range(count)] for _ in range(count)]],
    )


def test_answer_tells_closeness_rest_and_method() -> None:
    choice = prefer(SWITCHES, ["a", "b", "c", "d", "e"], [], 2)

    assert choice.ids == ("a", "b")
    assert (choice.closeness, choice.rest, choice.upper) == (50, 70, 50)
    assert (choice.legal, choice.exact, choice.method) == (True, True, Method.TREE)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(request=requests(topologies()), data=st.data())
def test_answer_equals_the_first_of_all_sets(
    request: tuple[Topology, list[str], list[str], int], data: st.DataObject
) -> None:
    topology, available, must, size = request
    worths = st.lists(
        st.integers(-9, 9), min_size=len(topology.levels[0]), max_size=len(topology.levels[0])
    )
    unit = data.draw(st.none() | worths)

    choice = prefer(topology, available, must, size, unit=unit)

    assert choice.exact
    assert choice.ids == first_of_best(topology, available, must, size, unit=unit)


@settings(deadline=None, max_examples=60)
@given(request=requests(topologies(most=11)), data=st.data())
def test_answer_is_never_less_close_than_another_set(
    request: tuple[Topology, list[str], list[str], int], data: st.DataObject
) -> None:
    topology, available, must, size = request
    free = sorted({*available} - {*must})
    other = {*must, *data.draw(st.permutations(free))[: size - len({*must})]}

    choice = prefer(topology, available, must, size)

    assert choice.closeness >= closeness(topology, sum(1 << topology.rank[name] for name in other))


@settings(deadline=None, max_examples=60)
@given(request=requests(topologies(most=10)), seed=st.randoms(use_true_random=False))
def test_answer_does_not_depend_on_the_order_of_ids(
    request: tuple[Topology, list[str], list[str], int], seed: Random
) -> None:
    topology, available, must, size = request
    first = prefer(topology, available, must, size)

    seed.shuffle(available)
    again = prefer(attrs.evolve(topology), [*available, *available], must[::-1], size)

    assert again == first


@settings(deadline=None, max_examples=60)
@given(request=requests(topologies(most=10)))
def test_renaming_in_the_same_rank_order_renames_the_answer(
    request: tuple[Topology, list[str], list[str], int],
) -> None:
    topology, available, must, size = request
    # Descending names: rank is the position, not the alphabet.
    name = {old: f"z{99 - position}" for position, old in enumerate(topology.ids)}
    renamed = attrs.evolve(topology, ids=[name[old] for old in topology.ids])

    choice = prefer(renamed, [name[old] for old in available], [name[old] for old in must], size)

    expected = prefer(topology, available, must, size)
    assert choice == attrs.evolve(expected, ids=tuple(name[old] for old in expected.ids))


@settings(deadline=None, max_examples=60)
@given(request=requests(topologies(most=10)), more=st.integers(-500, 500))
def test_adding_a_constant_to_all_weights_changes_nothing(
    request: tuple[Topology, list[str], list[str], int], more: int
) -> None:
    topology, available, must, size = request
    raised = attrs.evolve(
        topology,
        levels=[[[weight + more for weight in row] for row in level] for level in topology.levels],
    )

    assert prefer(raised, available, must, size).ids == prefer(topology, available, must, size).ids


@pytest.mark.parametrize("size", [0, -3])
def test_nothing_is_the_answer_to_nothing(size: int) -> None:
    choice = prefer(SWITCHES, ["a", "b"], ["a"], size)

    assert (choice.ids, choice.legal, choice.method) == ((), True, Method.FIXED)


def test_more_than_there_are_gives_all_flagged() -> None:
    choice = prefer(SWITCHES, ["d", "a"], [], 3)

    assert (choice.ids, choice.legal) == (("a", "d"), False)


def test_fewer_than_must_be_gives_the_first_of_these() -> None:
    choice = prefer(SWITCHES, ["a", "b", "c"], ["d", "e", "b"], 2)

    assert (choice.ids, choice.method) == (("b", "d"), Method.FIXED)


def test_must_counts_as_available() -> None:
    assert prefer(SWITCHES, ["a", "b"], ["d"], 2).ids == ("a", "d")


def test_repeated_ids_count_once() -> None:
    choice = prefer(SWITCHES, ["a", "a", "c"], ["a", "a"], 2)

    assert (choice.ids, choice.method) == (("a", "c"), Method.FIXED)


def test_unknown_ids_are_left_out_where_known_ones_suffice() -> None:
    assert prefer(SWITCHES, ["0", "a", "c", "d"], ["1"], 2).ids == ("c", "d")


def test_unknown_ids_fill_up_and_those_that_must_be_come_first() -> None:
    choice = prefer(SWITCHES, ["x", "b", "0"], ["z", "y"], 4)

    assert (choice.ids, choice.legal) == (("b", "y", "z", "0"), True)


def test_unknown_ids_make_no_legal_set() -> None:
    legal = family(SWITCHES, [["a"], ["a", "b"]], hard=True)

    assert not prefer(SWITCHES, ["a", "x"], [], 2, legal=legal).legal


def test_no_device_at_all_is_a_topology_too() -> None:
    empty = Topology(ids=(), groups=(), levels=[()])

    assert prefer(empty, ["x"], [], 1).ids == ("x",)


def test_without_a_legal_set_the_closest_is_given_flagged() -> None:
    legal = family(SWITCHES, [["a", "b"], ["c", "d"]], hard=True)

    choice = prefer(SWITCHES, ["b", "c", "d", "e"], [], 3, legal=legal)

    assert (choice.ids, choice.legal, choice.method) == (("b", "c", "d"), False, Method.TREE)


def test_legal_set_wins_over_a_closer_one() -> None:
    legal = family(SWITCHES, [["a", "c"], ["b", "d"]], hard=False)

    choice = prefer(SWITCHES, ["a", "b", "c", "d"], [], 2, legal=legal)

    assert (choice.ids, choice.legal, choice.method) == (("a", "c"), True, Method.LIST)


def test_whole_of_what_is_left_is_legal_only_in_the_family() -> None:
    legal = family(SWITCHES, [["a", "b"]], hard=True)

    assert prefer(SWITCHES, ["a", "b"], [], 2, legal=legal).legal
    assert not prefer(SWITCHES, ["a", "c"], [], 2, legal=legal).legal


def test_irregular_devices_go_to_the_lanes() -> None:
    topology = irregular(12)

    choice = prefer(topology, topology.ids, [topology.ids[5]], 6)

    assert (choice.exact, choice.method) == (True, Method.LANES)
    assert choice.ids == first_of_best(topology, topology.ids, [topology.ids[5]], 6)


def test_hierarchy_that_is_left_of_a_large_irregular_node_is_solved_as_one() -> None:
    """Without the two odd devices the 20 others are equal."""
    levels = [[[0 if a != b else 9 for b in range(24)] for a in range(24)]]
    for a, b in ((20, 21), (21, 22), (22, 23)):
        levels[0][a][b] = levels[0][b][a] = 5
    topology = Topology(ids=[f"d{n:02}" for n in range(24)], groups=range(24), levels=levels)
    assert topology.program is None

    choice = prefer(topology, topology.ids[:20], [], 9)

    assert (choice.ids, choice.method) == (topology.ids[:9], Method.TREE)


def test_large_irregular_node_is_searched_with_a_bound() -> None:
    topology = irregular(40)
    must = [topology.ids[3]]

    choice = prefer(topology, topology.ids, must, 20, unit=range(40))

    assert (choice.exact, choice.method, len(choice.ids)) == (False, Method.SEARCH, 20)
    assert must[0] in choice.ids
    assert choice.closeness <= choice.upper
    assert prefer(attrs.evolve(topology), topology.ids, must, 20, unit=range(40)) == choice


def test_answers_are_remembered_in_the_topology_and_not_without_end() -> None:
    topology = irregular(10)
    first = prefer(topology, topology.ids, [], 2)

    assert prefer(topology, topology.ids[::-1], [], 2) is first
    for number in range(2 * REMEMBERED):
        some = [name for position, name in enumerate(topology.ids) if number >> position & 1]
        prefer(topology, some, [], 1)
    assert len(topology.answers) <= REMEMBERED
    assert topology == irregular(10)
