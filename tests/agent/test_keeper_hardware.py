"""Modes and partitions of claims: listed before they are made, looked at before and after."""

import asyncio
import json

import attrs
import pytest

from accelkit.core.errors import (
    DeviceUnavailable,
    ModeBusy,
    PartitionError,
    PlaceOccupied,
    PrepareFailed,
)
from accelkit.core.model import Device, DeviceId, Mode, Placement, Snapshot
from accelkit.core.view import View
from tests.agent.keeping.board import CUT, WHOLE, Board, MemoryHardware, ident
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import CLAIMS, Agent, World, allocation, soon, used, view_of


def cuttable(mode: str = WHOLE) -> World:
    return World(Board(modes={"g": mode}))


def called(agent: Agent, *calls: str) -> list[str]:
    """What was asked of the vendor, of *calls*."""
    return [call for call in agent.hardware.calls if call.split()[0] in calls]


@virtually
async def test_partitions_are_made_in_their_mode_and_unmade_in_reverse() -> None:
    world = cuttable()
    agent = await world.begun()

    prepared = await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))

    assert (world.board.modes, set(world.board.parts)) == ({"g": CUT}, {"g-half-0", "g-half-2"})
    assert agent.keeper.made == {ident("g-half-0"), ident("g-half-2")}
    assert [answer.device.name for answer in prepared.answers] == ["g-half-0", "g-half-2"]
    assert [step for step, _ in agent.keeper.entries["1"].trace] == [
        "reserve",
        "modes",
        "create",
        "settings",
        "cdi",
    ]

    await agent.keeper.release("1")

    assert called(agent, "create", "destroy") == [
        "create g-half-0",
        "create g-half-2",
        "destroy g-half-2",
        "destroy g-half-0",
    ]
    assert world.board.parts == {}


@virtually
async def test_containers_get_the_partition_as_it_was_made() -> None:
    """Its handle is known only now."""
    world = cuttable(CUT)
    agent = await world.begun()

    await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert [g.device.handle for g in agent.hardware.grants[0].granted] == ["1"]


@virtually
async def test_a_partition_is_listed_before_it_is_made() -> None:
    world = cuttable(CUT)
    listed: list[object] = []

    class Looking(MemoryHardware):
        async def create(self, parent: Device, placement: Placement) -> Device:
            entry = world.entry("1")
            assert entry is not None
            listed.append(entry["create"])
            return await super().create(parent, placement)

    agent = await world.begun(hardware=Looking)
    await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))

    assert listed == [["toy/g-half-0", "toy/g-half-2"]] * 2


@virtually
async def test_a_partition_that_is_there_already_is_had_as_it_is_and_stays() -> None:
    world = cuttable(CUT)
    world.board.add_part("g", "half", 0)
    agent = await world.begun()

    await agent.keeper.prepare(allocation("1", "g-half-0", "g-quarter-2"))

    assert agent.keeper.made == {ident("g-quarter-2")}

    await agent.keeper.release("1")

    assert {name: part.number for name, part in world.board.parts.items()} == {"g-half-0": 1}


@virtually
async def test_a_partition_that_somebody_made_since_the_last_look_is_not_ours() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    world.board.add_part("g", "half", 0)  # the view does not show it

    await agent.keeper.prepare(allocation("1", "g-half-0"))
    await agent.keeper.release("1")

    assert set(world.board.parts) == {"g-half-0"}


@virtually
async def test_a_place_that_somebody_took_is_refused_and_nobody_is_touched() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    world.board.add_part("g", "half", 0)

    with pytest.raises(PlaceOccupied):
        await agent.keeper.prepare(allocation("1", "g-half-2", "g-quarter-1"))

    assert set(world.board.parts) == {"g-half-0"}
    assert dict(agent.keeper.entries) == {}


@virtually
async def test_a_creation_that_fails_half_way_undoes_what_was_made() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    agent.hardware.errors["create g-half-2"] = PartitionError("no room")

    with pytest.raises(PartitionError, match="no room"):
        await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))

    assert (world.board.parts, dict(agent.keeper.entries)) == ({}, {})


@virtually
async def test_a_partition_that_is_not_there_after_it_was_made_fails_the_claim() -> None:
    class Lying(MemoryHardware):
        async def create(self, parent: Device, placement: Placement) -> Device:
            made = await super().create(parent, placement)
            del self.board.parts[made.id.name]
            return made

    world = cuttable(CUT)
    agent = await world.begun(hardware=Lying)

    with pytest.raises(PrepareFailed, match="toy/g-half-0 was made, and is not there"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert dict(agent.keeper.entries) == {}


@virtually
async def test_a_partition_that_stays_half_made_fails_the_claim() -> None:
    class Halting(MemoryHardware):
        async def create(self, parent: Device, placement: Placement) -> Device:
            made = await super().create(parent, placement)
            self.board.parts[made.id.name].usable = False
            return made

    world = cuttable(CUT)
    agent = await world.begun(hardware=Halting)

    with pytest.raises(PrepareFailed, match="is not there when it is looked for"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert world.board.parts == {}


@virtually
async def test_what_a_dead_agent_made_half_is_finished_by_the_next() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    entry = world.entry("1")
    assert entry is not None
    world.storage.add(f"{CLAIMS}/1.json", json.dumps(entry | {"state": "working"}).encode())
    world.board.parts["g-half-0"].usable = False
    again = await world.begun()

    await again.keeper.prepare(allocation("1", "g-half-0"))

    assert world.board.parts["g-half-0"].usable
    assert again.keeper.made == {ident("g-half-0")}


@virtually
async def test_half_of_a_partition_that_is_not_ours_is_refused() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    world.board.add_part("g", "half", 0, usable=False)

    with pytest.raises(DeviceUnavailable, match="toy/g-half-0 cannot be used as it stands"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert set(world.board.parts) == {"g-half-0"}


@virtually
async def test_a_device_that_is_gone_is_refused() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    world.board.modes.clear()

    with pytest.raises(DeviceUnavailable, match="toy/g is not there any more"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))


@virtually
async def test_partitions_that_nobody_makes_are_not_looked_for() -> None:
    """A read of all devices is for those that claims make and unmake."""
    world = cuttable(CUT)
    world.board.add_part("g", "half", 0)
    agent = await world.begun()
    agent.view = view_of(world.board, potential=())

    await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert called(agent, "find", "create", "set_mode") == []
    assert agent.keeper.made == frozenset()


@virtually
async def test_a_partition_is_only_looked_at_if_it_exists() -> None:
    world = cuttable(CUT)
    world.board.add_part("g", "half", 0)
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", used("g-half-0", admin=True)))

    with pytest.raises(DeviceUnavailable, match="toy/g-half-2 cannot be used as it stands"):
        await agent.keeper.prepare(allocation("2", used("g-half-2", admin=True)))

    assert (agent.keeper.made, called(agent, "create", "set_mode")) == (frozenset(), [])


@virtually
async def test_one_that_is_looked_at_and_used_in_one_claim_is_made() -> None:
    world = cuttable(CUT)
    agent = await world.begun()
    pieces = (used("g-half-0", "use"), used("g-half-0", "look", admin=True))

    (answer,) = (await agent.keeper.prepare(allocation("1", *pieces))).answers

    assert answer.requests == ("use", "look")
    assert agent.keeper.made == {ident("g-half-0")}


@virtually
async def test_a_whole_device_is_brought_out_of_the_mode_in_which_it_is_cut() -> None:
    world = cuttable(CUT)
    agent = await world.begun()

    await agent.keeper.prepare(allocation("1", "g"))

    assert world.board.modes == {"g": WHOLE}
    assert [g.device.mode for g in agent.hardware.grants[0].granted] == [WHOLE]


@virtually
async def test_a_mode_that_is_busy_is_waited_for() -> None:
    world = cuttable(WHOLE)
    agent = await world.begun()
    agent.hardware.errors["set_mode"] = ModeBusy("in use")

    waiting = asyncio.create_task(agent.keeper.prepare(allocation("1", "g-half-0")))
    await soon(5.0)
    assert not waiting.done()

    agent.hardware.errors.clear()
    await waiting

    assert world.board.modes == {"g": CUT}


@virtually
async def test_a_mode_that_is_not_reached_fails_the_claim() -> None:
    class Stubborn(MemoryHardware):
        async def set_mode(self, device: Device, mode: str) -> None:
            """Say yes, do nothing."""

    world = cuttable(WHOLE)
    agent = await world.begun(hardware=Stubborn)

    with pytest.raises(PrepareFailed, match="toy/g was set to mode cut, and is in mode whole"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))


def with_modes(world: World, *modes: Mode) -> Snapshot:
    devices = [
        attrs.evolve(d, modes=modes) if d.parent is None else d for d in world.board.devices()
    ]
    return Snapshot(devices=devices, answered=frozenset({"toy"}))


@virtually
async def test_a_mode_that_cannot_be_set_while_the_node_works_is_refused_at_once() -> None:
    world = cuttable(WHOLE)
    agent = await world.begun()
    snapshot = with_modes(world, Mode(name=CUT), Mode(name=WHOLE))
    agent.view = view_of(world.board, snapshot=snapshot)

    with pytest.raises(DeviceUnavailable, match="needs toy/g in mode cut, and it is in mode whole"):
        await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert called(agent, "set_mode") == []


@virtually
async def test_a_whole_device_that_somebody_cut_is_refused_at_once() -> None:
    world = cuttable(CUT)
    world.board.add_part("g", "half", 0)
    agent = await world.begun()

    with pytest.raises(DeviceUnavailable, match="is cut: toy/g-half-0 was made by somebody else"):
        await agent.keeper.prepare(allocation("1", "g"))


@virtually
async def test_a_whole_device_that_somebody_cut_since_the_last_look_is_refused() -> None:
    class Cutting(MemoryHardware):
        async def find(self, device: DeviceId) -> Device | None:
            found = await super().find(device)
            return None if found is None else attrs.evolve(found, usable=False)

    world = cuttable(WHOLE)
    agent = await world.begun(hardware=Cutting)

    with pytest.raises(DeviceUnavailable, match="toy/g is cut into partitions"):
        await agent.keeper.prepare(allocation("1", "g"))


def without_modes(device: Device) -> Device:
    """*device* as of a maker whose devices are cut in no mode in particular."""
    if device.parent is not None:
        return device
    profiles = tuple(attrs.evolve(profile, mode=None) for profile in device.profiles)
    return attrs.evolve(device, modes=(), mode=None, profiles=profiles)


class WithoutModes(MemoryHardware):
    async def find(self, device: DeviceId) -> Device | None:
        found = await super().find(device)
        if found is None or found.parent is not None:
            return found
        return attrs.evolve(without_modes(found), usable=not self.board.parts)


def view_without_modes(world: World, agent: Agent) -> View:
    """What the agent sees while partitions are there: the whole device is not usable."""
    view = view_of(world.board, agent.keeper.made)
    devices = tuple(without_modes(d) for d in view.snapshot.devices)
    return attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, devices=devices))


@virtually
async def test_a_whole_device_that_only_claims_have_cut_is_waited_for() -> None:
    """Long after they were made: the view is as new as can be."""
    world = cuttable(CUT)
    agent = await world.begun(hardware=WithoutModes)
    agent.view = view_without_modes(world, agent)
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    agent.view = view_without_modes(world, agent)
    await soon(60.0)
    waiting = asyncio.create_task(agent.keeper.prepare(allocation("2", "g")))
    await soon(2.5)

    await agent.keeper.release("1")
    await waiting

    assert [g.device.usable for g in agent.hardware.grants[-1].granted] == [True]


@virtually
async def test_a_whole_device_that_a_stranger_cut_where_claims_did_is_refused() -> None:
    world = cuttable(CUT)
    agent = await world.begun(hardware=WithoutModes)
    agent.view = view_without_modes(world, agent)
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    agent.view = view_without_modes(world, agent)
    await agent.keeper.release("1")
    world.board.add_part("g", "half", 0)

    with pytest.raises(DeviceUnavailable, match="toy/g is cut into partitions"):
        await agent.keeper.prepare(allocation("2", "g"))


@virtually
async def test_a_whole_device_that_nobody_cut_and_that_cannot_be_used_is_refused() -> None:
    world = cuttable(CUT)
    agent = await world.begun(hardware=WithoutModes)
    agent.view = view_without_modes(world, agent)

    with pytest.raises(DeviceUnavailable, match="toy/g cannot be used as it stands"):
        await agent.keeper.prepare(allocation("1", "g"))
