"""Registration through plugins_registry."""

import asyncio
import socket
from pathlib import Path

import pytest
from attrs import evolve

from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.serve import Server, bind
from accelkit.backends.wire.services import GET_INFO, unary
from accelkit.conformance.sims.events import Notified, Refused, Registered, StreamEnded
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import QUICK
from tests.conformance.sims.conftest import Join
from tests.conformance.sims.plugin import RESOURCE, Plugin, devices, plugin_path

old = pytest.mark.parametrize("sim", ["1.34", "1.36"], indirect=True)
INFO = reg.PluginInfo(type="DevicePlugin", name=RESOURCE, supported_versions=["v1beta1"])


async def test_socket_is_asked_connected_and_told(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2), watcher=True)
    await sim.wait_for(lambda: plugin.told)

    assert plugin.calls == ["info", "options", "list"]
    assert plugin.told == [reg.RegistrationStatus(plugin_registered=True)]
    assert [event.by for event in sim.seen(Registered)] == ["watcher"]
    assert sim.amounts() == {RESOURCE: (2, 2)}


async def test_endpoint_of_the_info_is_where_the_service_is(sim: KubeletSim) -> None:
    elsewhere = sim.plugins_dir.parent / "plugins"
    elsewhere.mkdir()
    service = await Plugin(elsewhere / "dp.sock", devices(3)).serve()
    registration = Plugin(plugin_path(sim.registry_dir))
    registration.info.endpoint = str(service.path)
    await registration.serve()

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (3, 3)})
    assert (registration.calls, service.calls) == (["info"], ["options", "list"])
    await registration.close()
    await service.close()


@pytest.mark.parametrize(
    "info, error",
    [
        (
            reg.PluginInfo(type="CSIPlugin", name=RESOURCE),
            "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin",
        ),
        (
            reg.PluginInfo(type="DevicePlugin", name=RESOURCE, supported_versions=["v2"]),
            (
                "RegisterPlugin error -- plugin validation failed with err: "
                "manager version, v1beta1, is not among plugin supported versions [v2]"
            ),
        ),
        (
            reg.PluginInfo(type="DevicePlugin", name="x", supported_versions=["v1beta1"]),
            (
                "RegisterPlugin error -- plugin validation failed with err: "
                'invalid name of device plugin socket: the ResourceName "x" is invalid'
            ),
        ),
    ],
)
async def test_wrong_info_is_answered_with_the_reason(
    sim: KubeletSim, info: reg.PluginInfo, error: str
) -> None:
    plugin = Plugin(plugin_path(sim.registry_dir))
    plugin.info = info
    await plugin.serve()

    await sim.wait_for(lambda: plugin.told)

    assert not plugin.told[0].plugin_registered
    assert plugin.told[0].error.startswith(error)
    await plugin.close()


async def test_failed_registration_is_tried_again(sim: KubeletSim) -> None:
    plugin = Plugin(plugin_path(sim.registry_dir), devices(1))
    plugin.info = reg.PluginInfo(type="CSIPlugin", name=RESOURCE)
    await plugin.serve()
    await sim.wait_for(lambda: plugin.told)

    plugin.info = INFO

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 1)})
    await sim.wait_for(lambda: sim.seen(Notified, registered=True))
    await plugin.close()


async def test_socket_without_a_registration_service_is_noted(sim: KubeletSim) -> None:
    async with await bind(sim.registry_dir / "mute.sock", []):
        await sim.wait_for(lambda: sim.seen(Refused))

    assert sim.seen(Refused)[0].text.startswith(
        "RegisterPlugin error -- failed to get plugin info using RPC GetInfo: rpc error"
    )


async def test_socket_that_nobody_listens_on_is_noted(sim: KubeletSim) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(sim.registry_dir / "dead.sock"))
        await sim.wait_for(lambda: sim.seen(Refused))

    assert sim.seen(Refused)[0].text == "RegisterPlugin error -- dial failed"


async def test_info_that_takes_longer_than_its_second_is_noted(tmp_path: Path) -> None:
    async with KubeletSim(tmp_path, timing=evolve(QUICK, info_s=0.05)) as sim:
        plugin = Plugin(plugin_path(sim.registry_dir))
        plugin.hold["info"] = asyncio.Event()
        await plugin.serve()

        await sim.wait_for(lambda: sim.seen(Refused))

        assert "DeadlineExceeded" in sim.seen(Refused)[0].text
        plugin.hold["info"].set()
        await plugin.close()


async def without_notify(sim: KubeletSim, service: Plugin) -> Server:
    async def info(_: reg.InfoRequest) -> reg.PluginInfo:
        return reg.PluginInfo(
            type="DevicePlugin",
            name=RESOURCE,
            endpoint=str(service.path),
            supported_versions=["v1beta1"],
        )

    return await bind(sim.registry_dir / "r.sock", [unary(GET_INFO, info)])


async def test_plugin_that_cannot_be_told_is_disconnected_and_tried_again(
    sim: KubeletSim,
) -> None:
    service = await Plugin(sim.plugins_dir / "dp.sock", devices(1)).serve()
    async with await without_notify(sim, service):
        await sim.wait_for(lambda: len(sim.seen(Registered)) == 2)

        text = "RegisterPlugin error -- failed to send registration status: rpc error"
        assert sim.seen(Refused)[0].text.startswith(text)
        assert sim.seen(StreamEnded, why="disconnected by the kubelet")
    await service.close()


@old
async def test_plugin_that_cannot_be_told_stays_connected(sim: KubeletSim) -> None:
    service = await Plugin(sim.plugins_dir / "dp.sock", devices(1)).serve()
    async with await without_notify(sim, service):
        await sim.wait_for(lambda: sim.seen(Refused))
        await asyncio.sleep(3 * QUICK.retry_s)

        assert sim.amounts() == {RESOURCE: (1, 1)}
        assert len(sim.seen(Registered)) == 1
    await service.close()


async def test_endpoint_that_is_connected_already_is_refused(sim: KubeletSim) -> None:
    service = await Plugin(sim.plugins_dir / "dp.sock", devices(1)).serve()
    plugins = [Plugin(plugin_path(sim.registry_dir)) for _ in range(2)]
    for plugin in plugins:
        plugin.info.endpoint = str(service.path)
        await plugin.serve()

    await sim.wait_for(lambda: sim.seen(Notified, registered=False))

    text = (
        "RegisterPlugin error -- plugin registration failed with err: "
        f"device plugin already connected: {service.path}"
    )
    assert sim.seen(Notified, registered=False)[0].error == text
    for plugin in (*plugins, service):
        await plugin.close()


async def test_socket_that_goes_while_it_is_dialled_is_let_go(sim: KubeletSim) -> None:
    plugin = Plugin(plugin_path(sim.registry_dir), devices(1))
    plugin.hold["options"] = asyncio.Event()
    await plugin.serve()
    await sim.wait_for(lambda: "options" in plugin.calls)

    plugin.path.unlink()
    await asyncio.sleep(3 * QUICK.watch_s)
    plugin.hold["options"].set()

    assert sim.seen(Registered) == []
    await plugin.close()


async def test_hidden_sockets_and_files_are_not_looked_at(sim: KubeletSim, join: Join) -> None:
    (sim.registry_dir / "file").touch()
    async with await bind(sim.registry_dir / ".hidden.sock", []):
        await join(devices(1), watcher=True)
        await asyncio.sleep(3 * QUICK.watch_s)

    assert sim.seen(Refused) == []


async def test_ended_stream_is_not_dialled_again_while_the_socket_stays(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(2), watcher=True)

    await plugin.end_stream()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (2, 0)})
    await asyncio.sleep(5 * QUICK.watch_s)

    assert plugin.calls == ["info", "options", "list"]


async def test_socket_bound_again_is_a_new_one(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2), watcher=True)
    await plugin.close()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (2, 0)})

    await plugin.serve()

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (2, 2)})


async def test_socket_that_goes_ends_the_stream(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2), watcher=True)
    await sim.wait_for(lambda: plugin.told)

    plugin.path.unlink()

    await sim.wait_for(lambda: sim.seen(StreamEnded, why="disconnected by the kubelet"))
    assert sim.amounts() == {RESOURCE: (2, 0)}


async def test_second_socket_goes_on_when_the_first_goes(sim: KubeletSim, join: Join) -> None:
    first = await join(devices(2), watcher=True)
    second = await join(devices(2), watcher=True)
    await sim.wait_for(lambda: first.told and second.told)

    first.path.unlink()

    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(first.path)))
    assert sim.amounts() == {RESOURCE: (2, 2)}
    assert sim.seen(StreamEnded, endpoint=str(second.path)) == []


@old
async def test_second_socket_is_cut_off_when_the_first_goes(sim: KubeletSim, join: Join) -> None:
    first = await join(devices(2), watcher=True)
    second = await join(devices(2), watcher=True)
    await sim.wait_for(lambda: first.told and second.told)

    first.path.unlink()

    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(second.path)))
    assert sim.amounts() == {RESOURCE: (2, 0)}
    assert sim.seen(StreamEnded, endpoint=str(first.path)) == []
