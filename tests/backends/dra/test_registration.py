"""How a driver becomes known to the kubelet, stays so, and ends."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from accelkit.backends.dra.health_stream import HealthStreams
from accelkit.backends.dra.node import NodeService
from accelkit.backends.dra.node_settings import Patience, Settings
from accelkit.backends.dra.registration import VERSIONS, Registration
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.serve import PATH_LIMIT, bind, dial, fresh_path
from accelkit.core.allocation import Allocation, Prepared
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.service_world import (
    ACME,
    DRIVER,
    QUICK,
    KubeDouble,
    asked,
    claim,
    node_double,
    prepare,
    uid,
)
from tests.backends.dra.test_health import bad, gpu, reason, view_of
from tests.backends.dra.watching import WatchHealth, register, sockets_in, until, watching
from tests.backends.wire.test_sockets import abandoned


@attrs.frozen(eq=False)
class Driver:
    """One instance of a driver, and the agent that it belongs to."""

    registry: Path
    node: NodePortDouble
    kube: KubeDouble
    streams: HealthStreams
    registration: Registration
    registrations: Registrations
    told: list[bool]

    @property
    def path(self) -> Path:
        """Its socket, if there is no other."""
        (path,) = sockets_in(self.registry)
        return path

    async def there(self) -> Path:
        """Its socket, once there is one."""
        await until(lambda: self.registry.exists() and len(sockets_in(self.registry)) == 1)
        return self.path


@asynccontextmanager
async def running(
    root: Path, *, patience: Patience = QUICK, name: str = DRIVER, leading: bool = True
) -> AsyncGenerator[Driver, None]:
    """A driver that serves; at the end it is cancelled, as an agent does that ends."""
    registry = root / "k" / "plugins_registry"
    registry.mkdir(parents=True, exist_ok=True)
    kube = KubeDouble()
    node = node_double(root, kube)
    node.leading.set(leading)
    service = NodeService(ACME, node, patience)
    streams = HealthStreams(ACME, "dra", node, patience)
    settings = Settings(registry=registry, patience=patience)
    told: list[bool] = []
    registrations = Registrations()
    driver = Registration(
        name,
        node,
        settings,
        service,
        streams,
        registrations=registrations,
        tell=lambda: told.append(driver.registered),
    )
    task = asyncio.create_task(driver.run())
    try:
        yield Driver(registry, node, kube, streams, driver, registrations, told)
    finally:
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, asyncio.CancelledError), ended


async def test_kubelet_is_told_who_is_there(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        info = await register(await driver.there())

        assert info == reg.PluginInfo(
            type="DRAPlugin", name=DRIVER, endpoint="", supported_versions=VERSIONS
        )
        assert VERSIONS[:2] == ("v1.DRAPlugin", "v1beta1.DRAPlugin")
        assert driver.told == [True]
        assert driver.registrations.last(DRIVER) is not None
        registered = ("accelkit_registrations_total", ("dra", "registered"))
        assert driver.node.meter.counted[registered] == 1


async def test_driver_serves_also_while_another_instance_leads(tmp_path: Path) -> None:
    async with running(tmp_path, leading=False) as driver:
        await register(await driver.there())

        assert driver.registration.registered


async def test_refusal_is_a_problem_until_the_kubelet_accepts(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        path = await driver.there()
        await register(path)
        await register(path, refusal="endpoint already registered")
        problems = dict(driver.node.problems)
        registered = driver.registration.registered
        again = driver.registrations.again(DRIVER)
        await register(path)

        assert not again
        assert driver.registrations.again(DRIVER)
        assert problems == {
            ("registration-rejected", DRIVER): (
                f"the kubelet refuses {DRIVER}: endpoint already registered",
                "give it another name in backends.dra.drivers",
            )
        }
        assert not registered
        assert driver.told == [True, False, True]
        assert driver.node.problems == {}


async def test_kubelet_that_never_comes_is_a_problem_until_it_does(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        path = await driver.there()
        await until(lambda: driver.node.problems)
        problems = set(driver.node.problems)
        await register(path)

        assert problems == {("kubelet-silent", DRIVER)}
        assert driver.node.problems == {}


async def test_kubelet_that_goes_and_does_not_come_back_is_a_problem(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        path = await driver.there()
        await register(path)
        async with watching(path):
            pass
        await until(lambda: not driver.registration.registered)
        problems = set(driver.node.problems)
        async with watching(path):
            await until(lambda: driver.registration.registered)

            assert problems == {("kubelet-silent", DRIVER)}
            assert driver.node.problems == {}


async def test_kubelet_without_health_streams_counts_as_there(tmp_path: Path) -> None:
    """Up to 1.35 there is none unless a gate is on."""
    async with running(tmp_path) as driver:
        await register(await driver.there())
        await asyncio.sleep(2 * QUICK.silent_s)

        assert driver.registration.registered
        assert driver.node.problems == {}


async def test_every_start_has_a_fresh_socket(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        one = (await first.there()).name
    async with running(tmp_path) as second:
        other = (await second.there()).name

    assert one != other
    assert one.startswith(f"{DRIVER}-")
    assert sockets_in(second.registry) == []


async def test_socket_fits_whatever_the_driver_is_called(tmp_path: Path) -> None:
    name = f"{'n' * 45}.accelkit.example"
    async with running(tmp_path / ("d" * 30), name=name) as driver:
        path = await driver.there()
        info = await register(path)

        assert len(os.fsencode(path)) <= PATH_LIMIT
        assert info.name == name


async def test_socket_that_is_taken_away_is_replaced(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        old = await driver.there()
        await register(old)
        old.unlink()
        new = await driver.there()
        await until(lambda: driver.told == [True, False])
        await register(new)

        assert new != old
        assert driver.told == [True, False, True]


async def test_registry_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        (await driver.there()).unlink()
        driver.registry.rename(tmp_path / "elsewhere")
        await until(lambda: ("transport-failed", DRIVER) in driver.node.problems)
        driver.registry.mkdir()
        await register(await driver.there())

        assert driver.node.problems == {}


async def test_leader_removes_sockets_of_dead_owners(tmp_path: Path) -> None:
    async with running(tmp_path, leading=False) as driver:
        await driver.there()
        dead = fresh_path(driver.registry, DRIVER)
        abandoned(dead)
        await asyncio.sleep(3 * QUICK.look_s)
        kept = dead.is_socket()
        driver.node.leading.set(True)
        await driver.there()

        assert kept


async def test_another_instance_of_the_driver_is_left_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        await driver.there()
        async with await bind(fresh_path(driver.registry, DRIVER), []) as other:
            await asyncio.sleep(3 * QUICK.look_s)

            assert other.in_place()


@pytest.mark.parametrize("method", [services.WATCH_HEALTH, services.WATCH_HEALTH_ALPHA])
async def test_health_is_listed_at_once_on_every_change_and_again_and_again(
    tmp_path: Path, method: WatchHealth
) -> None:
    async with running(tmp_path) as driver:
        driver.streams.publish(view_of(gpu("gpu-0"), gpu("gpu-1")))
        async with watching(await driver.there(), method) as stream:
            first = stream.health()
            driver.streams.publish(view_of(gpu("gpu-0"), verdict=bad(reason("burnt"))))
            await until(lambda: stream.health() == {"gpu-0": 2})
            lists = len(stream.lists)
            await until(lambda: len(stream.lists) >= lists + 2)

            assert first == {"gpu-0": 1, "gpu-1": 1}
            assert stream.health() == {"gpu-0": 2}
            assert stream.lists[-1].devices[0].health_check_timeout_seconds == 30


async def test_driver_without_devices_keeps_its_stream_open(tmp_path: Path) -> None:
    """A kubelet of 1.36 asks every 5 s where there is none."""
    async with running(tmp_path) as driver, watching(await driver.there()) as stream:
        await until(lambda: len(stream.lists) > 1)

        assert stream.health() == {}
        assert not stream.over


SLOW_HEALTH = attrs.evolve(QUICK, health_s=60.0)


async def test_health_is_listed_again_after_another_instance_has_ended(tmp_path: Path) -> None:
    """The kubelet forgets what both told."""
    async with running(tmp_path, patience=SLOW_HEALTH) as driver:
        path = await driver.there()
        async with watching(path) as stream:
            other = await bind(fresh_path(driver.registry, DRIVER), [])
            await asyncio.sleep(3 * QUICK.look_s)
            before = len(stream.lists)
            await other.close()
            await until(lambda: len(stream.lists) > before)

            assert before == 1


async def test_health_is_listed_again_by_the_new_leader(tmp_path: Path) -> None:
    async with running(tmp_path, patience=SLOW_HEALTH, leading=False) as driver:
        path = await driver.there()
        async with watching(path) as stream:
            await asyncio.sleep(3 * QUICK.look_s)
            before = len(stream.lists)
            driver.node.leading.set(True)
            await until(lambda: len(stream.lists) > before)

            assert before == 1


async def test_streams_are_counted(tmp_path: Path) -> None:
    gauge = ("accelkit_streams", (DRIVER,))
    async with running(tmp_path) as driver:
        async with watching(await driver.there()):
            during = driver.node.meter.values[gauge]
        await until(lambda: not driver.streams.open)

        assert (during, driver.node.meter.values[gauge]) == (1, 0)


async def test_running_call_ends_before_the_driver_does(tmp_path: Path) -> None:
    """One that is cut is not moved to another instance, and its pod waits for a minute."""
    working, go_on = asyncio.Event(), asyncio.Event()
    async with running(tmp_path) as driver:
        driver.kube.put(claim(1))

        async def work(allocation: Allocation) -> Prepared:
            working.set()
            await go_on.wait()
            return Prepared(claim=allocation.claim, answers=())

        driver.node.preparing = work
        call = asyncio.create_task(prepare_at(await driver.there()))
        await working.wait()
        asyncio.get_running_loop().call_later(0.1, go_on.set)

    assert (await call) == ""
    assert sockets_in(driver.registry) == []


async def test_call_that_never_ends_does_not_keep_the_driver(tmp_path: Path) -> None:
    working = asyncio.Event()
    async with running(tmp_path, patience=attrs.evolve(QUICK, drain_s=0.05)) as driver:
        driver.kube.put(claim(1))

        async def work(_: Allocation) -> Prepared:
            working.set()
            await asyncio.Event().wait()
            raise AssertionError

        driver.node.preparing = work
        call = asyncio.create_task(prepare_at(await driver.there()))
        await working.wait()

    assert sockets_in(driver.registry) == []
    await asyncio.gather(call, return_exceptions=True)


async def prepare_at(path: Path) -> str:
    """What came of preparing the first claim at a driver's socket."""
    async with dial(path) as channel:
        return (await prepare(channel, asked(1)))[uid(1)].error
