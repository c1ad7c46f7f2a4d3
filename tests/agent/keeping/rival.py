"""A process that prepares claims for devices that others want, too: ``python -m`` this."""

import asyncio
import random
import sys
import time
from pathlib import Path

from accelkit.core.clock import RealClock
from tests.agent.keeping.board import Board
from tests.agent.keeping.process import Process
from tests.agent.keeping.storage import RealDisk, RealStorage
from tests.agent.keeping.world import World, allocation

DEVICES = ("a", "b", "c")
SLOW_S = 0.003
"""What a write takes: who decides without a lock is not alone for so long."""


class SlowStorage(RealStorage):
    def door(self, process: Process) -> RealDisk:
        return SlowDisk(process)


class SlowDisk(RealDisk):
    def write(self, path: Path, content: bytes, mode: int) -> None:
        time.sleep(SLOW_S)
        super().write(path, content, mode)


async def _strive(root: Path, number: int, cycles: int) -> None:
    world = World(Board(plain=DEVICES), SlowStorage(root), RealClock())
    agent = world.agent()
    await agent.keeper.load()
    chance = random.Random(number)
    for cycle in range(cycles):
        uid = f"{number}{cycle:04}"
        wanted = chance.sample(DEVICES, chance.choice((1, 2)))
        await agent.keeper.prepare(allocation(uid, *wanted))
        owned = [root / f"owned-{name}" for name in wanted]
        for path in owned:
            path.touch(exist_ok=False)  # fails if another process has the device
        await asyncio.sleep(chance.random() * 0.004)
        for path in owned:
            path.unlink()
        await agent.keeper.release(uid)


if __name__ == "__main__":
    asyncio.run(_strive(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
