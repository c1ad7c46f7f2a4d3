import json
from collections.abc import Callable
from pathlib import Path

import pytest

from accelkit.testing.simulate import set_state, simulate
from tests.cli.conftest import Run

SPLIT_MATRIX = """\
#  DEVICE        0     1     NUMA  ROOT
0  sim/s00-0000  X     HOST  0     pci0000:00
1  sim/s00-0001  HOST  X     1     pci0000:00

HOST  one PCIe root
"""


def test_matrix_shows_how_whole_devices_are_connected(run: Run, split: Path) -> None:
    assert run("topology", "--host", split).out == SPLIT_MATRIX


def test_matrix_shows_counts_of_links_and_says_what_words_mean(run: Run, ring: Path) -> None:
    lines = run("topology", "--host", ring).lines

    assert lines[1].split() == (
        ["0", "sim/s00-0000", "X", "D2", "NUMA", "NUMA", "·", "·", "·", "D2", "0", "pci0000:00"]
    )
    assert lines[10:] == [
        "Dn    so many links of the vendor between the two",
        "NUMA  one NUMA node",
        "·     nothing but the machine itself",
        "      of two connections the closer one is shown",
    ]


def test_links_that_are_down_are_marked(run: Run, tmp_path: Path) -> None:
    simulate("nvidia", "dgx1", 8, str(tmp_path / "m"))
    set_state(str(tmp_path / "m"), ["dark", "gpu-0", "6"])

    answer = run("topology", "--host", tmp_path / "m")

    assert answer.lines[1].split()[3] == "D1!"
    assert "!   down" in answer.lines


def test_groups_are_listed_with_their_rule(run: Run, cube: Path) -> None:
    lines = run("topology", "--host", cube).lines

    assert lines[-1].split() == [
        "8-0",
        "block",
        "law",
        "0,",
        "1,",
        "2,",
        "3,",
        "4,",
        "5,",
        "6,",
        "7",
    ]


def test_host_without_devices_says_so(run: Run, tmp_path: Path) -> None:
    answer = run("topology", "--host", tmp_path)

    assert answer.code == 0
    assert answer.out == "There are no devices here; accelkit devices says what was asked.\n"


def test_json_holds_devices_links_and_groups(run: Run, cube: Path) -> None:
    tree = json.loads(run("topology", "--host", cube, "-o", "json").out)

    assert (tree["kind"], len(tree["devices"]), len(tree["groups"])) == ("Topology", 8, 15)
    assert tree["devices"][0]["locality"]["pciAddress"] == "0000:03:00.0"
    assert tree["links"][0] == {
        "a": "sim/s00-0000",
        "b": "sim/s00-0001",
        "kind": "HOST",
        "count": 1,
        "up": True,
    }


def test_pick_says_what_a_pod_gets_and_what_others_lose(run: Run, ring: Path) -> None:
    answer = run("topology", "--host", ring, "--pick", "2", "--taken", "s00-0000,s00-0001")

    assert answer.code == 0
    assert answer.lines == [
        "A pod that asks for 2 of sim.accelkit.dev/accel gets",
        "#  ID        NUMA  TO EACH OTHER",
        "2  s00-0002  0     X D2",
        "3  s00-0003  0     D2 X",
        "",
        "closeness 200: no other set is closer (found by lanes)",
        "left: 4 ids of closeness 660; the next pod of 2 would get 200",
        "there are 15 such sets",
        "  by links: 5 of 15 are best",
        "  by links of what is left: 1 of 5 are best",
        "",
        "INSTEAD  LOSES",
        "6 7      30 by links of what is left",
        "3 4      210 by links of what is left",
        "4 5      220 by links of what is left",
    ]


def test_pick_where_links_are_alike_says_that_the_bus_decides(run: Run, tmp_path: Path) -> None:
    """A table of zeros was printed: what others lose was asked of the links alone."""
    simulate("nvidia", "h100", 8, str(tmp_path / "m"))

    answer = run("topology", "--host", tmp_path / "m", "--pick", "4")

    assert [line.split()[0] for line in answer.lines[2:6]] == ["4", "5", "6", "7"]
    assert answer.lines[9:] == [
        "there are 70 such sets",
        "  by links: all are alike",
        "  by PCIe and NUMA nodes: 2 of 70 are best",
        "  by ids: the lowest",
        "",
        "INSTEAD  LOSES",
        "0 1 2 3  nothing: the lower ids win",
        "2 3 6 7  40 by PCIe and NUMA nodes",
        "3 4 5 7  60 by PCIe and NUMA nodes",
    ]


def test_pick_keeps_what_the_pod_must_get(run: Run, ring: Path) -> None:
    tree = json.loads(
        run("topology", "--host", ring, "--pick", "2", "--must", "0000:33:00.0", "-o", "json").out
    )

    assert (tree["kind"], "s00-0006" in tree["ids"], tree["exact"]) == ("Pick", True, True)


def test_pick_of_a_set_that_the_vendor_cannot_run_is_a_no(run: Run, cube: Path) -> None:
    answer = run("topology", "--host", cube, "--pick", "4", "--taken", "s00-0000,s00-0004")

    assert answer.code == 1
    assert "the vendor cannot run this set: the pod would be refused" in answer.lines
    assert answer.lines[-1] == "there are 15 such sets; no other may be used"


def test_pick_of_a_set_that_the_vendor_only_does_not_propose_is_fine(
    run: Run, tmp_path: Path
) -> None:
    """Boards of four are proposed; of three devices no set is."""
    simulate("sim", "fabric", 8, str(tmp_path / "m"))

    four = run("topology", "--host", tmp_path / "m", "--pick", "4")
    three = run("topology", "--host", tmp_path / "m", "--pick", "3")
    said = "it is not among the sets that the vendor proposes, none of which is to be had"

    assert (four.code, said in four.lines) == (0, False)
    assert four.lines[-1] == "4 5 6 7  nothing: the lower ids win"
    assert (three.code, said in three.lines) == (0, True)
    assert "  by links: all are alike" in three.lines


def test_pick_leaves_out_what_is_not_healthy_and_says_why(run: Run, ring: Path) -> None:
    set_state(str(ring), ["fault", "accel-1", "too-hot"])

    answer = run("topology", "--host", ring, "--pick", "2")

    assert [line.split()[1] for line in answer.lines[2:4]] == ["s00-0002", "s00-0003"]
    assert "not to be had: s00-0001: it is unhealthy: too-hot" in answer.lines


def test_pick_of_shares_names_them_by_id(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    file = policy("offers: [{name: a, sharing: {shares: 3}}]")

    answer = run("topology", "--host", basic, "--policy", file, "--pick", "2")

    assert [line.split()[1] for line in answer.lines[2:4]] == ["s00-0000::0", "s00-0001::0"]
    assert "  by use of the devices: 9 of 15 are best" in answer.lines
    assert answer.lines[-1] == "s00-0000::0 s00-0000::1  2 by use of the devices"


def test_pick_of_partitions_shows_those_of_one_device_as_one(run: Run, split: Path) -> None:
    answer = run("topology", "--host", split, "--pick", "2")

    assert [line.split()[1:] for line in answer.lines[2:4]] == [
        ["s00-0000-half-0", "0", "X", "DIE"],
        ["s00-0000-half-1", "0", "DIE", "X"],
    ]
    assert answer.lines[-1].split()[:2] == ["s00-0000-half-0", "s00-0001-half-0"]


def test_pick_among_too_many_sets_says_that_they_are_not_compared(run: Run, tmp_path: Path) -> None:
    simulate("sim", "basic", 32, str(tmp_path / "m"))

    answer = run("topology", "--host", tmp_path / "m", "--pick", "8")

    assert answer.code == 0
    assert answer.lines[-1] == "there are 10518300 such sets, too many to compare"


def test_pick_of_all_there_are_needs_no_choice(run: Run, basic: Path) -> None:
    answer = run("topology", "--host", basic, "--pick", "2")

    assert answer.lines[-2:] == [
        "closeness 30: no other set is closer (found by fixed)",
        "left: 0 ids of closeness 0",
    ]


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("--taken", "x"), 2, "--taken, --must and --resource mean something only with --pick"),
        (("--pick", "0"), 2, "0 is not in the range"),
        (("--pick", "3"), 1, "error: 3 of sim.accelkit.dev/accel are wanted, 2 are free"),
        (("--pick", "1", "--taken", "nope"), 1, "error: there is no device nope here"),
        (("--pick", "1", "--resource", "a/b"), 2, "--resource: a/b is not offered here"),
        (("--pick", "1", "--must", "s00-0000,s00-0001"), 2, "--must: names 2 for a pod that asks"),
        (
            ("--pick", "1", "--must", "s00-0000", "--taken", "s00-0000"),
            2,
            "--must: s00-0000 is taken",
        ),
        (("--svg", "/no/such/folder/x.svg"), 2, "/no/such/folder/x.svg: cannot be written"),
    ],
)
def test_wishes_that_cannot_be_are_refused_with_a_reason(
    run: Run, basic: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    answer = run("topology", "--host", basic, *words)

    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err


def test_pick_asks_which_of_several_resources_is_meant(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    file = policy(
        "offers: [{name: a, select: {name: s00-0000}, resource: x.example/a},"
        " {name: b, resource: x.example/b}]"
    )
    words = ("topology", "--host", basic, "--policy", file, "--pick", "1")

    unclear = run(*words)
    other = run(*words, "--resource", "x.example/b", "--taken", "s00-0000")
    nothing = run("topology", "--host", file.parent, "--pick", "1")

    assert unclear.code == 2
    assert unclear.err == "--resource: say which; there are: x.example/a, x.example/b\n"
    assert other.err == "error: sim/s00-0000 is not in x.example/b\nremedy: see: accelkit devices\n"
    assert nothing.err == "--pick: nothing is offered through the kubelet here\n"


def test_drawing_is_written_where_it_is_wanted(run: Run, ring: Path, tmp_path: Path) -> None:
    file = tmp_path / "ring.svg"

    answer = run("topology", "--host", ring, "--svg", file)

    assert (answer.code, answer.out, answer.err) == (0, "", f"drawn: {file}\n")
    assert file.read_text().startswith("<svg ")
