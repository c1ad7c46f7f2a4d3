"""From a hint that a device is broken, or well again, to the new list at the kubelet."""

import asyncio
import time
from collections.abc import Iterator

from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.testing.simulate import set_state
from benchmarks.node import NVIDIA, PATIENCE_S, SIM, Place, place, serving
from benchmarks.rows import Judge, Row

UNITS = 8
TIMES = 4
"""In a round, each broken and well again."""
UNDAMPED = "health: {recoverAfter: 0s, flap: {changes: 1000}}\n"
CALM_S = 0.7
"""Between changes: longer than ``read.debounce``, which keeps the looks of a storm apart."""
NOTE = "the simulated library looks every 20 ms"


def measure(rounds: int) -> Iterator[Row]:
    with place(UNDAMPED, nvidia=UNITS, sim=UNITS) as here:
        found = asyncio.run(_all(here, rounds))
    for what, values in found.items():
        yield Row(what=what, values=values, budget=50, note=NOTE, judge=Judge.P99)


async def _all(here: Place, rounds: int) -> dict[str, list[float]]:
    async with serving(here) as (kubelet, _):
        await asyncio.sleep(1.0)  # until the libraries are listened to
        faults = [await took for _ in range(rounds * TIMES) for took in _faults(kubelet, here)]
        xids = [await took for took in _xids(kubelet, here)]
    return {"fault or cure → list, sim": faults, "XID 79 → list, nvidia": xids}


def _faults(kubelet: KubeletSim, here: Place) -> Iterator[asyncio.Task[float]]:
    """A file says that a device is broken, or well again; an event makes the vendor look."""
    first, last = f"accel-{UNITS}", f"accel-{2 * UNITS - 1}"
    for change, healthy in ((f"fault {first} burnt", UNITS - 1), (f"heal {first}", UNITS)):
        hints = (change, f"event {last} look")
        yield asyncio.create_task(_until_listed(kubelet, here, hints, SIM, healthy))


def _xids(kubelet: KubeletSim, here: Place) -> Iterator[asyncio.Task[float]]:
    """Every GPU falls off the bus once: what was heard of it stays until the next boot."""
    for gone in range(UNITS):
        hints = (f"xid gpu-{gone} 79",)
        yield asyncio.create_task(_until_listed(kubelet, here, hints, NVIDIA, UNITS - gone - 1))


async def _until_listed(
    kubelet: KubeletSim, here: Place, hints: tuple[str, ...], resource: str, healthy: int
) -> float:
    """Milliseconds from the last of *hints* to a list with so many *healthy* devices."""
    await asyncio.sleep(CALM_S)
    *quiet, told = (hint.split() for hint in hints)
    for words in quiet:
        await asyncio.to_thread(set_state, str(here.machine), words)
    begun = time.monotonic()
    await asyncio.to_thread(set_state, str(here.machine), told)

    def when() -> float | None:
        last = kubelet.seen(Listed, resource=resource)[-1]
        right = sum(device.healthy for device in last.devices) == healthy
        return last.at if right and last.at >= begun else None

    await kubelet.wait_for(when, PATIENCE_S)
    return ((when() or 0.0) - begun) * 1000
