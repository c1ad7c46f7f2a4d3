"""The device plugin that a toy of a DRA driver is as well. Not here: claims."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import attrs
import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import (
    deviceplugin as dp,
    podresources as pr,
    registration as reg,
)
from accelkit.backends.wire.serve import Server, bind, dial, fresh_path
from accelkit.conformance.setups import RESOURCE

LOOK_S = 0.02


class Plug:
    """Lists devices of the resource; all of them are Unhealthy while it is closed.

    Args:
        names: What is listed now.
        healthy: Whether anything may be had.
    """

    def __init__(self, names: Callable[[], list[str]], healthy: Callable[[], bool]) -> None:
        self._names = names
        self._healthy = healthy
        self._server: Server | None = None

    async def open(self, kubelet: Path) -> None:
        if self._server is None:
            path = fresh_path(kubelet / "plugins_registry", "plug")
            self._server = await bind(path, self._handlers())

    async def close(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await server.close()

    def _handlers(self) -> list[services.Handler]:
        return [
            services.unary(services.GET_OPTIONS, self._options),
            services.stream(services.LIST_AND_WATCH, self._follow),
            services.unary(services.ALLOCATE, self._allocate),
            services.unary(services.GET_INFO, self._info),
            services.unary(services.NOTIFY, self._notify),
        ]

    async def _options(self, _: dp.Empty) -> dp.DevicePluginOptions:
        return dp.DevicePluginOptions()

    async def _info(self, _: reg.InfoRequest) -> reg.PluginInfo:
        return reg.PluginInfo(type="DevicePlugin", name=RESOURCE, supported_versions=["v1beta1"])

    async def _notify(self, _: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        return reg.RegistrationStatusResponse()

    async def _follow(self, _: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        sent: list[tuple[str, bool]] | None = None
        while True:
            current = [(name, self._healthy()) for name in self._names()]
            if current != sent:
                sent = current
                yield dp.ListAndWatchResponse(
                    devices=[
                        dp.Device(ID=name, health="Healthy" if good else "Unhealthy")
                        for name, good in current
                    ]
                )
            await asyncio.sleep(LOOK_S)

    async def _allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        return dp.AllocateResponse(
            container_responses=[
                dp.ContainerAllocateResponse(envs={"TOY": ",".join(sorted(one.devices_ids))})
                for one in request.container_requests
            ]
        )


@attrs.frozen
class Holder:
    """Who has something."""

    namespace: str
    pod: str
    container: str
    by_claim: bool


async def _pods(kubelet: Path) -> pr.ListPodResourcesResponse:
    async with dial(kubelet / "pod-resources" / "kubelet.sock") as channel:
        return await services.call(
            channel, services.LIST, pr.ListPodResourcesRequest(), timeout_s=10.0
        )


async def holders(kubelet: Path) -> list[Holder]:
    """Containers that have something."""
    return [
        Holder(pod.namespace, pod.name, container.name, bool(container.dynamic_resources))
        for pod in (await _pods(kubelet)).pod_resources
        for container in pod.containers
        if container.dynamic_resources or container.devices
    ]


async def held_by_pods(kubelet: Path) -> set[str] | None:
    """Devices that pods have by the device plugin; None: it cannot be known now."""
    try:
        answer = await _pods(kubelet)
    except grpc.aio.AioRpcError:
        return None
    return {
        ident
        for pod in answer.pod_resources
        for container in pod.containers
        for devices in container.devices
        if devices.resource_name == RESOURCE
        for ident in devices.device_ids
    }
