"""Thousands of claims prepared and released over the socket, and what is left of them."""

import asyncio
from collections.abc import Iterator
from itertools import cycle, islice

from accelkit.core.allocation import ClaimRef
from benchmarks.cluster import Running, cluster
from benchmarks.node import place
from benchmarks.rows import Row
from benchmarks.usage import Usage, usage

DEVICES = 8
CYCLES = 10_000
WARM = 2_000
"""Until caches and allocators are full."""
AT_ONCE = 4
"""So that threads for questions to the API server are there from the beginning."""
REST_S = 2.0
"""Until what follows from claims is done, too."""
LOOKS, LAST = 5, 3
"""The least of the last ones counts: garbage comes and goes, what leaks stays."""
POLICY = "vendors: [{name: sim}]\noffers: [{name: claims, through: dra}]"


def measure(_rounds: int) -> Iterator[Row]:
    """One driver, whatever the rounds."""
    before, *later = asyncio.run(_looks())
    after = min(later[-LAST:], key=lambda one: one.anonymous_mb)
    cycles = f"{CYCLES} claims prepared and released"
    yield Row(
        what=f"memory, {cycles}",
        values=[after.anonymous_mb - before.anonymous_mb],
        unit="MB",
        budget=1,
        note=f"from {before} to {after}",
    )
    for what, grown in (
        ("files", after.files - before.files),
        ("threads", after.threads - before.threads),
    ):
        yield Row(what=f"{what}, {cycles}", values=[grown], unit="", budget=0)


async def _looks() -> list[Usage]:
    """What the driver takes when it is warm, and then again and again."""
    with place(POLICY, sim=DEVICES) as node:
        async with cluster(node) as here:
            driver = here.ours(devices=DEVICES)
            async with here.running(driver) as running:
                claims = here.claims(driver, DEVICES)
                parts = (WARM, *[CYCLES // LOOKS] * LOOKS)
                return [await _look_after(running, claims, part) for part in parts]


async def _look_after(running: Running, claims: list[ClaimRef], cycles: int) -> Usage:
    batches = [claims[first : first + AT_ONCE] for first in range(0, len(claims), AT_ONCE)]
    for batch in islice(cycle(batches), cycles // AT_ONCE):
        await running.prepare(batch)
        await running.unprepare(batch)
    await asyncio.sleep(REST_S)
    return usage(running.process.pid)
