"""The process of one client, which has loaded nothing else: what it takes, as JSON.

Not here: the server that it asks.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable

from accelkit.backends.kube import connect
from accelkit.core.kube import CLASSES, SLICES, KubePort, Resource
from accelkit.core.policy import Kube, KubeClient
from benchmarks.usage import memory_mb, ran, spent

CALLS = 300
SETTLE_S = 1.0
IDLE_S = 5.0
BEAT_S = 0.001


async def measured(client: KubeClient, config: str) -> dict[str, list[float]]:
    """Milliseconds, megabytes and percent of a core, by what they are of."""
    before = memory_mb(os.getpid())
    kube = connect(Kube(client=client, config=config))
    assert kube is not None
    found = {"first": [await _took(kube.version())]}
    found["memory"] = [memory_mb(os.getpid()) - before]
    found["get"] = [await _took(kube.get(SLICES, "slice-000")) for _ in range(CALLS)]
    gaps = [0.0]
    beating = asyncio.create_task(_beat(gaps))
    found["list"] = [await _took(kube.list(SLICES))]
    beating.cancel()
    found["held"] = [max(gaps)]
    found["idle"] = [await _idle(kube)]
    await kube.close()
    return found


async def _took(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return (time.perf_counter() - begun) * 1000


async def _beat(gaps: list[float]) -> None:
    """Note how much later than asked the loop comes back."""
    while True:
        gaps.append(await _took(asyncio.sleep(BEAT_S)) - BEAT_S * 1000)


async def _idle(kube: KubePort) -> float:
    """Percent of a core while two watches have nothing to tell."""
    watching = [asyncio.create_task(_watch(kube, kind)) for kind in (SLICES, CLASSES)]
    await asyncio.sleep(SETTLE_S)
    before, begun = ran(os.getpid()), time.monotonic()
    await asyncio.sleep(IDLE_S)
    threads = spent(before, ran(os.getpid())).values()
    share = sum(one.seconds for one in threads) / (time.monotonic() - begun)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return share * 100


async def _watch(kube: KubePort, resource: Resource) -> None:
    version = (await kube.list(resource)).version
    async for _ in kube.watch(resource, version=version):
        pass


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(KubeClient(sys.argv[1]), sys.argv[2]))))
