"""Claims over sockets, as the kubelet asks for them: our driver beside one on the Go helper.

Both are processes, called in turns by the same client, and read claims from the same API server.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median

import attrs

from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import CLAIMS
from benchmarks.cluster import USER, Cluster, Driver, Running, cluster
from benchmarks.golang import programs
from benchmarks.node import place
from benchmarks.rows import Beside, Judge, Row
from benchmarks.usage import cpu_ms

CALLS = 100
"""In a round, one after the other; a 99th percentile needs hundreds."""
DEVICES, MANY = 8, 100
"""Of a node, and of one whose claims come all at once."""
HALF = 50
POLICY = "vendors: [{name: sim}]\noffers: [{name: claims, through: dra}]"

Read = Callable[[ClaimRef], Awaitable[None]]


@attrs.frozen
class Asked:
    """A driver, claims that have its devices, and the milliseconds of calls by what was asked."""

    running: Running
    claims: Sequence[ClaimRef]
    times: dict[str, list[float]] = attrs.field(factory=dict)

    def note(self, what: str, took: float) -> None:
        self.times.setdefault(what, []).append(took)


def measure(rounds: int) -> Iterator[Row]:
    yield from asyncio.run(_one_by_one(rounds))
    yield from asyncio.run(_all_at_once(rounds))
    if programs() is not None:
        yield asyncio.run(_with_limits())


async def _one_by_one(rounds: int) -> list[Row]:
    async with _drivers(DEVICES) as (here, asked), _reading(here) as read:
        for one in asked:
            await _cycles(one, 2 * DEVICES, read)  # the first calls are slower
            one.times.clear()
        for number in range(rounds):
            for one in asked[:: -1 if number % 2 else 1]:
                await _cycles(one, CALLS, read)
    return [*_rows(*asked)]


async def _cycles(one: Asked, calls: int, read: Read) -> None:
    """Prepare and give back one claim after the other."""
    before = cpu_ms(one.running.process.pid)
    for number in range(calls):
        claim = one.claims[number % len(one.claims)]
        begun = time.perf_counter()
        await read(claim)
        one.note("read", (time.perf_counter() - begun) * 1000)
        one.note("prepare", await one.running.prepare([claim]))
        one.note("again", await one.running.prepare([claim]))
        one.note("unprepare", await one.running.unprepare([claim]))
    one.note("cpu", (cpu_ms(one.running.process.pid) - before) / calls)


def _rows(ours: Asked, go: Asked | None = None) -> Iterator[Row]:
    times = ours.times
    api = median(times["read"])
    yield Row(what="a claim read, by nobody else", values=times["read"])
    yield Row(
        what="prepare, its claim read",
        values=times["prepare"],
        budget=None if go is None else median(go.times["prepare"]),
        beside=_beside(go, "prepare"),
    )
    for judge, limit in ((Judge.MEDIAN, 2), (Judge.P99, 5)):
        yield Row(
            what="… but for the API's own time",
            values=[took - api for took in times["prepare"]],
            budget=limit,
            judge=judge,
            note=f"without {api:.2f}",
        )
    yield Row(what="prepare again", values=times["again"], budget=1, beside=_beside(go, "again"))
    yield Row(
        what="unprepare",
        values=times["unprepare"],
        budget=3,
        judge=Judge.P99,
        beside=_beside(go, "unprepare"),
    )
    yield Row(
        what="CPU of a claim, from prepare to unprepare",
        values=times["cpu"],
        beside=_beside(go, "cpu"),
    )


async def _all_at_once(rounds: int) -> list[Row]:
    async with _drivers(MANY) as (_, asked):
        for number in range(rounds):
            for one in asked[:: -1 if number % 2 else 1]:
                for count in (HALF, MANY):
                    await _together(one, count)
    ours, go = asked[0], asked[1] if asked[1:] else None
    half = f"prepare {HALF} claims in one call"
    limit = None if go is None else median(go.times[half]) / 2
    beside = {what: _beside(go, what) for what in ours.times}
    budgets = {half: limit, f"prepare {MANY} claims in one call": 150.0}
    return [
        Row(what=what, values=values, budget=budgets.get(what), beside=beside[what])
        for what, values in ours.times.items()
    ]


async def _together(one: Asked, count: int) -> None:
    claims = one.claims[:count]
    one.note(f"prepare {count} claims in one call", await one.running.prepare(claims))
    one.note(f"unprepare {count} claims in one call", await one.running.unprepare(claims))


async def _with_limits() -> Row:
    """The helper as it comes: its client waits for itself."""
    folder = programs()
    assert folder is not None
    with place(POLICY, sim=MANY) as node:
        async with cluster(node) as here:
            driver = here.helper(folder, devices=MANY, unlimited=False)
            async with here.running(driver) as running:
                took = await running.prepare(here.claims(driver, HALF))
    return Row(what=f"Go with its limits: {HALF} claims in one call", values=[took])


@asynccontextmanager
async def _drivers(devices: int) -> AsyncIterator[tuple[Cluster, list[Asked]]]:
    """Our driver, and the one in Go where that is to be had, on one node."""
    async with AsyncExitStack() as stack:
        node = stack.enter_context(place(POLICY, sim=devices))
        here = await stack.enter_async_context(cluster(node))
        drivers: list[Driver] = [here.ours(devices=devices)]
        if (folder := programs()) is not None:
            drivers.append(here.helper(folder, devices=devices))
        asked = []
        for driver in drivers:
            running = await stack.enter_async_context(here.running(driver))
            asked.append(Asked(running, here.claims(driver, devices)))
        yield here, asked


@asynccontextmanager
async def _reading(here: Cluster) -> AsyncIterator[Read]:
    """Reads claims over one connection, and does nothing with them: the API's own time."""
    assert here.api.tls is not None
    trust = ssl.create_default_context(cafile=here.api.tls.authority)
    reader, writer = await asyncio.open_connection("127.0.0.1", here.api.port, ssl=trust)

    async def read(claim: ClaimRef) -> None:
        writer.write(
            f"GET {CLAIMS.path(claim.namespace, claim.name)} HTTP/1.1\r\nHost: bench\r\n"
            f"Accept: application/json\r\nAuthorization: Bearer {USER.token}\r\n\r\n".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert " 200 " in head, head
        length = next(ln for ln in head.splitlines() if ln.startswith("content-length:"))
        await reader.readexactly(int(length.partition(":")[2]))

    try:
        yield read
    finally:
        writer.close()


def _beside(go: Asked | None, what: str) -> Beside | None:
    return None if go is None else Beside("Go", go.times[what])
