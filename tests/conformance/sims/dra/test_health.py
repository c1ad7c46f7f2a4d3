"""A simulated kubelet listens to the health of devices as real ones were seen to."""

import functools

import grpc
import pytest

from accelkit.backends.wire.messages import drahealth
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.dra.events import HealthEnded, HealthHeard, StatusFrozen
from accelkit.conformance.sims.dra.health import HealthCache, cut, writable
from tests.conformance.sims.dra.driver import DRIVER, Driver, healthy
from tests.conformance.sims.dra.world import World

ALPHA = ("v1.DRAPlugin", "v1alpha1.DRAResourceHealth")
NEITHER = ("v1.DRAPlugin",)


def heard_of(here: World, driver: Driver) -> bool:
    """Whether that process has told of a device."""
    return any(e.devices for e in here.sim.seen(HealthHeard, endpoint=str(driver.path)))


async def running(here: World, *versions: str) -> tuple[Driver, str]:
    """A driver, and the CDI name of what the pod p has."""
    driver = await here.registered(versions=versions or ("v1.DRAPlugin", "v1.DRAResourceHealth"))
    uid = here.claim("c1")
    await here.run("p", "c1")
    return driver, f"{DRIVER}/claim={uid}"


async def test_health_and_message_get_into_the_status_of_the_pod(here: World) -> None:
    driver, name = await running(here)
    driver.tell(healthy(drahealth.UNHEALTHY, "it burns"))
    await here.until(lambda: here.sim.dra.device_health("p") == {name: ("Unhealthy", "it burns")})

    assert driver.streams == ["v1"]
    assert here.sim.seen(HealthHeard)[-1].sizes == (8,)


@pytest.mark.parametrize("here", ["1.36"], indirect=True)
async def test_kubelet_of_136_asks_by_v1alpha1_whatever_the_driver_says(here: World) -> None:
    driver, name = await running(here, *NEITHER)
    driver.tell(healthy())
    await here.until(lambda: here.sim.dra.device_health("p") == {name: ("Healthy", "")})

    assert driver.streams == ["v1alpha1"]


@pytest.mark.parametrize("here", ["1.35"], indirect=True)
async def test_kubelet_of_135_asks_nobody(here: World) -> None:
    driver, _ = await running(here, *ALPHA)

    assert driver.streams == []
    assert here.sim.dra.device_health("p") == {}


@pytest.mark.parametrize("here, opened", [("1.36", 3), ("1.37", 1)], indirect=["here"])
async def test_driver_that_does_not_know_the_call_is_asked_again_up_to_136(
    here: World, opened: int
) -> None:
    driver = await here.driver(versions=ALPHA)
    driver.health_failure = StatusError(grpc.StatusCode.UNIMPLEMENTED, "unknown service")
    await here.until(lambda: len(driver.streams) == opened and here.sim.seen(HealthEnded))

    assert set(driver.streams) == {"v1alpha1"}


async def test_driver_that_offers_no_health_is_not_asked(here: World) -> None:
    driver, name = await running(here, *NEITHER)

    assert driver.streams == []
    assert here.sim.dra.device_health("p") == {name: ("Unknown", "")}


async def test_end_of_one_stream_forgets_what_others_told_until_they_tell_it_again(
    here: World,
) -> None:
    old, name = await running(here)
    new = await here.registered()
    for one in (old, new):
        one.tell(healthy())
        await here.until(functools.partial(heard_of, here, one))
    await old.close()
    await here.until(lambda: here.sim.seen(HealthEnded))
    forgotten = here.sim.dra.device_health("p")
    new.tell(healthy())
    await here.until(lambda: here.sim.dra.device_health("p") == {name: ("Healthy", "")})

    assert forgotten == {name: ("Unknown", "")}


async def test_stream_that_ends_is_opened_again(here: World) -> None:
    driver = await here.registered()
    await here.until(lambda: driver.streams == ["v1"])
    driver.end_streams()

    await here.until(lambda: driver.streams == ["v1", "v1"])


async def test_message_that_is_cut_inside_a_character_freezes_the_status(here: World) -> None:
    driver, _ = await running(here)
    driver.tell(healthy(drahealth.UNHEALTHY, "ä" * 600))
    await here.until(lambda: here.sim.dra.device_health("p") and here.sim.seen(StatusFrozen))

    assert here.sim.seen(StatusFrozen)[0].pod == "p"


@pytest.mark.parametrize(
    "message, size, fits",
    [("x" * 1024, 1024, True), ("x" * 2000, 1024, True), ("ä" * 600, 1024, False)],
)
def test_messages_are_cut_by_bytes(message: str, size: int, fits: bool) -> None:
    assert len(cut(message)) == size
    assert writable(cut(message)) is fits


@pytest.mark.parametrize("said_s, lasts_s", [(5, 5), (0, 30), (-1, 30)])
def test_word_expires_when_the_driver_said(said_s: int, lasts_s: int) -> None:
    now = [0.0]
    cache = HealthCache(lambda: now[0])
    told = healthy(health_check_timeout_seconds=said_s)
    cache.hear(DRIVER, drahealth.NodeWatchResourcesResponse(devices=[told]))
    now[0] = lasts_s
    before = cache.of(DRIVER, "node-a", "d0")
    now[0] = lasts_s + 0.1

    assert before == ("Healthy", b"")
    assert cache.of(DRIVER, "node-a", "d0") == ("Unknown", b"")


def test_number_that_means_nothing_is_unknown() -> None:
    cache = HealthCache(lambda: 0.0)
    cache.hear(DRIVER, drahealth.NodeWatchResourcesResponse(devices=[healthy(7)]))

    assert cache.of(DRIVER, "node-a", "d0") == ("Unknown", b"")
