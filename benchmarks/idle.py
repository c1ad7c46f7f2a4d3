"""What an agent takes that has nothing to do: memory and time of a core."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.node import environment, place, serving
from benchmarks.rows import Beside, Row
from benchmarks.usage import memory_mb, ran, spent, usage

SETTLE_S = 5.0
IDLE_S = 20.0
GRPC = "import grpc, time; print(flush=True); time.sleep(60)"
WHAT = "8 nvidia + 8 sim"
LOOKS_PER_S = 20
"""A thread that runs so often waits in a simulated library: a real one would sleep there."""


def measure(_rounds: int) -> Iterator[Row]:
    """One agent, looked at for 20 s."""
    with place(nvidia=8, sim=8) as here:

        async def agent() -> tuple[Row, ...]:
            async with serving(here) as (_, running):
                await asyncio.sleep(SETTLE_S)
                return await _looked_at(running.pid)

        yield from asyncio.run(agent())


async def _looked_at(pid: int) -> tuple[Row, ...]:
    before, begun = ran(pid), time.monotonic()
    await asyncio.sleep(IDLE_S)
    threads, took_s = spent(before, ran(pid)), time.monotonic() - begun
    all_, looking = (
        100 / took_s * sum(one.seconds for one in threads.values() if one.times / took_s >= least)
        for least in (0, LOOKS_PER_S)
    )
    return (
        Row(
            what=f"idle memory (RSS), {WHAT}",
            values=[memory_mb(pid)],
            unit="MB",
            budget=45,
            beside=Beside("python -c 'import grpc'", [_grpc_mb()]),
        ),
        Row(
            what=f"idle memory (anonymous), {WHAT}",
            values=[memory_mb(pid, "RssAnon")],
            unit="MB",
            note=str(usage(pid)),
        ),
        Row(
            what=f"idle CPU, {WHAT}",
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
