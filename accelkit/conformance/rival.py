"""Another device plugin with the same resource name. Not here: what its end does to others."""

import asyncio
from collections.abc import AsyncGenerator

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import Server, bind, dial, fresh_path
from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim


class Rival:
    """Registers *resource* at kubelet.sock, lists one device, and can end."""

    def __init__(self, sim: KubeletSim, resource: str) -> None:
        self._sim = sim
        self._resource = resource
        self._server: Server | None = None
        self.path = fresh_path(sim.plugins_dir, "rival")

    async def register(self) -> None:
        """Serve and register; returns when the kubelet has the list."""
        self._server = await bind(
            self.path,
            [
                services.unary(services.GET_OPTIONS, self._options),
                services.stream(services.LIST_AND_WATCH, self._list),
            ],
        )
        request = dp.RegisterRequest(
            version="v1beta1", endpoint=self.path.name, resource_name=self._resource
        )
        async with dial(self._sim.socket) as channel:
            await services.call(channel, services.REGISTER, request)
        await self._sim.wait_for(lambda: self._sim.seen(Listed, endpoint=str(self.path)))

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()

    async def _options(self, _: dp.Empty) -> dp.DevicePluginOptions:
        return dp.DevicePluginOptions()

    async def _list(self, _: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        yield dp.ListAndWatchResponse(devices=[dp.Device(ID="rival", health="Healthy")])
        await asyncio.Event().wait()
