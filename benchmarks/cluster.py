"""A simulated node of a simulated cluster, with drivers of devices as processes: ours and Go's.

Not here: any measure.
"""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import Popen

import attrs
import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.certificates import make_tls
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered, SlicesWiped
from accelkit.conformance.sims.dra.side import Cluster as Membership
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import Timing
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import CLAIMS, NODES, SLICES
from benchmarks.node import PATIENCE_S, TIMING, Place, process, until
from benchmarks.usage import cpu_ms

NODE = "bench"
NAMESPACE = "default"
SIM_DRIVER = "sim.accelkit.dev"
GO_DRIVER = "go.bench.dev"
USER = User(name="bench", token="bench", everything=True)
CALL_S = 45.0
"""So long the kubelet waits for an answer."""
SWIFT = attrs.evolve(TIMING, wipe_anyway_s=0.1)
"""A kubelet that finds a socket at once."""
CALM = attrs.evolve(SWIFT, watch_s=0.25)
"""One that does not look all the time, while calls are measured."""


@attrs.frozen(kw_only=True)
class Driver:
    """A program that is started, and what is expected of it."""

    what: str
    name: str
    words: list[str]
    log: Path
    devices: int
    """So many in its slices."""


@attrs.frozen(kw_only=True)
class Running:
    """A driver that is registered, and whose slices are there."""

    driver: Driver
    process: Popen[bytes]
    channel: grpc.aio.Channel
    """To its socket, as the kubelet has it."""
    registered_ms: float
    """Since exec."""
    slices_ms: float
    cpu_ms: float
    """What it had of the processors until its slices were there."""

    async def prepare(self, claims: Iterable[ClaimRef]) -> float:
        """Ask for *claims* in one call; how long it took, in milliseconds."""
        request = dra.NodePrepareResourcesRequest(claims=_messages(claims))
        begun = time.perf_counter()
        answer = await services.call(self.channel, services.PREPARE, request, timeout_s=CALL_S)
        took = (time.perf_counter() - begun) * 1000
        for claim in request.claims:
            found = answer.claims[claim.uid]
            assert len(found.devices) == 1, found.error
        return took

    async def unprepare(self, claims: Iterable[ClaimRef]) -> float:
        """Give *claims* back in one call; how long it took, in milliseconds."""
        request = dra.NodeUnprepareResourcesRequest(claims=_messages(claims))
        begun = time.perf_counter()
        answer = await services.call(self.channel, services.UNPREPARE, request, timeout_s=CALL_S)
        took = (time.perf_counter() - begun) * 1000
        assert not any(one.error for one in answer.claims.values()), answer
        return took


def _messages(claims: Iterable[ClaimRef]) -> list[dra.Claim]:
    return [dra.Claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims]


@attrs.frozen(kw_only=True)
class Cluster:
    """An API server over TLS, and a kubelet that has just started."""

    here: Place
    api: ApiSim
    kubelet: KubeletSim

    @property
    def kubeconfig(self) -> Path:
        return self.here.root / "kubeconfig"

    def ours(self, *, devices: int) -> Driver:
        """The agent, which serves the simulated vendor's *devices* to claims."""
        log = self.here.root / "agent.log"
        return Driver(what="ours", name=SIM_DRIVER, words=self.here.agent, log=log, devices=devices)

    def helper(self, folder: Path, *, devices: int, unlimited: bool = True) -> Driver:
        """A driver on the upstream helper, out of *folder*; with its client's limits or not."""
        root = self.here.root
        data, cdi = root / "go", root / "go-cdi"
        for made in (data, cdi):
            made.mkdir(exist_ok=True)
        flags = {
            "driver": GO_DRIVER,
            "node": NODE,
            "kubeconfig": self.kubeconfig,
            "data": data,
            "registry": self.kubelet.registry_dir,
            "cdi": cdi,
            "devices": devices,
            "unlimited": str(unlimited).lower(),
            "json": "true",
        }
        return Driver(
            what="Go" if unlimited else "Go, with limits",
            name=GO_DRIVER,
            words=[str(folder / "driver"), *(f"-{key}={value}" for key, value in flags.items())],
            log=root / "go.log",
            devices=devices,
        )

    def claims(self, driver: Driver, count: int) -> list[ClaimRef]:
        """Make so many claims, each with a device of *driver* of its own."""
        return [self._claim(driver, device) for device in self.published(driver)[:count]]

    def _claim(self, driver: Driver, device: str) -> ClaimRef:
        name = f"{driver.name}-{device}"
        if not self.api.has(CLAIMS, name, NAMESPACE):
            request = {"name": "gpu", "exactly": {"deviceClassName": "bench"}}
            spec = {"devices": {"requests": [request]}}
            self.api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
            given = {"request": "gpu", "driver": driver.name, "pool": NODE, "device": device}
            status = {"allocation": {"devices": {"results": [given]}}}
            self.api.patch(CLAIMS, name, {"status": status}, NAMESPACE, sub="status")
        uid = text(self.api.get(CLAIMS, name, NAMESPACE), "metadata", "uid")
        return ClaimRef(uid=uid, namespace=NAMESPACE, name=name)

    def published(self, driver: Driver) -> list[str]:
        """The devices in slices of *driver*."""
        slices = [s for s in self.api.raws(SLICES) if text(s, "spec", "driver") == driver.name]
        return sorted(text(d, "name") for s in slices for d in parts(s, "spec", "devices"))

    def forget_slices(self) -> None:
        for item in self.api.raws(SLICES):
            self.api.delete(SLICES, text(item, "metadata", "name"))

    @asynccontextmanager
    async def running(self, driver: Driver) -> AsyncIterator[Running]:
        """Start *driver*; wait until claims can be prepared."""
        before = len(self.kubelet.seen(DriverRegistered, driver=driver.name))

        def registered() -> list[DriverRegistered]:
            return self.kubelet.seen(DriverRegistered, driver=driver.name)[before:]

        begun = time.monotonic()
        with process(driver.words, driver.log) as started:
            published = await until(lambda: len(self.published(driver)) >= driver.devices)
            cpu = cpu_ms(started.pid)
            await until(registered)
            instance = self.kubelet.dra.drivers.instance(driver.name)
            assert instance is not None
            yield Running(
                driver=driver,
                process=started,
                channel=instance.channel,
                registered_ms=(registered()[0].at - begun) * 1000,
                slices_ms=(published - begun) * 1000,
                cpu_ms=cpu,
            )
        await until(lambda: driver.name not in self.kubelet.dra.drivers.alive)


@asynccontextmanager
async def cluster(here: Place, timing: Timing = CALM) -> AsyncIterator[Cluster]:
    """Let *here* be a node of a cluster; its policy is told how to reach that.

    The kubelet has wiped the slices of its node.
    """
    (here.root / "cdi").mkdir(exist_ok=True)
    async with ApiSim(tls=make_tls(here.root / "pki"), users=[USER]) as api:
        api.create(NODES, {"metadata": {"name": NODE}})
        membership = Membership(api=api, node=NODE, cdi=(here.root / "cdi",))
        kubelet = KubeletSim(here.root / "kubelet", timing=timing, cluster=membership)
        found = Cluster(here=here, api=api, kubelet=kubelet)
        api.write_kubeconfig(found.kubeconfig, USER)
        with (here.root / "policy.yaml").open("a") as policy:
            policy.write(f"kube: {{client: lean, config: {found.kubeconfig}}}\n")
        async with kubelet:
            await kubelet.wait_for(lambda: kubelet.seen(SlicesWiped), PATIENCE_S)
            yield found
