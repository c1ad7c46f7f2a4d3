"""Settings of claims: agreed among claims, written down, applied, and undone once."""

import asyncio

import attrs
import pytest

from accelkit.core.allocation import Allocation, Grant, Setting
from accelkit.core.errors import ConflictingSetting, PartitionError, PrepareFailed, SourceError
from accelkit.core.model import DeviceId
from tests.agent.keeping.board import Board, MemoryHardware
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import World, allocation, moved, soon, used


def shared() -> World:
    return World(Board(plain=("a", "b")))


def claim(uid: str, value: str = "long", device: str = "a") -> Allocation:
    return allocation(uid, used(device, share=f"share-{uid}"), config={"slice": value})


@virtually
async def test_a_setting_is_written_down_before_it_is_applied_and_undone_in_the_end() -> None:
    world = shared()
    seen: list[object] = []

    class Looking(MemoryHardware):
        async def apply(self, vendor: str, setting: Setting) -> None:
            entry = world.entry("1")
            assert entry is not None
            seen.append(entry["settings"])
            await super().apply(vendor, setting)

    agent = await world.begun(hardware=Looking)

    await agent.keeper.prepare(claim("1"))

    assert seen == [[{"device": "toy/a", "key": "slice", "value": "long"}]]
    assert world.board.settings == {("a", "slice"): "long"}

    await agent.keeper.release("1")

    assert world.board.settings == {}


@virtually
async def test_what_two_claims_want_alike_stays_until_the_last_ends() -> None:
    world = shared()
    agent = await world.begun()
    await agent.keeper.prepare(claim("1"))
    await agent.keeper.prepare(claim("2"))

    await agent.keeper.release("1")
    assert world.board.settings == {("a", "slice"): "long"}

    await agent.keeper.release("2")
    assert world.board.settings == {}


@virtually
async def test_what_two_claims_want_otherwise_is_refused_to_the_second_at_once() -> None:
    world = shared()
    agent = await world.begun()
    await agent.keeper.prepare(claim("1"))
    began = asyncio.get_running_loop().time()

    with pytest.raises(ConflictingSetting) as caught:
        await agent.keeper.prepare(claim("2", "short"))

    assert str(caught.value) == (
        "toy/a: slice cannot be short, since the claim default/claim-1 needs long"
    )
    assert asyncio.get_running_loop().time() == began
    assert set(agent.keeper.entries) == {"1"}
    assert world.board.settings == {("a", "slice"): "long"}

    await agent.keeper.prepare(claim("3", "short", "b"))


@virtually
async def test_a_setting_that_is_being_undone_is_waited_for_whatever_its_value() -> None:
    for value in ("long", "short"):
        world = shared()
        agent = await world.begun()
        await agent.keeper.prepare(claim("1"))
        agent.hardware.slow["revert"] = 3.0
        release = asyncio.create_task(agent.keeper.release("1"))
        await soon()

        await agent.keeper.prepare(claim("2", value))

        assert release.done()
        assert world.board.settings == {("a", "slice"): value}


@virtually
async def test_a_setting_that_cannot_be_undone_is_not_waited_for_for_ever() -> None:
    world = shared()
    agent = await world.begun()
    await agent.keeper.prepare(claim("1"))
    agent.hardware.errors["revert"] = SourceError("hangs")
    with pytest.raises(SourceError):
        await agent.keeper.release("1")

    with pytest.raises(ConflictingSetting, match="claim-1, which is being released, needs long"):
        await agent.keeper.prepare(claim("2"))


@virtually
async def test_one_claim_cannot_want_a_setting_in_two_ways() -> None:
    world = shared()
    agent = await world.begun()
    one, two = claim("1", "long"), claim("1", "short")
    (first,), (second,) = one.configs, two.configs
    both = attrs.evolve(
        one,
        pieces=(used("a", "x", "s1"), used("a", "y", "s2")),
        configs=(
            attrs.evolve(first, requests=("x",)),
            attrs.evolve(second, requests=("y",)),
        ),
    )

    with pytest.raises(ConflictingSetting, match="since this claim itself needs long"):
        await agent.keeper.prepare(both)

    assert world.board.settings == {}


@virtually
async def test_a_failed_preparation_keeps_what_others_want() -> None:
    world = shared()
    agent = await world.begun()
    await agent.keeper.prepare(claim("1"))
    agent.hardware.errors["edits"] = PartitionError("no")

    with pytest.raises(PartitionError):
        await agent.keeper.prepare(claim("2"))

    assert world.board.settings == {("a", "slice"): "long"}


class OfNoDevice(MemoryHardware):
    async def needs(self, vendor: str, grant: Grant) -> tuple[Setting, ...]:  # noqa: ARG002 - as its base
        return (Setting(device=None, key="daemon", value=vendor),)


@virtually
async def test_a_setting_of_no_device_is_of_the_vendor() -> None:
    world = shared()
    agent = await world.begun(hardware=OfNoDevice)

    await agent.keeper.prepare(allocation("1", "a"))
    await agent.keeper.prepare(allocation("2", "b"))
    assert world.board.settings == {("", "daemon"): "toy"}

    await agent.keeper.release("1")
    assert world.board.settings == {("", "daemon"): "toy"}

    await agent.keeper.release("2")
    assert world.board.settings == {}


@virtually
async def test_a_setting_of_no_device_cannot_be_told_apart_in_a_claim_of_two_vendors() -> None:
    world = shared()
    agent = await world.begun(hardware=OfNoDevice)
    agent.view = moved(agent.view, "b", "zoo")
    both = allocation("1", "a", attrs.evolve(used("b"), device=DeviceId(vendor="zoo", name="b")))

    with pytest.raises(PrepareFailed, match="zoo needs daemon of no device"):
        await agent.keeper.prepare(both)

    assert world.board.settings == {}
