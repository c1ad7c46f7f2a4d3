"""What it costs that a vendor is asked in a process of its own, and what its faults cost others."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from accelkit.agent import calls, remote
from accelkit.agent.calls import Isolated
from accelkit.agent.remote import Remote
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.real_host import RealHost
from benchmarks.rows import Beside, Judge, Row
from benchmarks.usage import memory_mb
from tests.agent.acme import Acme, AcmeOptions, isolated
from tests.agent.acme_host import acme_host, order
from tests.agent.remotes import grant, read_again

CALLS = 300
LOOKS = 50
HANG_SCALE = 0.05
"""Of deadlines: a call that hangs is killed after half a second."""


def measure(rounds: int) -> Iterator[Row]:
    """A vendor with a compiled library, on a host that has it."""
    remote.PAUSES_S = (0.01, 0.01)
    logging.getLogger("accelkit").setLevel(logging.CRITICAL)
    with TemporaryDirectory() as folder:
        yield from asyncio.run(_measured(acme_host(Path(folder)), rounds))


async def _measured(root: Path, rounds: int) -> list[Row]:
    async with _asked(isolated(root), root) as far, _asked(Acme(AcmeOptions()), root) as near:
        starts = [await _start(far) for _ in range(rounds)]
        trips = await _each(lambda: far.look(calls.SIGNALS), CALLS)
        pid = _pid(far)
        assert pid is not None
        return [
            Row(what="a worker's start, to its first answer", values=starts),
            Row(
                what="call of a worker, there and back",
                values=trips,
                budget=1.0,
                beside=Beside("in a thread", await _each(lambda: near.look(calls.SIGNALS), CALLS)),
            ),
            Row(what="memory of a worker (RSS)", values=[memory_mb(pid)], unit="MB", budget=22),
            Row(what="memory of a worker (own)", values=[memory_mb(pid, "RssAnon")], unit="MB"),
            await _crashes(far, root, rounds),
            await _hang(far, near, root),
        ]


async def _start(far: Source) -> float:
    if (pid := _pid(far)) is not None:
        os.kill(pid, signal.SIGKILL)
        while _pid(far) is not None:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
    return (await _each(lambda: far.look(calls.SIGNALS), 1))[0]


async def _crashes(far: Source, root: Path, rounds: int) -> Row:
    """From the end of the process by a signal to the error at who waits for an answer."""
    order(root, edits="sleep 60")
    found = []
    for _ in range(rounds):
        await read_again(far)
        waiting = asyncio.create_task(far.work(calls.EDITS, (grant(),), ()))
        await asyncio.sleep(0.2)
        pid = _pid(far)
        assert pid is not None
        begun = time.perf_counter()
        os.kill(pid, signal.SIGSEGV)
        await asyncio.gather(waiting, return_exceptions=True)
        found.append((time.perf_counter() - begun) * 1000)
    order(root, edits="")
    return Row(what="crash of a worker to the error", values=found, budget=3.0)


async def _hang(far: Source, near: Source, root: Path) -> Row:
    """Calls of another vendor while one hangs, is killed and is replaced."""
    await read_again(far)
    calm = await _each(lambda: near.look(calls.SIGNALS), CALLS)
    order(root, discover="hang")
    far.lanes.scale = HANG_SCALE
    hanging = asyncio.create_task(far.read())
    found: list[float] = []
    while not hanging.done():
        found += await _each(lambda: near.look(calls.SIGNALS), LOOKS)
        await asyncio.sleep(0.005)
    far.lanes.scale = 1.0
    order(root, discover="")
    return Row(
        what="call of another vendor while a worker hangs and is killed",
        values=found,
        budget=5.0,
        judge=Judge.P99,
        beside=Beside("before", calm),
    )


async def _each(ask: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """How many milliseconds each of so many calls takes."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        await ask()
        found.append((time.perf_counter() - begun) * 1000)
    return found


def _pid(source: Source) -> int | None:
    asked = source._asked  # noqa: SLF001 - nobody else asks for the number
    assert isinstance(asked, Remote)
    return asked.pid


@asynccontextmanager
async def _asked(vendor: Acme | Isolated, root: Path) -> AsyncIterator[Source]:
    source = Source(vendor, RealHost(str(root)), 1.0, RealClock())
    try:
        yield source
    finally:
        source.close()
