"""What the keeper's steps have in common: what they ask, and how long they wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import attrs

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.hardware import Hardware
from accelkit.agent.ledger import Ledger
from accelkit.agent.signals import within
from accelkit.core.allocation import ClaimRef, PodRef
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.errors import (
    DriverNotReady,
    LibraryMissing,
    MissingParts,
    ModeBusy,
    SourceTimeout,
    StartOver,
    WorkerDied,
)
from accelkit.core.model import Device, DeviceId
from accelkit.core.view import View

T = TypeVar("T")
Observe = Callable[[str, float, Sequence[str]], None]


class Tell(Protocol):
    """Emits an event, as a port's ``tell`` does."""

    def __call__(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,
        pod: PodRef | None = None,
        warning: bool = True,
    ) -> None: ...


DRA = "dra"
"""The backend through which claims come."""
CALL_S = 40.0
"""How long a call of the kubelet, which gives up after 45 s, is kept without an answer."""
PATIENCE_S = 38.0
"""How long work waits for what can pass: its own error must be there in time."""
PAUSE_S = 0.5
"""How often it looks again, beside every time that something is heard."""
SETTLE_S = 12.0
"""For so long after work on a device the view may show it as it was: a read's deadline and more."""
PASSING = (DriverNotReady, MissingParts, ModeBusy, SourceTimeout, StartOver, WorkerDied)
"""What may be otherwise a moment later."""
GONE = (DriverNotReady, LibraryMissing)
"""Without its driver nothing that was made or set is there any more."""


class Patience:
    """How long one call may wait: until a time, or until nobody wants what it does any more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.until = clock.monotonic() + PATIENCE_S
        self.unwanted = False

    @property
    def over(self) -> bool:
        return self.unwanted or self._clock.monotonic() >= self.until


@attrs.define(kw_only=True)
class Means:
    """What the steps of all claims share."""

    ledger: Ledger
    files: ClaimFiles
    hardware: Hardware
    view: Callable[[], View]
    clock: Clock
    observe: Observe
    changed: Callable[[], None]
    _moved: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _touched: dict[DeviceId, float] = attrs.field(factory=dict, init=False)

    def put(self, entry: LedgerEntry) -> LedgerEntry:
        """Write *entry*, and let everybody know who waits for a change."""
        entry = self.ledger.put(entry)
        self.tell_all()
        return entry

    def drop(self, uid: str) -> None:
        self.ledger.drop(uid)
        self.tell_all()

    def tell_all(self) -> None:
        """Say that the record is other than before."""
        self.wake()
        self.changed()

    def wake(self) -> None:
        """Let everybody look again who waits."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def pause(self) -> None:
        """Return when something moved, or soon."""
        await within(self.clock, PAUSE_S, self._moved.wait())

    async def patiently(self, patience: Patience, call: Callable[[], Awaitable[T]]) -> T:
        """What *call* answers; again and again while it fails for what may pass."""
        while True:
            try:
                return await call()
            except PASSING:
                if patience.over:
                    raise
            await self.pause()

    def touch(self, root: DeviceId) -> None:
        """Note that the hardware of a whole device is being changed: views are old now."""
        self._touched[root] = self.clock.monotonic()

    def settling(self, root: DeviceId) -> bool:
        """Whether the view may still show *root* as it was."""
        touched = self._touched.get(root)
        return touched is not None and self.clock.monotonic() < touched + SETTLE_S

    async def still_there(self, device: DeviceId) -> Device | None:
        """*device* on the hardware; None: it is gone, by itself or with its driver."""
        try:
            return await self.hardware.find(device)
        except GONE:
            return None
