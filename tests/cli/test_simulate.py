import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TOPO = """\
        GPU0  GPU1  GPU2  CPU Affinity  NUMA Affinity
GPU0     X    NV4   SYS   0-15          0
GPU1    NV4    X    SYS   0-15          0
GPU2    SYS   SYS    X    16-31         1
"""


def test_machine_is_made_and_can_be_looked_at(run: Run, tmp_path: Path) -> None:
    made = run("simulate", "nvidia", "--product", "l4", "--count", "2", tmp_path / "m")
    seen = run("devices", "--host", tmp_path / "m")

    assert (made.code, made.err) == (0, "")
    assert made.lines == [
        f"{tmp_path}/m: nvidia, 2 of l4",
        "  units: gpu-0 gpu-1",
        f"  look at them: accelkit devices --host {tmp_path}/m",
        f"  what can happen to them: accelkit simulate set {tmp_path}/m",
    ]
    assert [line.count("NVIDIA L4") for line in seen.lines] == [0, 1, 1]


def test_second_vendor_is_added_to_the_machine(run: Run, tmp_path: Path) -> None:
    run("simulate", "nvidia", tmp_path / "m")
    run("simulate", "sim", "--count", "2", tmp_path / "m")

    seen = run("devices", "--host", tmp_path / "m")

    assert [line.partition("/")[0] for line in seen.lines[1:]] == ["nvidia", "sim", "sim"]


def test_vendor_can_be_told_options(run: Run, tmp_path: Path) -> None:
    run("simulate", "sim", "--option", "driver=7.8", "--seed", "3", tmp_path / "m")

    record = json.loads((tmp_path / "m" / "machine.json").read_text())

    assert record["parts"][0]["options"] == {"driver": "7.8"}
    assert "sim/s03-0000" in run("devices", "--host", tmp_path / "m").out


def test_machine_is_made_like_a_topology_that_was_pasted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "topo.txt"
    file.write_text(TOPO)

    made = run("simulate", "nvidia", "--from", file, tmp_path / "m")
    matrix = run("topology", "--host", tmp_path / "m").lines

    assert made.code == 0
    said = "warning: the product is not told: it is a100-80, which --product can change"
    assert made.err == f"{said}\n"
    assert [line.split()[2:5] for line in matrix[1:4]] == [
        ["X", "D4", "·"],
        ["D4", "X", "·"],
        ["·", "·", "X"],
    ]


def test_things_happen_to_a_machine(run: Run, basic: Path) -> None:
    lost = run("simulate", "set", basic, "lose", "accel-0")
    seen = run("devices", "--host", basic)
    back = run("simulate", "set", basic, "restore", "accel-0")

    assert (lost.code, lost.out, back.code) == (0, "", 0)
    assert "sim/s00-0000" not in seen.out


def test_what_can_happen_is_listed(run: Run, basic: Path) -> None:
    lines = run("simulate", "set", basic).lines

    assert lines[:2] == ["OF             VERB", "every machine  reboot"]
    assert "sim            lose UNIT" in lines


def test_faults_are_played(run: Run, basic: Path, tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("[{at: 1ms, do: fault accel-0 burnt}]")

    played = run("simulate", "run", basic, "--faults", faults)

    assert (played.code, played.out) == (0, "")
    assert run("devices", "--host", basic).code == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes need root")
def test_device_nodes_are_real_where_they_are_asked_for(run: Run, tmp_path: Path) -> None:
    made = run("simulate", "sim", "--device-nodes", tmp_path / "m")

    assert made.code in {0, 2}  # a container may be denied mknod
    if made.code == 0:
        assert any(path.is_char_device() for path in (tmp_path / "m").rglob("sim0"))


@pytest.mark.parametrize(
    "words, said",
    [
        (("nope", "DIR"), "vendor nope: is not installed\nremedy: see: accelkit"),
        (("nvidia", "--product", "x1", "DIR"), "product x1: nvidia has none of that name"),
        (("nvidia", "--count", "0", "DIR"), "count: 0 is not from 1 to 256"),
        (("nvidia", "--option", "x", "DIR"), "--option x: write KEY=VALUE"),
        (("sim", "--count", "2", "--from", "x", "DIR"), "--from says how many there are"),
        (("sim", "--from", "x", "DIR"), "x: cannot be read"),
        (("nvidia", "--from", "/no/such", "DIR"), "/no/such: cannot be read"),
        (("nvidia", "/proc/no"), "/proc/no: cannot be used"),
        (("nvidia",), "Missing argument 'DIR'"),
        (("set", "DIR", "lose", "accel-0"), "there is no simulated machine\nremedy: make one: "),
        (("sim", "--option", "drvier=1", "DIR"), "option drvier: sim has none of that name"),
        (("generic", "--option", "x=1", "DIR"), "remedy: it has no options"),
        (("nvidia", "--option", "topology=junk", "DIR"), "is not what is made of a text"),
        (("nvidia", "--option", 'topology={"words":[],"numa":[],"cpus":[]}', "DIR"), "made of a"),
        (("nvidia", "--option", 'topology={"words":["XX"],"numa":[0],"cpus":[""]}', "DIR"), "made"),
        (("run", "DIR", "--faults", "/no/such"), "/no/such: cannot be read"),
        (("run", "DIR"), "Missing option '--faults'"),
    ],
)
def test_what_cannot_be_is_bad_input(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    given = [str(tmp_path / "m") if word == "DIR" else word for word in words]

    answer = run("simulate", *given)

    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "m").exists()


def test_verb_that_nothing_knows_is_bad_input_and_names_those_there_are(
    run: Run, basic: Path
) -> None:
    answer = run("simulate", "set", basic, "dance")

    assert answer.code == 2
    assert answer.err.startswith("dance: nothing here knows it\nremedy: write one of: ")
