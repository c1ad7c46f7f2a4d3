"""One registrant of a name on a node: who leads, who ends, who was there before."""

from pathlib import Path

import pytest

from accelkit.backends.wire.serve import bind, fresh_path
from accelkit.conformance.sims.events import StreamEnded
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.core.policy import Register
from tests.backends.kubelet.world import (
    RESOURCE,
    elsewhere,
    endpoints,
    gpu,
    health,
    relisted,
    serving,
    view_of,
    world,
)
from tests.conformance.sims.plugin import Plugin, devices, plugin_path, register

BOTH = pytest.mark.parametrize("how", [Register.WATCHER, Register.SOCKET])
OLD_AND_NEW = pytest.mark.parametrize("sim", ["1.36", "1.37"], indirect=True)


@BOTH
@OLD_AND_NEW
async def test_end_of_another_registrant_does_not_end_us(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    """Up to 1.36 the kubelet cuts off every registrant of the name together."""
    other = await Plugin(plugin_path(sim.plugins_dir), devices(1)).serve()
    await register(sim, other)
    async with serving(world(tmp_path, view_of(gpu("a")), register=how)):
        await sim.wait_for(lambda: health(sim) == {"a": True})
        await other.close()
        await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(other.path)))
        await sim.wait_for(lambda: sim.amounts()[RESOURCE] == (1, 1))
        pod = await sim.admit("p", {RESOURCE: 1})

        assert pod.phase is Phase.RUNNING
        assert len(set(endpoints(sim))) == len(endpoints(sim))


@BOTH
async def test_end_ends_streams_and_removes_sockets(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=how)) as here:
        await relisted(sim)
        assert len(here.sockets()) == 1

    assert here.sockets() == set()
    await sim.wait_for(lambda: sim.seen(StreamEnded))


async def test_follower_registers_nothing_until_it_leads(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), leading=False)) as here:
        await sim.wait_for(lambda: here.node.statuses)
        assert here.node.statuses[-1].detail == "another instance leads"
        assert here.sockets() == set()
        here.node.leading.set(True)

        await relisted(sim)


@BOTH
async def test_leadership_lost_ends_streams_and_taken_again_registers_anew(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=how)) as here:
        await relisted(sim)
        here.node.leading.set(False)
        await sim.wait_for(lambda: sim.seen(StreamEnded) and not here.sockets())
        await sim.wait_for(lambda: not here.node.statuses[-1].registered)
        here.node.leading.set(True)
        await relisted(sim, 2)

        assert len(set(endpoints(sim))) == 2


@OLD_AND_NEW
async def test_hand_over_to_another_instance_leaves_devices_to_be_had(
    tmp_path: Path, sim: KubeletSim
) -> None:
    view = view_of(gpu("a"))
    async with (
        serving(world(tmp_path, view)) as old,
        serving(world(tmp_path, view, leading=False)) as new,
    ):
        await relisted(sim)
        await sim.admit("p", {RESOURCE: 1})
        old.node.leading.set(False)
        await sim.wait_for(lambda: not old.sockets())
        new.node.leading.set(True)
        await relisted(sim, 2)
        await sim.wait_for(lambda: sim.amounts()[RESOURCE] == (1, 1))

        assert sim.pods["p"].ids() == ("a",)


@BOTH
async def test_sockets_that_a_killed_process_left_are_removed_and_no_others(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    folder = sim.registry_dir if how is Register.WATCHER else sim.plugins_dir
    lives = await bind(fresh_path(folder, "acme-test-gpu"), [])
    dead = await bind(fresh_path(folder, "acme-test-gpu"), [])
    other = await bind(fresh_path(folder, "other"), [])
    for server in (dead, other):
        await server.close(keep_path=True)
    async with lives, serving(world(tmp_path, view_of(gpu("a")), register=how)) as here:
        await relisted(sim)

        assert dead.path.name not in here.sockets()
        assert {lives.path.name, other.path.name} < here.sockets()


async def test_fall_back_to_kubelet_sock_outlives_a_loss_of_leadership(
    tmp_path: Path, sim: KubeletSim
) -> None:
    here = elsewhere(world(tmp_path, view_of(gpu("a"))), registry=tmp_path)
    async with serving(here):
        await relisted(sim)
        here.node.leading.set(False)
        await sim.wait_for(lambda: not here.sockets())
        here.node.leading.set(True)
        await relisted(sim, 2)

        assert (
            here.node.meter.counted["accelkit_registrations_total", ("kubelet", "unnoticed")] == 1
        )
