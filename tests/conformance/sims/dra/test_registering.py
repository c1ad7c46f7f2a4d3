"""A simulated kubelet takes DRA drivers on as real ones were seen to."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from accelkit.conformance.sims.dra.events import DriverGone, DriverRegistered, SlicesWiped
from accelkit.conformance.sims.events import Refused, Started
from accelkit.core.kube import SLICES
from tests.conformance.sims.dra.driver import DRIVER
from tests.conformance.sims.dra.world import NODE, SWIFT, World, world


def make_slice(here: World, name: str, driver: str = DRIVER, **where: object) -> None:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "devices": [], **(where or {"nodeName": NODE})}
    here.api.create(SLICES, {"metadata": {"name": name}, "spec": spec})


def slices(here: World) -> list[str]:
    return [str(item["metadata"]["name"]) for item in here.api.items(SLICES)]  # type: ignore[index]  # of an object


@pytest.mark.parametrize(
    "versions, version, health",
    [
        (["v1.DRAPlugin", "v1beta1.DRAPlugin"], "v1", ""),
        (["v1beta1.DRAPlugin", "v1.DRAPlugin"], "v1beta1", ""),
        (["v9.Other", "v1.DRAPlugin", "v1alpha1.DRAResourceHealth"], "v1", "v1alpha1"),
        (
            ["v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth", "v1.DRAPlugin"],
            "v1",
            "v1",
        ),
    ],
)
async def test_first_known_version_wins_and_of_health_the_highest(
    here: World, versions: Sequence[str], version: str, health: str
) -> None:
    driver = await here.registered(versions=versions)

    assert here.sim.seen(DriverRegistered) == [
        DriverRegistered(DRIVER, str(driver.path), version, health)
    ]


@pytest.mark.parametrize("versions", [[], ["1.0.0"], ["v1.DRAResourceHealth"]])
async def test_driver_without_a_known_version_is_refused(
    here: World, versions: Sequence[str]
) -> None:
    driver = await here.registered(versions=versions)

    (told, *_) = driver.told
    assert not told.plugin_registered
    offered = " ".join(f'"{version}"' for version in versions)
    assert told.error == (
        "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC "
        f"versions of DRA driver plugin {DRIVER} at endpoint {driver.path}: none of services "
        f"supported by the plugin ([{offered}]) are supported by the kubelet "
        '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
    )


async def test_endpoint_that_another_socket_named_is_refused_again_and_again(here: World) -> None:
    first = await here.registered()
    second = await here.driver()
    second.info.endpoint = str(first.path)
    await here.until(lambda: len(second.told) > 1)

    assert second.told[0].error == (
        f"RegisterPlugin error -- plugin registration failed with err: endpoint {first.path} "
        f"already registered for DRA driver plugin {DRIVER}"
    )


async def test_driver_that_takes_no_notice_is_let_go_and_tried_again(here: World) -> None:
    driver = await here.driver()
    driver.refuses_notice = True
    await here.until(lambda: here.sim.seen(DriverGone))
    driver.refuses_notice = False
    seen = len(driver.told)
    await here.until(lambda: len(driver.told) > seen)

    assert here.sim.dra.drivers.names == {DRIVER}


async def test_info_that_comes_late_is_asked_for_again(tmp_path: Path) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, info_s=0.1)) as here:
        driver = await here.driver()
        driver.hold["info"] = asyncio.Event()
        await here.until(lambda: here.sim.seen(Refused))
        driver.hold["info"].set()

        await here.until(lambda: driver.told)


async def test_all_slices_of_the_node_go_at_a_start_after_drivers_have_registered(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, wipe_anyway_s=10.0)) as here:
        await here.registered()
        await here.until(lambda: here.sim.seen(SlicesWiped))
        make_slice(here, "mine")
        make_slice(here, "others", "other.test")
        make_slice(here, "anywhere", allNodes=True)
        await here.sim.restart()
        await here.until(lambda: slices(here) == ["anywhere"])

        since = here.sim.log.index(here.sim.seen(Started)[1])
        kinds = [type(event) for event in here.sim.log[since:]]
        assert kinds.index(DriverRegistered) < kinds.index(SlicesWiped)


async def test_slices_of_a_driver_go_some_time_after_it(tmp_path: Path) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, gone_s=0.3)) as here:
        driver = await here.registered()
        await here.until(lambda: here.sim.seen(SlicesWiped))
        make_slice(here, "mine")
        make_slice(here, "others", "other.test")
        await driver.close(keep_path=True)
        kept = slices(here)
        await here.until(lambda: slices(here) == ["others"])

        assert kept == ["mine", "others"]
        assert here.sim.seen(SlicesWiped)[-1].driver == DRIVER


async def test_slices_stay_while_another_instance_is_there_or_comes_in_time(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, gone_s=0.5)) as here:
        first = await here.registered()
        await here.until(lambda: here.sim.seen(SlicesWiped))
        make_slice(here, "mine")
        await first.close()
        await asyncio.sleep(0.2)
        await here.registered()
        await asyncio.sleep(0.6)

        assert slices(here) == ["mine"]


async def test_wipe_waits_for_the_api_server(here: World) -> None:
    make_slice(here, "mine")
    await here.api.stop()
    await here.sim.restart()
    await asyncio.sleep(0.2)
    before = slices(here)
    await here.api.start()
    await here.until(lambda: slices(here) == [])

    assert before == ["mine"]
