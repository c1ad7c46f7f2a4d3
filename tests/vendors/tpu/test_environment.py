import re
from math import prod

import pytest

from accelkit import IllegalSet
from accelkit.vendors.tpu.environment import environment
from accelkit.vendors.tpu.facts import BY_NAME, GENERATIONS
from accelkit.vendors.tpu.slices import Slice


def slice_of(
    name: str,
    topology: tuple[int, int, int],
    bounds: tuple[int, int, int],
    *,
    resilient: bool = True,
) -> Slice:
    return Slice(generation=BY_NAME[name], topology=topology, bounds=bounds, resilient=resilient)


def test_all_chips_of_a_host_that_is_a_slice_by_itself() -> None:
    told = environment(slice_of("v5e", (2, 4, 1), (2, 4, 1)), range(8), [0, 1, 1])

    assert told == {
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": "8431",
        "TPU_TOPOLOGY": "2x4",
        "TPU_ACCELERATOR_TYPE": "v5litepod-8",
        "TPU_CHIPS_PER_HOST_BOUNDS": "2,4,1",
        "CHIPS_PER_HOST_BOUNDS": "2,4,1",
        "TPU_HOST_BOUNDS": "1,1,1",
        "HOST_BOUNDS": "1,1,1",
        "TPU_TOPOLOGY_WRAP": "false,false,false",
        "WRAP": "false,false,false",
        "TPU_TOPOLOGY_ALT": "false",
        "ALT": "false",
        "TPU_WORKER_ID": "0",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "WORKLOAD_NIC_PREFERRED_NUMA": "0,1",
    }


def test_worker_of_a_slice_of_several_hosts_is_not_told_who_it_is() -> None:
    """Its job tells it: which pods belong together is not known on a host."""
    told = environment(slice_of("v5p", (2, 2, 4), (2, 2, 1)), range(4), [])

    assert told["TPU_HOST_BOUNDS"] == told["HOST_BOUNDS"] == "1,1,4"
    assert told["TPU_ACCELERATOR_TYPE"] == "v5p-32"
    assert not {name for name in told if "WORKER" in name or "VISIBLE" in name or "NUMA" in name}


@pytest.mark.parametrize(
    "name,topology,bounds,hosts",
    [("v6e", (4, 4, 1), (2, 2, 1), "2,2,1"), ("v4", (4, 4, 8), (2, 2, 1), "2,2,8")],
)
def test_hosts_of_a_slice_are_counted_by_dimension(
    name: str, topology: tuple[int, int, int], bounds: tuple[int, int, int], hosts: str
) -> None:
    told = environment(slice_of(name, topology, bounds), range(4), [])

    assert told["TPU_HOST_BOUNDS"] == hosts


@pytest.mark.parametrize(
    "indexes,topology,bounds,kind",
    [
        ([5], "1x1", "1,1,1", "v6e-1"),
        ([2, 3], "1x2", "1,2,1", "v6e-2"),
        ([7, 4, 6, 5], "2x2", "2,2,1", "v6e-4"),
    ],
)
def test_some_chips_of_a_host_are_a_slice_of_their_own(
    indexes: list[int], topology: str, bounds: str, kind: str
) -> None:
    told = environment(slice_of("v6e", (2, 4, 1), (2, 4, 1)), indexes, [])

    assert told["TPU_TOPOLOGY"] == topology
    assert told["TPU_CHIPS_PER_HOST_BOUNDS"] == bounds
    assert told["TPU_HOST_BOUNDS"] == "1,1,1"
    assert told["TPU_ACCELERATOR_TYPE"] == kind
    assert told["TPU_VISIBLE_CHIPS"] == ",".join(str(i) for i in sorted(indexes))
    assert told["TPU_WORKER_HOSTNAMES"] == "localhost"


@pytest.mark.parametrize("count", [2, 3])
def test_part_of_a_host_of_several_is_refused(count: int) -> None:
    with pytest.raises(IllegalSet, match="of a slice of 4 hosts each is used as a whole") as caught:
        environment(slice_of("v6e", (4, 4, 1), (2, 2, 1)), range(count), [])

    assert caught.value.remedy == "ask for 4"


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_set_of_a_size_that_libtpu_refuses_is_refused_before(count: int) -> None:
    with pytest.raises(IllegalSet, match=f"cannot use {count} chips") as caught:
        environment(slice_of("v5e", (2, 4, 1), (2, 4, 1)), range(count), [])

    assert caught.value.remedy == "ask for 1, 2, 4, 8"


@pytest.mark.parametrize(
    "name,topology,resilient,told",
    [
        ("v4", (4, 4, 4), True, "true"),
        ("v5p", (4, 4, 4), False, "false"),
        ("v5p", (2, 2, 4), True, None),
        ("v6e", (16, 16, 1), True, None),
    ],
)
def test_sparing_of_links_is_told_where_there_is_such(
    name: str, topology: tuple[int, int, int], resilient: bool, told: str | None
) -> None:
    bounds = (2, 2, 1)

    found = environment(slice_of(name, topology, bounds, resilient=resilient), range(4), [])

    assert found.get("ENABLE_ICI_RESILIENCY") == told


def test_chip_of_two_cores_counts_twice_in_the_name_of_its_slice() -> None:
    told = environment(slice_of("7x", (2, 2, 1), (2, 2, 1)), range(4), [])

    assert (told["TPU_TOPOLOGY"], told["TPU_ACCELERATOR_TYPE"]) == ("2x2x1", "tpu7x-8")


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda g: g.name)
def test_block_and_hosts_make_up_the_topology(generation: object) -> None:
    name = getattr(generation, "name", "")
    told = environment(slice_of(name, (8, 8, 1), (2, 4, 1)), range(8), [])
    numbers = {k: prod(int(n) for n in re.findall(r"\d+", told[k])) for k in told if "BOUNDS" in k}

    assert numbers["TPU_CHIPS_PER_HOST_BOUNDS"] * numbers["TPU_HOST_BOUNDS"] == 64
