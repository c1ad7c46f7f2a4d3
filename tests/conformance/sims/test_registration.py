"""How plugins come to a simulated kubelet and what happens when they go."""

import asyncio
from pathlib import Path

import grpc.aio
import pytest
from attrs import evolve

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import bind, dial
from accelkit.conformance.sims.events import (
    Listed,
    ListedDevice,
    Options,
    Refused,
    Registered,
    StreamEnded,
)
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import QUICK, Timing
from tests.conformance.sims.conftest import Join
from tests.conformance.sims.plugin import (
    RESOURCE,
    Plugin,
    device,
    devices,
    plugin_path,
    register,
)

old = pytest.mark.parametrize("sim", ["1.34", "1.36"], indirect=True)
both = pytest.mark.parametrize("sim", ["1.36", "1.37"], indirect=True)


async def refusal(
    sim: KubeletSim, resource: str = RESOURCE, *, endpoint: str = "a.sock", version: str = "v1beta1"
) -> grpc.aio.AioRpcError:
    request = dp.RegisterRequest(version=version, endpoint=endpoint, resource_name=resource)
    async with dial(sim.socket) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await services.call(channel, services.REGISTER, request)
    return caught.value


async def test_register_calls_back_for_the_options_and_then_for_the_list(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(2))

    assert plugin.calls == ["options", "list"]
    assert sim.seen(Registered) == [
        Registered(RESOURCE, str(plugin.path), "socket", Options(pre_start=False, preferred=False))
    ]
    assert sim.seen(Listed) == [
        Listed(RESOURCE, str(plugin.path), (ListedDevice("d0", True), ListedDevice("d1", True)))
    ]
    assert sim.amounts() == {RESOURCE: (2, 2)}


@pytest.mark.parametrize(
    "name",
    [
        "noslash",
        "kubernetes.io/x",
        "requests.a/x",
        "deviceclass.resource.kubernetes.io/x",
        "a.test/" + "x" * 64,
        "a.test/",
        "/x",
        "a" * 245 + "/x",
        "A.test/x",
    ],
)
async def test_bad_name_is_refused_as_invalid(sim: KubeletSim, name: str) -> None:
    error = await refusal(sim, name)

    assert error.code() is grpc.StatusCode.UNKNOWN
    assert error.details() == f'the ResourceName "{name}" is invalid'


async def test_other_version_is_refused(sim: KubeletSim) -> None:
    error = await refusal(sim, version="v1alpha1")

    assert error.details() == (
        'requested API version "v1alpha1" is not supported by kubelet. '
        'Supported version is ["v1beta1"]'
    )


async def test_path_that_nobody_listens_on_is_refused_after_the_dial(sim: KubeletSim) -> None:
    error = await refusal(sim, endpoint="nobody.sock")

    assert error.code() is grpc.StatusCode.UNKNOWN
    assert error.details() == "failed to dial device plugin: context deadline exceeded"
    assert [event.endpoint for event in sim.seen(Refused)] == [str(sim.plugins_dir / "nobody.sock")]


async def test_plugin_whose_options_fail_is_refused(sim: KubeletSim) -> None:
    async with await bind(sim.plugins_dir / "a.sock", []):
        error = await refusal(sim)

    assert str(error.details()).startswith(
        "failed to get device plugin options: rpc error: code = Unimplemented"
    )


async def test_list_replaces_the_one_before(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(4))

    await plugin.send([device("d0"), device("d1", "Unhealthy"), device("d2", "healthy")])

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (3, 1)})


async def test_repeated_ids_are_folded_unless_their_health_differs(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join([device("d0"), device("d0"), device("d1")])
    assert sim.amounts() == {RESOURCE: (2, 2)}

    await plugin.send([device("d0"), device("d0", "Unhealthy")])

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (2, 1)})


async def test_list_above_4_mib_ends_the_stream(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))

    await plugin.send([device(f"{number:060}") for number in range(60_000)])

    await sim.wait_for(lambda: sim.seen(StreamEnded))
    assert "ResourceExhausted" in sim.seen(StreamEnded)[0].why


async def test_status_shows_quantities_at_ticks(sim: KubeletSim, join: Join) -> None:
    await join(devices(5000))

    await sim.wait_for(lambda: sim.status == {RESOURCE: ("5k", "5k")})


async def test_status_waits_for_the_tick_while_the_kubelet_knows_at_once(tmp_path: Path) -> None:
    timing = evolve(QUICK, tick_s=3600)
    async with KubeletSim(tmp_path, timing=timing) as sim:
        plugin = await Plugin(plugin_path(sim.plugins_dir), devices(1)).serve()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 1)})

        assert sim.status == {}
        await plugin.close()


async def test_ended_stream_leaves_capacity_and_is_never_dialled_again(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(4))

    await plugin.end_stream()

    await sim.wait_for(lambda: sim.status == {RESOURCE: ("4", "0")})
    await asyncio.sleep(10 * QUICK.tick_s)
    assert plugin.calls == ["options", "list"]


async def test_plugin_that_dies_leaves_capacity(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(4))

    await plugin.close()

    await sim.wait_for(lambda: sim.status == {RESOURCE: ("4", "0")})


async def test_capacity_is_0_after_the_grace_and_the_name_stays(tmp_path: Path) -> None:
    async with KubeletSim(tmp_path, timing=evolve(QUICK, grace_s=0.2)) as sim:
        plugin = await Plugin(plugin_path(sim.plugins_dir), devices(4)).serve()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.status == {RESOURCE: ("4", "4")})
        await plugin.close()

        await sim.wait_for(lambda: sim.status == {RESOURCE: ("0", "0")})
        again = await Plugin(plugin_path(sim.plugins_dir), devices(3)).serve()
        await register(sim, again)
        await sim.wait_for(lambda: sim.status == {RESOURCE: ("3", "3")})
        await again.close()


# Two endpoints, one name.


@both
async def test_newest_answers_and_the_last_list_wins(sim: KubeletSim, join: Join) -> None:
    first = await join(devices(4))
    second = await join(devices(4))

    await first.send([*devices(2), device("d2", "Unhealthy")])
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (3, 2)})
    await sim.admit("p", {RESOURCE: 1})

    assert "allocate" in second.calls
    assert "allocate" not in first.calls
    assert sim.seen(StreamEnded) == []


async def test_survivor_is_promoted_without_a_sign_and_its_list_is_not_restored(
    sim: KubeletSim, join: Join
) -> None:
    survivor = await join(devices(4))
    newest = await join(devices(2))

    await newest.close()

    await sim.wait_for(lambda: sim.seen(StreamEnded))
    assert sim.amounts() == {RESOURCE: (2, 2)}
    assert (await sim.admit("p", {RESOURCE: 1})).reason == ""
    assert survivor.calls == ["options", "list", "allocate"]


@old
async def test_end_of_the_older_one_cuts_off_the_newer(sim: KubeletSim, join: Join) -> None:
    older = await join(devices(4))
    newer = await join(devices(4))

    await older.end_stream()

    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(newer.path)))
    assert sim.amounts() == {RESOURCE: (4, 0)}


@old
async def test_list_of_a_survivor_brings_capacity_back_while_allocate_fails(
    sim: KubeletSim, join: Join
) -> None:
    survivor = await join(devices(4))
    newest = await join(devices(4))
    await newest.end_stream()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (4, 0)})
    assert sim.seen(StreamEnded, endpoint=str(survivor.path)) == []

    await survivor.send(devices(4))

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (4, 4)})
    pod = await sim.admit("p", {RESOURCE: 1})
    assert pod.reason == "UnexpectedAdmissionError"
    assert "has been stopped" in pod.message


@both
async def test_survivor_that_registers_anew_serves(sim: KubeletSim, join: Join) -> None:
    await join(devices(4))
    newest = await join(devices(4))
    await newest.end_stream()
    await sim.wait_for(lambda: sim.seen(StreamEnded))

    again = await join(devices(4))

    await sim.admit("p", {RESOURCE: 1})
    assert "allocate" in again.calls


@old
async def test_own_old_stream_counts_as_a_rival(sim: KubeletSim, join: Join) -> None:
    """Registering first and ending the old stream then leaves nobody."""
    before = await join(devices(4))
    after = await join(devices(4))

    await before.end_stream()

    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(after.path)))


async def test_path_registered_twice_leaves_a_plugin_whose_death_nobody_notices(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(4))

    with pytest.raises(grpc.aio.AioRpcError, match="device plugin already connected"):
        await register(sim, plugin)
    await plugin.close()
    await sim.wait_for(lambda: sim.seen(StreamEnded))

    assert sim.amounts() == {RESOURCE: (4, 4)}
    assert (await sim.admit("p", {RESOURCE: 1})).reason == "UnexpectedAdmissionError"


async def test_path_registered_twice_is_lost_until_the_kubelet_restarts(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(4))
    with pytest.raises(grpc.aio.AioRpcError):
        await register(sim, plugin)
    await plugin.close()
    await plugin.serve()
    with pytest.raises(grpc.aio.AioRpcError, match="device plugin already connected"):
        await register(sim, plugin)

    await plugin.close()
    await sim.restart()
    await plugin.serve()
    await register(sim, plugin)

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (4, 4)})


async def test_dead_path_is_promoted_when_a_fresh_one_ends(sim: KubeletSim, join: Join) -> None:
    dead = await join(devices(3))
    with pytest.raises(grpc.aio.AioRpcError):
        await register(sim, dead)
    await dead.close()
    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(dead.path)))
    fresh = await join(devices(3))

    await fresh.close()
    await sim.wait_for(lambda: sim.seen(StreamEnded, endpoint=str(fresh.path)))

    assert sim.amounts() == {RESOURCE: (3, 3)}


@old
async def test_path_registered_twice_is_accepted_and_ends_cleanly(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(4))

    await register(sim, plugin)
    await plugin.close()

    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (4, 0)})


def test_timing_scales_as_a_whole() -> None:
    assert Timing().scaled(0.01).grace_s == 3.0
    assert Timing().scaled(0.01).tick_s == pytest.approx(0.1)
