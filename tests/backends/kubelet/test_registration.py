"""How resources become known to the kubelet, and stay known, whatever it does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp, registration as reg
from accelkit.backends.wire.serve import bind, dial
from accelkit.conformance.sims.events import Listed, Registered, Started, until
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.conformance.sims.timing import QUICK as QUICK_KUBELET
from accelkit.core.policy import Offer, Register, Selection
from tests.backends.kubelet.world import (
    QUICK,
    RESOURCE,
    elsewhere,
    endpoints,
    gpu,
    health,
    relisted,
    serving,
    sick,
    view_of,
    world,
)

BOTH = pytest.mark.parametrize("how", [Register.WATCHER, Register.SOCKET])
OLD_AND_NEW = pytest.mark.parametrize("sim", ["1.36", "1.37"], indirect=True)


async def test_auto_registers_by_the_plugin_watcher(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await relisted(sim)

        assert [event.by for event in sim.seen(Registered)] == ["watcher"]
        await sim.wait_for(lambda: here.node.statuses[-1].registered)
        assert here.node.statuses[-1].detail == "1 of 1 resources connected"
        assert here.node.meter.counted["accelkit_registrations_total", ("kubelet", "registered")]
        assert here.node.meter.values["accelkit_streams", (RESOURCE,)] == 1


async def test_auto_goes_to_kubelet_sock_when_the_watcher_does_not_come_and_stays_there(
    tmp_path: Path, sim: KubeletSim
) -> None:
    nobody_looks = tmp_path / "nobody-looks"
    nobody_looks.mkdir()
    here = elsewhere(world(tmp_path, view_of(gpu("a"))), registry=nobody_looks)
    async with serving(here):
        await relisted(sim)
        assert list(nobody_looks.iterdir()) == []
        await sim.restart()
        await relisted(sim, 2)

    assert [event.by for event in sim.seen(Registered)] == ["socket", "socket"]


async def test_auto_goes_to_kubelet_sock_where_there_is_no_registry(
    tmp_path: Path, sim: KubeletSim
) -> None:
    here = elsewhere(world(tmp_path, view_of(gpu("a"))), registry=tmp_path / "missing")
    async with serving(here):
        await relisted(sim)
        await sim.wait_for(lambda: here.node.problems == {})

    assert [event.by for event in sim.seen(Registered)] == ["socket"]


async def test_auto_waits_for_a_kubelet_that_is_not_there_yet(tmp_path: Path) -> None:
    sim = KubeletSim(tmp_path / "k", timing=QUICK_KUBELET)
    patience = attrs.evolve(QUICK, info_s=0.05)
    async with serving(world(tmp_path, view_of(gpu("a")), patience=patience)) as here:
        await sim.wait_for(here.sockets)
        bound = here.sockets()
        await asyncio.sleep(0.3)
        assert here.sockets() == bound
        async with sim:
            await relisted(sim)

            assert [event.by for event in sim.seen(Registered)] == ["watcher"]


async def test_kubelet_sock_that_a_dead_kubelet_left_does_not_count_as_a_kubelet(
    tmp_path: Path, sim: KubeletSim
) -> None:
    await sim.kill()
    patience = attrs.evolve(QUICK, info_s=0.05)
    async with serving(world(tmp_path, view_of(gpu("a")), patience=patience)):
        await asyncio.sleep(0.3)
        await sim.start()
        await relisted(sim)

    assert [event.by for event in sim.seen(Registered)] == ["watcher"]


@BOTH
async def test_kubelet_restart_with_a_pod_in_crash_back_off_fails_no_pod(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), sick(gpu("b"))), register=how)):
        await relisted(sim)
        await sim.admit("p", {RESOURCE: 1})
        sim.crash("p")
        await sim.restart()
        await relisted(sim, 2)
        await sim.wait_for(lambda: sim.pods["p"].container("main").running)

        assert sim.pods["p"].phase is Phase.RUNNING
        assert health(sim) == {"a": True, "b": False}
    started = sim.seen(Started)[-1].at
    print(f"listed {1000 * (sim.seen(Listed)[-1].at - started):.0f} ms after kubelet.sock")  # noqa: T201 - measured


async def test_every_attempt_at_kubelet_sock_has_a_name_of_its_own(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=Register.SOCKET)):
        for restarts in range(3):
            await relisted(sim, restarts + 1)
            await sim.restart()
        await relisted(sim, 4)

    assert len(set(endpoints(sim))) == len(endpoints(sim))


@asynccontextmanager
async def deaf_kubelet(root: Path) -> AsyncGenerator[list[str], None]:
    """Takes registrations and never opens a stream."""
    told: list[str] = []

    async def answer(request: dp.RegisterRequest) -> dp.Empty:
        told.append(request.endpoint)
        return dp.Empty()

    directory = root / "k" / "device-plugins"
    directory.mkdir(parents=True)
    handlers = [services.unary(services.REGISTER, answer)]
    async with await bind(directory / "kubelet.sock", handlers):
        yield told


async def test_registration_without_a_stream_is_made_again_under_a_new_name(
    tmp_path: Path,
) -> None:
    patience = attrs.evolve(QUICK, stream_s=0.05)
    async with deaf_kubelet(tmp_path) as told:
        here = world(tmp_path, view_of(gpu("a")), register=Register.SOCKET, patience=patience)
        async with serving(here):
            await until(lambda: len(told) >= 3, 10.0, lambda: {"told": told})

            assert len(set(told)) == len(told) >= 3
            assert not here.node.statuses[-1].registered
            assert here.node.meter.counted["accelkit_registrations_total", ("kubelet", "silent")]


@BOTH
async def test_own_socket_that_was_removed_is_bound_anew(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=how)) as here:
        await relisted(sim)
        (here.root / endpoints(sim)[0]).unlink()
        await relisted(sim, 2)

        await sim.wait_for(lambda: sim.amounts()[RESOURCE] == (1, 1))


@BOTH
async def test_directory_that_is_missing_is_told_and_tried_again(
    tmp_path: Path, how: Register
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")), register=how)) as here:
        sim = KubeletSim(tmp_path / "other", timing=QUICK_KUBELET)
        await sim.wait_for(lambda: here.node.problems)
        ((code, subject), (reason, remedy)) = next(iter(here.node.problems.items()))
        assert (code, subject) == ("transport-failed", RESOURCE)
        assert "is not a directory" in reason
        assert remedy
        async with KubeletSim(tmp_path / "k", timing=QUICK_KUBELET) as late:
            await relisted(late)

            assert here.node.problems == {}


async def test_path_that_is_too_long_is_told(tmp_path: Path, sim: KubeletSim) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    here = world(tmp_path, view_of(gpu("a")), register=Register.WATCHER)
    here = elsewhere(here, registry=long)
    async with serving(here):
        await sim.wait_for(lambda: here.node.problems)

        reason, remedy = here.node.problems["transport-failed", RESOURCE]
    assert "at most 107 are possible" in reason
    assert remedy == "choose a directory with a shorter path"


async def test_long_resource_still_has_a_socket(tmp_path: Path, sim: KubeletSim) -> None:
    name = f"{'long.' * 20}example/{'x' * 63}"
    offers = [Offer(name="all", resource=name)]
    async with serving(world(tmp_path, view_of(gpu("a"), offers=offers))):
        await sim.wait_for(lambda: sim.amounts().get(name) == (1, 1))


@BOTH
async def test_resource_that_the_kubelet_refuses_is_told_and_others_go_on(
    tmp_path: Path, sim: KubeletSim, how: Register
) -> None:
    bad = Offer(name="bad", select=Selection(name=("no-such",)), resource="kubernetes.io/x")
    view = view_of(gpu("a"), offers=[bad, Offer(name="all")])
    async with serving(world(tmp_path, view, register=how)) as here:
        key = ("registration-rejected", "kubernetes.io/x")
        await sim.wait_for(lambda: key in here.node.problems)
        await relisted(sim)
        reason, remedy = here.node.problems[key]
        half = "1 of 2 resources connected"
        await sim.wait_for(lambda: here.node.statuses[-1].detail == half)

    assert reason.startswith("the kubelet refuses kubernetes.io/x: ")
    assert "invalid" in reason
    assert remedy == "give its offer another resource"


async def test_kubelet_that_does_not_answer_is_told_and_found_again(
    tmp_path: Path, sim: KubeletSim
) -> None:
    await sim.kill()
    here = world(tmp_path, view_of(gpu("a")), register=Register.SOCKET)
    async with serving(here):
        await sim.wait_for(lambda: ("transport-failed", RESOURCE) in here.node.problems)
        await sim.start()
        await relisted(sim)

        assert here.node.problems == {}


async def test_watcher_that_asks_and_opens_no_stream_gets_a_new_socket(
    tmp_path: Path,
) -> None:
    patience = attrs.evolve(QUICK, stream_s=0.05)
    here = world(tmp_path, view_of(gpu("a")), register=Register.WATCHER, patience=patience)
    registry = tmp_path / "k" / "plugins_registry"
    registry.mkdir(parents=True)
    async with serving(here):
        await until(here.sockets, 10.0, dict)
        name = here.sockets().pop()
        async with dial(registry / name) as channel:
            info = await services.call(channel, services.GET_INFO, reg.InfoRequest())
        await until(lambda: here.sockets() and name not in here.sockets(), 10.0, dict)

    assert info == reg.PluginInfo(
        type="DevicePlugin", name=RESOURCE, supported_versions=["v1beta1"]
    )


async def test_watcher_that_never_comes_gets_a_new_socket_where_nothing_else_is_allowed(
    tmp_path: Path, sim: KubeletSim
) -> None:
    here = world(tmp_path, view_of(gpu("a")), register=Register.WATCHER)
    async with serving(elsewhere(here, registry=tmp_path)):
        count = ("accelkit_registrations_total", ("kubelet", "unnoticed"))
        await sim.wait_for(lambda: here.node.meter.counted[count] >= 2)

    assert not sim.seen(Registered)
