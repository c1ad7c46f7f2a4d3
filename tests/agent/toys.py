# ruff: noqa: ARG002 - toys need little of what they are told
"""Toy vendors, a toy backend, and an agent made of them."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import attrs

from accelkit.agent.agent import Agent, Parts
from accelkit.core.allocation import ContainerEdits, Edits, Grant, Setting
from accelkit.core.backend import BackendFactory, BackendStatus, NodePort
from accelkit.core.clock import RealClock
from accelkit.core.errors import DriverNotReady, MissingParts
from accelkit.core.host import Host
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Event,
    Evidence,
    Mode,
    Placement,
    Profile,
    Unreadable,
)
from accelkit.core.policy import Http, Offer, Paths, Policy, Read, Seconds, Timeslice
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap, Severity
from accelkit.core.vendor import (
    NoOptions,
    Signals,
    SupportsEvents,
    SupportsHealth,
    SupportsPartitioning,
    SupportsPreparation,
    Vendor,
)
from accelkit.core.view import View

QUICK = Read(
    inventory=Seconds(0.05), health=Seconds(0.05), holdings=Seconds(0.05), debounce=Seconds(0.01)
)
PATIENCE_S = 10.0
BOOT = "22222222-2222-4222-8222-222222222222"


class Toy(Vendor):
    """Devices as a test says them, edits that name them."""

    name = "toy"
    domain = "toy.example.com"

    def __init__(self, options: object = None) -> None:
        super().__init__(options or NoOptions())
        self.names: tuple[str, ...] = ("a", "b")
        self.missing: frozenset[str] = frozenset()
        """Devices whose edits cannot be made."""
        self.failing = False
        self.discovers = 0
        self.asked: list[str] = []
        """Devices whose edits were asked for, in order."""

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.discovers += 1
        if self.failing:
            raise DriverNotReady("it was unloaded")
        for name in self.names:
            yield self.device(name, kind="toy")

    def edits(self, host: Host, grant: Grant) -> Edits:
        ids = [granted.device.id for granted in grant.granted]
        self.asked += [i.name for i in ids]
        for i in ids:
            if i.name in self.missing:
                raise MissingParts(f"/dev/{i.name} is not there")
        return Edits(
            each=FrozenMap({i: ContainerEdits(env=FrozenMap({"TOY": i.name})) for i in ids})
        )


class Hanging(Toy):
    """Does not come back from discover until it is let go."""

    name = "hanging"
    domain = "hanging.example.com"

    def __init__(self, options: object = None) -> None:
        super().__init__(options)
        self.go = threading.Event()

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.go.wait()
        return super().discover(host)


class Raising(Toy):
    """Knows nothing, and says so in the worst way."""

    name = "raising"
    domain = "raising.example.com"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        raise SystemExit("no reason")


class NotReady(Toy):
    name = "notready"
    domain = "notready.example.com"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        raise DriverNotReady("the driver is not loaded", remedy="load it")


class Rubbish(Toy):
    """Yields what is no device."""

    name = "rubbish"
    domain = "rubbish.example.com"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        return [42]  # type: ignore[list-item]  # that is the point


class Listening(Toy, SupportsEvents, SupportsHealth):
    """Hears events from a queue of its own; an event makes a device unhealthy."""

    name = "listening"
    domain = "listening.example.com"

    def __init__(self, options: object = None) -> None:
        super().__init__(options)
        self.news = threading.Condition()
        self.events: list[Event | Exception] = []

    def tell(self, event: Event | Exception) -> None:
        with self.news:
            self.events.append(event)
            self.news.notify()

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        with self.news:
            self.news.wait_for(lambda: self.events, 0.2)
            heard, self.events = self.events, []
        for event in heard:
            if isinstance(event, Exception):
                raise event
        return [event for event in heard if isinstance(event, Event)]

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for found in evidence:
            yield Condition(code=found.code, severity=Severity.FATAL)


class Ill(Toy, SupportsHealth):
    """Its devices are ill while a test says so."""

    name = "ill"
    domain = "ill.example.com"
    ill = True
    looks = 0

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        self.looks += 1
        return [Condition(code="burnt", severity=Severity.FATAL)] if self.ill else []


class Sets(Toy):
    """Its edits describe the set."""

    name = "sets"
    domain = "sets.example.com"
    sets = True

    def __init__(self, options: object = None) -> None:
        super().__init__(options)
        self.go = threading.Event()
        self.go.set()

    def edits(self, host: Host, grant: Grant) -> Edits:
        self.go.wait()
        edits = super().edits(host, grant)
        ids = ",".join(granted.device.id.name for granted in grant.granted)
        return attrs.evolve(edits, whole=ContainerEdits(env=FrozenMap({"SET": ids})))


class Watching(Toy):
    """Wants to be read again when files come or go."""

    name = "watching"
    domain = "watching.example.com"
    signals = Signals(files=("/dev/toy*",))

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.discovers += 1
        for name in host.names("/dev"):
            yield self.device(name, kind="toy")


class Cutting(Toy, SupportsPartitioning, SupportsPreparation):
    """One device of two halves, *wide* or not, with a switch; all of it on the host as files.

    Files are below ``/cut``: ``mode``, ``half-0``, ``half-1`` and ``switch``, each with what is
    true; work calls write them.
    """

    name = "cutting"
    domain = "cutting.example.com"
    half = Profile(name="half", slug="half", size=1, starts=(0, 1), mode="cut")

    def __init__(self, options: object = None) -> None:
        super().__init__(options)
        self.go = threading.Event()
        """Work calls begin when it is set."""
        self.go.set()
        self.raising: Exception | None = None
        """What work calls raise."""
        self.works: list[str] = []

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.discovers += 1
        if not host.exists("/cut/mode"):
            raise DriverNotReady("its driver is not loaded")
        whole = self.whole(host)
        yield whole
        for start in (0, 1):
            if host.read(f"/cut/half-{start}") == "made":
                yield self.partition(whole, self.half, start)

    def whole(self, host: Host) -> Device:
        mode = host.read("/cut/mode")
        return self.device(
            "a",
            kind="toy",
            slots=2,
            profiles=(self.half,),
            modes=(Mode(name="cut", live=True), Mode(name="whole", live=True)),
            mode=mode,
            usable=mode == "whole",
        )

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        self._work(f"create {placement.start}")
        host.write(f"/cut/half-{placement.start}", "made")
        return self.partition(parent, self.half, placement.start)

    def destroy(self, host: Host, partition: Device) -> None:
        assert partition.placement is not None
        self._work(f"destroy {partition.placement.start}")
        host.write(f"/cut/half-{partition.placement.start}", "")

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        self._work(f"set mode {mode}")
        host.write("/cut/mode", mode)

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        wanted = grant.sharing.timeslice
        if wanted is not Timeslice.DEFAULT:
            for granted in grant.granted:
                yield Setting(device=granted.device.root, key="switch", value=wanted)

    def apply(self, host: Host, setting: Setting) -> None:
        self._work(f"apply {setting.value}")
        host.write("/cut/switch", setting.value)

    def revert(self, host: Host, setting: Setting) -> None:
        self._work("revert")
        host.write("/cut/switch", "")

    def _work(self, what: str) -> None:
        self.works.append(what)
        self.go.wait()
        if self.raising is not None:
            raise self.raising


def cut_host(tmp_path: Path, mode: str = "cut", *made: int) -> RealHost:
    """A host with the device of Cutting, in *mode*, with the halves *made*."""
    folder = tmp_path / "host" / "cut"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mode").write_text(mode)
    (folder / "switch").write_text("")
    for start in (0, 1):
        (folder / f"half-{start}").write_text("made" if start in made else "")
    return RealHost(str(tmp_path / "host"))


class ToyBackend:
    """Keeps the devices of every view that it was shown."""

    name: ClassVar[str] = "kubelet"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.seen: list[tuple[str, ...]] = []
        self.node: NodePort | None = None
        self.fail: Exception | None = None

    def render(self, view: View) -> tuple[str, ...]:
        return tuple(
            f"{device.id}:{view.verdicts[device.id].health}"
            for device in view.snapshot.devices
            if device.id in view.edits
        )

    async def serve(self, node: NodePort) -> None:
        self.node = node
        if self.fail is not None:
            raise self.fail
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(node))
            while True:
                await node.leading.changed()
                self._report(node)

    async def _follow(self, node: NodePort) -> None:
        async for view in node.views():
            self.seen.append(self.render(view))
            self._report(node)

    def _report(self, node: NodePort) -> None:
        if node.answered():
            up = node.leading.now
            node.report(BackendStatus(backend=self.name, registered=up, published=up))


def policy(tmp_path: Path) -> Policy:
    """A quick policy with its run directory below *tmp_path*."""
    return Policy(
        paths=Paths(run=str(tmp_path / "run"), cdi=str(tmp_path / "cdi")),
        http=Http(listen="127.0.0.1:0"),
        read=QUICK,
        offers=(Offer(name="all"),),
    )


def parts(tmp_path: Path, *vendors: Vendor, wanted: Policy | None = None) -> Parts:
    """An agent of *vendors* and the toy backend."""
    (tmp_path / "host").mkdir(exist_ok=True)
    return Parts(
        node="n1",
        policy=wanted or policy(tmp_path),
        vendors=vendors,
        backends={"kubelet": BackendFactory(name="kubelet", create=ToyBackend)},
        host=RealHost(str(tmp_path / "host")),
        clock=RealClock(),
        version="1.2.3",
        boot=BOOT,
    )


@asynccontextmanager
async def running(made: Parts) -> AsyncIterator[Agent]:
    """An agent that runs, and is ended in the end."""
    agent = Agent(made)
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        agent.stop()
        await task


def served(agent: Agent) -> ToyBackend:
    """The toy backend of *agent*, once it serves."""
    backend = agent._backends.made["kubelet"]
    assert isinstance(backend, ToyBackend)
    return backend


def port_of(agent: Agent) -> NodePort:
    """What its toy backend may ask."""
    node = served(agent).node
    assert node is not None
    return node


def view_of(agent: Agent) -> View:
    return agent._knowledge.store.view


def health_of(agent: Agent) -> dict[str, str]:
    """Health of every device by its id."""
    return {str(i): v.health.value for i, v in view_of(agent).verdicts.items()}


def codes_of(agent: Agent) -> set[str]:
    """Codes of every problem there is."""
    return {problem.code for problem in agent.problems()}


async def ready(agent: Agent) -> None:
    await until(lambda: not agent.why_not_ready())


async def until(condition: Callable[[], object]) -> None:
    """Wait until *condition* is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


async def get(where: Path | int, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and body of an HTTP request to a unix socket or a local port."""
    if isinstance(where, Path):
        reader, writer = await asyncio.open_unix_connection(where)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", where)
    writer.write(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def get_json(where: Path | int, path: str) -> object:
    status, body = await get(where, path)
    assert status == 200, body
    answer: object = json.loads(body)
    return answer


def device(vendor: str, name: str) -> DeviceId:
    return DeviceId(vendor=vendor, name=name)
