"""A device plugin without a process that keeps every rule; what breaks one overrides a method."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import ClassVar

import grpc

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp, registration as reg
from accelkit.backends.wire.serve import Server, bind, dial, fresh_path
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.footprint import Footprint
from accelkit.conformance.model import Feature
from accelkit.conformance.sims.tasks import do
from accelkit.core.kube import Json
from accelkit.core.model import Device, DeviceId, Locality
from accelkit.core.telemetry import METRICS, MetricType

RESOURCE = "acme.test/npu"
_LOOK_S = 0.01
_HISTOGRAM = "# TYPE accelkit_allocate_seconds histogram"


class Toy:
    """Four devices, two at each NUMA node; found by the plugin watcher."""

    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.RESTART,
            Feature.STOP,
            Feature.BREAK,
            Feature.WITHDRAW,
            Feature.HANG,
            Feature.TOLD,
            Feature.PROBES,
            Feature.NEIGHBOUR,
            Feature.EMPTY,
            Feature.RENEW,
            Feature.PROCESS,
            Feature.DEADLY,
        }
    )
    watcher = True
    preferred = True
    count = 4
    after_cut_s = 0.0
    bounds: ClassVar[tuple[str, ...]] = ("0.001", "0.1", "60", "+Inf")
    """Of latencies, in seconds."""

    def __init__(self, cdi: Path) -> None:
        self.cdi = cdi
        self.sick: set[str] = set()
        self.hung = False
        self.disturbed = False
        self.endangered = False
        self.gone = False
        self.used: set[str] = set()
        self.starts = 0
        self.streams = 0
        self.had_stream = False
        self.ready = False
        self.ending = False
        self._version = 0
        self._news: asyncio.Condition | None = None
        self._task: asyncio.Task[None] | None = None
        self.kubelet = Path()

    # What the suite does to it.

    def start(self, kubelet: Path) -> None:
        self.kubelet = kubelet
        self.starts += 1
        (self.cdi / "acme.json").write_text(
            json.dumps({"kind": "acme.test/npu", "devices": [{"name": i} for i in self.ids()]})
        )
        do(self._begin())

    def said(self) -> str:
        return ""

    def ended(self) -> bool:
        return False

    async def _begin(self) -> None:
        self.ending = False
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self.serve())

    def kill(self) -> None:
        if self._task is not None:
            do(self._end(self._task))
            self._task = None

    async def _end(self, task: "asyncio.Task[None]") -> None:
        # Said twice: up to Python 3.11 asyncio.wait_for, which gRPC uses to stop a server,
        # swallows a cancellation that comes with its result (python/cpython#86296).
        self.ending = True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def stop(self) -> None:
        self.kill()

    def restart(self) -> None:
        self.stop()
        self.start(self.kubelet)

    def break_device(self) -> None:
        do(self._change({self.ids()[1]}))

    def mend_device(self) -> None:
        do(self._change(set()))

    def withdraw_device(self) -> None:
        self.break_device()

    async def _change(self, sick: set[str]) -> None:
        assert self._news is not None
        async with self._news:
            self.sick = sick
            self._version += 1
            self._news.notify_all()

    def withdraw_all(self) -> None:
        self.gone = True
        do(self._change(set()))

    def bring_back(self) -> None:
        self.gone = False
        do(self._change(set()))

    def renew(self, *, valid: bool) -> None:
        """There is nothing to read."""

    def afresh(self) -> None:
        """There is nothing to load."""

    def footprint(self) -> Footprint:
        return Footprint(memory=1 << 20, files=10, threads=1, cpu_s=0.1)

    def endanger(self) -> None:
        self.endangered = True

    def logged(self) -> list[Json]:
        return []

    def hang(self) -> None:
        self.hung = True

    def disturb_neighbour(self) -> None:
        self.disturbed = True

    def devices(self) -> tuple[Device, ...]:
        return tuple(
            Device(
                id=DeviceId(vendor="acme", name=f"npu-{n}"),
                kind="npu",
                locality=Locality(numa_node=n % 2),
            )
            for n in range(self.count)
        )

    def probe(self, path: str) -> tuple[int, str]:
        if path == "/metrics":
            return 200, self.metrics()
        return (200, "ok") if path == "/livez" or self.ready else (503, "not registered")

    def metrics(self) -> str:
        lines = []
        for metric in METRICS:
            if metric.type in {MetricType.COUNTER, MetricType.GAUGE}:
                labels = "".join(f'{name}="x",' for name in metric.labels).rstrip(",")
                lines += [
                    f"# HELP {metric.name} {metric.help}",
                    f"# TYPE {metric.name} {metric.type}",
                    f"{metric.name}{f'{{{labels}}}' if labels else ''} 0",
                ]
        lines += ["# HELP accelkit_device_info Devices.", "# TYPE accelkit_device_info gauge"]
        for ident in self.measured():
            lines.append(f'accelkit_device_info{{device="acme/{ident}"}} 1')
        lines += [f'accelkit_device_holder{{device="acme/{ident}"}} 1' for ident in self.used]
        lines += ["# HELP accelkit_allocate_seconds Calls.", _HISTOGRAM]
        for bound in self.bounds:
            lines.append(f'accelkit_allocate_seconds_bucket{{le="{bound}"}} 1')
        return "\n".join((*lines, ""))

    def measured(self) -> list[str]:
        """Devices that metrics tell of."""
        return self.ids()

    # What it is.

    def ids(self) -> list[str]:
        return [f"npu-{n}" for n in range(self.count)]

    def nodes(self, number: int) -> Sequence[int]:
        return (number % 2,)

    def listed(self) -> list[dp.Device]:
        return [
            dp.Device(
                ID=ident,
                health="Unhealthy" if ident in self.sick else "Healthy",
                topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=n) for n in self.nodes(number)]),
            )
            for number, ident in enumerate([] if self.gone else self.ids())
        ]

    # Its life.

    def path(self) -> Path:
        return fresh_path(self.kubelet / self.folder, "acme")

    @property
    def folder(self) -> str:
        return "plugins_registry" if self.watcher else "device-plugins"

    async def serve(self) -> None:
        """Serve at one socket after another: a new one when that is gone or a stream ended."""
        while not self.ending:
            while not (self.kubelet / self.folder).is_dir():  # noqa: ASYNC110 - nobody tells it
                await asyncio.sleep(_LOOK_S)
            self.had_stream = False
            server = await self.bound(self.path())
            try:
                while not self.lost(server):  # noqa: ASYNC110 - nobody tells it
                    await asyncio.sleep(_LOOK_S)
            finally:
                self.ready = False
                await self.unbind(server)
            await asyncio.sleep(self.after_cut_s)

    async def bound(self, path: Path) -> Server:
        server = await bind(path, self.handlers())
        if not self.watcher:
            await self.register(path)
        return server

    async def unbind(self, server: Server) -> None:
        await server.close()

    def lost(self, server: Server) -> bool:
        return not server.in_place() or self.cut_off()

    def cut_off(self) -> bool:
        return self.had_stream and not self.streams

    async def register(self, path: Path) -> None:
        request = dp.RegisterRequest(
            version="v1beta1", endpoint=path.name, resource_name=RESOURCE, options=self.options()
        )
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError):
                async with dial(self.kubelet / "device-plugins" / "kubelet.sock") as channel:
                    await services.call(channel, services.REGISTER, request, timeout_s=5.0)
                    return
            await asyncio.sleep(_LOOK_S)

    def handlers(self) -> list[services.Handler]:
        return [
            services.unary(services.GET_OPTIONS, self._options),
            services.stream(services.LIST_AND_WATCH, self.follow),
            services.unary(services.GET_PREFERRED, self.prefer),
            services.unary(services.ALLOCATE, self.allocate),
            services.unary(services.GET_INFO, self._info),
            services.unary(services.NOTIFY, self._notify),
        ]

    # Its answers.

    def options(self) -> dp.DevicePluginOptions:
        return dp.DevicePluginOptions(get_preferred_allocation_available=self.preferred)

    async def _options(self, _: dp.Empty) -> dp.DevicePluginOptions:
        return self.options()

    async def _info(self, _: reg.InfoRequest) -> reg.PluginInfo:
        return reg.PluginInfo(type="DevicePlugin", name=RESOURCE, supported_versions=["v1beta1"])

    async def _notify(self, _: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        return reg.RegistrationStatusResponse()

    async def follow(self, _: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        self.streams += 1
        self.had_stream = self.ready = True
        try:
            async for message in self.messages():
                yield message
        finally:
            self.streams -= 1

    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        assert self._news is not None
        while True:
            seen = self._version
            yield dp.ListAndWatchResponse(devices=self.listed())
            async with self._news:
                while seen == self._version:
                    await self._news.wait()

    async def prefer(
        self, request: dp.PreferredAllocationRequest
    ) -> dp.PreferredAllocationResponse:
        return dp.PreferredAllocationResponse(
            container_responses=[
                dp.ContainerPreferredAllocationResponse(deviceIDs=self.choose(one))
                for one in request.container_requests
            ]
        )

    def choose(self, one: dp.ContainerPreferredAllocationRequest) -> list[str]:
        must = sorted(one.must_include_deviceIDs)
        rest = sorted(set(one.available_deviceIDs) - set(must))
        return [*must, *rest][: one.allocation_size]

    async def allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        for one in request.container_requests:
            self.check(list(one.devices_ids))
            self.used.update(one.devices_ids)
        return dp.AllocateResponse(
            container_responses=[
                self.answer(sorted(one.devices_ids)) for one in request.container_requests
            ]
        )

    def check(self, ids: Sequence[str]) -> None:
        if wrong := set(ids) - (set(self.ids()) - self.sick):
            raise StatusError(grpc.StatusCode.NOT_FOUND, f"{min(wrong)} cannot be had")

    def answer(self, ids: Sequence[str]) -> dp.ContainerAllocateResponse:
        return dp.ContainerAllocateResponse(
            envs={"ACME": ",".join(ids)},
            cdi_devices=[dp.CDIDevice(name=f"acme.test/npu={i}") for i in ids],
        )
