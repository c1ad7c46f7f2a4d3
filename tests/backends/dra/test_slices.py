"""Slices at a simulated API server."""

import asyncio
from pathlib import Path
from typing import cast

import attrs
import pytest

from accelkit.backends.dra.objects import slice_name
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices import publish
from accelkit.conformance.sims.api.faults import asks
from accelkit.conformance.sims.gates import COUNTERS, SHARES, TAINTS
from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import BackendError
from accelkit.core.kube import NODES, SLICES, KubePort
from accelkit.core.model import Problem
from accelkit.core.policy import DraPolicy, Offer, Paths, Sharing
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.slices_world import QUICK, Webhook, World, publishing, world
from tests.backends.dra.views import (
    DRIVER,
    NODE,
    SMALL,
    cut,
    gpu,
    held,
    ident,
    part,
    parts,
    sick,
    view_of,
)

SEVERAL = [gpu(f"g{n:03}") for n in range(70)]
"""Two slices of them."""


async def test_first_publication_has_owner_node_and_one_generation(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()

        stored = here.stored()
        uid = here.sim.get(NODES, NODE)["metadata"]
        assert [one.name for one in stored] == [slice_name(DRIVER, NODE, n) for n in range(2)]
        assert [(one.generation, one.count, one.node, one.pool) for one in stored] == [
            (1, 2, NODE, NODE)
        ] * 2
        assert [one.owners[0]["uid"] for one in stored] == [uid["uid"]] * 2  # type: ignore[index]  # JSON
        assert here.devices() == [d.id.name for d in SEVERAL]
        assert here.writes() == ["create", "create"]
        assert here.counted("accelkit_slice_writes_total") == {"create": 2}


async def test_next_instance_adopts_what_it_finds_without_a_write(tmp_path: Path) -> None:
    """SL08, SL14."""
    async with world(tmp_path, view_of(*SEVERAL, sick(gpu("z")))) as here:
        async with publishing(here):
            await here.settled()
        before = here.sim.items(SLICES)
        written = len(here.writes())

        async with publishing(here):
            await here.settled(view_of(sick(gpu("z")), *SEVERAL))

        assert here.sim.items(SLICES) == before
        assert len(here.writes()) == written


async def test_view_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()
        here.node.publish(view_of(*SEVERAL, evict=frozenset({"burnt"})))
        await asyncio.sleep(0)
        await here.settled(view_of(sick(SEVERAL[0]), *SEVERAL[1:]))

        assert here.writes() == ["create", "create", "update"]


async def test_taint_is_one_write_of_the_same_generation(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()
        await here.settled(view_of(sick(SEVERAL[0]), *SEVERAL[1:]))

        assert here.taints()["g000"] == ["burnt"]
        assert here.writes() == ["create", "create", "update"]
        assert [one.generation for one in here.stored()] == [1, 1]


async def test_time_of_a_taint_stays_while_others_come(tmp_path: Path) -> None:
    """SL13: the server keeps whole seconds, and pods tolerate from then on."""
    async with world(tmp_path, view_of(sick(gpu("a")), gpu("b"))) as here, publishing(here):
        await here.settled()
        before = here.stored()[0].slice
        assert before is not None
        here.sim.patch(SLICES, here.stored()[0].name, {"metadata": {"labels": {"touched": "yes"}}})

        await here.settled(view_of(sick(gpu("a")), sick(gpu("b"))))

        after = here.stored()[0].slice
        assert after is not None
        assert after.devices[0].taints[0].added == before.devices[0].taints[0].added is not None


async def test_unit_that_comes_brings_its_counters_in_two_single_writes(tmp_path: Path) -> None:
    one = view_of(cut("g0"), potential=parts("g0"))
    two = view_of(cut("g0"), cut("g1"), potential=[*parts("g0"), *parts("g1")])
    async with world(tmp_path, one) as here, publishing(here):
        await here.settled()
        await here.settled(two)

        assert here.writes() == ["create", "create", "update", "update"]
        assert {one.generation for one in here.stored()} == {1}


async def test_slices_that_are_too_many_go(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(*SEVERAL)) as here:
        async with publishing(here):
            await here.settled()
        item = dict(here.sim.get(SLICES, slice_name(DRIVER, NODE, 0)))
        here.sim.create(SLICES, {**item, "metadata": {"name": "left-by-somebody"}})
        async with publishing(here):
            await here.until(lambda: len(here.stored()) == 2)
            await here.settled()

        assert here.writes()[2:] == ["delete"]


async def test_vendor_that_is_no_longer_published_takes_its_slices_along(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        await here.settled(view_of(gpu("a"), offers=[Offer(name="k")]))

        assert here.stored() == []


def turn(here: World, gate: str, *, on: bool) -> None:
    """Turn a gate of the server, as whoever starts it anew does."""
    object.__setattr__(here.sim.dialect, "gates", {**here.sim.dialect.gates, gate: on})


# What is waited for.


async def test_nothing_is_written_before_a_vendor_answered(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"), answered=())) as here, publishing(here):
        await here.watching()
        here.node.publish(view_of(gpu("a"), gpu("b"), answered=()))
        await here.settled(view_of(gpu("c")))

        assert here.devices() == ["c"]
        assert here.writes() == ["create"]


async def test_slices_are_left_alone_while_their_vendor_has_not_answered(tmp_path: Path) -> None:
    """An early empty pool counts as complete for whoever scales clusters."""
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        here.node.publish(view_of(answered=()))
        async with publishing(here):
            await here.watching()
            await here.settled(view_of(gpu("a")))

        assert here.writes() == ["create"]


async def test_nothing_is_written_before_the_kubelet_knows_the_driver(tmp_path: Path) -> None:
    """It would fail whoever is sent here, and ask again a minute later."""
    async with world(tmp_path, view_of(gpu("a")), registered=False) as here, publishing(here):
        await here.until(lambda: DRIVER in here.told)
        assert here.told == {DRIVER: (False, "the kubelet has not registered it yet")}
        assert here.stored() == []

        here.register()
        await here.settled()
        assert here.devices() == ["a"]


def claimed(device: str) -> LedgerEntry:
    return LedgerEntry(
        state=EntryState.READY,
        claim=ClaimRef(uid="u", namespace="ns", name="c"),
        driver=DRIVER,
        pieces=(Piece(device=ident(device)),),
    )


async def test_nothing_is_written_while_a_held_device_is_not_known(tmp_path: Path) -> None:
    """SL19: what is not listed is given away a second time."""
    small = part("g0", SMALL, 3)
    async with world(tmp_path, view_of(cut("g0"))) as here, publishing(here):
        here.node.entries["u"] = claimed(small.id.name)
        await here.until(lambda: ("held-device-unknown", DRIVER) in here.node.problems)
        assert here.stored() == []
        reason, remedy = here.node.problems["held-device-unknown", DRIVER]
        assert "claim ns/c holds g0-1g10gb-3" in reason
        assert remedy == "end the pods of ns/c"

        await here.settled(view_of(cut("g0"), small, holdings=[held(small.id.name)]))
        assert here.devices() == ["g0", "g0-1g10gb-3"]
        assert here.node.problems == {}


async def test_held_device_of_which_nothing_is_left_keeps_nobody_waiting(tmp_path: Path) -> None:
    """No other device has its place."""
    async with world(tmp_path, view_of(cut("g0"))) as here, publishing(here):
        here.node.entries["u"] = claimed("g1")
        here.node.entries["v"] = attrs.evolve(claimed("g0-1g10gb-0"), driver="other")
        await here.settled()

        assert here.devices() == ["g0"]


async def test_follower_writes_nothing_until_it_leads(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here:
        here.node.leading.set(now=False)
        async with publishing(here):
            await asyncio.sleep(0)
            assert here.sim.journal.asked == []
            here.node.leading.set(now=True)
            await here.settled()
            here.node.leading.set(now=False)
            await here.until(lambda: not here.sim.watching("resourceslices"))
            here.node.publish(view_of(gpu("b")))

        assert here.devices() == ["a"]


async def test_agent_that_ends_writes_nothing_more(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a")), registered=False) as here, publishing(here):
        await here.until(lambda: DRIVER in here.told)
        here.node.closing.set(now=True)
        here.register()
        here.sim.cut_watches()
        await here.watching()

        assert here.writes() == []


async def test_node_without_an_api_server_cannot_publish() -> None:
    node = NodePortDouble(paths=Paths())

    with pytest.raises(BackendError, match="need an API server"):
        await publish(node, DraPolicy(), Registrations(), World.tell)  # type: ignore[arg-type]  # never told


# Others.


async def test_slice_that_somebody_removed_comes_back(tmp_path: Path) -> None:
    """SL09."""
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()
        here.sim.delete(SLICES, here.stored()[1].name)
        await here.until(lambda: len(here.stored()) == 2)
        await here.until(lambda: {one.generation for one in here.stored()} == {2})

        assert here.devices() == [d.id.name for d in SEVERAL]


async def test_slice_that_somebody_changed_is_put_right(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.until(lambda: here.devices() == ["a"])

        assert here.writes() == ["create", "update"]


async def test_change_of_our_own_does_not_wait_for_others_to_finish(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, repair_s=600.0)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.settled(view_of(gpu("b")))

        assert here.devices() == ["b"]


async def test_kubelet_that_was_started_again_has_removed_all_slices(tmp_path: Path) -> None:
    """After it registered us: written at once, they would be lost (seen on 1.34 to 1.37)."""
    patience = attrs.evolve(QUICK, repair_s=600.0)
    async with world(tmp_path, view_of(*SEVERAL), patience=patience) as here, publishing(here):
        await here.settled()
        here.register()
        here.wipe()
        await here.until(lambda: len(here.stored()) == 2)
        await here.settled()

        assert here.devices() == [d.id.name for d in SEVERAL]
        assert {one.generation for one in here.stored()} == {2}


async def test_nothing_is_written_just_after_a_kubelet_was_started_again(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, wipe_s=600.0)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        here.register()
        here.node.publish(view_of(gpu("b")))
        await here.until(lambda: here.node.problems == {})
        here.sim.cut_watches()
        await here.watching()

        assert here.devices() == ["a"]


async def test_whoever_changes_slices_all_the_time_is_named_and_left_to_it(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, repair_s=0.01)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        for _ in range(2):
            here.edit(0, devices=[{"name": "mine"}])
            await here.until(lambda: here.devices() == ["a"])
            await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.until(lambda: ("foreign-writer", DRIVER) in here.node.problems)

        assert here.devices() == ["mine"]
        assert not here.published()


async def test_first_write_that_changes_what_is_there_is_spread_over_the_fleet(
    tmp_path: Path,
) -> None:
    """SL17."""
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        here.node.publish(view_of(gpu("b")))
        here.patience = attrs.evolve(QUICK, jitter_s=1e6)
        async with publishing(here):
            await here.watching()
            here.sim.cut_watches()
            await here.watching()

        assert here.writes() == ["create"]


async def test_creating_what_is_missing_is_not_spread(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, jitter_s=1e6)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        await here.settled(view_of(sick(gpu("a"))))

        assert here.taints() == {"a": ["burnt"]}


# Servers.


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
