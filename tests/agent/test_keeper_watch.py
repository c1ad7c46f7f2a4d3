"""Directories that are changed by others are made as they were."""

from pathlib import Path

import pytest

from accelkit.agent.disk import Disk
from accelkit.core.errors import LedgerError
from tests.agent.keeping.board import Board
from tests.agent.keeping.process import Process
from tests.agent.keeping.storage import MemoryDisk, MemoryStorage
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import CDI, CLAIMS, DRIVER, RUN, Agent, World, allocation

FILE = f"{CDI}/{DRIVER}-claim_1.json"


class Storage(MemoryStorage):
    """A disk of which a test says how full it is, and where it refuses."""

    fullness: float = 0.0
    refused: str = ""
    unremovable: str = ""

    def door(self, process: Process) -> MemoryDisk:
        return Door(self, process)


class Door(MemoryDisk):
    def fullness(self, directory: Path) -> float:  # noqa: ARG002 - there is one file system
        return storage_of(self).fullness

    def rename(self, old: Path, new: Path) -> None:
        refused = storage_of(self).refused
        if refused and str(new).startswith(refused):
            raise PermissionError(13, "Permission denied", str(new))
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        if str(path) == storage_of(self).unremovable:
            raise PermissionError(13, "Permission denied", str(path))
        super().remove(path)


def storage_of(door: Disk) -> Storage:
    assert isinstance(door, Door)
    assert isinstance(door._storage, Storage)
    return door._storage


async def ready() -> tuple[World, Agent, Storage]:
    storage = Storage()
    world = World(Board(plain=("a", "b")), storage)
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))
    return world, agent, storage


def codes(agent: Agent) -> list[str]:
    return [problem.code for problem in agent.keeper.problems]


@pytest.mark.parametrize("harm", ["removed", "changed", "wiped"])
def test_a_cdi_file_that_is_missing_or_changed_is_made_again(harm: str) -> None:
    @virtually
    async def main() -> None:
        world, agent, storage = await ready()
        before = storage.contents()[FILE]
        match harm:
            case "removed":
                del storage.files[FILE]
            case "changed":
                storage.add(FILE, b"{}")
            case _:
                storage.wipe(CDI)

        await agent.keeper.mend()

        assert world.storage.contents()[FILE] == before
        assert codes(agent) == []

    main()


@virtually
async def test_a_cdi_file_is_on_disk_before_a_claim_is_answered() -> None:
    _, agent, storage = await ready()
    claim = allocation("1", "a").claim
    del storage.files[FILE]

    assert await agent.keeper.prepared(claim) is not None
    assert FILE in storage.files

    del storage.files[FILE]
    await agent.keeper.prepare(allocation("1", "a"))
    assert FILE in storage.files


@virtually
async def test_a_new_agent_makes_cdi_files_again() -> None:
    world, _, storage = await ready()
    storage.wipe(CDI)

    await world.begun()

    assert FILE in storage.files


@virtually
async def test_a_cdi_file_of_a_claim_that_somebody_works_on_is_left_to_them() -> None:
    _, agent, storage = await ready()
    del storage.files[FILE]
    storage.locks[storage.files[f"{CLAIMS}/1.lock"].inode] = Process()

    await agent.keeper.mend()
    assert FILE not in storage.files

    storage.locks.clear()
    await agent.keeper.mend()
    assert FILE in storage.files


@virtually
async def test_looking_when_nothing_changed_writes_nothing() -> None:
    world = World(Board(plain=("a",)))
    process = Process()
    agent = world.agent(process)
    await agent.keeper.load()
    await agent.keeper.prepare(allocation("1", "a"))
    await agent.keeper.mend()
    effects, changes = process.effects, agent.changes

    for _ in range(5):
        await agent.keeper.mend()

    assert (process.effects, agent.changes) == (effects, changes)


@virtually
async def test_a_cdi_directory_that_cannot_be_written_is_a_problem_until_it_can() -> None:
    _, agent, storage = await ready()
    del storage.files[FILE]
    storage.refused = str(CDI)

    await agent.keeper.mend()
    assert codes(agent) == ["cdi-file"]
    with pytest.raises(LedgerError, match="cannot be written: Permission denied"):
        await agent.keeper.prepared(allocation("1", "a").claim)
    with pytest.raises(LedgerError, match="cannot be written: Permission denied"):
        await agent.keeper.prepare(allocation("2", "b"))

    storage.refused = ""
    await agent.keeper.mend()
    assert codes(agent) == []
    assert set(agent.keeper.entries) == {"1"}


@virtually
async def test_a_cdi_file_that_cannot_be_made_again_keeps_no_other_from_it() -> None:
    _, agent, storage = await ready()
    await agent.keeper.prepare(allocation("2", "b"))
    other = FILE.replace("_1", "_2")
    del storage.files[FILE], storage.files[other]
    storage.refused = FILE

    await agent.keeper.mend()

    assert codes(agent) == ["cdi-file"]
    assert other in storage.files
    assert FILE not in storage.files


@virtually
async def test_removing_files_of_no_claim_takes_back_no_problem_of_files_of_claims() -> None:
    _, agent, storage = await ready()
    del storage.files[FILE]
    storage.refused = str(CDI)
    await agent.keeper.mend()
    before = agent.keeper.problems

    await agent.keeper.reconcile((), ())

    assert codes(agent) == ["cdi-file"]
    assert agent.keeper.problems == before


@virtually
async def test_a_file_of_no_claim_that_cannot_be_removed_keeps_no_other_from_it() -> None:
    _, agent, storage = await ready()
    left = [FILE.replace("_1", f"_{uid}") for uid in "23"]
    for path in left:
        storage.add(path, storage.files[FILE].content)
    storage.unremovable = left[0]

    await agent.keeper.reconcile((), ())
    await agent.keeper.reconcile((), ())
    assert [p.subject for p in agent.keeper.problems] == ["no claims"]
    assert [path in storage.files for path in left] == [True, False]

    storage.unremovable = ""
    await agent.keeper.mend()
    assert codes(agent) == ["cdi-file"]
    await agent.keeper.reconcile((), ())
    assert codes(agent) == []
    assert left[0] not in storage.files


@virtually
async def test_a_run_directory_that_is_emptied_is_filled_again_and_told_for_an_hour() -> None:
    world, agent, storage = await ready()
    storage.wipe(RUN)

    await agent.keeper.mend()
    await world.clock.sleep(3000)
    await agent.keeper.mend()
    assert codes(agent) == ["run-directory-emptied"]

    await world.clock.sleep(601)
    await agent.keeper.mend()
    assert codes(agent) == []
    assert (await world.begun()).keeper.entries.keys() == {"1"}


@virtually
async def test_a_run_directory_that_is_nearly_full_is_a_problem_until_it_is_not() -> None:
    _, agent, storage = await ready()
    storage.fullness = 0.95

    await agent.keeper.mend()
    assert [p.reason for p in agent.keeper.problems] == [
        "the run directory's file system is 95% full"
    ]

    storage.fullness = 0.5
    await agent.keeper.mend()
    assert codes(agent) == []


@virtually
async def test_what_another_instance_did_is_known_a_second_later() -> None:
    world, agent, _ = await ready()
    other = await world.begun()
    await other.keeper.prepare(allocation("2", "b"))
    changes = agent.changes

    await agent.keeper.mend()

    assert set(agent.keeper.entries) == {"1", "2"}
    assert agent.changes > changes
