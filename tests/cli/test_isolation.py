"""Where the code of vendors runs, as the policy says, and as operators see it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from accelkit.agent.calls import Isolated
from accelkit.cli.composing import choose_vendors
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.policy import Isolation, Paths, Policy, VendorPolicy
from accelkit.core.real_host import RealHost
from accelkit.core.registry import Registry
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import PciMatch
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults, simulate
from tests.agent.acme import Acme
from tests.agent.acme_host import no_compiler
from tests.agent.remotes import PATIENCE_S, is_alive
from tests.cli.conftest import Run
from tests.cli.test_agent import RESOURCE, RUN, agent, machine

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]
PCI_VENDOR = 0x1DEA


class Card(Acme):
    """Asked where its card is."""

    name = "card"
    hardware = (PciMatch(vendor=PCI_VENDOR),)


def choose(root: Path, *blocks: VendorPolicy) -> tuple[object, ...]:
    """What is asked on the host at *root*."""
    policy = Policy(paths=Paths(host=str(root)), vendors=blocks)
    registry = Registry(vendors=FrozenMap({"card": Card}))
    return choose_vendors(policy, registry, RealHost(str(root))).vendors


def with_card(root: Path) -> Path:
    function = root / "sys/bus/pci/devices/0000:03:00.0"
    function.mkdir(parents=True)
    for name, value in (("vendor", PCI_VENDOR), ("device", 1), ("class", 0x120000)):
        (function / name).write_text(f"{value:#x}\n")
    return root


def test_native_vendor_of_a_real_host_is_not_made_in_the_agent(tmp_path: Path) -> None:
    root = with_card(tmp_path)
    block = VendorPolicy(name="card", options={"bad": "exit 3"})

    (chosen,) = choose(root, block)

    assert chosen == Isolated(kind=Card, options={"bad": "exit 3"}, host=str(root))


def test_native_vendor_whose_hardware_is_not_there_gets_no_process(tmp_path: Path) -> None:
    assert choose(tmp_path) == ()


def test_native_vendor_is_made_in_the_agent_if_the_policy_wants_it(tmp_path: Path) -> None:
    block = VendorPolicy(name="card", isolation=Isolation.THREAD)

    (chosen,) = choose(with_card(tmp_path), block)

    assert isinstance(chosen, Card)


def policy(tmp_path: Path, isolation: str) -> Path:
    file = tmp_path / f"{isolation}.yaml"
    file.write_text(
        f"paths: {{run: {tmp_path / 'run'}, kubelet: {tmp_path / 'kubelet'}}}\n"
        "http: {listen: ''}\n"
        f"vendors: [{{name: nvidia, isolation: {isolation}}}]\n"
    )
    return file


def test_look_at_a_machine_is_the_same_from_a_process(run: Run, tmp_path: Path) -> None:
    simulate("nvidia", "h100", 2, str(tmp_path / "gpus"))

    thread, process = (
        run("devices", "--host", tmp_path / "gpus", "--policy", policy(tmp_path, isolation))
        for isolation in ("thread", "process")
    )

    assert thread.code == process.code == 0
    assert thread.out == process.out
    assert "gpu-" in thread.out


def test_look_outlives_a_library_that_crashes(run: Run, tmp_path: Path) -> None:
    simulate("nvidia", "h100", 2, str(tmp_path / "gpus"))
    set_faults(str(tmp_path / "gpus"), [Fault(call="nvmlDeviceGetCount_v2", do="crash")])

    answer = run("devices", "--host", tmp_path / "gpus", "--policy", policy(tmp_path, "process"))

    assert "its process ended by SIGSEGV" in answer.out + answer.err


def test_list_of_vendors_says_who_has_a_process(run: Run, tmp_path: Path) -> None:
    def isolations(*words: object) -> Mapping[str, str]:
        tree = json.loads(run("vendor", "list", *words, "-o", "json").out)
        return {item["vendor"]: item["isolation"] for item in tree["items"]}

    real = isolations("--host", tmp_path)
    told = isolations("--host", tmp_path, "--policy", policy(tmp_path, "thread"))
    simulate("nvidia", "h100", 1, str(tmp_path / "gpus"))
    simulated = isolations("--host", tmp_path / "gpus")

    assert (real["nvidia"], real["sim"]) == ("process", "thread")
    assert told["nvidia"] == simulated["nvidia"] == "thread"


async def test_agent_serves_on_while_the_process_of_a_vendor_dies(tmp_path: Path) -> None:
    file = policy(tmp_path, "process")
    file.write_text(file.read_text().replace("nvidia", "sim"))
    file.rename(tmp_path / "policy.yaml")
    machine(tmp_path)
    async with KubeletSim(tmp_path / "kubelet") as kubelet, agent(tmp_path) as process:
        await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 2), PATIENCE_S)
        (worker,) = children(process.pid)
        os.kill(worker, signal.SIGSEGV)
        pod = await kubelet.admit("p", {RESOURCE: 1})
        async with asyncio.timeout(PATIENCE_S):
            while children(process.pid) in ([], [worker]):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        (another,) = children(process.pid)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            _, log = await process.communicate()
            while is_alive(another):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    assert pod.container("main").running
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in log.decode().splitlines()]
    assert events.count("worker ended") == 1


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


DEADLY = """
import ctypes
ctypes.CDLL(__file__.replace("deadly.py", "deadly.so"))
"""
DIES = "__attribute__((constructor)) static void die(void) { *(volatile int *)0 = 1; }"


def test_plugin_whose_library_kills_every_process_that_loads_it_is_skipped(
    tmp_path: Path,
) -> None:
    compiler = shutil.which("gcc") or no_compiler()
    (tmp_path / "deadly.c").write_text(DIES)
    argv = [compiler, "-shared", "-fPIC", "-nostdlib", "-o", "deadly.so", "deadly.c"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    (tmp_path / "deadly.py").write_text(DEADLY)
    (tmp_path / "deadly-1.dist-info").mkdir()
    (tmp_path / "deadly-1.dist-info/METADATA").write_text("Name: deadly\nVersion: 1\n")
    (tmp_path / "deadly-1.dist-info/entry_points.txt").write_text("[accelkit]\na = deadly\n")
    machine(tmp_path)
    file = policy(tmp_path, "auto")
    file.write_text(file.read_text().replace("nvidia", "sim"))
    told = (
        "import accelkit.cli.agent as agent\n"
        "agent.run = lambda parts: print(parts.load_failures[0].reason)\n"
    )

    def started() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [
                *(sys.executable, "-c", told + RUN, "agent", "--policy", str(file)),
                *("--host", str(tmp_path / "machine")),
            ],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    ends = [started() for _ in range(3)]

    assert [end.returncode for end in ends] == [-signal.SIGSEGV, -signal.SIGSEGV, 0]
    assert ends[2].stdout == "loading it ended the process 2 times, so it is skipped\n"
