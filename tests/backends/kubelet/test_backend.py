"""The main path: listed, allocated, healthy and not, over real sockets."""

import subprocess
import sys
from pathlib import Path

import pytest

from accelkit.backends.kubelet.backend import create
from accelkit.backends.kubelet.settings import Settings
from accelkit.conformance.sims.events import Answer
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.core.policy import Backends, KubeletPolicy, Paths, Policy, Register
from tests.backends.kubelet.world import (
    RESOURCE,
    gpu,
    health,
    serving,
    sick,
    view_of,
    world,
)


@pytest.mark.parametrize("register", list(Register))
async def test_devices_are_listed_and_a_pod_gets_what_its_device_needs(
    tmp_path: Path, sim: KubeletSim, register: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=register)):
        await sim.wait_for(lambda: sim.amounts().get(RESOURCE) == (1, 1))
        pod = await sim.admit("p", {RESOURCE: 1})

    assert pod.phase is Phase.RUNNING, pod.message
    assert pod.container("main").held[RESOURCE].answer == Answer(
        envs=(("ACME_DEVICES", "a"), ("HAS_A", "1")), devices=(("/dev/a", "/dev/a", "rw"),)
    )


async def test_unhealthy_device_stays_listed_and_recovers(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), gpu("b")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True, "b": True})
        here.node.publish(view_of(sick(gpu("a")), gpu("b")))
        await sim.wait_for(lambda: health(sim) == {"a": False, "b": True})
        here.node.publish(view_of(gpu("a"), gpu("b")))

        await sim.wait_for(lambda: health(sim) == {"a": True, "b": True})


def test_plugin_brings_a_backend_that_renders_without_grpc() -> None:
    program = """
import sys
from accelkit.backends import kubelet
from accelkit.core.policy import Policy
from accelkit.core.view import View
(factory,) = kubelet.accelkit_backends()
print(factory.name, factory.create(Policy()).render(View()), "grpc" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.decode().strip() == "kubelet FrozenMap({}) False"


def test_backend_finds_the_kubelet_where_the_policy_says(tmp_path: Path) -> None:
    nodes = tmp_path / "sys/devices/system/node"
    for number, cpus in enumerate(("0-3", "4-7", "")):
        (nodes / f"node{number}").mkdir(parents=True)
        (nodes / f"node{number}" / "cpulist").write_text(f"{cpus}\n")
    policy = Policy(
        paths=Paths(host=str(tmp_path), kubelet="/k", cdi="/c", pod_resources="/p.sock"),
        backends=Backends(kubelet=KubeletPolicy(directory="/d", register=Register.SOCKET)),
    )

    assert create(policy).settings == Settings(
        plugins=Path("/d"),
        registry=Path("/k/plugins_registry"),
        pod_resources=Path("/p.sock"),
        cdi=Path("/c"),
        register=Register.SOCKET,
    )
    assert create(Policy()).settings.plugins == Path("/var/lib/kubelet/device-plugins")
