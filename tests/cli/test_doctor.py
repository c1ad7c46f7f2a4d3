"""What is wrong with a node is said with what to do."""

import json
import socket
from pathlib import Path

import pytest

from accelkit.cli.diagnosing import look_around
from accelkit.core.policy import Paths, Policy
from accelkit.testing.simulate import set_state, simulate
from tests.cli.conftest import Run


@pytest.fixture
def node(tmp_path: Path) -> Path:
    simulate("nvidia", "h100", 2, str(tmp_path / "node"))
    return tmp_path / "node"


def test_of_a_node_without_fault_nothing_is_said(node: Path, run: Run) -> None:
    answer = run("doctor", "--host", node)

    assert (answer.code, answer.out) == (0, "nothing is found to be wrong\n")


def test_what_vendors_and_accelkit_find_is_listed_the_sure_first(node: Path, run: Run) -> None:
    set_state(str(node), ["unload"])

    table = run("doctor", "--host", node)
    tree = json.loads(run("doctor", "--host", node, "-o", "json").out)

    assert table.code == 1
    assert table.lines[0].split() == ["SURE", "SYMPTOM", "SUSPECT", "PROOF", "REMEDY"]
    assert "modprobe nvidia" in table.lines[1]
    sure = [item["sure"] for item in tree["items"]]
    assert sure == sorted(sure, reverse=True)
    assert [item["symptom"] for item in tree["items"]] == [
        "no GPU is offered",
        "nvidia/0000:03:00.0 and 1 more have the problem driver-not-ready",
    ]


@pytest.mark.parametrize(
    "vendor, symptom",
    [("amd", "0000:03:00.0 is not offered"), ("tpu", "tpu-0000-03-00 is not offered")],
)
def test_card_of_which_its_vendor_tells_is_told_once(
    tmp_path: Path, run: Run, vendor: str, symptom: str
) -> None:
    """Each card without a driver was there twice."""
    machine = str(tmp_path / "node")
    simulate(vendor, None, 1, machine)
    set_state(machine, ["unload"])

    tree = json.loads(run("doctor", "--host", machine, "-o", "json").out)

    assert [item["symptom"] for item in tree["items"]] == [symptom]


def test_virtual_function_of_which_its_vendor_tells_is_told_once(tmp_path: Path, run: Run) -> None:
    """The vendor calls it by its address, and the problem by the name of the partition."""
    machine = str(tmp_path / "node")
    simulate("intel", "arc-pro-b60", 1, machine)
    set_state(machine, ["no-autoprobe"])
    set_state(machine, ["vfs", "gpu-0", "1"])

    tree = json.loads(run("doctor", "--host", machine, "-o", "json").out)

    assert [item["symptom"] for item in tree["items"]] == [
        "virtual function 0000:03:00.1 is not offered",
        "GPU 0000:03:00.0 is not offered itself",
    ]


def test_device_that_nobody_can_have_is_told_with_its_faults(node: Path, run: Run) -> None:
    set_state(str(node), ["recovery", "gpu-1", "1"])

    answer = run("doctor", "--host", node, "-o", "json")

    (finding,) = json.loads(answer.out)["items"]
    device = finding["symptom"].partition(" ")[0]
    assert answer.code == 1
    assert finding["symptom"] == f"{device} is UNHEALTHY"
    assert device.startswith("nvidia/gpu-")
    assert finding["proof"].startswith(
        "needs-reset: The driver asks for a reset of the GPU (recovery action 1)."
    )
    assert finding["remedy"].endswith(f": accelkit health clear {device}")


def paths(folder: Path) -> Policy:
    where = {name: str(folder / name) for name in ("kubelet", "cdi", "run")}
    return Policy(paths=Paths(**where))


def test_node_without_a_kubelet_is_told_so(tmp_path: Path) -> None:
    (finding,) = look_around(paths(tmp_path))

    assert finding.proof == f"{tmp_path}/kubelet is no directory"


def test_what_the_kubelet_makes_is_missed_one_by_one(tmp_path: Path) -> None:
    policy = paths(tmp_path)
    (tmp_path / "kubelet/plugins_registry").mkdir(parents=True)
    before = [finding.proof for finding in look_around(policy)]
    (tmp_path / "kubelet/device-plugins").mkdir()
    (tmp_path / "kubelet/pod-resources").mkdir()
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(policy.paths.pod_resources_socket)
        after = list(look_around(policy))

    assert before == [
        f"{tmp_path}/kubelet/device-plugins is no directory",
        f"{tmp_path}/kubelet/pod-resources/kubelet.sock is no socket",
    ]
    assert after == []


def test_folder_in_whose_place_is_a_file_cannot_be_written_into(tmp_path: Path) -> None:
    (tmp_path / "cdi").touch()

    found = [f.proof for f in look_around(paths(tmp_path)) if f.suspect == "rights"]

    assert found == [f"{tmp_path}/cdi cannot be written into by this user"]
