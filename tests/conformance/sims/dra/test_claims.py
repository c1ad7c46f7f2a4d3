"""A simulated kubelet calls drivers for the claims of pods as real ones were seen to."""

import asyncio
from pathlib import Path

from attrs import evolve

from accelkit.conformance.sims.dra.events import (
    ContainerGot,
    PrepareAnswered,
    PrepareFailed,
    UnprepareAnswered,
)
from accelkit.conformance.sims.events import ContainerStarted, PodRemoved
from accelkit.core.kube import PODS
from tests.conformance.sims.dra.driver import Driver
from tests.conformance.sims.dra.world import SWIFT, World, world

FAILED = "Failed to prepare dynamic resources: "


def failures(here: World) -> list[str]:
    return [event.message.removeprefix(FAILED) for event in here.sim.seen(PrepareFailed)]


async def test_all_claims_of_a_pod_are_prepared_by_one_call_and_given_back_by_one(
    here: World,
) -> None:
    driver = await here.registered()
    for name in ("c1", "c2"):
        here.claim(name)
    await here.run("p", "c1", "c2")
    got = here.sim.dra.pod("p").injected["main"]
    here.delete("p")
    await here.until(lambda: not here.there("p"))

    assert driver.of("prepare") == [("c1", "c2")]
    assert driver.of("unprepare") == [("c1", "c2")]
    assert got.env == (("CLAIM", "c2"),)
    assert got.clashes == ("variable CLAIM is c1 for one device, c2 for next",)
    assert list(here.cdi.iterdir()) == []


async def test_v1beta1_is_called_where_it_is_named_first(here: World) -> None:
    driver = await here.registered(versions=["v2.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin"])
    here.claim("c1")
    await here.run("p", "c1")

    assert driver.of("prepare v1beta1") == [("c1",)]
    assert driver.of("prepare") == []


async def test_one_bad_claim_lets_both_be_asked_for_again(here: World) -> None:
    driver = await here.registered()
    for name in ("good", "bad"):
        here.claim(name)
    driver.errors["bad"] = "no such thing"
    here.pod("p", "good", "bad")
    await here.until(lambda: len(driver.of("prepare")) > 1)
    del driver.errors["bad"]
    await here.until(lambda: here.running("p"))

    assert set(driver.of("prepare")) == {("good", "bad")}
    assert failures(here)[0] == (
        "prepare dynamic resources: NodePrepareResources failed for ResourceClaim bad: "
        "no such thing"
    )


async def test_pod_that_never_started_gives_back_all_it_asked_for(here: World) -> None:
    driver = await here.registered()
    here.claim("bad")
    driver.errors["bad"] = "no"
    here.pod("p", "bad")
    await here.until(lambda: failures(here))
    driver.errors.clear()
    here.delete("p")
    await here.until(lambda: not here.there("p"))

    assert driver.of("unprepare") == [("bad",)]


async def test_answer_without_a_claim_is_a_failure(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    driver.forget.add("c1")
    here.pod("p", "c1")
    await here.until(lambda: failures(here))

    assert failures(here)[0] == (
        "prepare dynamic resources: NodePrepareResources skipped 1 ResourceClaims"
    )


async def test_call_that_fails_is_told_as_go_clients_do(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    driver.failure = ValueError("boom")
    here.pod("p", "c1")
    await here.until(lambda: failures(here))

    assert failures(here)[0].startswith(
        "prepare dynamic resources: NodePrepareResources: rpc error: code = Internal desc = "
    )


async def test_pod_waits_for_a_driver_and_for_its_claim(here: World) -> None:
    here.claim("c1")
    here.pod("p", "c1")
    await here.until(lambda: failures(here))
    await here.registered()
    await here.until(lambda: here.running("p"))

    assert failures(here)[0] == (
        "prepare dynamic resources: DRA driver acme.test is not registered"
    )


async def test_claim_that_is_not_reserved_for_the_pod_is_not_asked_for(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    here.pod("p", "c1", reserved=False)
    await here.until(lambda: failures(here))

    assert failures(here)[0] == "pod p is not allowed to use ResourceClaim c1"
    assert driver.of("prepare") == []


async def test_while_the_api_server_is_away_no_claim_is_prepared(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    driver.errors["c1"] = "not yet"
    here.pod("p", "c1")
    await here.until(lambda: failures(here))
    await here.api.stop()
    seen = len(driver.calls)
    await here.until(lambda: "fetch ResourceClaim c1: connection refused" in failures(here))
    assert len(driver.calls) - seen <= 1
    driver.errors.clear()
    await here.api.start()

    await here.until(lambda: here.running("p"))


async def test_label_of_a_pod_lets_it_be_looked_at_at_once(tmp_path: Path) -> None:
    slow = evolve(SWIFT, prepare_again_s=60.0)
    async with world(tmp_path, timing=slow) as here:
        driver = await here.registered()
        here.claim("c1")
        driver.errors["c1"] = "not yet"
        here.pod("p", "c1")
        await here.until(lambda: failures(here))
        driver.errors.clear()
        here.api.patch(PODS, "p", {"metadata": {"labels": {"touched": "1"}}}, "default")

        await here.until(lambda: here.running("p"))


async def test_claim_is_prepared_once_for_two_pods_and_given_back_after_the_last(
    here: World,
) -> None:
    driver = await here.registered()
    here.claim("c1")
    await here.run("p", "c1")
    await here.run("q", "c1")
    here.delete("p")
    await here.until(lambda: not here.there("p"))
    before = driver.of("unprepare")
    here.delete("q")
    await here.until(lambda: not here.there("q"))

    assert driver.of("prepare") == [("c1",)]
    assert before == []
    assert driver.of("unprepare") == [("c1",)]


async def test_after_a_restart_only_a_joining_pod_or_a_new_sandbox_asks_again(here: World) -> None:
    driver = await here.registered()
    for name in ("c1", "c2"):
        here.claim(name)
    await here.run("p", "c1")
    await here.run("q", "c2")
    await here.sim.restart()
    await here.until(lambda: len(driver.told) == 2)
    await here.run("joining", "c1")
    here.sim.dra.lose_sandbox("q")
    await here.until(lambda: here.running("q"))
    here.sim.dra.lose_sandbox("q")
    await here.until(lambda: here.running("q"))

    assert driver.of("prepare") == [("c1",), ("c2",), ("c1",), ("c2",)]


async def test_failing_release_keeps_the_pod_and_is_tried_again(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    await here.run("p", "c1")
    driver.errors["c1"] = "busy"
    here.delete("p")
    await here.until(lambda: len(here.sim.seen(UnprepareAnswered)) > 1)
    assert here.there("p")
    driver.errors.clear()

    await here.until(lambda: not here.there("p"))


async def test_forced_end_gives_back_a_little_later(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    await here.run("p", "c1")
    here.delete("p", force=True)
    assert not here.there("p")
    await here.until(lambda: here.sim.seen(PodRemoved, pod="p", forced=True))

    assert driver.of("unprepare") == [("c1",)]


async def test_deletion_waits_for_a_call_that_hangs(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    driver.hold["prepare"] = asyncio.Event()
    here.pod("p", "c1")
    await here.until(lambda: driver.of("prepare"))
    here.delete("p")
    await asyncio.sleep(0.1)
    waiting = here.there("p"), driver.of("unprepare")
    driver.hold["prepare"].set()
    await here.until(lambda: not here.there("p"))

    assert waiting == (True, [])
    assert driver.of("unprepare") == [("c1",)]


async def test_forced_end_inside_a_call_is_given_back_once_and_inside_it(tmp_path: Path) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, reconcile_s=0.1)) as here:
        driver = await here.registered()
        here.claim("c1")
        driver.hold["prepare"] = asyncio.Event()
        here.pod("p", "c1")
        await here.until(lambda: driver.of("prepare"))
        here.delete("p", force=True)
        await here.until(lambda: driver.of("unprepare"))
        over = here.sim.seen(PrepareAnswered)
        driver.hold["prepare"].set()
        await here.until(lambda: here.sim.seen(PodRemoved, pod="p"))

        assert over == []
        assert driver.of("unprepare") == [("c1",)]
        assert here.sim.dra.claims.known == {}


async def test_what_ended_while_the_kubelet_was_down_is_given_back_later(tmp_path: Path) -> None:
    async with world(tmp_path, timing=evolve(SWIFT, reconcile_s=0.2)) as here:
        driver = await here.registered()
        here.claim("c1")
        await here.run("p", "c1")
        await here.sim.kill()
        here.delete("p", force=True)
        await here.sim.start()

        await here.until(lambda: driver.of("unprepare") == [("c1",)])


async def test_newest_instance_gets_the_calls_and_the_older_one_when_it_is_gone(
    here: World,
) -> None:
    for name in ("c1", "c2"):
        here.claim(name)
    old = await here.registered()
    new = await here.registered()
    await here.run("p", "c1")
    await new.close(keep_path=True)
    await here.run("q", "c2")

    assert (new.of("prepare"), old.of("prepare")) == ([("c1",)], [("c2",)])


async def test_call_of_an_instance_that_ends_is_not_moved(here: World) -> None:
    here.claim("c1")
    old, new = await here.registered(), await here.registered()
    new.hold["prepare"] = asyncio.Event()
    here.pod("p", "c1")
    await here.until(lambda: new.of("prepare"))
    await new.close()
    await here.until(lambda: here.running("p"))

    assert "NodePrepareResources: rpc error: code = " in failures(here)[0]
    assert old.of("prepare") == [("c1",)]


async def test_reboot_lets_pods_be_prepared_anew_and_files_be_gone(here: World) -> None:
    driver = await here.registered()
    for name in ("c1", "c2"):
        here.claim(name)
    await here.run("p", "c1")
    await here.run("never", "c2", restartPolicy="Never")
    await here.sim.reboot()
    assert list(here.cdi.iterdir()) == []
    await here.until(lambda: here.running("p"))
    here.delete("never")
    await here.until(lambda: not here.there("never"))

    assert driver.of("prepare") == [("c1",), ("c2",), ("c1",)]
    assert driver.of("unprepare") == [("c2",)]


async def test_container_that_ends_is_made_again_without_a_call(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    await here.run("p", "c1")
    await here.sim.restart()
    assert await here.sim.dra.restart_container("p")

    assert driver.of("prepare") == [("c1",)]
    assert len(here.sim.seen(ContainerGot, pod="p")) == 2


async def test_container_without_its_file_is_not_made_until_it_is_back(here: World) -> None:
    driver: Driver = await here.registered()
    uid = here.claim("c1")
    await here.run("p", "c1")
    content = driver.file(uid).read_text()
    driver.file(uid).unlink()
    made = await here.sim.dra.restart_container("p")
    waiting = here.sim.dra.pod("p").pod.container("main").waiting
    driver.file(uid).write_text(content)
    again = await here.sim.dra.restart_container("p")

    assert (made, again) == (False, True)
    assert waiting == (
        f"CDI device injection failed: unresolvable CDI devices acme.test/claim={uid}"
    )
    assert [e.restarts for e in here.sim.seen(ContainerStarted, pod="p")] == [0, 2]
