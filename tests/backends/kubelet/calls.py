"""Calls as a kubelet makes them, and as one makes them whose state is old."""

from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.policy import Inject, Offer
from tests.backends.kubelet.world import (
    RESOURCE,
    endpoints,
)

BY_NAME = Offer(name="all", inject=Inject.CDI)


async def ready(sim: KubeletSim, resource: str = RESOURCE) -> None:
    await sim.wait_for(lambda: sim.seen(Listed, resource=resource))


async def asked(sim: KubeletSim, *containers: Sequence[str]) -> dp.AllocateResponse:
    """Allocate as a kubelet whose state is old might: whatever ids, however many containers."""
    request = dp.AllocateRequest(
        container_requests=[dp.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
    )
    async with dial(Path(endpoints(sim)[-1])) as channel:
        return await services.call(channel, services.ALLOCATE, request, timeout_s=5)


async def refused(sim: KubeletSim, *containers: Sequence[str]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asked(sim, *containers)
    return caught.value.code(), caught.value.details() or ""
