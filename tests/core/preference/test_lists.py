import pytest
from hypothesis import given, settings, strategies as st

from accelkit.core.preference import Method, Topology, family, prefer
from tests.core.preference.brute import first_of_legal, requests, topologies


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(request=requests(topologies(most=7)), data=st.data())
def test_answer_equals_the_first_of_all_legal_sets(
    request: tuple[Topology, list[str], list[str], int], data: st.DataObject
) -> None:
    topology, available, must, size = request
    sets = st.frozensets(st.sampled_from(topology.ids), min_size=1)
    legal = data.draw(st.frozensets(sets, max_size=25)) | {frozenset({*available, *must})}

    choice = prefer(
        topology,
        available,
        must,
        size,
        legal=family(topology, sorted(map(sorted, legal)), hard=True),
    )

    expected = first_of_legal(topology, available, must, size, legal)
    assert choice.legal == (expected is not None or size == 0)
    if expected is not None:
        assert choice.ids == expected


def test_largest_legal_sets_are_kept_whole_before_smaller_ones() -> None:
    topology = Topology(ids="abcde", groups=range(5), levels=[[[0] * 5] * 5])
    legal = family(topology, [*"abcde", "ab", "ac", "ad", "bcd"], hard=False)

    choice = prefer(topology, "abcde", "", 1, legal=legal)

    # e breaks nothing; without e a breaks three pairs, any other the one of three.
    assert (choice.ids, choice.method) == (("e",), Method.LIST)
    assert prefer(topology, "abcd", "", 1, legal=legal).ids == ("a",)


def test_further_levels_decide_between_legal_sets() -> None:
    flat = [[1] * 4 for _ in range(4)]
    near = [[0, 0, 0, 0], [0, 0, 0, 9], [0, 0, 0, 0], [0, 9, 0, 0]]
    topology = Topology(ids="abcd", groups=range(4), levels=[flat, near])
    legal = family(topology, ["ab", "cd", "bd", "ac"], hard=True)

    assert prefer(topology, "abcd", "", 2, legal=legal).ids == ("b", "d")
