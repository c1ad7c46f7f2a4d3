"""Allocate over a real socket, beside an empty answer and a plugin in Go in the same run."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import attrs
import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import bind, dial
from accelkit.backends.wire.services import Handler
from accelkit.conformance.sims.events import Listed
from benchmarks.golang import programs
from benchmarks.node import NVIDIA, Place, endpoint, place, process, serving, until
from benchmarks.rows import Beside, Judge, Row

CALLS = 300
"""In a round: a 99th percentile needs hundreds."""
SCRAPE_S = 0.1
MOST_EMPTY = 1.3
"""Times an empty answer: what an answer of ours may take."""


@attrs.frozen
class Case:
    devices: int
    callers: int = 1
    scraped: bool = False

    @property
    def what(self) -> str:
        callers = f"{self.callers} caller{'s' * (self.callers > 1)}"
        return f"Allocate {self.devices}, {callers}" + ", while scraped" * self.scraped


CASES = (Case(1), Case(2), Case(8), Case(1, 4), Case(2, scraped=True), Case(2, 4, scraped=True))


def measure(rounds: int) -> Iterator[Row]:
    with place(nvidia=8) as here:
        ours, empty, go = asyncio.run(_all(here, rounds))
    for case in CASES:
        yield Row(
            what=case.what,
            values=ours[case],
            budget=3,
            judge=Judge.P99,
            beside=Beside("empty answer", empty[case]),
        )
    first = CASES[0]
    yield Row(
        what=first.what,
        values=ours[first],
        budget=MOST_EMPTY * median(empty[first]),
        beside=Beside("empty answer", empty[first]),
    )
    if go[first]:
        yield Row(what=first.what, values=ours[first], beside=Beside("Go", go[first]))


Times = dict[Case, list[float]]


async def _all(here: Place, rounds: int) -> tuple[Times, Times, Times]:
    """Ours, empty answers, and those of Go where that is to be had."""
    ours: Times = {case: [] for case in CASES}
    empty: Times = {case: [] for case in CASES}
    go: Times = {case: [] for case in CASES}
    async with AsyncExitStack() as stack:
        kubelet, _ = await stack.enter_async_context(serving(here))
        ids = [device.id for device in kubelet.seen(Listed, resource=NVIDIA)[-1].devices]
        agent = await stack.enter_async_context(dial(endpoint(kubelet, NVIDIA)))
        other = await stack.enter_async_context(dial(await stack.enter_async_context(_empty(here))))
        asked: list[tuple[grpc.aio.Channel, Times]] = [(agent, ours), (other, empty)]
        if (folder := programs()) is not None:
            plugin = await stack.enter_async_context(_plugin(here, folder))
            asked.append((await stack.enter_async_context(dial(plugin)), go))
        for channel, _ in asked:
            await _calls(channel, ids, Case(8))  # the first calls are slower
        for number in range(rounds):
            turns = asked[:: -1 if number % 2 else 1]
            for case in CASES:
                async with _scraping(here, wanted=case.scraped):
                    for channel, times in turns:
                        times[case] += await _calls(channel, ids, case)
    return ours, empty, go


async def _calls(channel: grpc.aio.Channel, ids: Sequence[str], case: Case) -> list[float]:
    """Milliseconds of each call, *case.callers* at a time."""
    found: list[float] = []

    async def calls(first: int) -> None:
        some = cycle(ids)
        list(islice(some, first))
        for _ in range(CALLS // case.callers):
            chosen = list(islice(some, case.devices))
            request = dp.AllocateRequest(
                container_requests=[dp.ContainerAllocateRequest(devices_ids=chosen)]
            )
            begun = time.perf_counter()
            await services.call(channel, services.ALLOCATE, request)
            found.append((time.perf_counter() - begun) * 1000)

    async with asyncio.TaskGroup() as group:
        for first in range(case.callers):
            group.create_task(calls(first))
    return found


@asynccontextmanager
async def _scraping(here: Place, *, wanted: bool) -> AsyncIterator[None]:
    """Another process reads the metrics again and again."""
    if not wanted:
        yield
        return
    url = f"http://127.0.0.1:{here.port}/metrics"
    code = (
        "import time, urllib.request as u\n"
        f"while True: u.urlopen({url!r}).read(); time.sleep({SCRAPE_S})"
    )
    with process([sys.executable, "-c", code], here.root / "scrape.log"):
        await asyncio.sleep(0.3)  # it has to be imported
        yield


@asynccontextmanager
async def _empty(here: Place) -> AsyncIterator[Path]:
    """Another process answers Allocate with nothing."""
    path = here.root / "empty.sock"
    words = [sys.executable, "-m", "benchmarks.allocate", str(path)]
    with process(words, here.root / "empty.log"):
        await until(path.exists)
        yield path


@asynccontextmanager
async def _plugin(here: Place, folder: Path) -> AsyncIterator[Path]:
    """A plugin in Go that knows no device, and answers for any."""
    path = here.root / "go.sock"
    with process([str(folder / "plugin"), f"-socket={path}"], here.root / "go.log"):
        await until(path.exists)
        yield path


async def _answer(path: Path) -> None:
    async def nothing(_: bytes) -> bytes:
        return b""

    async with await bind(path, [Handler(services.ALLOCATE.path, one=nothing)]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_answer(Path(sys.argv[1])))
