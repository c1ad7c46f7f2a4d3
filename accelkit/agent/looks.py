"""Looks at a vendor's devices as they are now, together. Not here: what is done with them."""

import asyncio
import threading

import attrs

from accelkit.agent import calls
from accelkit.agent.sources import Source
from accelkit.core.model import DeviceId
from accelkit.core.working import Sight


@attrs.define(eq=False)
class _Look:
    """One look, and what for, as long as it has not begun."""

    devices: set[DeviceId] = attrs.field(factory=set)
    names: set[str] = attrs.field(factory=set)
    answer: asyncio.Task[Sight] | None = None


class Looks:
    """Whoever asks before the next look begins shares it.

    A look reads all devices of a vendor, and no two of them overlap: with many claims at once,
    each would wait for those of all others.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._next: _Look | None = None
        self._changing = threading.Lock()

    async def join(self, device: DeviceId, names: frozenset[str]) -> Sight:
        """What a look that begins after this call shows of *device*, among others.

        Raises:
            AccelkitError: Of the vendor's contract; whatever else it raises is a PluginError.
        """
        with self._changing:
            look = self._next = self._next or _Look()
            look.devices.add(device)
            look.names.update(names)
        if look.answer is None:
            look.answer = asyncio.create_task(self._look(look), name=f"look of {device.vendor}")
            look.answer.add_done_callback(_heard)
        return await asyncio.shield(look.answer)  # who is cancelled does not end it for others

    async def _look(self, look: _Look) -> Sight:
        try:
            return await self._source.look_then(calls.FIND, lambda: self._begin(look))
        finally:
            self._begin(look)  # where it could not even begin

    def _begin(self, look: _Look) -> tuple[frozenset[DeviceId], frozenset[str]]:
        """Let nobody join any more; in the lane's thread."""
        with self._changing:
            if self._next is look:
                self._next = None
            return frozenset(look.devices), frozenset(look.names)


def _heard(answer: asyncio.Task[Sight]) -> None:
    """An error counts as heard, if all who wanted to know were cancelled."""
    if not answer.cancelled():
        answer.exception()
