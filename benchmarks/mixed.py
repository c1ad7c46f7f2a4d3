"""An agent for three makers, two of them with processes of their own, and what faults of one cost.

What Allocate and Prepare take for the devices of one maker, while the library of another hangs or
ends its process.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.events import Listed
from accelkit.testing.faults import Fault
from accelkit.testing.hosts import LOCK
from accelkit.testing.record import NAME
from accelkit.testing.simulate import set_faults
from benchmarks.cluster import Running, cluster
from benchmarks.node import AMD, NVIDIA, Place, endpoint, first_list, place, until
from benchmarks.rows import Beside, Judge, Row
from benchmarks.usage import cpu_ms, memory_mb

DRIVER = "tpu.accelkit.dev"
POLICY = """\
vendors:
- {name: nvidia, isolation: process, deadlineScale: 0.2}
- {name: amd, isolation: process}
- {name: tpu}
offers:
- {name: claims, select: {vendor: tpu}, through: dra}
- {name: names}
"""
TPUS = 4
SETTLE_S = 5.0
WHAT = "8 nvidia + 8 amd + 4 tpu"
NO_LIBRARY = "nvidia without its library"
CALLS, CLAIMS = 60, 4
ALLOCATE, PREPARE = "Allocate", "Prepare"
MOST_MB, MOST_WORKER_MB, MOST_MS = 55.0, 22.0, 5.0
LIBRARY = "nvmlDeviceGetCount_v2"
STORM_S = 8.0
"""So long a fault lasts: a process that hangs is killed after 2 s, and a second later replaced."""
FAULTS = {
    "hangs": Fault(call=LIBRARY, times=1_000_000, do="hang 10m"),
    "crashes": Fault(call=LIBRARY, times=1_000_000, do="crash"),
}


@attrs.frozen
class Node:
    """An agent of three makers that serves all it has."""

    here: Place
    running: Running
    amd: grpc.aio.Channel
    ids: Sequence[str]
    prepare: Callable[[], Awaitable[list[float]]]

    async def allocate(self) -> list[float]:
        """Milliseconds of each of some calls for devices of AMD."""
        found = []
        for number in range(CALLS):
            chosen = self.ids[number % len(self.ids)]
            container = dp.ContainerAllocateRequest(devices_ids=[chosen])
            begun = time.perf_counter()
            await services.call(
                self.amd, services.ALLOCATE, dp.AllocateRequest(container_requests=[container])
            )
            found.append((time.perf_counter() - begun) * 1000)
        return found


def measure(_rounds: int) -> Iterator[Row]:
    idle: list[Row] = []
    for settle_s in (0.0, SETTLE_S):  # the first is for bytecode: who compiles keeps more memory
        with place(POLICY, nodes=os.geteuid() == 0, nvidia=8, amd=8, tpu=4) as here:
            for name in (NAME, LOCK):
                (here.machine / name).unlink()
            idle = asyncio.run(_idle(here, settle_s))
    yield from idle
    with place(POLICY, nvidia=8, amd=8, tpu=4) as here:
        yield from asyncio.run(_measured(here))


async def _idle(here: Place, settle_s: float) -> list[Row]:
    """On the files of a machine as those of a real host: the simulation takes memory, too."""
    async with _serving(here, AMD) as node:
        await asyncio.sleep(settle_s)
        return list(_memory(node.running.process.pid))


async def _measured(here: Place) -> list[Row]:
    async with _serving(here, NVIDIA, AMD) as node:
        await asyncio.sleep(SETTLE_S)
        rows = []
        calm, idle = await _asked(node), await _load(node)
        for what, fault in FAULTS.items():
            set_faults(str(here.machine), [fault])
            stormy, load = await _asked(node), await _load(node)
            set_faults(str(here.machine), [])
            rows.append(
                Row(
                    what=f"CPU of the agent while a library {what}",
                    values=[load],
                    unit="ms/s",
                    beside=Beside("before", [idle]),
                )
            )
            for call, values in stormy.items():
                rows.append(
                    Row(
                        what=f"{call}, of others, while a library {what}",
                        values=values,
                        budget=MOST_MS if call == ALLOCATE else None,
                        judge=Judge.P99,
                        beside=Beside("before", calm[call]),
                    )
                )
    return rows


def _memory(pid: int) -> Iterator[Row]:
    workers = [int(word) for word in _children(pid)]
    assert len(workers) == 2, workers
    yield Row(what=f"idle memory (RSS), {WHAT}", values=[memory_mb(pid)], unit="MB", budget=MOST_MB)
    yield Row(
        what="idle memory (RSS), each of 2 workers",
        values=[memory_mb(worker) for worker in workers],
        unit="MB",
        budget=MOST_WORKER_MB,
        judge=Judge.WORST,
    )


def _children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [word for task in tasks for word in task.read_text().split()]


async def _load(node: Node) -> float:
    """What the agent takes of a core by itself, in milliseconds a second."""
    before, begun = cpu_ms(node.running.process.pid), time.monotonic()
    await asyncio.sleep(STORM_S)
    return (cpu_ms(node.running.process.pid) - before) / (time.monotonic() - begun)


async def _asked(node: Node) -> dict[str, list[float]]:
    """What each call took, by what it was."""
    found: dict[str, list[float]] = {ALLOCATE: [], PREPARE: []}
    end = time.monotonic() + STORM_S
    while time.monotonic() < end:
        found[ALLOCATE] += await node.allocate()
        found[PREPARE] += await node.prepare()
        await asyncio.sleep(0.05)
    return found


@asynccontextmanager
async def _serving(here: Place, *resources: str) -> AsyncIterator[Node]:
    async with cluster(here) as made:
        driver = attrs.evolve(made.ours(devices=TPUS), name=DRIVER)
        async with made.running(driver) as running:
            for resource in resources:
                await until(partial(first_list, made.kubelet, resource, here.resources[resource]))
            claims = made.claims(driver, CLAIMS)

            async def prepare() -> list[float]:
                found = [await running.prepare([claim]) for claim in claims]
                await running.unprepare(claims)
                return found

            async with dial(endpoint(made.kubelet, AMD)) as amd:
                ids = [d.id for d in made.kubelet.seen(Listed, resource=AMD)[-1].devices]
                yield Node(here, running, amd, ids, prepare)
