"""A simulated kubelet's connections to DRA drivers. Not here: claims, and who asks for them.

Source:
    kubernetes v1.37.2, pkg/kubelet/cm/dra (manager, plugin); seen on 1.34 to 1.37.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path

import grpc
import grpc.aio
from attrs import define, field, frozen

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra, drahealth, registration as reg
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.dra.events import (
    DriverGone,
    DriverRegistered,
    HealthEnded,
    HealthHeard,
    PreparedDevice,
)
from accelkit.conformance.sims.dra.health import HealthCache
from accelkit.conformance.sims.events import Journal
from accelkit.conformance.sims.plugins import said, unknown
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing
from accelkit.core.allocation import ClaimRef

CONNECT_S = 1.0
KNOWN = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
_HEALTH_OF = {34: (), 35: (), 36: ("v1alpha1",), 37: ("v1", "v1alpha1")}
"""Health services by the minor release; before 1.36 the gate is off."""
_WATCH = {"v1": services.WATCH_HEALTH, "v1alpha1": services.WATCH_HEALTH_ALPHA}


class DriverFault(Exception):
    """A call failed, or an answer cannot be used; the text is what a kubelet would write."""


@define(eq=False)
class Instance:
    """One registered process of a driver."""

    driver: str
    path: str
    version: str
    health: str
    channel: grpc.aio.Channel
    following: "asyncio.Task[None] | None" = None

    @property
    def connected(self) -> bool:
        # Looked at, not tried: nobody dials a driver all the time.
        state = self.channel.get_state(try_to_connect=True)
        return state is grpc.ChannelConnectivity.READY


@frozen
class Answered:
    """What came of a call, by the uid of each claim."""

    devices: Mapping[str, tuple[PreparedDevice, ...]] = field(factory=dict)
    errors: Mapping[str, str] = field(factory=dict)


class Drivers:
    """All instances of all drivers, in one kubelet's life.

    Args:
        minor: Of the release.
        journal: Gets the events.
        timing: How long things take.
        health: Gets what is heard.
    """

    def __init__(self, minor: int, journal: Journal, timing: Timing, health: HealthCache) -> None:
        self._minor = minor
        self._journal = journal
        self._timing = timing
        self._health = health
        self._known: list[Instance] = []
        self.news = asyncio.Event()
        """Set once a driver has registered."""
        self.refuses: Callable[[], str] = str
        """Why no driver is registered; empty: they are."""
        self.ever: set[str] = set()
        """Drivers that registered in this life, and whose slices were not removed since."""

    # The handler of the plugin watcher.

    def check(self, path: Path, info: reg.PluginInfo) -> str:
        if refusal := self.refuses():
            return refusal
        if any(version in KNOWN for version in info.supported_versions):
            return ""
        endpoint = info.endpoint or path
        return (
            "plugin validation failed with err: invalid supported gRPC versions of DRA driver "
            f"plugin {info.name} at endpoint {endpoint}: none of services supported by the plugin "
            f"({_listed(info.supported_versions)}) are supported by the kubelet ({_listed(KNOWN)})"
        )

    async def connect(self, info: reg.PluginInfo, endpoint: Path) -> None:
        """Take an instance; it gets the calls from now on.

        Raises:
            StatusError: Its socket is known.
        """
        path = str(endpoint)
        if any((one.driver, one.path) == (info.name, path) for one in self._known):
            raise unknown(f"endpoint {path} already registered for DRA driver plugin {info.name}")
        first = next(v for v in info.supported_versions if v in KNOWN)
        one = Instance(
            info.name,
            path,
            first.partition(".")[0],
            self._health_service(info.supported_versions),
            dial(endpoint),
        )
        with contextlib.suppress(TimeoutError):  # it is called whether that succeeds or not
            async with asyncio.timeout(CONNECT_S):
                await one.channel.channel_ready()
        self._known.append(one)
        if one.health:
            one.following = asyncio.create_task(self._follow(one))
        self._journal.note(DriverRegistered(one.driver, path, one.version, one.health))
        self.ever.add(one.driver)
        self.news.set()

    async def disconnect(self, name: str, endpoint: str) -> None:
        """Take a registration back."""
        for one in [o for o in self._known if (o.driver, o.path) == (name, endpoint)]:
            self._known.remove(one)
            await self._cut(one)
            self._journal.note(DriverGone(name, endpoint))

    async def close(self) -> None:
        """End every connection at once."""
        known, self._known = self._known, []
        for one in known:
            await self._cut(one)

    def _health_service(self, offered: Iterable[str]) -> str:
        known = _HEALTH_OF[self._minor]
        if self._minor <= 36:  # asked whether it says that it has it or not
            return known[0] if known else ""
        return next((v for v in known if f"{v}.DRAResourceHealth" in offered), "")

    async def _cut(self, one: Instance) -> None:
        if one.following is not None:
            await cancel(one.following)
            self._end_health(one, "disconnected by the kubelet")
        await one.channel.close()

    # Who there is.

    @property
    def names(self) -> frozenset[str]:
        """Drivers that are registered."""
        return frozenset(one.driver for one in self._known)

    @property
    def alive(self) -> frozenset[str]:
        """Drivers of which an instance can be reached."""
        return frozenset(one.driver for one in self._known if one.connected)

    def instance(self, driver: str) -> Instance | None:
        """Who gets the calls: of those that can be reached the one that registered last."""
        mine = [one for one in self._known if one.driver == driver]
        reached = [one for one in mine if one.connected]
        return next(reversed(reached or mine), None)

    # Calls.

    async def prepare(self, one: Instance, claims: Iterable[ClaimRef]) -> Answered:
        """Ask for claims, all of a pod.

        Raises:
            DriverFault: The whole answer is worth nothing.
        """
        method = services.PREPARE if one.version == "v1" else services.PREPARE_BETA
        request = dra.NodePrepareResourcesRequest(claims=_messages(claims))
        answer = (await self._call(one, method, request, "NodePrepareResources")).claims
        _check_uids(answer.keys(), claims, "NodePrepareResources")
        return Answered(
            {u: tuple(map(PreparedDevice.of, a.devices)) for u, a in answer.items() if not a.error},
            {u: a.error for u, a in answer.items() if a.error},
        )

    async def unprepare(self, one: Instance, claims: Iterable[ClaimRef]) -> Answered:
        """Give claims back.

        Raises:
            DriverFault: The whole answer is worth nothing.
        """
        method = services.UNPREPARE if one.version == "v1" else services.UNPREPARE_BETA
        request = dra.NodeUnprepareResourcesRequest(claims=_messages(claims))
        answer = (await self._call(one, method, request, "NodeUnprepareResources")).claims
        _check_uids(answer.keys(), claims, "NodeUnprepareResources")
        return Answered(errors={u: a.error for u, a in answer.items() if a.error})

    async def _call(
        self,
        one: Instance,
        method: services.Method[services.Q, services.R],
        request: services.Q,
        name: str,
    ) -> services.R:
        try:
            return await services.call(
                one.channel, method, request, timeout_s=self._timing.prepare_s
            )
        except grpc.aio.AioRpcError as error:
            raise DriverFault(f"{name}: {said(error)}") from error
        except asyncio.CancelledError:
            # A channel that is closed cancels its calls, which looks as if we were cancelled.
            if one in self._known:
                raise
            text = "rpc error: code = Canceled desc = grpc: the client connection is closing"
            raise DriverFault(f"{name}: {text}") from None

    # Health.

    async def _follow(self, one: Instance) -> None:
        """Keep one stream open; since 1.37 not to a driver that does not know the call."""
        while True:
            code, why = await self._listen(one)
            self._end_health(one, why)
            if code is grpc.StatusCode.UNIMPLEMENTED and self._minor > 36:
                one.following = None
                return
            await asyncio.sleep(self._timing.health_again_s)

    async def _listen(self, one: Instance) -> tuple[grpc.StatusCode, str]:
        messages = services.watch(
            one.channel, _WATCH[one.health], drahealth.NodeWatchResourcesRequest()
        )
        try:
            async with aclosing(messages):
                async for message in messages:
                    self._health.hear(one.driver, message)
                    words = {
                        d.device.device_name: (
                            self._health.of(one.driver, d.device.pool_name, d.device.device_name)[
                                0
                            ],
                            d.message,
                        )
                        for d in message.devices
                    }
                    sizes = tuple(len(d.message.encode()) for d in message.devices if d.message)
                    self._journal.note(HealthHeard(one.driver, one.path, words, sizes))
        except grpc.aio.AioRpcError as error:
            return error.code(), said(error)
        return grpc.StatusCode.OK, "ended by the driver"

    def _end_health(self, one: Instance, why: str) -> None:
        self._health.forget(one.driver)
        self._journal.note(HealthEnded(one.driver, one.path, why))


def _messages(claims: Iterable[ClaimRef]) -> list[dra.Claim]:
    return [dra.Claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims]


def _check_uids(answered: Iterable[str], claims: Iterable[ClaimRef], call: str) -> None:
    asked, found = {claim.uid for claim in claims}, set(answered)
    if alien := sorted(found - asked):
        raise DriverFault(f"{call} returned result for unknown claim UID {alien[0]}")
    if missing := asked - found:
        raise DriverFault(f"{call} skipped {len(missing)} ResourceClaims")


def _listed(words: Iterable[str]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
