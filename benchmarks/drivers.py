"""Drivers of devices from exec to claims that can be prepared, and what they take then."""

import asyncio
from collections.abc import Iterator

from benchmarks.cluster import SWIFT, cluster
from benchmarks.golang import programs
from benchmarks.node import place
from benchmarks.rows import Beside, Row
from benchmarks.usage import memory_mb

DEVICES = 8
SETTLE_S = 2.0
POLICY = "vendors: [{name: sim}]\noffers: [{name: claims, through: dra}]"

Found = dict[str, dict[str, list[float]]]
"""Values by who and what."""


def measure(rounds: int) -> Iterator[Row]:
    found = asyncio.run(_all(rounds))
    ours, go = found["ours"], found.get("Go", {})
    budgets = {"exec → slices": 500.0}
    for what, values in ours.items():
        yield Row(
            what=f"{what}, {DEVICES} devices",
            values=values,
            unit="MB" if "memory" in what else "ms",
            budget=budgets.get(what),
            beside=Beside("Go", go[what]) if go else None,
        )


async def _all(rounds: int) -> Found:
    """One after the other, so that nobody waits for the other's start."""
    found: Found = {}
    with place(POLICY, sim=DEVICES) as node:
        async with cluster(node, SWIFT) as here:
            drivers = [here.ours(devices=DEVICES)]
            if (folder := programs()) is not None:
                drivers.append(here.helper(folder, devices=DEVICES))
            for number in range(rounds + 1):
                for driver in drivers[:: -1 if number % 2 else 1]:
                    here.forget_slices()
                    async with here.running(driver) as running:
                        await asyncio.sleep(SETTLE_S)
                        memory = memory_mb(running.process.pid)
                    if number:  # the first is for bytecode
                        noted = found.setdefault(driver.what, {})
                        noted.setdefault("exec → registered", []).append(running.registered_ms)
                        noted.setdefault("exec → slices", []).append(running.slices_ms)
                        noted.setdefault("CPU of that", []).append(running.cpu_ms)
                        noted.setdefault("memory (RSS)", []).append(memory)
    return found
