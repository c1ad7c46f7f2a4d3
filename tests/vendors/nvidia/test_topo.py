from pathlib import Path

import pytest

from accelkit import LinkKind
from accelkit.core.errors import ConfigError
from accelkit.testing.like import simulate_like
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.texts import MOST_BYTES, decoded
from accelkit.vendors.nvidia.topo import parse_topology
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Bench

DATA = Path(__file__).parent / "data"
SMALL = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity
GPU0     X      PIX     0-7             0
GPU1    PIX      X      0-7             0
"""


def with_cell(cell: str) -> str:
    """SMALL with another word where GPU0 meets GPU1."""
    return SMALL.replace("GPU0     X      PIX", f"GPU0     X      {cell}")


def three(near: str, far: str, ends: str) -> str:
    """Three GPUs, by the words of the first pair, the last pair, and the two ends."""
    return f"GPU0 GPU1 GPU2\nGPU0 X {near} {ends}\nGPU1 {near} X {far}\nGPU2 {ends} {far} X\n"


def machine_of(text: str, directory: Path, product: str | None = None) -> Bench:
    simulate_like("nvidia", text, str(directory), product=product)
    return Bench(str(directory), MachineHost(str(directory)), Nvidia(NvidiaOptions()))


def bus_and_nvlink(bench: Bench) -> dict[tuple[int, int], list[tuple[LinkKind, int]]]:
    return {pair: sorted((k.kind, k.count) for k in links) for pair, links in bench.links().items()}


def test_board_with_switches_is_one_fabric(tmp_path: Path) -> None:
    text = (DATA / "hgx-a100-8.txt").read_text(encoding="utf-8")
    made = machine_of(text, tmp_path)
    links = bus_and_nvlink(made)

    assert {d.product for d in made.devices()} == {"NVIDIA A100-SXM4-80GB"}
    assert links[0, 7] == [(LinkKind.FABRIC, 12)]
    assert links[0, 3] == [(LinkKind.FABRIC, 12), (LinkKind.SOCKET, 1)]
    assert [d.locality.numa_node for d in made.devices()] == [0] * 4 + [1] * 4


def test_mesh_is_linked_directly(tmp_path: Path) -> None:
    text = (DATA / "dgx1-spaces.txt").read_text(encoding="utf-8")
    links = bus_and_nvlink(machine_of(text, tmp_path))

    assert links[0, 3] == [(LinkKind.DIRECT, 2), (LinkKind.SOCKET, 1)]
    assert links[0, 4] == [(LinkKind.DIRECT, 2)]
    assert links[0, 5] == []


def test_quoted_text_with_prose_is_read(tmp_path: Path) -> None:
    text = (DATA / "quoted-pcie.md").read_text(encoding="utf-8")
    made = machine_of(text, tmp_path)
    links = bus_and_nvlink(made)

    assert links[0, 1] == [(LinkKind.SWITCH, 1)]
    assert links[0, 2] == [(LinkKind.HOST, 1)]
    assert links[4, 6] == [(LinkKind.SOCKET, 1)]
    assert links[0, 4] == []
    roots = [d.locality.pcie_root for d in made.devices()]
    assert len(set(roots[:4])) == 1
    assert roots[4] == roots[5] != roots[6] == roots[7]


def test_markdown_table_is_read(tmp_path: Path) -> None:
    text = (DATA / "markdown-table.md").read_text(encoding="utf-8")
    made = machine_of(text, tmp_path)

    assert bus_and_nvlink(made)[0, 1] == [(LinkKind.DIRECT, 4), (LinkKind.SOCKET, 1)]
    assert [d.locality.numa_node for d in made.devices()] == [None, None]


def test_lines_that_a_terminal_broke_are_joined(tmp_path: Path) -> None:
    text = (DATA / "wrapped-h100-8.txt").read_text(encoding="utf-8")
    links = bus_and_nvlink(machine_of(text, tmp_path))

    assert len(links) == 28
    assert links[0, 7] == [(LinkKind.FABRIC, 18)]


def test_product_can_be_named(tmp_path: Path) -> None:
    made = machine_of(SMALL, tmp_path, "b200")

    assert {d.product for d in made.devices()} == {"NVIDIA B200"}


def test_links_that_differ_by_direction_are_kept(tmp_path: Path) -> None:
    text = SMALL.replace("X      PIX", "X      NV3").replace("PIX      X", "NV2      X")
    links = bus_and_nvlink(machine_of(text, tmp_path))

    assert links[0, 1] == [(LinkKind.DIRECT, 2), (LinkKind.SOCKET, 1)]


def test_node_that_other_machines_do_not_have_has_cpus(tmp_path: Path) -> None:
    made = machine_of(SMALL.replace("0-7             0", "48-63           3"), tmp_path)

    assert [d.locality.numa_node for d in made.devices()] == [3, 3]


def test_older_word_for_another_socket_is_known() -> None:
    assert parse_topology(SMALL.replace("PIX", "SOC")).words == (("X", "SYS"), ("SYS", "X"))


def test_machine_without_affinities_is_read() -> None:
    found = parse_topology("GPU0 GPU1\nGPU0 X PHB\nGPU1 PHB X\n")

    assert (found.numa, found.cpus) == ((None, None), ("", ""))


@pytest.mark.parametrize(
    "text,where,what",
    [
        ("", "text", "has no heading with GPU0"),
        ("nvidia-smi: command not found", "text", "has no heading with GPU0"),
        (with_cell("PIG"), "line 2, column GPU1", "PIG"),
        (with_cell("X"), "line 2, column GPU1", "X belongs"),
        (SMALL.replace("GPU0     X ", "GPU0     PIX "), "line 2, column GPU0", "X belongs"),
        (with_cell("NV99"), "line 2, column GPU1", "NV99"),
        (with_cell("SYS"), "line 3, column GPU0", "but SYS"),
        ("\n".join(SMALL.splitlines()[:2]), "text", "there is no row for GPU1"),
        (SMALL + SMALL.splitlines()[1], "line 2", "several rows"),
        ("GPU0 GPU0\nGPU0 X X\n", "heading", "GPU0 is there twice"),
        ("GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX\n", "line 3, column GPU1", "only 1 of 2 columns"),
        ("".join(SMALL.splitlines(keepends=True)[1:]), "text", "has no heading with GPU0"),
        (" ".join(f"GPU{i}" for i in range(257)), "heading", "257 GPUs, more than 256"),
        ("GPU0 " * 100_000, "heading", "100000 GPUs, more than 256"),
        (three("PIX", "PIX", "SYS"), "line 4, column GPU0", "they share a host bridge"),
        (three("PXB", "PXB", "PHB"), "line 4, column GPU0", "they share switches"),
        (three("NV12", "NV12", "SYS"), "line 4, column GPU0", "go through switches"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text: str, where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_topology(text)

    assert any(path == where and what in words for path, words in caught.value.problems)


def test_relations_that_fit_together_are_read() -> None:
    assert parse_topology(three("PIX", "PHB", "PHB")).words[2] == ("PHB", "PHB", "X")
    assert parse_topology(three("NV4", "NV4", "SYS")).links(1, 2) == 4


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_file_is_read_as_linux_or_windows_wrote_it(coding: str) -> None:
    assert parse_topology(decoded(SMALL.encode(coding))) == parse_topology(SMALL)


@pytest.mark.parametrize(
    "found, what", [(b"\xff\x00", "no text"), (b"x" * 2 * MOST_BYTES, "longer")]
)
def test_file_that_is_no_such_text_is_refused(found: bytes, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        decoded(found)
