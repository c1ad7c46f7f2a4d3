"""Releases that fail, are tried again, and are given up; claims that nobody gives back."""

import asyncio
import contextlib
from itertools import pairwise

import pytest

from accelkit.core.claims import EntryState
from accelkit.core.errors import (
    AlreadyAllocated,
    DriverNotReady,
    NoSpace,
    PartitionInUse,
    PrepareFailed,
    SourceError,
)
from accelkit.core.model import Device
from tests.agent.keeping.board import CUT, Board, MemoryHardware, ident
from tests.agent.keeping.storage import MemoryStorage
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import (
    BOOT,
    CDI,
    CLAIMS,
    DRIVER,
    RUN,
    Agent,
    World,
    allocation,
    soon,
)

CLAIM = allocation("1", "g-half-0")


def cut(**failures: int) -> World:
    return World(
        Board(
            plain=("a",),
            modes={"g": CUT},
            failures={f"{call} g-half-0": n for call, n in failures.items()},
        )
    )


async def ready(world: World) -> Agent:
    agent = await world.begun()
    await agent.keeper.prepare(CLAIM)
    return agent


@virtually
async def test_a_release_that_fails_can_be_asked_again_and_tells_why() -> None:
    world = cut(destroy=1)
    agent = await ready(world)

    with pytest.raises(PartitionInUse, match="destroy g-half-0 fails"):
        await agent.keeper.release("1")

    assert agent.keeper.entries["1"].state is EntryState.RELEASING
    assert world.files(CDI) == {}
    assert [reason for reason, _ in agent.told] == ["ReleaseFailing"]
    assert [(p.code, p.subject) for p in agent.keeper.problems] == [
        ("release-failing", "default/claim-1")
    ]
    assert ("accelkit_release_seconds", ("toy", "partition-in-use")) in agent.seconds

    await agent.keeper.release("1")

    assert (world.board.parts, agent.keeper.problems) == ({}, ())


@virtually
async def test_what_was_undone_is_not_undone_again() -> None:
    """A stranger may have taken the place meanwhile."""
    world = World(Board(modes={"g": CUT}, failures={"destroy g-half-0": 1}))
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))
    with pytest.raises(PartitionInUse):
        await agent.keeper.release("1")
    stranger = world.board.add_part("g", "half", 2)

    await agent.keeper.release("1")

    assert set(world.board.parts) == {stranger}


@pytest.mark.parametrize("given_up", [False, True])
@virtually
async def test_partition_that_is_unmade_is_known_as_such_until_its_whole_claim_is(
    given_up: bool,
) -> None:
    """Seen: the first partition of a claim was told as lost while the second was destroyed."""
    world = World(Board(modes={"g": CUT}, failures={"destroy g-half-0": 100}))
    agent = await world.begun()
    agent.give_up_after_s = 0.0 if given_up else 300.0
    await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))
    assert agent.keeper.unmade == set()

    with contextlib.nullcontext() if given_up else pytest.raises(PartitionInUse):
        await agent.keeper.release("1")

    assert set(world.board.parts) == {"g-half-0"}
    there = set() if given_up else {ident("g-half-0")}
    assert agent.keeper.unmade == {ident("g-half-2"), *there}


@virtually
async def test_a_partition_that_a_stranger_made_in_the_place_of_ours_is_not_touched() -> None:
    world = cut()
    agent = await ready(world)
    del world.board.parts["g-half-0"]
    world.board.add_part("g", "half", 0)

    await agent.keeper.release("1")

    assert {name: part.number for name, part in world.board.parts.items()} == {"g-half-0": 2}
    assert dict(agent.keeper.entries) == {}


@virtually
async def test_the_place_of_a_claim_that_could_not_be_undone_stays_taken() -> None:
    agent = await ready(cut(destroy=100))
    with pytest.raises(PartitionInUse):
        await agent.keeper.release("1")

    with pytest.raises(AlreadyAllocated, match="is releasing there"):
        await agent.keeper.prepare(allocation("2", "g-half-0"))


@virtually
async def test_a_release_that_fails_is_tried_again_by_itself_ever_more_rarely() -> None:
    world = cut(destroy=4)
    agent = await ready(world)
    with pytest.raises(PartitionInUse):
        await agent.keeper.release("1")
    times: list[float] = []

    for _ in range(100):
        before = world.board.failures["destroy g-half-0"]
        await agent.keeper.retry()
        await soon(1.0)
        if world.board.failures["destroy g-half-0"] != before or not agent.keeper.entries:
            times.append(asyncio.get_running_loop().time())
        if not agent.keeper.entries:
            break

    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert [round(gap) for gap in gaps] == [2, 4, 8]
    assert world.board.parts == {}


@virtually
async def test_a_release_is_given_up_after_its_time_answered_and_still_tried() -> None:
    world = cut(destroy=1000)
    agent = await ready(world)
    agent.give_up_after_s = 60.0
    answered = 0.0
    while not answered:
        try:
            await agent.keeper.release("1")
            answered = asyncio.get_running_loop().time()
        except PartitionInUse:
            await soon(10.0)

    assert 60.0 <= answered < 80.0
    assert agent.keeper.entries["1"].state is EntryState.STUCK
    assert agent.keeper.stuck == {ident("g-half-0")}
    assert [h.device.name for h in agent.keeper.holdings()] == ["g-half-0"]
    assert [reason for reason, _ in agent.told].count("ReleaseStuck") == 1
    await agent.keeper.release("1")

    world.board.failures.clear()
    for _ in range(130):
        await agent.keeper.retry()
        await soon(1.0)

    assert (dict(agent.keeper.entries), world.board.parts) == ({}, {})
    assert (agent.keeper.stuck, agent.keeper.problems) == (frozenset(), ())


@virtually
async def test_a_claim_that_is_stuck_cannot_be_prepared_again() -> None:
    agent = await ready(cut(destroy=1000))
    agent.give_up_after_s = 0.0
    await agent.keeper.release("1")

    with pytest.raises(PrepareFailed, match="could not be undone after an earlier attempt"):
        await agent.keeper.prepare(CLAIM)

    assert agent.keeper.entries["1"].state is EntryState.STUCK


@virtually
async def test_what_another_agent_left_half_undone_is_undone_after_a_start() -> None:
    world = cut(destroy=1)
    agent = await ready(world)
    with pytest.raises(PartitionInUse):
        await agent.keeper.release("1")

    again = await world.begun()
    assert set(again.keeper.entries) == {"1"}
    await again.keeper.retry()
    await soon()

    assert (dict(again.keeper.entries), world.board.parts) == ({}, {})


@virtually
async def test_a_claim_that_was_half_undone_is_prepared_anew() -> None:
    world = cut(destroy=1)
    agent = await ready(world)
    with pytest.raises(PartitionInUse):
        await agent.keeper.release("1")

    await agent.keeper.prepare(CLAIM)

    assert agent.keeper.entries["1"].state is EntryState.READY
    assert [part.number for part in world.board.parts.values()] == [2]


@virtually
async def test_a_preparation_that_fails_and_cannot_be_undone_is_undone_later() -> None:
    world = cut(destroy=1)
    agent = await world.begun()
    agent.hardware.errors["edits g-half-0"] = PartitionInUse("no")
    with pytest.raises(PartitionInUse, match="no"):
        await agent.keeper.prepare(CLAIM)

    assert agent.keeper.entries["1"].state is EntryState.RELEASING

    await soon(2.0)
    await agent.keeper.retry()
    await soon()

    assert (dict(agent.keeper.entries), world.board.parts) == ({}, {})


@pytest.mark.parametrize("how", ["device", "driver", "partition"])
def test_undoing_succeeds_when_what_was_made_is_gone(how: str) -> None:
    @virtually
    async def main() -> None:
        world = cut()
        agent = await ready(world)
        match how:
            case "device":
                world.board.modes.clear()
                world.board.parts.clear()
            case "driver":
                agent.hardware.errors["find"] = DriverNotReady("unloaded")
            case _:
                world.board.parts.clear()

        await agent.keeper.release("1")

        assert dict(agent.keeper.entries) == {}

    main()


@virtually
async def test_a_vendor_that_cannot_be_asked_does_not_count_as_gone() -> None:
    agent = await ready(cut())
    agent.hardware.errors["find"] = SourceError("hangs")

    with pytest.raises(SourceError):
        await agent.keeper.release("1")

    assert set(agent.keeper.entries) == {"1"}


@virtually
async def test_a_partition_that_stays_after_it_was_unmade_is_not_forgotten() -> None:
    class Lying(MemoryHardware):
        async def destroy(self, partition: Device) -> None:
            """Say yes, do nothing."""

    world = cut()
    agent = await world.begun(hardware=Lying)
    await agent.keeper.prepare(CLAIM)

    with pytest.raises(PartitionInUse, match="toy/g-half-0 was unmade, and is still there"):
        await agent.keeper.release("1")

    assert agent.keeper.made == {ident("g-half-0")}


@virtually
async def test_an_error_that_is_none_of_ours_does_not_keep_a_claim_from_being_tried_again() -> None:
    agent = await ready(cut())
    agent.hardware.errors["destroy"] = ZeroDivisionError("oh")  # type: ignore[assignment]  # the point

    with pytest.raises(PrepareFailed, match="undoing it broke: ZeroDivisionError: oh"):
        await agent.keeper.release("1")

    agent.hardware.errors.clear()
    await agent.keeper.release("1")


@virtually
async def test_a_retry_does_not_release_what_another_instance_prepared_anew() -> None:
    world = cut(destroy=1)
    one = await ready(world)
    with pytest.raises(PartitionInUse):
        await one.keeper.release("1")
    other = await world.begun()
    await one.keeper.prepare(CLAIM)

    await other.keeper.retry()  # as it read the record, the claim is half undone
    await soon(5.0)

    assert one.keeper.entries["1"].state is EntryState.READY
    assert set(world.board.parts) == {"g-half-0"}


@virtually
async def test_a_release_that_is_asked_while_a_retry_runs_is_not_taken_for_it() -> None:
    world = cut(destroy=1)
    one = await ready(world)
    with pytest.raises(PartitionInUse):
        await one.keeper.release("1")
    other = await world.begun()
    await one.keeper.prepare(CLAIM)

    await other.keeper.retry()
    await other.keeper.release("1")

    assert (dict(other.keeper.entries), world.board.parts) == ({}, {})


@virtually
async def test_what_another_instance_undid_is_no_problem_any_more() -> None:
    world = cut(destroy=1)
    one, other = await ready(world), await world.begun()
    with pytest.raises(PartitionInUse):
        await one.keeper.release("1")

    await other.keeper.release("1")
    await one.keeper.mend()
    await one.keeper.retry()

    assert one.keeper.problems == ()


@virtually
async def test_a_full_disk_keeps_no_claim_for_which_nothing_was_made_or_set() -> None:
    storage = MemoryStorage()
    agent = await World(Board(plain=("a",)), storage).begun()
    await agent.keeper.prepare(allocation("1", "a"))
    storage.full = True

    await agent.keeper.release("1")

    assert agent.keeper.entries == {}
    assert [path for path in storage.files if "_1.json" in path or "/1.json" in path] == []
    assert agent.keeper.problems == ()


@virtually
async def test_a_full_disk_keeps_a_claim_with_partitions_as_it_was() -> None:
    world = cut()
    agent = await ready(world)
    assert isinstance(world.storage, MemoryStorage)
    world.storage.full = True
    with pytest.raises(NoSpace):
        await agent.keeper.release("1")

    assert agent.keeper.entries["1"].state is EntryState.READY
    assert set(world.board.parts) == {"g-half-0"}

    world.storage.full = False
    await agent.keeper.release("1")


@virtually
async def test_a_claim_that_is_gone_twice_and_used_by_no_pod_is_released() -> None:
    world = cut()
    agent = await ready(world)
    used = [("default", "claim-1")]

    await agent.keeper.reconcile(["1"], used)
    await agent.keeper.reconcile(["1"], ())
    assert set(agent.keeper.entries) == {"1"}

    await agent.keeper.reconcile((), ())
    await agent.keeper.reconcile(["1"], ())
    assert set(agent.keeper.entries) == {"1"}

    await agent.keeper.reconcile(["1", "77"], ())
    assert (dict(agent.keeper.entries), world.board.parts) == ({}, {})


@virtually
async def test_a_claim_left_behind_that_cannot_be_released_does_not_stop_the_others() -> None:
    world = cut(destroy=1)
    agent = await ready(world)
    await agent.keeper.prepare(allocation("2", "a"))
    for _ in range(2):
        await agent.keeper.reconcile(["1", "2"], ())

    assert set(agent.keeper.entries) == {"1"}


@virtually
async def test_cdi_files_of_ours_without_a_claim_are_removed_at_the_second_look() -> None:
    world = cut()
    agent = await ready(world)
    orphan, foreign = f"{CDI}/{DRIVER}-claim_77.json", f"{CDI}/gpu.example.com-claim_78.json"
    world.storage.add(orphan, f'{{"kind": "{DRIVER}/claim"}}'.encode())
    world.storage.add(foreign, b'{"kind": "gpu.example.com/claim"}')

    await agent.keeper.reconcile((), ())
    assert orphan in world.storage.contents()

    await agent.keeper.reconcile((), ())
    assert set(world.files(CDI)) == {f"{DRIVER}-claim_1.json", "gpu.example.com-claim_78.json"}


@virtually
async def test_releasing_an_unknown_claim_removes_what_it_may_have_left() -> None:
    world = cut()
    agent = await world.begun()
    world.storage.add(f"{CDI}/{DRIVER}-claim_77.json", b"{}")
    world.storage.add(f"{RUN}/{BOOT}/scratch/77/cache", b"")

    await agent.keeper.release("77")

    assert world.files(CDI) == {}
    assert set(world.files(RUN)) == {f"{BOOT}/claims/.kept"}
    assert f"{CLAIMS}/77.lock" not in world.storage.contents()
