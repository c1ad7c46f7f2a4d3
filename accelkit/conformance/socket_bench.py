"""What a check over sockets works with: a driver and a simulated kubelet. Not L1."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.conformance.agent_driver import AgentDriver
from accelkit.conformance.bench import Scope
from accelkit.conformance.model import Feature, Level, Unanswered
from accelkit.conformance.sims.events import Listed, ListedDevice, Refused, Registered
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.plugins import accepts
from accelkit.conformance.sims.tasks import do
from accelkit.conformance.sims.timing import Timing
from accelkit.conformance.subjects import Driver, DriverSubject, PluginSubject, Subject
from accelkit.core.model import Device

T = TypeVar("T")

FIRST_S = 30.0
"""Until a driver that was started has sent its list."""
SOON_S = 10.0
"""For anything that a driver does by itself."""
CALL_S = 20.0
"""For a call that should answer at once; what has its own limit says so."""
NUMA_NODES = (0, 1)
DIRECTORIES = ("device-plugins", "plugins_registry")


class SocketBench(Scope):
    """One driver, one kubelet; nothing runs before *up*."""

    def __init__(self, subject: Subject, seed: int, scale: float) -> None:
        super().__init__(seed, scale)
        self.subject = subject
        self.driver: Driver = (
            AgentDriver(subject, self, self.directory())
            if isinstance(subject, PluginSubject)
            else subject.driver
        )
        fixed = subject.directory if isinstance(subject, DriverSubject) else None
        self.root: Path = fixed or self.directory() / "k"
        if fixed is not None:
            sweep(fixed)
        self.later(self.driver.kill)
        self._sim: KubeletSim | None = None

    def do(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run *coroutine* beside the kubelet, and return what it returned."""
        return do(coroutine, self.patience(60.0) + 60.0)

    # The two of them.

    @property
    def sim(self) -> KubeletSim:
        assert self._sim is not None
        return self._sim

    def kubelet(self, *, release: str = "1.37", admission_s: float = 1.0) -> KubeletSim:
        """Start a kubelet.

        Args:
            release: Of Kubernetes.
            admission_s: From its new socket to the admission of all pods, not scaled yet.
        """
        timing = Timing(
            tick_s=0.05,
            admission_s=self.patience(admission_s),
            down_s=0.05,
            stop_s=0.05,
            watch_s=0.05,
            retry_s=0.05,
            dial_s=self.patience(10.0),
            info_s=self.patience(3.0),
        )
        self._sim = KubeletSim(
            self.root, release=release, timing=timing, numa_nodes=NUMA_NODES, seed=self.seed
        )
        self.do(self._sim.start())
        self.later(lambda: self.do(self._end()))
        return self._sim

    async def _end(self) -> None:
        await self.sim.__aexit__(None, None, None)

    def up(self, *, release: str = "1.37", admission_s: float = 1.0) -> tuple[ListedDevice, ...]:
        """Start both, and wait for the first list that is not empty.

        Raises:
            Unanswered: It did not come.
        """
        self.kubelet(release=release, admission_s=admission_s)
        self.driver.start(self.root)
        return self.first()

    def first(self) -> tuple[ListedDevice, ...]:
        """The list, when there is one that is not empty.

        Raises:
            Unanswered: It did not come.
        """
        self.happens(lambda: self.listed() or self.driver.ended(), FIRST_S)
        if not self.listed():
            refused = "; ".join(e.text for e in self.sim.seen(Refused))
            said = self.driver.said()
            raise Unanswered(f"no list of devices came ({refused or 'not refused'}){said}")
        return self.listed()

    def usable(self) -> list[str]:
        """Start both; ids of the devices that can be had, at least one.

        Raises:
            Unanswered: No list came, or none of its devices is healthy.
        """
        listed = self.up()
        healthy = [device.id for device in listed if device.healthy]
        if not healthy:
            raise Unanswered(f"none of the {len(listed)} devices is healthy")
        return healthy

    def happens(self, predicate: Callable[[], object], patience_s: float = SOON_S) -> bool:
        """Whether *predicate* comes to hold."""
        try:
            self.do(self.sim.wait_for(predicate, self.patience(patience_s)))
        except TimeoutError:
            return False
        return True

    @property
    def features(self) -> frozenset[Feature]:
        """What can be done to the driver."""
        return self.subject.features(Level.L2)

    def devices(self) -> tuple[Device, ...]:
        """What the plugin itself says (TOLD)."""
        return self.driver.devices()

    @property
    def cdi(self) -> Path | None:
        """Where CDI files are written (CDI)."""
        if isinstance(self.driver, AgentDriver):
            return self.driver.cdi
        return self.subject.cdi if isinstance(self.subject, DriverSubject) else None

    # What the driver did.

    @property
    def resource(self) -> str:
        """The resource that is looked at; of a plugin the first that has devices."""
        if isinstance(self.subject, DriverSubject):
            return self.subject.resource
        prefix = f"{self.subject.vendor.domain}/"
        named = sorted(
            e.resource for e in self.sim.seen(Listed) if e.resource.startswith(prefix) and e.devices
        )
        return named[0] if named else prefix

    def lists(self) -> list[Listed]:
        """Lists of the resource, oldest first."""
        return self.sim.seen(Listed, resource=self.resource)

    def listed(self) -> tuple[ListedDevice, ...]:
        """The last list; empty: there was none."""
        lists = self.lists()
        return lists[-1].devices if lists else ()

    def ids(self) -> list[str]:
        return [device.id for device in self.listed()]

    def sick(self) -> set[str]:
        """Ids that are listed as not healthy."""
        return {device.id for device in self.listed() if not device.healthy}

    def registered(self) -> list[Registered]:
        return self.sim.seen(Registered, resource=self.resource)

    def endpoint(self) -> Path:
        """The socket of the last registration."""
        return Path(self.registered()[-1].endpoint)

    # Calls.

    def call(
        self,
        method: services.Method[services.Q, services.R],
        request: services.Q,
        timeout_s: float = CALL_S,
    ) -> services.R:
        """Call the driver past the kubelet.

        Raises:
            grpc.aio.AioRpcError: It refused, or did not answer in time.
        """

        async def ask() -> services.R:
            async with dial(self.endpoint()) as channel:
                return await services.call(
                    channel, method, request, timeout_s=self.patience(timeout_s)
                )

        return self.do(ask())

    def allocate(
        self, *containers: Sequence[str], timeout_s: float = CALL_S
    ) -> dp.AllocateResponse:
        requests = [dp.ContainerAllocateRequest(devices_ids=list(ids)) for ids in containers]
        asked = dp.AllocateRequest(container_requests=requests)
        return self.call(services.ALLOCATE, asked, timeout_s)

    def prefer(
        self, available: Sequence[str], must: Sequence[str], size: int, timeout_s: float = CALL_S
    ) -> list[str]:
        """The driver's choice."""
        asked = dp.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        answer = self.call(
            services.GET_PREFERRED,
            dp.PreferredAllocationRequest(container_requests=[asked]),
            timeout_s,
        )
        return list(answer.container_responses[0].deviceIDs) if answer.container_responses else []

    def watch(self) -> "Stream":
        """Another stream of the driver's list."""
        return self.do(_open(self.endpoint()))


class Stream:
    """One more reader of a driver's list."""

    def __init__(self, path: Path) -> None:
        self._channel = dial(path)
        self.lists: list[dp.ListAndWatchResponse] = []
        self.error: grpc.aio.AioRpcError | None = None
        self._reading = asyncio.Event()
        self._reading.set()
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        messages: AsyncGenerator[dp.ListAndWatchResponse, None] = services.watch(
            self._channel, services.LIST_AND_WATCH, dp.Empty()
        )
        try:
            async with aclosing(messages):
                async for message in messages:
                    self.lists.append(message)
                    await self._reading.wait()
        except grpc.aio.AioRpcError as error:
            self.error = error

    @property
    def ended(self) -> bool:
        return self._task.done()

    def sick(self) -> set[str]:
        """Ids that the newest list calls unhealthy."""
        last = self.lists[-1].devices if self.lists else ()
        return {device.ID for device in last if device.health != "Healthy"}

    async def pause(self) -> None:
        """Read nothing more, but for one list at most."""
        self._reading.clear()

    async def go_on(self) -> None:
        """Read again."""
        self._reading.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._channel.close()


async def _open(path: Path) -> Stream:
    return Stream(path)


def sweep(root: Path) -> None:
    """Remove sockets below *root* that nobody listens on: those of drivers that were killed."""
    for directory in DIRECTORIES:
        for path in (root / directory).glob("*"):
            if path.is_socket() and not accepts(path):
                path.unlink(missing_ok=True)


def refusal(call: Callable[[], object]) -> grpc.aio.AioRpcError | None:
    """The error of *call*; None: it was answered."""
    try:
        call()
    except grpc.aio.AioRpcError as error:
        return error
    return None
