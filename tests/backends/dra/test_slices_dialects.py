"""Slices at servers that drop, refuse, or go away."""

from pathlib import Path
from typing import cast

import attrs
import pytest

from accelkit.conformance.sims.api.faults import asks
from accelkit.conformance.sims.gates import COUNTERS, SHARES, TAINTS
from accelkit.core.kube import KubePort
from accelkit.core.model import Problem
from accelkit.core.policy import DraPolicy, Offer, Sharing
from tests.backends.dra.slices_world import SEVERAL, Webhook, World, publishing, turn, world
from tests.backends.dra.views import (
    DRIVER,
    NODE,
    cut,
    gpu,
    parts,
    sick,
    view_of,
)

pytestmark = pytest.mark.slow  # its processes and pauses take seconds


@pytest.mark.parametrize("kubernetes", ["1.34", "1.35"])
async def test_old_server_gets_what_it_keeps_and_no_more(tmp_path: Path, kubernetes: str) -> None:
    """It drops the rest without a word, and would give overlapping devices away twice (SL23)."""
    fields = "allowMultipleAllocations, consumesCounters, taints"
    offers = [Offer(name="all", through="dra", sharing=Sharing(shares=2))]
    view = view_of(cut("g0"), sick(gpu("b")), gpu("c"), potential=parts("g0"), offers=offers)
    async with world(tmp_path, view, kubernetes=kubernetes) as here, publishing(here):
        await here.settled()

        assert here.devices() == ["c", "g0"]
        assert here.writes() == ["create"]
        assert here.node.told == [
            ("FieldsDropped", f"the API server keeps no {fields} in slices of {DRIVER}")
        ]
        assert here.counted("accelkit_slice_drops_total") == {
            "allowMultipleAllocations": 1,
            "consumesCounters": 1,
            "taints": 1,
        }


async def test_old_server_with_every_gate_has_no_counters_for_us(tmp_path: Path) -> None:
    """1.34 wants counter sets beside their devices."""
    gates = {COUNTERS: True, TAINTS: True, SHARES: True}
    view = view_of(cut("g0"), sick(gpu("b")), potential=parts("g0"))
    async with world(tmp_path, view, kubernetes="1.34", gates=gates) as here, publishing(here):
        await here.settled()

        assert here.taints() == {"b": ["burnt"], "g0": []}


async def test_server_that_keeps_everything_is_told_everything(tmp_path: Path) -> None:
    view = view_of(cut("g0"), potential=parts("g0"))
    async with world(tmp_path, view, kubernetes="1.36") as here, publishing(here):
        await here.settled()

        assert len(here.devices()) == 17
        assert here.node.told == []


async def test_lists_are_sent_where_they_are_wished_for_and_kept(tmp_path: Path) -> None:
    device = gpu("a", attributes={"modes": ("x", "y")})
    policy = DraPolicy(list_attributes=True)
    for gate in (True, False):
        gates = {"DRAListTypeAttributes": gate}
        async with world(tmp_path, view_of(device), gates=gates, policy=policy) as here:
            async with publishing(here):
                await here.settled()
            (only,) = here.stored()
            assert only.slice is not None
            assert ("modes" in only.slice.devices[0].attributes) is gate


async def test_field_that_only_a_write_shows_as_dropped_is_sent_no_more(tmp_path: Path) -> None:
    """Servers of one cluster may differ: the one that was asked kept it."""
    async with world(tmp_path, view_of(sick(gpu("a")), gpu("b"))) as here:
        here.node.publish(view_of(gpu("a"), gpu("b")))
        async with publishing(here):
            await here.settled()
            turn(here, TAINTS, on=False)
            here.node.publish(view_of(sick(gpu("a")), gpu("b")))
            await here.until(lambda: here.devices() == ["b"])

        assert [reason for reason, _ in here.node.told] == ["FieldsDropped"]


# Trouble.


def behind_a_webhook(here: World) -> Webhook:
    assert here.node.kube is not None
    hook = Webhook(here.node.kube)
    here.node.kube = cast("KubePort", hook)  # the rest is the port's
    return hook


async def test_slice_that_the_server_keeps_otherwise_is_written_once(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here:
        behind_a_webhook(here)
        async with publishing(here):
            await here.until(here.published)
            here.node.publish(view_of(sick(gpu("a"))))
            await here.until(lambda: here.counted("accelkit_slice_drops_total") == {"other": 2})

            assert here.taints() == {"a": ["burnt"]}
            assert here.writes() == ["create", "update"]
            (only,) = here.stored()
            assert only.slice is not None
            assert only.slice.devices[0].attributes["rack"] == "r1"


async def test_mistake_of_ours_ends_no_claim_and_is_told(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here:
        hook = behind_a_webhook(here)
        hook.breaks = 1
        async with publishing(here):
            await here.until(lambda: ("slices-failed", NODE) in here.node.problems)
            await here.until(here.devices)
            await here.until(lambda: here.node.problems == {})


async def test_what_devices_cannot_say_is_a_problem_while_it_is_so(tmp_path: Path) -> None:
    some = view_of(gpu("a", attributes={"clock": 5}), gpu("b"))
    async with world(tmp_path, some) as here, publishing(here):
        await here.settled()
        assert list(here.node.problems) == [("attribute-missing", f"{DRIVER}/clock")]

        await here.settled(view_of(gpu("a"), gpu("b")))
        assert here.node.problems == {}


async def test_gate_that_was_turned_on_is_used_after_the_next_connection(tmp_path: Path) -> None:
    view = view_of(sick(gpu("a")), gpu("b"))
    async with world(tmp_path, view, kubernetes="1.35") as here, publishing(here):
        await here.until(lambda: here.devices() == ["b"])
        assert ("fields-dropped", DRIVER) in here.node.problems
        turn(here, TAINTS, on=True)
        here.sim.expire()
        here.sim.cut_watches()

        await here.settled(view)
        assert here.node.problems == {}


async def test_vendor_without_devices_gets_no_empty_slice(tmp_path: Path) -> None:
    async with world(tmp_path, view_of()) as here, publishing(here):
        await here.until(here.published)
        assert here.stored() == []
        await here.settled(view_of(gpu("a")))
        here.node.publish(view_of())
        await here.until(lambda: here.devices() == [])

        assert here.writes() == ["create", "update"]


async def test_slices_stay_while_their_vendor_sees_no_device_for_a_reason(tmp_path: Path) -> None:
    """Its driver is being replaced, for example."""
    trouble = Problem(vendor="acme", subject="0000:41:00.0", code="driver-not-ready")
    bare = view_of()
    troubled = attrs.evolve(bare, snapshot=attrs.evolve(bare.snapshot, problems=(trouble,)))
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        here.node.publish(troubled)
        async with publishing(here):
            await here.watching()
            await here.settled(view_of(gpu("a"), gpu("b")))

        assert here.writes() == ["create", "update"]


async def test_slice_that_vanishes_while_it_is_written_is_made_anew(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.faults.delay(0.2, which=asks(verb="update", plural="resourceslices"))
        here.node.publish(view_of(gpu("b")))
        await here.until(lambda: here.sim.journal.of(verb="update"))
        here.wipe()
        await here.until(lambda: here.devices() == ["b"])


async def test_conflict_is_solved_by_looking_again(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.faults.fail(
            status=409, reason="Conflict", which=asks(verb="update", plural="resourceslices")
        )
        await here.settled(view_of(gpu("b")))

        assert here.devices() == ["b"]


async def test_server_that_is_too_busy_is_waited_for(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.faults.throttle(which=asks(verb="update", plural="resourceslices"))
        await here.settled(view_of(gpu("b")))

        assert here.writes() == ["create", "update", "update"]


async def test_slice_that_is_there_without_being_seen_is_adopted(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        here.sim.faults.fail(
            status=409, reason="AlreadyExists", which=asks(verb="create", plural="resourceslices")
        )
        async with publishing(here):
            await here.settled(view_of(gpu("b")))

        assert here.devices() == ["b"]


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_refusal_is_a_problem_until_it_is_over(tmp_path: Path, status: int) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.faults.fail(
            count=None, status=status, which=asks(verb="update", plural="resourceslices")
        )
        here.node.publish(view_of(gpu("b")))
        await here.until(lambda: ("slices-not-written", DRIVER) in here.node.problems)
        assert not here.published()
        here.sim.faults.mend()
        await here.settled()

        assert here.devices() == ["b"]
        assert here.node.problems == {}


async def test_server_that_cannot_be_asked_is_a_problem_until_it_can(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here:
        here.sim.faults.fail(count=None, status=403, which=asks(verb="get", plural="nodes"))
        async with publishing(here):
            await here.until(lambda: ("slices-unknown", NODE) in here.node.problems)
            here.sim.faults.mend()
            await here.settled()

        assert here.node.problems == {}


async def test_server_that_goes_away_and_comes_back_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()
        await here.sim.stop()
        await here.until(lambda: ("slices-unknown", NODE) in here.node.problems)
        here.node.publish(view_of(sick(SEVERAL[0]), *SEVERAL[1:]))
        await here.sim.start()
        await here.until(lambda: here.taints().get("g000"))
        await here.settled()

        assert here.writes() == ["create", "create", "update"]
        assert here.node.problems == {}


async def test_watch_that_expires_is_begun_anew(tmp_path: Path) -> None:
    """SL15."""
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.expire()
        here.sim.cut_watches()
        here.wipe()
        await here.until(lambda: here.devices() == ["a"])


async def test_pool_that_is_not_valid_is_not_sent_and_the_last_one_stays(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.node.publish(view_of(sick(gpu("b"), "no code")))
        await here.until(lambda: ("pool-invalid", DRIVER) in here.node.problems)
        assert here.devices() == ["a"]

        await here.settled(view_of(gpu("b")))
        assert here.node.problems == {}
