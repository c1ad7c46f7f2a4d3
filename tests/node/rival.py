"""Somebody else's device plugin: ``python -m tests.node.rival RESOURCE ID…``.

It registers once at kubelet.sock, lists its ids as healthy and hands out a variable.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import bind, dial, fresh_path

FOLDER = Path("/var/lib/kubelet/device-plugins")
MARK = "RIVAL"


async def _options(_: dp.Empty) -> dp.DevicePluginOptions:
    return dp.DevicePluginOptions()


async def _allocate(request: dp.AllocateRequest) -> dp.AllocateResponse:
    answers = [dp.ContainerAllocateResponse(envs={MARK: "1"}) for _ in request.container_requests]
    return dp.AllocateResponse(container_responses=answers)


async def main(resource: str, *ids: str) -> None:
    """Serve until killed."""

    async def listed(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        devices = [dp.Device(ID=ident, health="Healthy") for ident in ids]
        yield dp.ListAndWatchResponse(devices=devices)
        await asyncio.Event().wait()

    path = fresh_path(FOLDER, "rival")
    handlers = [
        services.unary(services.GET_OPTIONS, _options),
        services.stream(services.LIST_AND_WATCH, listed),
        services.unary(services.ALLOCATE, _allocate),
    ]
    request = dp.RegisterRequest(version="v1beta1", endpoint=path.name, resource_name=resource)
    async with await bind(path, handlers), dial(FOLDER / "kubelet.sock") as channel:
        await services.call(channel, services.REGISTER, request, timeout_s=20)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
