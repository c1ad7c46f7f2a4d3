"""A simulated kubelet's dealings with an API server and with DRA drivers.

Not here: device plugins, and the sockets that the kubelet serves itself.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, frozen

from accelkit.backends.wire.messages import podresources as pr
from accelkit.conformance.sims import admission
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import part, text
from accelkit.conformance.sims.dra import health, pods, worker
from accelkit.conformance.sims.dra.claims import Claims, PodId, reachable, until_reachable
from accelkit.conformance.sims.dra.drivers import DriverFault, Drivers
from accelkit.conformance.sims.dra.events import SlicesWiped, StatusFrozen
from accelkit.conformance.sims.dra.pods import ClaimPod
from accelkit.conformance.sims.dra.wiping import wipe
from accelkit.conformance.sims.events import ContainerStopped, Journal
from accelkit.conformance.sims.plugins import Plugins
from accelkit.conformance.sims.pods import Phase, Pod
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing
from accelkit.core.kube import NODES, PODS

Json = Mapping[str, object]


@frozen(kw_only=True)
class Cluster:
    """What a kubelet belongs to."""

    api: ApiSim
    node: str = "conformance"
    """The name of its node, which the API server has."""
    cdi: Sequence[Path] = ()
    """Directories of CDI files, the one with more weight last."""


@define
class _Life:
    """What ends with the kubelet."""

    drivers: Drivers
    means: worker.Means
    tasks: list["asyncio.Task[None]"]
    workers: dict[str, "asyncio.Task[None]"]


class DraSide:
    """Pods of an API server, their claims, and the drivers of these.

    Args:
        cluster: Where it belongs.
        minor: Of the release.
        node: Pods, devices and the journal.
        timing: How long things take.
        rng: Decides what a kubelet leaves to chance.
    """

    def __init__(
        self,
        cluster: Cluster,
        minor: int,
        node: admission.Node,
        timing: Timing,
        rng: random.Random,
    ) -> None:
        self.cluster = cluster
        self.claims = Claims(cluster.api, node.journal)
        self.health = health.HealthCache(time.monotonic)
        self.pods: dict[str, ClaimPod] = {}
        """By uid, those of this node."""
        self.refusal = ""
        """Why no driver is registered; empty: they are."""
        self._minor = minor
        self._node = node
        self._timing = timing
        self._rng = rng
        self._life: _Life | None = None

    @property
    def journal(self) -> Journal:
        return self._node.journal

    @property
    def drivers(self) -> Drivers:
        """Of this life of the kubelet."""
        assert self._life is not None
        return self._life.drivers

    def pod(self, name: str) -> ClaimPod:
        """The pod of that name."""
        return next(one for one in self.pods.values() if one.id.name == name)

    # The kubelet's life.

    def open(self, plugins: Plugins, sync: asyncio.Lock) -> Drivers:
        """Begin a life; drivers may register from now on.

        Args:
            plugins: Device plugins.
            sync: The kubelet's one sync loop.
        """
        drivers = Drivers(self._minor, self.journal, self._timing, self.health)
        drivers.refuses = lambda: self.refusal
        means = worker.Means(
            api=self.cluster.api,
            node=self._node,
            plugins=plugins,
            drivers=drivers,
            claims=self.claims,
            timing=self._timing,
            rng=self._rng,
            cdi=self.cluster.cdi,
            sync=sync,
            extended=self._minor >= 36,
            status=self._write_status,
        )
        self._life = _Life(drivers, means, [], {})
        self._life.tasks = [
            asyncio.create_task(self._follow(self._life)),
            asyncio.create_task(self._reconcile(self._life)),
            asyncio.create_task(self._wipe(self._life)),
        ]
        return drivers

    async def close(self) -> None:
        """End at once: calls are cut, containers live on."""
        life, self._life = self._life, None
        if life is None:
            return
        await cancel(*life.tasks, *life.workers.values())
        await life.drivers.close()
        self.claims.restart()

    def reboot(self) -> None:
        """While the kubelet is down: every container ends, and CDI files are gone."""
        for pod in self.pods.values():
            if pod.sandbox and not pod.restarts:
                pod.pod.phase = Phase.FAILED
            pod.sandbox, pod.admitted = False, False
            for container in pod.pod.containers:
                container.running = False
        for path in (p for directory in self.cluster.cdi for p in directory.glob("*")):
            path.unlink()

    # Pods.

    async def _follow(self, life: _Life) -> None:
        """Take pods on, and tell their workers what becomes of them."""
        store = self.cluster.api.store
        while True:
            news = store.news
            if reachable(self.cluster.api):
                self._look(life)
            try:
                async with asyncio.timeout(self._timing.watch_s):
                    await news.wait()
            except TimeoutError:
                continue

    def _look(self, life: _Life) -> None:
        there = {
            text(item, "metadata", "uid"): item
            for item in self.cluster.api.items(PODS)
            if text(item, "spec", "nodeName") == self.cluster.node
        }
        for uid in self.pods.keys() - there.keys():
            self._gone(uid, life)
        for uid, item in there.items():
            known = self.pods.get(uid)
            if known is None:
                known = pods.pod_of(item, extended=life.means.extended)
                self.pods[uid] = known
            if uid not in life.workers:
                life.workers[uid] = asyncio.create_task(worker.work(known, life.means))
            _update(known, item)

    def _gone(self, uid: str, life: _Life) -> None:
        """Its object is not there: a worker ends it, or it ended while the kubelet was down."""
        pod = self.pods[uid]
        task = life.workers.get(uid)
        pod.gone = True
        pod.ending.set()
        if task is None:
            worker.stop(pod, life.means)
            self._node.pods.by_name.pop(pod.id.name, None)
            del self.pods[uid]
        elif task.done():
            del self.pods[uid], life.workers[uid]
            task.result()

    async def _reconcile(self, life: _Life) -> None:
        """Give back now and then what nobody needs, whatever else is under way for it."""
        while True:
            await asyncio.sleep(self._timing.reconcile_s)
            if not reachable(self.cluster.api):
                continue
            there = {text(item, "metadata", "uid") for item in self.cluster.api.items(PODS)}
            held = {uid for one in self.claims.known.values() for uid in one.pods}
            for uid in held - there:
                try:
                    await self.claims.unprepare([uid], life.drivers)
                except DriverFault:
                    continue  # the next round tries again

    # Slices.

    async def _wipe(self, life: _Life) -> None:
        """Remove all slices of the node at the start, then those of drivers that are gone."""
        try:
            async with asyncio.timeout(self._timing.wipe_anyway_s):
                await life.drivers.news.wait()
        except TimeoutError:
            pass  # it does so without any driver, too
        else:
            await asyncio.sleep(self._timing.wipe_s)
        await self._wiped("")
        lost: dict[str, float] = {}
        while True:
            await asyncio.sleep(self._timing.watch_s)
            now, known = time.monotonic(), life.drivers
            lost = {driver: lost.get(driver, now) for driver in known.ever - known.alive}
            for driver in [d for d, since in lost.items() if now - since >= self._timing.gone_s]:
                await self._wiped(driver)
                known.ever.discard(driver)

    async def _wiped(self, driver: str) -> None:
        await until_reachable(self.cluster.api, self._timing.watch_s)
        names = tuple(wipe(self.cluster.api, self.cluster.node, driver))
        self.journal.note(SlicesWiped(driver, names))

    # What is told of pods and the node.

    def device_health(self, name: str, container: str = "main") -> dict[str, tuple[str, str]]:
        """``allocatedResourcesStatus`` of a container: health and message by CDI name.

        A device without a CDI name goes by ``driver/pool/device``. Extended resources have none.
        """
        pod = self.pod(name)
        found = {}
        for use in pod.uses(container, extended=False) if self._minor >= 36 else ():
            for driver, device in pod.devices(use):
                word, message = self.health.of(driver, device.pool, device.device)
                plain = f"{driver}/{device.pool}/{device.device}"
                ident = device.cdi[0] if device.cdi else plain
                if not health.writable(message):
                    self.journal.note(StatusFrozen(name))
                found[ident] = word, message.decode("utf-8", "replace")
        return found

    def write_node(self, status: Mapping[str, tuple[str, str]]) -> None:
        """Write capacity and allocatable of resources into the node's status."""
        api, name = self.cluster.api, self.cluster.node
        if reachable(api) and api.has(NODES, name):
            capacity = {resource: amounts[0] for resource, amounts in status.items()}
            allocatable = {resource: amounts[1] for resource, amounts in status.items()}
            patch = {"status": {"capacity": capacity, "allocatable": allocatable}}
            api.patch(NODES, name, patch, sub="status")

    def _write_status(self, pod: ClaimPod) -> None:
        api, ident = self.cluster.api, pod.id
        if not pod.gone and reachable(api) and api.has(PODS, ident.name, ident.namespace):
            running = all(c.running or c.init for c in pod.pod.containers)
            phase = "Running" if running and pod.sandbox else "Pending"
            phase = phase if pod.pod.phase is Phase.RUNNING else pod.pod.phase.value
            patch = {"status": {"phase": phase}}
            api.patch(PODS, ident.name, patch, ident.namespace, sub="status")

    def dynamic(self, pod: Pod, container: str) -> Iterator[pr.DynamicResource]:
        """What the pod resources service says of a container's claims.

        The CDI names of a device are followed by those of the devices before it (seen on 1.34 to
        1.37).
        """
        known = next((one for one in self.pods.values() if one.pod is pod), None)
        for use in known.uses(container, extended=True) if known else ():
            entry = pr.DynamicResource(claim_name=use.claim, claim_namespace=pod.namespace)
            names: list[str] = []
            for driver, device in known.devices(use) if known else ():
                names += device.cdi
                entry.claim_resources.append(
                    pr.ClaimResource(
                        cdi_devices=[pr.CDIDevice(name=name) for name in names],
                        driver_name=driver,
                        pool_name=device.pool,
                        device_name=device.device,
                        share_id=device.share,
                    )
                )
            yield entry

    # What a check does to pods.

    async def restart_container(self, name: str, container: str = "main") -> bool:
        """Let a container end and be made again; returns whether it could be."""
        assert self._life is not None
        pod = self.pod(name)
        found = pod.pod.container(container)
        found.running = False
        found.restarts += 1
        self.journal.note(ContainerStopped(name, container))
        await worker.make(pod, found, self._life.means)
        return found.running

    def lose_sandbox(self, name: str) -> None:
        """Let a pod lose what its containers are made in: all is made again, with its claims."""
        assert self._life is not None
        pod = self.pod(name)
        worker.stop(pod, self._life.means)
        pod.sandbox = False
        old = self._life.workers[pod.id.uid]
        old.cancel()
        self._life.workers[pod.id.uid] = asyncio.create_task(worker.work(pod, self._life.means))

    def used(self) -> Iterator[PodId]:
        """Pods that hold a claim as far as the kubelet knows."""
        uids = {uid for one in self.claims.known.values() for uid in one.pods}
        return (pod.id for uid, pod in self.pods.items() if uid in uids)


def _update(pod: ClaimPod, item: Json) -> None:
    """Take note of what has changed of its object."""
    meta, before = part(item, "metadata"), part(pod.manifest, "metadata")
    if meta.get("deletionTimestamp"):
        pod.ending.set()
    if any(meta.get(key) != before.get(key) for key in ("labels", "annotations")):
        pod.nudge.set()
    pod.manifest = item
