from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from accelkit.core.policy import Place
from accelkit.core.preference import (
    Level,
    Method,
    Topology,
    of_devices,
    of_shares,
    prefer,
    share_id,
    used,
)

APART = Topology(ids=["a", "b", "c"], groups=range(3), levels=[[[0] * 3] * 3])


def test_devices_are_as_close_as_their_parents() -> None:
    level = Level(pairs={("x", "y"): 40, ("y", "x"): 30, ("z", "y"): 20}, apart=10, inside=60)

    topology = of_devices({"x-1": "x", "x-0": "x", "y": "y", "z": "z"}, [level])

    assert topology == Topology(
        ids=["x-0", "x-1", "y", "z"],
        groups=[0, 0, 1, 2],
        levels=[[[60, 30, 10], [30, 60, 20], [10, 20, 60]]],
    )


def test_weights_of_devices_that_are_not_there_are_left_out() -> None:
    level = Level(pairs={("x", "gone"): 90, ("gone", "y"): 90}, apart=10, inside=60)

    topology = of_devices({"x": "x", "y": "y"}, [level])

    assert topology.levels == (((60, 10), (10, 60)),)


def test_shares_are_numbered_in_order_of_number_not_of_name() -> None:
    topology = of_shares(APART, {"a": 11, "b": 1, "c": 0}, Place.PACKED)

    assert topology.ids == (*(f"a::{number}" for number in range(11)), "b")
    assert share_id("a", 3) == "a::3"


def test_packed_shares_go_to_close_devices_where_one_does_not_suffice() -> None:
    near = [[0, 10, 50], [10, 0, 10], [50, 10, 0]]
    devices = Topology(ids=["a", "b", "c"], groups=range(3), levels=[near, near])
    topology = of_shares(devices, dict.fromkeys("abc", 2), Place.PACKED)

    assert prefer(topology, topology.ids, [], 4).ids == ("a::0", "a::1", "c::0", "c::1")


def test_packed_shares_of_an_irregular_node_are_found_by_ends() -> None:
    path = [[100 * (abs(a - b) == 1) for b in range(6)] for a in range(6)]
    devices = Topology(ids="abcdef", groups=range(6), levels=[path])
    topology = of_shares(devices, dict.fromkeys("abcdef", 8), Place.PACKED)

    choice = prefer(topology, topology.ids[3:], [], 20)

    assert (choice.method, choice.exact) == (Method.LANES_ENDS, True)
    assert {name[0] for name in choice.ids} == {"a", "b", "c"}


def test_shares_of_partitions_are_grouped_by_partition() -> None:
    level = Level(pairs={}, apart=10, inside=60)
    devices = of_devices({"x-0": "x", "x-1": "x", "y-0": "y"}, [level])
    topology = of_shares(devices, {"x-0": 2, "x-1": 2, "y-0": 2}, Place.PACKED)

    assert topology.groups == (0, 0, 1, 1, 2, 2)
    assert prefer(topology, [name for name in topology.ids if name != "x-0::0"], [], 3).ids == (
        "x-0::1",
        "x-1::0",
        "x-1::1",
    )


@pytest.mark.parametrize("place", list(Place))
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_policy_means_what_it_says_without_weights(place: Place, data: st.DataObject) -> None:
    shares = {name: data.draw(st.integers(1, 3)) for name in APART.ids}
    topology = of_shares(APART, shares, place)
    available = data.draw(st.sets(st.sampled_from(topology.ids), min_size=1))
    must = data.draw(st.sets(st.sampled_from(topology.ids), max_size=2))
    free = [name for name in topology.ids if name in available | must]
    size = data.draw(st.integers(len(must), len(free)))

    choice = prefer(topology, available, must, size, unit=used(topology, available | must, place))

    def rank(some: tuple[str, ...]) -> tuple[int, ...]:
        def count(ids: list[str]) -> list[int]:
            return [sum(name.split("::")[0] == device for name in ids) for device in APART.ids]

        def pairs(counts: list[int]) -> int:
            return sum(n * (n - 1) // 2 for n in counts)

        taken = count(list(some))
        left = pairs(count([name for name in free if name not in some and name not in must]))
        busy = [shares[device] - n for device, n in zip(APART.ids, count(free), strict=True)]
        match place:
            case Place.PACKED:
                return (pairs(taken), left)
            case Place.DISTRIBUTED:
                load = [u + c for u, c in zip(busy, taken, strict=True)]
                return (-sum(n * n for n in load), -left)
            case Place.SPREAD:
                return (-pairs(taken), -sum(u * c for u, c in zip(busy, taken, strict=True)), -left)

    sets = [some for some in combinations(free, size) if must <= set(some)]
    assert choice.ids == max(sets, key=rank)


def test_use_is_what_is_not_available() -> None:
    topology = of_shares(APART, {"a": 2, "b": 3, "c": 1}, Place.SPREAD)
    available = ["a::0", "a::1", "b::2", "stranger::0"]

    assert used(topology, available, Place.SPREAD) == (0, -2, -1)
    assert used(topology, available, Place.DISTRIBUTED) == (-1, -5, -3)
    assert used(topology, available, Place.PACKED) is None
