"""What the kernel says, to the vendors that want to know. Not here: how it is heard."""

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterable

from accelkit.agent.heard import Numbered
from accelkit.agent.kernel import MISSED, NUMBER, SAID_US, UEVENT
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.sources import Source
from accelkit.core.clock import Clock
from accelkit.core.errors import DriverUnresponsive, SourceError
from accelkit.core.vendor import Signal, Signals, SupportsSignals

log = logging.getLogger(__name__)

SEQNUM = "SEQNUM"
"""Linux, lib/kobject_uevent.c."""
PAUSES_S = (1.0, 10.0)
"""Shortest and longest pause until a vendor is asked again of which nothing is heard meanwhile."""
MOST_TRIES = 20
"""So often a vendor may fail at one signal, not counting the times when it could not be asked."""
MOST_WAITING = 1 << 14
"""Signals that one vendor wants and was not asked about yet; more are dropped."""


class Interpreting:
    """Lets each vendor say what the signals mean that it named, in their order.

    The kernel says a thing once, and often just when a driver hangs: who does not answer is asked
    again, and nobody waits for anybody else.
    """

    def __init__(self, knowledge: Knowledge, clock: Clock) -> None:
        sources = knowledge.sources.values()
        self._listeners = tuple(_Listener(knowledge, source, clock) for source in sources)

    async def take(self, signal: Signal) -> None:
        """Have every vendor that wants *signal* asked about it."""
        for listener in self._listeners:
            listener.take(signal)

    def loops(self) -> Iterable[Coroutine[None, None, None]]:
        """One for each vendor, as long as the agent runs."""
        return (listener.ask() for listener in self._listeners)


class _Listener:
    """Asks one vendor.

    A uevent of a subsystem that it named wakes its reader, too.
    """

    def __init__(self, knowledge: Knowledge, source: Source, clock: Clock) -> None:
        self._knowledge = knowledge
        self._source = source
        self._clock = clock
        declared: object = source.kind.signals
        self._wanted = declared if isinstance(declared, Signals) else None
        self.waiting: asyncio.Queue[tuple[Signal, float]] = asyncio.Queue(MOST_WAITING)
        """Signals, and when they were said in monotonic seconds."""

    def take(self, signal: Signal) -> None:
        if signal.source == MISSED:
            self._source.inventory.ring()
            self._source.health.ring()
        elif self._wanted is not None and not _matches(self._wanted, signal):
            return
        elif self.waiting.full():
            log.warning("signal is dropped", extra=self._about(signal))
        else:
            said_us = _count(signal, SAID_US)
            said_s = self._clock.monotonic() if said_us is None else said_us / 1e6
            self.waiting.put_nowait((signal, said_s))

    async def ask(self) -> None:
        while True:
            signal, said_s = await self.waiting.get()
            await self._ask_about(signal, said_s)
            self.waiting.task_done()

    async def _ask_about(self, signal: Signal, said_s: float) -> None:
        pause, longest = PAUSES_S
        tries = 0
        while tries < MOST_TRIES:
            try:
                if await self._answered(signal, said_s):
                    return
                tries += 1
            except DriverUnresponsive:
                pass  # nobody asked it
            except SourceError:
                tries += not self._source.lanes.reads_hang
            await self._source.free.wait(self._clock, pause)
            pause = min(pause * 2, longest)
        log.warning("signal is given up", extra=self._about(signal))

    async def _answered(self, signal: Signal, said_s: float) -> bool:
        """Whether the vendor has nothing to say, or has said it.

        Raises:
            SourceError: It could not be asked what *signal* means.
        """
        source = self._source
        if self._wanted is None:
            self._wanted = await source.signals()
        if self._wanted is None:
            return False
        if not _matches(self._wanted, signal):
            return True
        if signal.source == UEVENT:
            source.inventory.ring()
        if not issubclass(source.kind, SupportsSignals):
            return True
        events = await source.interpret(signal)
        if events:
            self._knowledge.hear(source.name, events, _numbered(signal), said_s)
            source.health.ring()
        return True

    def _about(self, signal: Signal) -> dict[str, str]:
        said = signal.text or signal.subject or ""
        return {"vendor": self._source.name, "source": signal.source, "signal": said}


def _numbered(signal: Signal) -> Numbered | None:
    """Which one it was, as the kernel counts log records and uevents."""
    number = _count(signal, SEQNUM if signal.source == UEVENT else NUMBER)
    return None if number is None else Numbered(signal.source, number)


def _count(signal: Signal, field: str) -> int | None:
    text = signal.fields.get(field, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def _matches(wanted: Signals, signal: Signal) -> bool:
    if signal.source == UEVENT:
        return signal.fields.get("SUBSYSTEM", "") in wanted.uevents
    return any(_found(pattern, signal.text) for pattern in wanted.kernel_log)


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        log.warning("pattern is none", extra={"pattern": pattern, "error": str(error)})
        return False
