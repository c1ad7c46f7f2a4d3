"""What an agent takes that has nothing to do: memory and time of a core."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from benchmarks.cluster import cluster
from benchmarks.node import NVIDIA, SIM, Place, environment, first_list, place, serving, until
from benchmarks.rows import Beside, Row
from benchmarks.usage import memory_mb, ran, spent, usage

SETTLE_S = 5.0
IDLE_S = 20.0
GRPC = "import grpc, time; print(flush=True); time.sleep(60)"
WHAT = "8 nvidia + 8 sim"
CLAIMED = "8 nvidia + 8 sim in claims"
POLICY = "offers: [{name: claims, select: {vendor: sim}, through: dra}, {name: rest}]"
LOOKS_PER_S = 20
"""A thread that runs so often waits in a simulated library: a real one would sleep there."""


def measure(_rounds: int) -> Iterator[Row]:
    """Two agents, each looked at for 20 s."""
    with place(nvidia=8, sim=8) as here:
        yield from asyncio.run(_of_kubelet(here))
    with place(POLICY, nvidia=8, sim=8) as here:
        yield from asyncio.run(_of_both(here))


async def _of_kubelet(here: Place) -> tuple[Row, ...]:
    async with serving(here) as (_, running):
        return await _looked_at(running.pid, WHAT, most_mb=45)


async def _of_both(here: Place) -> tuple[Row, ...]:
    """Both backends, the metrics, and the way to an API server."""
    async with _claiming(here) as pid:
        return await _looked_at(pid, CLAIMED, most_mb=50)


@asynccontextmanager
async def _claiming(here: Place) -> AsyncIterator[int]:
    async with cluster(here) as node:
        driver = node.ours(devices=here.resources[SIM])
        async with node.running(driver) as running:
            devices = here.resources[NVIDIA]
            await until(lambda: first_list(node.kubelet, NVIDIA, devices))
            yield running.process.pid


async def _looked_at(pid: int, what: str, *, most_mb: float) -> tuple[Row, ...]:
    await asyncio.sleep(SETTLE_S)
    before, begun = ran(pid), time.monotonic()
    await asyncio.sleep(IDLE_S)
    threads, took_s = spent(before, ran(pid)), time.monotonic() - begun
    all_, looking = (
        100 / took_s * sum(one.seconds for one in threads.values() if one.times / took_s >= least)
        for least in (0, LOOKS_PER_S)
    )
    return (
        Row(
            what=f"idle memory (RSS), {what}",
            values=[memory_mb(pid)],
            unit="MB",
            budget=most_mb,
            beside=Beside("python -c 'import grpc'", [_grpc_mb()]),
        ),
        Row(
            what=f"idle memory (anonymous), {what}",
            values=[memory_mb(pid, "RssAnon")],
            unit="MB",
            note=str(usage(pid)),
        ),
        Row(
            what=f"idle CPU, {what}",
            values=[all_ - looking],
            unit="% core",
            budget=0.5,
            note=f"without {looking:.2f} % of simulated libraries",
        ),
    )


def _grpc_mb() -> float:
    words = [sys.executable, "-c", GRPC]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment()) as running:
        assert running.stdout is not None
        running.stdout.readline()
        found = memory_mb(running.pid)
        running.kill()
    return found
