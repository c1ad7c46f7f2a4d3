"""The main path: listed, allocated, healthy and not, over real sockets."""

from pathlib import Path

import pytest

from accelkit.conformance.sims.events import Answer
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.core.policy import Register
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
