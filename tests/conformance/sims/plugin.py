"""A device plugin as small as it can be, which does exactly what a test tells it to."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp, registration as reg
from accelkit.backends.wire.serve import Server, bind, dial, fresh_path
from accelkit.conformance.sims.kubelet import KubeletSim

RESOURCE = "acme.test/gpu"


def device(ident: str, health: str = "Healthy", nodes: Iterable[int] = ()) -> dp.Device:
    topology = dp.TopologyInfo(nodes=[dp.NUMANode(ID=node) for node in nodes])
    return dp.Device(ID=ident, health=health, topology=topology if topology.nodes else None)


def devices(count: int, health: str = "Healthy") -> list[dp.Device]:
    return [device(f"d{number}", health) for number in range(count)]


class Plugin:
    """Serves at one socket; every call is kept, every answer can be changed."""

    def __init__(
        self,
        path: Path,
        listed: Sequence[dp.Device] = (),
        *,
        resource: str = RESOURCE,
        options: dp.DevicePluginOptions | None = None,
    ) -> None:
        self.path = path
        self.resource = resource
        self.options = options or dp.DevicePluginOptions()
        self.info = reg.PluginInfo(
            type="DevicePlugin", name=resource, supported_versions=["v1beta1"]
        )
        self.prefer: Sequence[str] = ()
        self.failure: Exception | None = None
        self.empty = False
        self.hold: dict[str, asyncio.Event] = {}
        self.calls: list[str] = []
        self.told: list[reg.RegistrationStatus] = []
        self._lists = [list(listed)]
        self._ended = False
        self._news = asyncio.Condition()
        self._server: Server | None = None

    async def serve(self) -> "Plugin":
        self._server = await bind(
            self.path,
            [
                services.unary(services.GET_OPTIONS, self._options),
                services.stream(services.LIST_AND_WATCH, self._list),
                services.unary(services.GET_PREFERRED, self._preferred),
                services.unary(services.ALLOCATE, self._allocate),
                services.unary(services.PRE_START, self._pre_start),
                services.unary(services.GET_INFO, self._info),
                services.unary(services.NOTIFY, self._notify),
            ],
        )
        return self

    async def send(self, listed: Sequence[dp.Device]) -> None:
        async with self._news:
            self._lists.append(list(listed))
            self._news.notify_all()

    async def end_stream(self) -> None:
        async with self._news:
            self._ended = True
            self._news.notify_all()

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.hold:
            await self.hold[name].wait()

    async def _options(self, _: dp.Empty) -> dp.DevicePluginOptions:
        await self._called("options")
        return self.options

    async def _list(self, _: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        self.calls.append("list")
        sent = len(self._lists) - 1
        while not self._ended:
            yield dp.ListAndWatchResponse(devices=self._lists[sent])
            sent += 1
            async with self._news:
                while not self._ended and sent == len(self._lists):
                    await self._news.wait()

    async def _preferred(self, _: dp.PreferredAllocationRequest) -> dp.PreferredAllocationResponse:
        await self._called("preferred")
        if self.failure:
            raise self.failure
        answer = dp.ContainerPreferredAllocationResponse(deviceIDs=self.prefer)
        return dp.PreferredAllocationResponse(container_responses=[answer])

    async def _allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        await self._called("allocate")
        if self.failure:
            raise self.failure
        if self.empty:
            return dp.AllocateResponse()
        return dp.AllocateResponse(
            container_responses=[
                dp.ContainerAllocateResponse(envs={"IDS": ",".join(sorted(one.devices_ids))})
                for one in request.container_requests
            ]
        )

    async def _pre_start(self, _: dp.PreStartContainerRequest) -> dp.PreStartContainerResponse:
        await self._called("pre-start")
        if self.failure:
            raise self.failure
        return dp.PreStartContainerResponse()

    async def _info(self, _: reg.InfoRequest) -> reg.PluginInfo:
        await self._called("info")
        return self.info

    async def _notify(self, status: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        self.told.append(status)
        return reg.RegistrationStatusResponse()


async def register(sim: KubeletSim, plugin: Plugin, *, endpoint: str = "") -> None:
    """Register at kubelet.sock."""
    request = dp.RegisterRequest(
        version="v1beta1",
        endpoint=endpoint or plugin.path.name,
        resource_name=plugin.resource,
        options=plugin.options,
    )
    async with dial(sim.socket) as channel:
        await services.call(channel, services.REGISTER, request)


def plugin_path(directory: Path, stem: str = "acme") -> Path:
    return fresh_path(directory, stem)
