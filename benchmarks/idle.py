"""What an agent takes that has nothing to do: memory, time of a core, threads, files."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.node import environment, place, serving
from benchmarks.rows import Beside, Row

SETTLE_S = 5.0
IDLE_S = 20.0
GRPC = "import grpc, time; print(flush=True); time.sleep(60)"


def measure(rounds: int) -> Iterator[Row]:
    """One agent, looked at for 20 s; *rounds* would only repeat it."""
    del rounds
    with place(nvidia=8, sim=8) as here:

        async def agent() -> Iterator[Row]:
            async with serving(here) as (_, running):
                await asyncio.sleep(SETTLE_S)
                return await _looked_at(running.pid)

        yield from asyncio.run(agent())


async def _looked_at(pid: int) -> Iterator[Row]:
    used, begun = cpu_s(pid), time.monotonic()
    await asyncio.sleep(IDLE_S)
    share = 100 * (cpu_s(pid) - used) / (time.monotonic() - begun)
    what = ", 8 nvidia + 8 sim"
    counts = (
        f"{len(os.listdir(f'/proc/{pid}/task'))} threads, {len(os.listdir(f'/proc/{pid}/fd'))} fds"  # noqa: PTH208
    )
    beside = Beside("python -c 'import grpc'", [_grpc_mb()])
    return iter(
        (
            Row(what="idle RSS" + what, values=[rss_mb(pid)], unit="MB", budget=45, beside=beside),
            Row(
                what="idle anonymous memory" + what,
                values=[rss_mb(pid, "RssAnon")],
                unit="MB",
                note=counts,
            ),
            Row(what="idle CPU" + what, values=[share], unit="% core", budget=0.5),
        )
    )


def rss_mb(pid: int, key: str = "VmRSS") -> float:
    """Resident memory of a process in MB (1000 kB). Source: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{key}:"))


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has had. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _grpc_mb() -> float:
    words = [sys.executable, "-c", GRPC]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment()) as running:
        assert running.stdout is not None
        running.stdout.readline()
        found = rss_mb(running.pid)
        running.kill()
    return found
