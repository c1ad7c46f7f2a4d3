"""The kubelet's side of a driver's socket: it finds it, registers it and watches health."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import drahealth, registration as reg
from accelkit.backends.wire.serve import dial
from accelkit.backends.wire.services import Method
from accelkit.conformance.sims import events

WatchHealth = Method[drahealth.NodeWatchResourcesRequest, drahealth.NodeWatchResourcesResponse]


def sockets_in(registry: Path) -> list[Path]:
    """What a kubelet sees there, sorted."""
    return sorted(path for path in registry.iterdir() if not path.name.startswith("."))


async def until(holds: Callable[[], object], patience_s: float = 10.0) -> None:
    """Wait until *holds* is true, however it comes about."""
    await events.until(holds, patience_s, dict)


async def register(path: Path, *, refusal: str = "") -> reg.PluginInfo:
    """Ask who is there and tell it what came of that, as the kubelet does."""
    async with dial(path) as channel:
        info = await services.call(channel, services.GET_INFO, reg.InfoRequest(), timeout_s=5)
        status = reg.RegistrationStatus(plugin_registered=not refusal, error=refusal)
        await services.call(channel, services.NOTIFY, status, timeout_s=5)
    return info


class Stream:
    """What came through one health stream."""

    def __init__(self) -> None:
        self.lists: list[drahealth.NodeWatchResourcesResponse] = []
        self.over = False

    def health(self) -> dict[str, int]:
        """The health of each device in the last list."""
        return {device.device.device_name: device.health for device in self.lists[-1].devices}


@asynccontextmanager
async def watching(
    path: Path, method: WatchHealth = services.WATCH_HEALTH
) -> AsyncGenerator[Stream, None]:
    """A health stream, from its first list on."""
    seen = Stream()
    async with dial(path) as channel:
        reading = asyncio.create_task(_read(channel, method, seen))
        try:
            await until(lambda: seen.lists or seen.over)
            yield seen
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(channel: grpc.aio.Channel, method: WatchHealth, seen: Stream) -> None:
    try:
        async for message in services.watch(channel, method, drahealth.NodeWatchResourcesRequest()):
            seen.lists.append(message)
    finally:
        seen.over = True
