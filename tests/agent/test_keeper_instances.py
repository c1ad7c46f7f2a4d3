"""Several agents on one node, as processes of their own; and what a long life costs."""

import asyncio
import gc
import sys
import threading
from pathlib import Path

import pytest

from accelkit.core.clock import RealClock
from tests.agent.keeping.board import Board
from tests.agent.keeping.storage import RealStorage
from tests.agent.keeping.world import World, allocation
from tests.open_files import open_files
from tests.processes import running

RIVALS, CYCLES = 3, 30
LONG, MORE_OBJECTS = 150, 200


@pytest.mark.slow
@pytest.mark.timeout(300)  # processes that wait for each other, on a machine that does much else
async def test_rivals_never_have_one_device_at_once(tmp_path: Path) -> None:
    """Each fails if it finds that another one has what it was given."""
    argv = [sys.executable, "-m", "tests.agent.keeping.rival", str(tmp_path)]
    ends = []
    async with (
        running(*argv, "1", str(CYCLES)) as one,
        running(*argv, "2", str(CYCLES)) as two,
        running(*argv, "3", str(CYCLES)) as three,
    ):
        for rival in (one, two, three):
            _, told = await rival.communicate()
            ends.append((rival.returncode, told.decode()))

    assert ends == [(0, "")] * RIVALS
    assert files_in(tmp_path) == [".kept", "reserve.lock"]


def files_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


def costs() -> tuple[int, int, int]:
    """Open files, threads and objects of this process."""
    gc.collect()
    return len(open_files("self")), threading.active_count(), len(gc.get_objects())


@pytest.mark.slow
async def test_a_long_life_costs_neither_files_nor_threads_nor_memory(tmp_path: Path) -> None:
    world = World(Board(plain=("a", "b")), RealStorage(tmp_path), RealClock())
    agent = await world.begun()

    async def cycles(number: int) -> tuple[int, int, int]:
        for n in range(number):
            await agent.keeper.prepare(allocation(f"{n}", "a"))
            await agent.keeper.prepared(allocation(f"{n}", "a").claim)
            await agent.keeper.mend()
            await agent.keeper.release(f"{n}")
        for kept in (agent.hardware.calls, agent.hardware.grants, agent.seconds):
            kept.clear()
        await asyncio.sleep(0)
        return costs()

    files, threads, objects = await cycles(20)
    later = await cycles(LONG)

    # What other tests left may go meanwhile.
    assert later[0] <= files
    assert later[1] <= threads
    assert later[2] - objects < MORE_OBJECTS
    assert files_in(tmp_path / "var") == []
