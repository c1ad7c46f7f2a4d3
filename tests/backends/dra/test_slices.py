"""Slices at a simulated API server."""

import asyncio
from pathlib import Path

import attrs
import pytest

from accelkit.backends.dra.objects import slice_name
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices import publish
from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import BackendError
from accelkit.core.kube import NODES, SLICES
from accelkit.core.policy import DraPolicy, Offer, Paths
from accelkit.core.values import FrozenMap
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.slices_world import SEVERAL, World, publishing, world
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
        other = Piece(device=attrs.evolve(ident("g0-1g10gb-0"), vendor="other"))
        here.node.entries["v"] = attrs.evolve(claimed("g1"), pieces=(other,))
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


async def test_slices_go_of_a_driver_that_was_renamed_while_claims_of_it_are_left(
    tmp_path: Path,
) -> None:
    """It is known to the kubelet by its old name, too, which therefore does not remove them."""
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        assert here.stored()
        here.node.entries["u"] = claimed("a")
        here.policy = DraPolicy(drivers=FrozenMap({"acme": "gpu.corp.example"}))
        here.register("gpu.corp.example")
        async with publishing(here):
            await here.until(lambda: here.stored("gpu.corp.example") and not here.stored())

        assert here.node.problems == {}
