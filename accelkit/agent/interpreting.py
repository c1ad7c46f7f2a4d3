"""What the kernel says, to the vendors that want to know. Not here: how it is heard."""

import logging
import re
from collections.abc import Iterable

from accelkit.agent.heard import Numbered
from accelkit.agent.kernel import NUMBER, UEVENT
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.sources import Source
from accelkit.core.vendor import Signal, Signals, SupportsSignals

log = logging.getLogger(__name__)

SEQNUM = "SEQNUM"
"""Linux, lib/kobject_uevent.c."""


class Interpreting:
    """Asks each vendor about the signals that it named, in their order.

    A uevent of a subsystem that a vendor named wakes the reader of that vendor, too.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._wanted: dict[str, Signals] = {}

    async def take(self, signal: Signal) -> None:
        """Let every vendor that wants *signal* say what it means; never raises."""
        for source in self._knowledge.sources.values():
            if not await self._wants(source, signal):
                continue
            if signal.source == UEVENT:
                source.inventory.ring()
            if issubclass(source.kind, SupportsSignals):
                events = await source.interpret(signal)
                if events:
                    self._knowledge.hear(source.name, events, _numbered(signal))
                    source.health.ring()

    async def _wants(self, source: Source, signal: Signal) -> bool:
        if source.name not in self._wanted:
            told = await source.signals()
            if told is None:
                return False
            self._wanted[source.name] = told
        wanted = self._wanted[source.name]
        if signal.source == UEVENT:
            return signal.fields.get("SUBSYSTEM", "") in wanted.uevents
        return _matches(wanted.kernel_log, signal.text)


def _numbered(signal: Signal) -> Numbered | None:
    """Which one it was, as the kernel counts log records and uevents."""
    number = signal.fields.get(SEQNUM if signal.source == UEVENT else NUMBER, "")
    known = number.isascii() and number.isdecimal()
    return Numbered(signal.source, int(number)) if known else None


def _matches(patterns: Iterable[str], text: str) -> bool:
    for pattern in patterns:
        try:
            if re.search(pattern, text):
                return True
        except re.error as error:
            log.warning("pattern is none", extra={"pattern": pattern, "error": str(error)})
    return False
