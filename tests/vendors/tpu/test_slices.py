from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from accelkit.core.real_host import RealHost
from accelkit.vendors.tpu.facts import BY_NAME, GENERATIONS, SHAPES, Generation
from accelkit.vendors.tpu.slices import (
    Said,
    Slice,
    Unknown,
    accelerator_type,
    read_facts,
    read_slice,
    spares_links,
    wraps,
)

SEEN = """ACCELERATOR_TYPE: 'v4-256'
CHIPS_PER_HOST_BOUNDS: '2,2,1'
ENABLE_ICI_RESILIENCY: 'true'
HOST_BOUNDS: '2,2,8'
INJECT_SLICE_BUILDER_FAULT: ''
TOPOLOGY: '4x4x8'
TPU_RUNTIME_METRICS_PORTS: '8431,8432,8433,8434'
TYPE: 'V4'
WORKER_ID: '0'
"""
"""As the metadata server of a v4 host writes it."""


@pytest.fixture
def host(tmp_path: Path) -> RealHost:
    (tmp_path / "etc/tpu").mkdir(parents=True)
    return RealHost(str(tmp_path))


def write(host: RealHost, text: str) -> None:
    Path(host._root + "/etc/tpu/tpu-env").write_text(text)


def test_slice_is_read_as_the_metadata_server_writes_it(host: RealHost) -> None:
    write(host, SEEN)

    found = read_slice(host, BY_NAME["v4"], 4, Said())

    assert found == Slice(
        generation=BY_NAME["v4"], topology=(4, 4, 8), bounds=(2, 2, 1), resilient=True, worker=0
    )
    assert (found.hosts, found.name) == (32, "4x4x8")
    assert accelerator_type(BY_NAME["v4"], 128) == "v4-256"


@pytest.mark.parametrize(
    "text",
    ["TOPOLOGY=2x4\n", 'TOPOLOGY="2x4"', "  TOPOLOGY :  2x4  ", "#\n{]\n\nTOPOLOGY: '2x4'\nx"],
)
def test_spellings_of_a_line_mean_the_same(host: RealHost, text: str) -> None:
    write(host, text)

    assert read_facts(host) == {"TOPOLOGY": "2x4"}


def test_newer_name_of_the_bounds_is_understood(host: RealHost) -> None:
    write(host, "TPU_CHIPS_PER_HOST_BOUNDS: '2,2,1'\n")

    assert read_facts(host)["CHIPS_PER_HOST_BOUNDS"] == "2,2,1"


@pytest.mark.parametrize("found,hosts", [(8, 1), (4, 2)])
def test_chips_that_are_there_settle_what_the_topology_leaves_open(
    host: RealHost, found: int, hosts: int
) -> None:
    """Seen elsewhere: 2x4 may be one host of eight chips or two of four."""
    write(host, "TOPOLOGY: '2x4'\n")

    assert read_slice(host, BY_NAME["v6e"], found, Said()).hosts == hosts


def test_operator_wins_over_the_host(host: RealHost) -> None:
    write(host, SEEN)

    found = read_slice(host, BY_NAME["v5e"], 8, Said(topology="4x4", chips_per_host=8))

    assert (found.name, found.bounds, found.hosts) == ("4x4", (2, 4, 1), 2)


@pytest.mark.parametrize(
    "text,found,why",
    [
        ("", 4, "the topology is not known"),
        ("TOPOLOGY: 'large'", 4, "the topology 'large' is none"),
        ("TOPOLOGY: '4'", 4, "the topology '4' is none"),
        ("TOPOLOGY: '0x4'", 4, "the topology '0x4' is none"),
        ("TOPOLOGY: '-2x-2'", 4, "is none"),
        ("TOPOLOGY: '٢x٢'", 4, "is none"),
        (f"TOPOLOGY: '{'9' * 5000}x1'", 4, "is none"),
        ("TOPOLOGY: '2048x2048'", 4, "larger than any"),
        ("TOPOLOGY: '2x2x2'", 4, "has too many dimensions for TPU v5e"),
        ("TOPOLOGY: '2x3'", 8, "hosts of 8 chips cannot make up the topology 2x3"),
        ("TOPOLOGY: '2x2'\nCHIPS_PER_HOST_BOUNDS: '2,4,1'", 4, "cannot make up"),
        ("TOPOLOGY: '2x4'\nCHIPS_PER_HOST_BOUNDS: 'all'", 8, "the chips of a host 'all' is none"),
        ("TOPOLOGY: '2x4'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'", 8, "8 chips are there, and a host sh"),
        ("TOPOLOGY: '2x4'", 7, "7 chips are there, hosts of TPU v5e have 1, 4, 8, and nobody"),
        ("TOPOLOGY: '2x4'", 2, "2 chips are there, hosts of TPU v5e have 1, 4, 8, and nobody"),
        ("TOPOLOGY: '2x4'", 1, "1 chip is there of a slice of 8, and nobody says how many"),
    ],
)
def test_slice_that_is_not_known_is_not_guessed(
    host: RealHost, text: str, found: int, why: str
) -> None:
    write(host, text)

    with pytest.raises(Unknown, match=why):
        read_slice(host, BY_NAME["v5e"], found, Said())


@pytest.mark.parametrize("name", ["v4", "v5p", "7x"])
@pytest.mark.parametrize("found", [1, 2])
def test_rest_of_a_host_is_not_taken_for_a_host_of_a_larger_slice(
    host: RealHost, name: str, found: int
) -> None:
    """Two of four chips were one of two hosts, and programs would wait for the other."""
    write(host, "TOPOLOGY: '2x2x1'\n")

    with pytest.raises(Unknown, match=f"hosts of TPU ?{name} have 4, and nobody says"):
        read_slice(host, BY_NAME[name], found, Said())


def test_host_of_one_chip_is_a_slice_by_itself(host: RealHost) -> None:
    write(host, "TOPOLOGY: '1x1'\n")

    assert read_slice(host, BY_NAME["v5e"], 1, Said()).hosts == 1


def test_topology_in_a_plane_keeps_its_two_dimensions(host: RealHost) -> None:
    write(host, "TOPOLOGY: '4x8'\n")

    names = [read_slice(host, BY_NAME[n], 4, Said()).name for n in ("v2", "v3", "v5e", "v6e")]

    assert names == ["4x8"] * 4


def test_host_without_the_file_says_nothing(host: RealHost) -> None:
    assert read_facts(host) == {}


@pytest.mark.parametrize(
    "name,topology,closed",
    [
        ("v5e", (16, 16, 1), (True, True, False)),
        ("v5e", (8, 16, 1), (False, True, False)),
        ("v6e", (4, 4, 1), (False, False, False)),
        ("v4", (4, 4, 4), (True, True, True)),
        ("v5p", (2, 4, 4), (False, False, False)),
        ("v5p", (4, 4, 8), (True, True, True)),
        ("v3", (8, 8, 1), (False, False, False)),
    ],
)
def test_dimensions_that_are_closed_to_a_ring(
    name: str, topology: tuple[int, int, int], closed: tuple[bool, bool, bool]
) -> None:
    assert wraps(BY_NAME[name], topology) == closed


@pytest.mark.parametrize(
    "name,topology,spared",
    [
        ("v4", (4, 4, 4), True),
        ("v5p", (4, 4, 8), True),
        ("v5p", (2, 4, 4), False),
        ("v6e", (16, 16, 1), False),
    ],
)
def test_large_slices_of_some_generations_spare_links(
    name: str, topology: tuple[int, int, int], spared: bool
) -> None:
    assert spares_links(BY_NAME[name], topology) == spared


@given(
    st.sampled_from(GENERATIONS),
    st.tuples(*[st.integers(1, 16)] * 3),
    st.sampled_from(sorted(SHAPES)),
)
def test_hosts_and_their_chips_make_up_the_slice(
    generation: Generation, hosts: tuple[int, int, int], chips: int
) -> None:
    x, y, z = (n * own for n, own in zip(hosts, SHAPES[chips], strict=True))

    found = Slice(generation=generation, topology=(x, y, z), bounds=SHAPES[chips])

    assert found.hosts == hosts[0] * hosts[1] * hosts[2]
    assert found.chips == chips
