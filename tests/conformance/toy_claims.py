"""A DRA driver without a process that keeps every rule; what breaks one overrides a method."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import ClassVar, Self

from accelkit.backends.kube import connect
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import drahealth, registration as reg
from accelkit.backends.wire.serve import Server, bind, fresh_path
from accelkit.conformance.footprint import Footprint
from accelkit.conformance.model import Feature
from accelkit.conformance.setups import RESOURCE, Setup, Site
from accelkit.conformance.sims.api.values import text
from accelkit.conformance.sims.tasks import do
from accelkit.conformance.subjects import Blocks
from accelkit.core.kube import Json, KubePort
from accelkit.core.model import Device
from accelkit.core.policy import Kube, KubeClient
from tests.conformance.toy_answers import DRIVER, Refusal
from tests.conformance.toy_hardware import Hardware, Record
from tests.conformance.toy_plug import Holder, Plug, held_by_pods, holders
from tests.conformance.toy_records import Notes
from tests.conformance.toy_slices import Slices

VERSIONS = (
    "v1.DRAPlugin",
    "v1beta1.DRAPlugin",
    "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth",
)
LOOK_S = 0.02
AGAIN_S = 0.5


class ToyClaims(Slices):
    """Some devices, for claims and as a device plugin."""

    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.RESTART,
            Feature.STOP,
            Feature.BREAK,
            Feature.WITHDRAW,
            Feature.TOLD,
            Feature.PROBES,
            Feature.TWIN,
            Feature.REDRAW,
            Feature.MANY,
            Feature.RICH,
            Feature.CONFIG,
            Feature.STICK,
            Feature.SETS,
            Feature.NODES,
            Feature.EXTENDED,
            Feature.SWITCH,
            Feature.RECORDS,
            Feature.LOG,
        }
    )
    versions: ClassVar[tuple[str, ...]] = VERSIONS
    notes_kind: ClassVar[type[Notes]] = Notes
    again_s: ClassVar[float] = AGAIN_S
    """Between two lists of health."""

    def __init__(
        self, home: Path, hardware: Hardware | None = None, record: Record | None = None
    ) -> None:
        super().__init__()
        self.home = home
        self.cdi = home / "cdi"
        self.hardware = hardware or Hardware(home=home)
        self.record = record or Record()
        self.setup = Setup()
        self.node = ""
        self.kubelet = Path()
        self.ending = False
        self.refused = ""
        self.starts = 0
        self.pods_have: set[str] = set()
        """Devices that pods have by the device plugin."""
        self._furnished: tuple[Site, Setup] | None = None
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._plug = Plug(self.plugged_names, self.plugged_healthy)

    # What the suite does to it.

    def furnish(self, site: Site, setup: Setup) -> None:
        self._furnished = site, setup
        if self.hardware.count != setup.units:
            self.hardware.make(setup.units)

    def start(self, kubelet: Path) -> None:
        self.kubelet = kubelet
        self.starts += 1
        do(self._begin())

    async def _begin(self) -> None:
        assert self._furnished is not None
        site, self.setup = self._furnished
        self.node = site.node
        found = connect(Kube(client=KubeClient.LEAN, config=str(site.kubeconfig)))
        assert found is not None
        self.kube: KubePort = found
        Slices.__init__(self)
        self.notes = self.notes_kind(self.records(), self.record)
        self.notes.read()
        self.ending = False
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
        await self.kube.close()

    def stop(self) -> None:
        self.note("it ends", claims=list(self.record.claims))
        self.kill()

    def restart(self) -> None:
        self.stop()
        self.start(self.kubelet)

    def twin(self) -> Self:
        made = type(self)(self.home, self.hardware, self.record)
        assert self._furnished is not None
        made.furnish(*self._furnished)
        return made

    def said(self) -> str:
        return ""

    def ended(self) -> bool:
        return False

    def break_device(self) -> None:
        self.hardware.sick = {self.hardware.names[1]}
        do(self.tell_health())

    def mend_device(self) -> None:
        self.hardware.sick = set()

    def withdraw_device(self) -> None:
        self.hardware.lost = {self.hardware.names[1]}

    def withdraw_all(self) -> None:
        raise NotImplementedError

    def bring_back(self) -> None:
        raise NotImplementedError

    def renew(self, *, valid: bool) -> None:
        raise NotImplementedError

    def afresh(self) -> None:
        raise NotImplementedError

    def footprint(self) -> Footprint:
        raise NotImplementedError

    def endanger(self) -> None:
        raise NotImplementedError

    def logged(self) -> list[Json]:
        return list(self.lines)

    def earlier(self, record: Json) -> Json:
        """Without what it had no word for."""
        return {key: value for key, value in record.items() if key != "level"}

    def hang(self) -> None:
        raise NotImplementedError

    def disturb_neighbour(self) -> None:
        raise NotImplementedError

    def devices(self) -> tuple[Device, ...]:
        return self.hardware.devices()

    def blocks(self) -> Blocks:
        return Blocks(first={"level": "low"}, second={"level": "high"}, file="")

    def records(self) -> Path:
        return self.home / "records"

    def set_to(self) -> str:
        return str(self.hardware.levels)

    def stick(self) -> None:
        self.hardware.stuck = True

    def loosen(self) -> None:
        self.hardware.stuck = False

    def probe(self, path: str) -> tuple[int, str]:
        if path == "/metrics":
            return 200, "\n".join((*self.measured(), *do(self.holders()), ""))
        return (200, "ok") if self.ready() else (503, self.refused or "not registered")

    def measured(self) -> list[str]:
        return [
            f'accelkit_slice_drops_total{{field="taints"}} {self.drops}',
            f"accelkit_prepare_seconds_count {len(self.record.claims)}",
        ]

    async def holders(self) -> list[str]:
        """Who has a device, by either interface."""
        return [
            f"accelkit_device_holder{{{self.labels(holder)}}} 1"
            for holder in await holders(self.kubelet)
        ]

    def labels(self, holder: Holder) -> str:
        told = {"namespace": holder.namespace, "pod": holder.pod, "container": holder.container}
        return ",".join(f'{name}="{value}"' for name, value in told.items())

    def ready(self) -> bool:
        return self.registered

    # Its life.

    async def serve(self) -> None:
        """Serve at one socket after another, and look after slices, files and the plugin."""
        tasks = [asyncio.create_task(work()) for work in (self.publish, self.look_after)]
        try:
            while not self.ending:
                await self._while_in_place()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._plug.close()

    async def _while_in_place(self) -> None:
        server = await bind(self.path(), self.handlers())
        try:
            while server.in_place():  # noqa: ASYNC110 - nobody tells it
                await asyncio.sleep(LOOK_S)
        finally:
            await self.unbind(server)

    def path(self) -> Path:
        return fresh_path(self.kubelet / "plugins_registry", DRIVER)

    async def unbind(self, server: Server) -> None:
        """Close it when running calls have ended."""
        while any(self.running.values()):  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(LOOK_S)
        await server.close()

    async def look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(Refusal):  # the next look tries again
                self.mend_files()
            await self.look_after_plug()

    # The device plugin.

    async def look_after_plug(self) -> None:
        if not self.setup.resource:
            return
        found = await held_by_pods(self.kubelet)
        if found is not None:
            self.pods_have = found
        if self.setup.through == "kubelet":
            self.record.plugged = True
            await self._plug.open(self.kubelet)
        elif self.record.plugged:
            await self.let_go(known=found is not None)

    async def let_go(self, *, known: bool) -> None:
        """Show devices as not to be had until no pod has any of them."""
        await self._plug.open(self.kubelet)
        if known and not self.pods_have and not self.allocatable():
            self.record.plugged = False
            await self._plug.close()

    def plugged_names(self) -> list[str]:
        return self.hardware.names

    def plugged_healthy(self) -> bool:
        return self.setup.through == "kubelet" and not self.record.claims

    def allocatable(self) -> bool:
        """Whether the node has something of the resource by a device plugin."""
        return text(self._node, "status", "allocatable", RESOURCE) not in {"", "0"}

    def may_publish(self) -> bool:
        return super().may_publish() and not self.allocatable()

    def shows(self, name: str) -> bool:
        return super().shows(name) and name not in self.pods_have

    # What it answers.

    def handlers(self) -> list[services.Handler]:
        return [
            services.unary(services.GET_INFO, self._info),
            services.unary(services.NOTIFY, self.notified),
            services.unary(services.PREPARE, self.prepare),
            services.unary(services.PREPARE_BETA, self.prepare),
            services.unary(services.UNPREPARE, self.unprepare),
            services.unary(services.UNPREPARE_BETA, self.unprepare),
            services.stream(services.WATCH_HEALTH, self.follow),
            services.stream(services.WATCH_HEALTH_ALPHA, self.follow),
        ]

    async def _info(self, _: reg.InfoRequest) -> reg.PluginInfo:
        return reg.PluginInfo(type="DRAPlugin", name=DRIVER, supported_versions=self.versions)

    async def notified(self, status: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        self.registered, self.refused = status.plugin_registered, status.error
        return reg.RegistrationStatusResponse()

    async def tell_health(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def follow(
        self, _: drahealth.NodeWatchResourcesRequest
    ) -> AsyncGenerator[drahealth.NodeWatchResourcesResponse, None]:
        while True:
            news = self._news
            yield drahealth.NodeWatchResourcesResponse(
                devices=[self.word(name) for name in self.listed()]
            )
            try:
                async with asyncio.timeout(self.again_s):
                    await news.wait()
            except TimeoutError:
                continue

    def word(self, name: str) -> drahealth.DeviceHealth:
        bad = self.bad(name)
        return drahealth.DeviceHealth(
            device=drahealth.DeviceIdentifier(pool_name=self.node, device_name=name),
            health=drahealth.UNHEALTHY if bad else drahealth.HEALTHY,
            message=self.message(name) if bad else "",
        )

    def message(self, name: str) -> str:
        return f"delete the pod to get another device: {name} is broken"
