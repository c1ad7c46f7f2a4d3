"""A simulated kubelet that restarts, dies and comes back."""

import socket

import pytest

from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.conformance.sims.events import (
    ContainerStarted,
    Listed,
    PodFailed,
    Started,
    StreamEnded,
)
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from tests.conformance.sims.conftest import Join
from tests.conformance.sims.plugin import RESOURCE, Plugin, device, devices


async def test_restart_ends_streams_wipes_sockets_and_makes_a_new_one(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(2))
    before = sim.socket.stat()
    (sim.plugins_dir / "kubelet_internal_checkpoint").write_text("{}")

    await sim.restart()

    after = sim.socket.stat()
    assert (before.st_ino, before.st_ctime_ns) != (after.st_ino, after.st_ctime_ns)
    assert not plugin.path.exists()
    assert (sim.plugins_dir / "kubelet_internal_checkpoint").exists()
    assert sim.seen(StreamEnded, why="the kubelet stopped")
    await sim.wait_for(lambda: sim.status == {RESOURCE: ("0", "0")})
    assert plugin.calls == ["options", "list"]


async def test_killed_kubelet_leaves_every_socket_behind(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2))

    await sim.kill()

    assert plugin.path.is_socket()
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        client.connect(str(sim.socket))
    await sim.start()
    assert len(sim.seen(Started)) == 2


async def test_running_pod_is_left_alone_though_no_plugin_came_back(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(2))
    pod = await sim.admit("p", {RESOURCE: 1})
    down = await sim.admit("q", {RESOURCE: 1})
    sim.crash("q")

    await sim.restart()
    await sim.wait_for(lambda: sim.seen(PodFailed))

    assert [event.pod for event in sim.seen(PodFailed)] == ["q"]
    assert (pod.phase, down.phase) == (Phase.RUNNING, Phase.FAILED)
    assert down.message == (
        "Pod was rejected: Allocate failed due to no healthy devices present; "
        f"cannot allocate unhealthy devices {RESOURCE}, which is unexpected"
    )


async def test_pod_that_is_down_fails_for_good_if_its_device_is_unhealthy_by_then(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(2))
    pod = await sim.admit("p", {RESOURCE: 1})
    sim.crash("p")
    (held,) = pod.ids()

    await sim.restart()
    await join([device("other"), device(held, "Unhealthy")])
    await sim.wait_for(lambda: sim.seen(PodFailed))

    assert pod.message == (
        "Pod was rejected: Allocate failed due to previously allocated devices are no longer "
        f"healthy; cannot allocate unhealthy devices {RESOURCE}, which is unexpected"
    )


async def test_pod_that_is_down_starts_with_its_old_answer_if_the_plugin_is_fast(
    sim: KubeletSim, join: Join
) -> None:
    first = await join(devices(2))
    await sim.admit("p", {RESOURCE: 1})
    sim.crash("p")

    await sim.restart()
    second = await join(devices(2))
    await sim.wait_for(lambda: len(sim.seen(ContainerStarted)) == 2)

    before, after = sim.seen(ContainerStarted)
    assert (before.answers, after.restarts) == (after.answers, 1)
    assert (first.calls.count("allocate"), second.calls.count("allocate")) == (1, 0)


async def test_devices_of_pods_stay_taken_over_a_restart(sim: KubeletSim, join: Join) -> None:
    await join(devices(2))
    first = await sim.admit("p", {RESOURCE: 1})

    await sim.restart()
    await join(devices(2))
    second = await sim.admit("q", {RESOURCE: 1})

    assert set(first.ids()) | set(second.ids()) == {"d0", "d1"}


async def test_watcher_comes_back_by_itself_and_wipes_nothing(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2), watcher=True)
    await sim.admit("p", {RESOURCE: 1})
    sim.crash("p")

    await sim.restart()
    await sim.wait_for(lambda: len(sim.seen(ContainerStarted)) == 2)

    assert plugin.path.is_socket()
    assert sim.seen(PodFailed) == []
    assert plugin.calls.count("info") == 2
    assert len(sim.seen(Listed)) == 2


async def test_lost_checkpoint_makes_held_devices_free(sim: KubeletSim, join: Join) -> None:
    """Kubelet behaviour: the next pod gets a device that somebody still uses."""
    await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})

    sim.lose_checkpoint()

    assert sim.device_health("p") == {}
    assert (await sim.admit("q", {RESOURCE: 1})).ids() == ("d0",)


async def test_two_watcher_sockets_both_come_back(sim: KubeletSim, join: Join) -> None:
    plugins: list[Plugin] = [await join(devices(2), watcher=True) for _ in range(2)]

    await sim.restart()

    await sim.wait_for(lambda: len(sim.seen(Listed)) == 4)
    assert all(plugin.calls.count("list") == 2 for plugin in plugins)
    pod = await sim.admit("p", {RESOURCE: 1})
    assert pod.phase is Phase.RUNNING


async def test_options_are_asked_anew_after_a_restart(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1), watcher=True)
    plugin.options = dp.DevicePluginOptions(get_preferred_allocation_available=True)

    await sim.restart()
    await sim.wait_for(lambda: len(sim.seen(Listed)) == 2)
    await sim.admit("p", {RESOURCE: 1})

    assert plugin.calls[-2:] == ["preferred", "allocate"]
