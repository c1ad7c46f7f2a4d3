"""From exec to sockets that answer, and to the first list; interpreters and imports beside."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.watcher import sockets
from benchmarks.node import (
    LOOK_S,
    PATIENCE_S,
    TIMING,
    Place,
    command,
    environment,
    first_list,
    listed,
    place,
    process,
    until,
)
from benchmarks.rows import Beside, Row, in_turns

BARE = "python -c pass"
GRPC = "python -c 'import grpc'"


def measure(rounds: int) -> Iterator[Row]:
    yield from commands(rounds)
    with place(sim=8) as here:
        yield from starts(here, "8 sim", rounds)
    with place(nvidia=8, sim=8) as here:
        yield from starts(here, "8 nvidia + 8 sim", rounds)


def commands(rounds: int) -> Iterator[Row]:
    measures = {
        BARE: partial(spent, [sys.executable, "-c", "pass"]),
        "import accelkit": partial(spent, [sys.executable, "-c", "import accelkit"]),
        "accelkit --help": partial(spent, command("--help")),
    }
    for once in measures.values():
        once()  # for bytecode and the page cache
    found = in_turns(rounds * 2, measures)
    for name in ("import accelkit", "accelkit --help"):
        yield Row(what=name, values=found[name], budget=150, beside=Beside(BARE, found[BARE]))


def spent(words: list[str]) -> float:
    """Milliseconds from exec to the end of *words*."""
    begun = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment())
    return (time.perf_counter() - begun) * 1000


def starts(here: Place, title: str, rounds: int) -> Iterator[Row]:
    found: dict[str, list[float]] = {"probes": [], "sockets": [], "list": []}

    def start() -> float:
        for name, took in asyncio.run(started(here)).items():
            found[name].append(took)
        return found["list"][-1]

    start()  # for bytecode
    for values in found.values():
        values.clear()
    grpc = partial(spent, [sys.executable, "-c", "import grpc"])
    beside = Beside(GRPC, in_turns(rounds, {"agent": start, "grpc": grpc})["grpc"])
    yield Row(what=f"exec → probes answer, {title}", values=found["probes"], beside=beside)
    yield Row(
        what=f"exec → all sockets serve, {title}",
        values=found["sockets"],
        budget=300,
        beside=beside,
    )
    yield Row(what=f"exec → first list, {title}", values=found["list"], budget=600, beside=beside)


async def started(here: Place) -> dict[str, float]:
    """Milliseconds until each came to be, of one agent."""
    async with KubeletSim(here.root / "kubelet", timing=TIMING) as kubelet:
        begun = time.monotonic()
        with process(here.agent, here.root / "agent.log"):
            port = asyncio.create_task(answering(("127.0.0.1", here.port)))
            own = asyncio.create_task(answering(here.agent_socket))
            bound = asyncio.create_task(
                until(lambda: len(plugin_sockets(kubelet)) >= len(here.resources))
            )
            await until(lambda: listed(kubelet, here))
            probes = max(await port, await own)
            times = {
                "probes": probes,
                "sockets": max(probes, await bound),
                "list": max(
                    first_list(kubelet, name, count) or 0.0
                    for name, count in here.resources.items()
                ),
            }
        return {name: (at - begun) * 1000 for name, at in times.items()}


def plugin_sockets(kubelet: KubeletSim) -> set[Path]:
    there = {*sockets(kubelet.registry_dir), *sockets(kubelet.plugins_dir)}
    return there - {kubelet.socket}


async def answering(address: tuple[str, int] | Path) -> float:
    """When a probe was first answered, on the monotonic clock."""
    async with asyncio.timeout(PATIENCE_S):
        while not await answers(address):  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(LOOK_S)
    return time.monotonic()


async def answers(address: tuple[str, int] | Path) -> bool:
    try:
        if isinstance(address, Path):
            reader, writer = await asyncio.open_unix_connection(address)
        else:
            reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return False
    try:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        return b" 200 " in await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()
