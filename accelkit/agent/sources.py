"""One vendor as the agent sees it: its lanes, and what they brought. Not here: when to ask."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TypeVar

import attrs

from accelkit.agent import calls
from accelkit.agent.calls import MARGIN_S, Asked, Call, Here, Isolated
from accelkit.agent.lanes import DEADLINES_S, LISTEN_S, Lane, Lanes, Observe
from accelkit.agent.made import MadeEdits, Offered, bare
from accelkit.agent.signals import Bell, Seen, seen
from accelkit.core.allocation import ContainerEdits, Edits, Finding, Grant, Sample
from accelkit.core.clock import Clock
from accelkit.core.errors import (
    AccelkitError,
    AllocationError,
    PluginError,
    SourceError,
    SourceTimeout,
)
from accelkit.core.foreign import code_of, in_words, remedy_of, text_of
from accelkit.core.host import Host
from accelkit.core.model import (
    Device,
    DeviceId,
    Event,
    Evidence,
    Holding,
    Problem,
    VendorReport,
)
from accelkit.core.policy import Offer
from accelkit.core.reading import HealthReading
from accelkit.core.values import FrozenMap, Standing
from accelkit.core.vendor import Signal, Signals, SupportsDiagnosis, SupportsHolders, Vendor

T = TypeVar("T")

log = logging.getLogger(__name__)

FILES_S = DEADLINES_S["signals"]
"""How long listing watched files may take; not a call of the vendor, so no scale changes it."""
SET_S = 2.0
"""How long Allocate waits for the edits of a set: it holds up the kubelet's whole sync loop."""


class Source:
    """Asks one vendor, each call in its lane; no fault of the vendor leaves this object.

    Args:
        vendor: The plugin's object, or what to make it of in a process of its own.
        host: The door.
        scale: Multiplies every deadline.
        observe: Told of every call: vendor, call, outcome, seconds.
    """

    def __init__(
        self,
        vendor: Vendor | Isolated,
        host: Host,
        scale: float,
        clock: Clock,
        observe: Observe = lambda _call, _outcome, _seconds: None,
    ) -> None:
        self.name = vendor.name
        self.kind = vendor.kind if isinstance(vendor, Isolated) else type(vendor)
        """Its class: what it declares, and its abilities."""
        self.inventory = Bell()
        """Rung when the vendor should be read again."""
        self.free = Bell()
        """Rung when it can be asked again, before it is read: what hangs may do so again."""
        self.health = Bell()
        """Rung when its devices' conditions should be read again."""
        self.lanes = Lanes(
            vendor.name,
            self.kind.parallel,
            scale,
            clock,
            observe=observe,
            freed=self._ring,
            margin_s=MARGIN_S if isinstance(vendor, Isolated) else 0.0,
        )
        self._files = Lane(vendor.name, clock)
        self.report: VendorReport | None = None
        """What it said last; None: it has not been asked yet, or does not answer yet."""
        self.asked = 0
        """How often its reading has begun."""
        self.heard = 0
        """Which of these brought the report."""
        self.reading: HealthReading | None = None
        self.processes: tuple[Holding, ...] = ()
        """Processes that use its devices."""
        self.turn = asyncio.Lock()
        """Held while it is read and what it said is put together."""
        self.made = MadeEdits()
        self.problems: dict[tuple[str, str], Problem] = {}
        """By what was asked and for whom: what could not be done beside reading."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = self._asked_of(vendor, host, clock)
        self._host = host
        self._clock = clock
        self._software: FrozenMap[str, str] = FrozenMap()

    def _asked_of(self, vendor: Vendor | Isolated, host: Host, clock: Clock) -> Asked:
        if not isinstance(vendor, Isolated):
            return Here(vendor, host)
        from accelkit.agent.remote import Remote  # noqa: PLC0415 - most nodes need none

        return Remote(vendor, clock, self._wake)

    def _wake(self, pause_s: float) -> None:
        """Read again after *pause_s*; called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads any more
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.call_later, pause_s, self._ring)

    def _ring(self) -> None:
        self.free.ring()
        self.inventory.ring(urgent=True)

    async def read(self) -> VendorReport:
        """Everything that it sees now; never raises."""
        self.asked += 1
        begun = self._clock.monotonic()
        try:
            report = await self._read(calls.INVENTORY)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            report = VendorReport(
                vendor=self.name, answered=False, problems=(self._problem(None, error),)
            )
        return attrs.evolve(report, took_s=self._clock.monotonic() - begun)

    async def assess(
        self, devices: Iterable[Device], evidence: tuple[Evidence, ...]
    ) -> HealthReading:
        """How its *devices* are; never raises."""
        ours = tuple(device for device in devices if device.id.vendor == self.name)
        try:
            found = await self._read(calls.CONDITIONS, ours, evidence)
            return attrs.evolve(found, unheard=self.unheard)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problem = self._problem(None, error)
            return HealthReading(
                vendor=self.name,
                failed=FrozenMap((device.id, problem) for device in ours),
                problems=(problem,),
                unheard=self.unheard,
            )

    async def make_edits(self, wanted: Offered, report: VendorReport) -> None:
        """Make what is missing or out of date of the edits of *wanted*; never raises.

        What cannot be made is tried again at the next call; edits of a device as it was before
        would be a guess. So would those of one that its vendor does not find any more, say since
        its driver is gone: they are asked for again.
        """
        if report.answered:
            self._software = report.software
        for device, terms in wanted.values():
            stale = report.answered and device.standing is Standing.STALE
            if stale or not self.made.current(device, terms, self._software):
                await self._make(device, terms)

    def forget_edits_but(self, *offered: Offered) -> None:
        """Forget edits of devices, and for terms, that none of *offered* has any more."""
        for gone in self.made.forget_all_but(*offered):
            self.problems.pop(("edits", gone.name), None)

    async def _make(self, device: Device, terms: Offer) -> None:
        subject = ("edits", device.id.name)
        edits: ContainerEdits | None = None
        try:
            edits = await self._work(calls.LONE_EDITS, (bare(device), terms), {device.root})
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            current = self.made.current(device, terms, self._software)
            if current and not isinstance(error, AllocationError):
                return  # it does not say that they are wrong
            self._note(subject, error)
        else:
            self.problems.pop(subject, None)
        self.made.keep(device, terms, self._software, edits)

    async def set_edits(self, grant: Grant) -> Edits:
        """What containers need for the set *grant*, within 2 s.

        Raises:
            AllocationError: The vendor refuses the set.
            SourceError: The vendor did not answer, or in time.
            PluginError: It answered what it must not.
        """
        try:
            async with asyncio.timeout(SET_S):
                return await self.work(calls.SET_EDITS, (grant,), roots_of(grant))
        except TimeoutError:
            raise SourceTimeout(
                f"{self.name}: no lane was free for the edits of a set in {SET_S:g} s",
                vendor=self.name,
                operation="set edits",
            ) from None

    async def work(self, call: Call[T], args: tuple[object, ...], about: Collection[DeviceId]) -> T:
        """Let the vendor work at the whole devices *about*.

        Raises:
            AccelkitError: Of the vendor's contract; whatever else it raises is a PluginError.
        """
        return await self._typed(self._work(call, args, about))

    async def look(self, call: Call[T], *args: object) -> T:
        """Ask the vendor for what decides a work call; errors are those of *work*."""
        return await self.look_then(call, lambda: args)

    async def look_then(self, call: Call[T], args: Callable[[], tuple[object, ...]]) -> T:
        """The same, with what *args* returns in the lane's thread, just before it is asked."""
        self._loop = asyncio.get_running_loop()
        deadline_s = self.lanes.deadline_s(call.lane)

        def ask() -> T:
            return self._asked.ask(call, args(), deadline_s)

        return await self._typed(self.lanes.read(call.lane, ask))

    def check(self, call: Call[object], about: Collection[DeviceId]) -> None:
        """Refuse *call* while an earlier one may still change the whole devices *about*.

        Raises:
            SourceTimeout: One may.
        """
        self.lanes.check(call.lane, about)
        self._asked.check(call.lane, about)

    async def _read(self, call: Call[T], *args: object) -> T:
        return await self.lanes.read(call.lane, self._ask(call, args))

    async def _told(self, call: Call[T], *args: object) -> T | None:
        """The answer; None: there is none, which is a problem until there is. Never raises."""
        try:
            answer = await self._read(call, *args)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            self._note((call.name, ""), error)
            return None
        self.problems.pop((call.name, ""), None)
        return answer

    async def _work(
        self, call: Call[T], args: tuple[object, ...], about: Collection[DeviceId]
    ) -> T:
        self._asked.check(call.lane, about)
        return await self.lanes.work(call.lane, self._ask(call, args, about), about)

    def _ask(
        self, call: Call[T], args: tuple[object, ...], about: Collection[DeviceId] = ()
    ) -> Callable[[], T]:
        self._loop = asyncio.get_running_loop()
        return partial(self._asked.ask, call, args, self.lanes.deadline_s(call.lane), about)

    async def _typed(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except AccelkitError:
            raise
        except Exception as error:
            raise PluginError(f"{self.name}: {in_words(error)}", plugin=self.name) from error

    async def listen(self) -> tuple[Event, ...]:
        """What its library told within 5 s.

        Raises:
            Exception: Whatever the vendor raised.
        """
        ask = self._ask(calls.LISTEN, (LISTEN_S,))
        return await self.lanes.listen(lambda: tuple(ask()))

    async def ask_holders(self, devices: Iterable[Device]) -> None:
        """Learn which processes use its *devices*; never raises."""
        if not issubclass(self.kind, SupportsHolders):
            return
        ours = tuple(device for device in devices if device.id.vendor == self.name)
        found = await self._told(calls.HOLDERS, ours)
        if found is not None:
            self.processes = found

    async def diagnose(self) -> tuple[Finding, ...]:
        """What it finds wrong with the host; never raises."""
        if not issubclass(self.kind, SupportsDiagnosis):
            return ()
        return await self._told(calls.DIAGNOSE) or ()

    async def measure(self, devices: Iterable[Device]) -> tuple[Sample, ...] | None:
        """What is measured of its *devices* now; None: it could not be. Never raises."""
        ours = tuple(device for device in devices if device.id.vendor == self.name)
        return await self._told(calls.SAMPLES, ours)

    @property
    def watches_files(self) -> bool:
        """Whether its signals name files; where options decide, it cannot be known here."""
        signals = self.kind.signals
        return bool(signals.files) if isinstance(signals, Signals) else True

    async def signals(self) -> Signals | None:
        """What it wants to hear of the kernel; None: not known. Never raises."""
        told: object = self.kind.signals
        if isinstance(told, Signals):
            return told
        ask = partial(self._asked.ask, calls.SIGNALS, (), FILES_S)
        try:
            return await self._files.call("signals", ask, deadline_s=FILES_S)
        except Exception as error:  # noqa: BLE001 - signals may be a property of the plugin
            self._note(("signals", ""), error)
            return None

    async def interpret(self, signal: Signal) -> tuple[Event, ...]:
        """What *signal* means to it; nothing where that is a bug of it.

        Raises:
            SourceError: It could not be asked, or did not answer in time.
        """
        key = (calls.INTERPRET.name, "")
        try:
            events = await self._read(calls.INTERPRET, signal)
        except Exception as error:
            self._note(key, error)
            if isinstance(error, SourceError):
                raise
            return ()
        self.problems.pop(key, None)
        return events

    async def watched_files(self) -> Seen | None:
        """Files that its signals name, as they are now; None: not known. Never raises."""
        declared = self.kind.signals
        ask = partial(self._asked.ask, calls.SIGNALS, (), FILES_S)
        try:
            return await self._files.call(
                "signals",
                # Where options decide, the object knows; it may be in another process.
                lambda: seen(
                    self._host, (declared if isinstance(declared, Signals) else ask()).files
                ),
                deadline_s=FILES_S,
            )
        except Exception as error:  # noqa: BLE001 - signals may be a property of the plugin
            self._note(("signals", ""), error)
            return None

    @property
    def unheard(self) -> bool:
        """Whether the last listen call failed."""
        return ("listen", "") in self.problems

    def hears(self, error: Exception | None = None) -> None:
        """Note how the last listen call ended; its devices are as unknown as its events."""
        before = self.unheard
        if error is None:
            self.problems.pop(("listen", ""), None)
        else:
            self._note(("listen", ""), error)
        if self.unheard != before:
            self.health.ring()

    @property
    def stuck(self) -> int:
        """How many calls overran and go on."""
        return self.lanes.stuck + self._asked.hanging

    @property
    def restarts(self) -> Mapping[str, int]:
        """How often its process was started again, by the reason; empty: it has none."""
        return self._asked.restarts

    def close(self) -> None:
        """Let the vendor drop its sessions, and threads end; nobody waits for either."""
        if isinstance(self._asked, Here):
            self.lanes.close(self._asked.close)  # in a thread of its own: it may hang
        else:
            self._asked.close()
            self.lanes.close()
        self._files.close()

    def _note(self, key: tuple[str, str], error: Exception) -> None:
        what, subject = key
        problem = self._problem(subject or what, error)
        if self.problems.get(key) != problem:
            log.warning(
                "vendor call failed",
                extra={
                    "vendor": self.name,
                    "call": what,
                    "device": subject,
                    "code": problem.code,
                    "reason": problem.reason,
                },
            )
        self.problems[key] = problem

    def _problem(self, subject: str | None, error: Exception) -> Problem:
        known = isinstance(error, AccelkitError)
        return Problem(
            vendor=self.name,
            subject=subject,
            code=code_of(error),
            reason=text_of(error) if known else in_words(error),
            remedy=remedy_of(error)
            if known
            else f"report it to the author of the plugin for {self.name}",
            since=self._clock.now(),
        )


def roots_of(grant: Grant) -> frozenset[DeviceId]:
    """The whole devices that *grant* is about."""
    return frozenset(granted.device.root for granted in grant.granted)
