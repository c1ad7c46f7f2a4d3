"""A simulated kubelet on real unix sockets, as far as plugins and drivers can tell the difference.

What it imitates was seen on real nodes of Kubernetes 1.34 to 1.37. With a cluster it runs the pods
that an API server has for its node, too. Not here: containers, the API server, the scheduler.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import Server, bind
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims import admission, events
from accelkit.conformance.sims.choosing import Policy
from accelkit.conformance.sims.devices import Devices, quantity
from accelkit.conformance.sims.dra.side import Cluster, DraSide
from accelkit.conformance.sims.plugins import API_VERSION, Plugins, unknown
from accelkit.conformance.sims.podresources import nothing, pod_resources
from accelkit.conformance.sims.pods import Container, Phase, Pod, Pods
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing
from accelkit.conformance.sims.watcher import DevicePlugins, Handler as OfType, Watcher


class KubeletSim:
    """A kubelet that can be started, restarted and killed, and given pods.

    ``async with KubeletSim(directory) as sim`` starts it and stops it.

    Args:
        root: Stands for ``/var/lib/kubelet``; its three directories are made.
        release: The Kubernetes release to imitate, 1.34 to 1.37.
        timing: How long things take.
        policy: The Topology Manager's policy.
        numa_nodes: The NUMA nodes of the host.
        seed: Decides what a kubelet leaves to chance.
        cluster: With it pods come from an API server, and DRA drivers are served.
    """

    def __init__(
        self,
        root: Path,
        *,
        release: str = "1.37",
        timing: Timing = Timing(),  # noqa: B008 - a frozen value
        policy: Policy = Policy.NONE,
        numa_nodes: tuple[int, ...] = (0,),
        seed: int = 0,
        cluster: Cluster | None = None,
    ) -> None:
        self.plugins_dir = root / "device-plugins"
        self.registry_dir = root / "plugins_registry"
        self.resources_dir = root / "pod-resources"
        for directory in (self.plugins_dir, self.registry_dir, self.resources_dir):
            directory.mkdir(parents=True, exist_ok=True)
        self.socket = self.plugins_dir / "kubelet.sock"
        self.resources_socket = self.resources_dir / "kubelet.sock"
        self.status: dict[str, tuple[str, str]] = {}
        """Capacity and allocatable of each resource as the last tick wrote them: quantities."""
        minor = int(release.split(".")[1])
        rng = random.Random(seed)  # noqa: S311 - a simulation repeats with its seed
        self._health_in_status = minor >= 36
        self._timing = timing
        self._journal = events.Journal()
        self._node = admission.Node(
            devices=Devices(per_socket=minor >= 37, grace_s=timing.grace_s, rng=rng),
            pods=Pods(),
            journal=self._journal,
            rng=rng,
            policy=policy,
            numa_nodes=numa_nodes,
        )
        self._plugins = Plugins(self._node.devices, self._journal, timing)
        self._dra = DraSide(cluster, minor, self._node, timing, rng) if cluster else None
        self._sync = asyncio.Lock()  # one sync loop: a slow answer holds up every other pod
        self._servers: list[Server] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def log(self) -> list[events.Event]:
        """Everything that happened, oldest first."""
        return self._journal.events

    @property
    def dra(self) -> DraSide:
        """Pods of the API server, claims and DRA drivers; there is one with a cluster only."""
        assert self._dra is not None
        return self._dra

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that were admitted or refused and not removed, oldest first."""
        return self._node.pods.by_name

    def seen(self, kind: type[events.AnyEvent], **fields: object) -> list[events.AnyEvent]:
        """Find the events of *kind* whose fields have these values."""
        return self._journal.of(kind, **fields)

    def amounts(self) -> dict[str, tuple[int, int]]:
        """Capacity and allocatable as the kubelet itself knows them now."""
        return self._node.devices.amounts(time.monotonic())

    def device_health(self, pod: str, container: str = "main") -> dict[str, str]:
        """``allocatedResourcesStatus`` by device id; empty before 1.36.

        A device that is in no list any more is Healthy: the kubelet's default.
        """
        if not self._health_in_status:
            return {}
        listings = self._node.devices.listings
        health = {}
        for resource, held in self.pods[pod].container(container).held.items():
            known = listings[resource].known if resource in listings else {}
            for ident in held.ids:
                device = known.get(ident)
                health[ident] = "Healthy" if device is None or device.healthy else "Unhealthy"
        return health

    async def wait_for(self, predicate: Callable[[], object], patience_s: float = 10.0) -> None:
        """Wait until *predicate* holds, however it comes about.

        Raises:
            TimeoutError: It did not within *patience_s*; the text has the state and the log.
        """
        await events.until(
            predicate, patience_s, lambda: {"amounts": self.amounts(), "log": self.log[-10:]}
        )

    # The kubelet's life.

    async def start(self) -> None:
        """Start: wipe the sockets in device-plugins, make new ones, admit all pods later."""
        for path in self.plugins_dir.iterdir():
            if path.is_socket():
                path.unlink(missing_ok=True)
        self._plugins = Plugins(self._node.devices, self._journal, self._timing)
        self._servers = [
            await bind(self.socket, [services.unary(services.REGISTER, self._register)]),
            await bind(self.resources_socket, self._pod_resources()),
        ]
        self._journal.note(events.Started())
        handlers: dict[str, OfType] = {"DevicePlugin": DevicePlugins(self._plugins)}
        if self._dra is not None:
            handlers["DRAPlugin"] = self._dra.open(self._plugins, self._sync)
        watcher = Watcher(
            self.registry_dir,
            handlers,
            self._journal,
            self._timing,
            undoes=self._node.devices.per_socket,
        )
        self._tasks = [
            asyncio.create_task(watcher.run()),
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._admit_again()),
        ]

    async def kill(self) -> None:
        """End at once: streams end, nothing is cleaned up, not even kubelet.sock.

        A kubelet that is asked to end leaves the same behind.
        """
        tasks, self._tasks = self._tasks, []
        await cancel(*tasks)
        if self._dra is not None:
            await self._dra.close()
        await self._plugins.close()
        for server in self._servers:
            await server.close(grace_s=0, keep_path=True)
        self._servers = []
        self._node.devices.restart(time.monotonic())
        self._journal.note(events.Stopped())

    async def restart(self) -> None:
        """Kill, and start again a little later; returns when the new sockets are there."""
        await self.kill()
        await asyncio.sleep(self._timing.down_s)
        await self.start()

    async def reboot(self) -> None:
        """Restart the node: containers and CDI files are gone, what is on disk is not."""
        await self.kill()
        self.dra.reboot()
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()
        self.socket.unlink(missing_ok=True)
        self.resources_socket.unlink(missing_ok=True)

    async def _register(self, request: dp.RegisterRequest) -> dp.Empty:
        path = self.plugins_dir / request.endpoint
        try:
            if request.version != API_VERSION:
                raise unknown(
                    f'requested API version "{request.version}" is not supported by kubelet. '
                    f'Supported version is ["{API_VERSION}"]'
                )
            await self._plugins.connect(request.resource_name, path, by="socket")
        except StatusError as error:
            self._journal.note(events.Refused(request.resource_name, str(path), error.text))
            raise
        return dp.Empty()

    def _pod_resources(self) -> tuple[services.Handler, ...]:
        dynamic = nothing if self._dra is None else self._dra.dynamic
        return pod_resources(self._node.devices, self._node.pods, dynamic)

    async def _tick(self) -> None:
        while True:
            for resource, amounts in self.amounts().items():
                written = (quantity(amounts[0]), quantity(amounts[1]))
                if self.status.get(resource) != written:
                    self.status[resource] = written
                    self._journal.note(events.StatusChanged(resource, *written))
                    if self._dra is not None:
                        self._dra.write_node(self.status)
            await asyncio.sleep(self._timing.tick_s)

    async def _admit_again(self) -> None:
        await asyncio.sleep(self._timing.admission_s)
        async with self._sync:
            admission.admit_again(self._node)
        for pod in list(self._node.pods.active()):
            await admission.start_all(self._node, self._plugins, pod)

    # Pods.

    async def admit(
        self,
        name: str,
        wants: Mapping[str, int],
        *,
        init: Mapping[str, int] | None = None,
        namespace: str = "default",
    ) -> Pod:
        """Admit a pod with a container ``main``, and ``init`` before it if asked for.

        Whatever comes of it is in the pod: its phase, reason and message, its devices.
        """
        before = () if init is None else (Container("init", init, init=True),)
        pod = Pod(name, namespace, (*before, Container("main", wants)))
        async with self._sync:
            self._node.pods.by_name[name] = pod
            await admission.admit(self._node, self._plugins, pod)
        await admission.start_all(self._node, self._plugins, pod)
        return pod

    def crash(self, pod: str, container: str = "main") -> None:
        """Let a container end; nothing starts it again until `start_again` or a restart."""
        self.pods[pod].container(container).running = False
        self._journal.note(events.ContainerStopped(pod, container))

    async def start_again(self, pod: str, container: str = "main") -> Container:
        """Start a container anew, with the answers that it has, without asking anyone."""
        found = self.pods[pod].container(container)
        async with self._sync:
            found.running = False
            found.restarts += 1
        # Outside of the sync loop, where a slow PreStartContainer holds up nobody else.
        await admission.start(self._node, self._plugins, self.pods[pod], found)
        return found

    async def complete(self, pod: str) -> None:
        """Let a pod succeed: it stays, its devices are free."""
        async with self._sync:
            self._stop(self.pods[pod])
            self.pods[pod].phase = Phase.SUCCEEDED

    async def remove(self, pod: str, *, force: bool = False) -> None:
        """Delete a pod: first its processes end, then its devices are free.

        Args:
            pod: Its name.
            force: The devices are free at once, and the processes end later; what an
                Allocate that is under way for it answers comes to nothing.
        """
        found = self.pods[pod]
        found.deleted = force
        if not force:
            await asyncio.sleep(self._timing.stop_s)
            self._stop(found)
        async with self._sync:
            del self._node.pods.by_name[pod]
        self._journal.note(events.PodRemoved(pod, force))
        if force:
            asyncio.get_running_loop().call_later(self._timing.stop_s, self._stop, found)

    def _stop(self, pod: Pod) -> None:
        for container in pod.containers:
            if container.running:
                container.running = False
                self._journal.note(events.ContainerStopped(pod.name, container.name))

    def lose_checkpoint(self) -> None:
        """Forget who holds what, as a node does whose checkpoint file was deleted."""
        for pod in self.pods.values():
            for container in pod.containers:
                container.held.clear()
