"""A node port for tests of backends: whoever has it decides what the backend sees.

Not here: an agent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

import attrs

from accelkit.core.allocation import (
    Allocation,
    Answer,
    ClaimRef,
    Edits,
    Piece,
    PodRef,
    Prepared,
)
from accelkit.core.backend import BackendStatus
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.clock import Clock, RealClock
from accelkit.core.kube import KubePort
from accelkit.core.model import DeviceId
from accelkit.core.policy import Paths
from accelkit.core.values import FrozenMap
from accelkit.core.view import View

Admit = Callable[[str, Sequence[Piece]], Awaitable[Edits]]
Prepare = Callable[[Allocation], Awaitable[Prepared]]
Release = Callable[[str], Awaitable[None]]


class Toggle:
    """A flag that the test turns."""

    def __init__(self, *, now: bool = False) -> None:
        self._now = now
        self._turned = asyncio.Event()

    @property
    def now(self) -> bool:
        return self._now

    def set(self, now: bool) -> None:
        """Turn it, and wake who waits."""
        self._now = now
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def wait(self) -> None:
        while not self._now:
            await self._turned.wait()

    async def changed(self) -> None:
        await self._turned.wait()


class Counts:
    """Counts by metric and labels."""

    def __init__(self) -> None:
        self.counted: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.observed: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.values: dict[tuple[str, tuple[str, ...]], float] = {}

    def count(self, metric: str, labels: Sequence[str] = (), by: int = 1) -> None:
        self.counted[metric, tuple(labels)] += by

    def observe(self, metric: str, seconds: float, labels: Sequence[str] = ()) -> None:  # noqa: ARG002 - how long is not what a test asks
        self.observed[metric, tuple(labels)] += 1

    def set(self, metric: str, value: float, labels: Sequence[str] = ()) -> None:
        self.values[metric, tuple(labels)] = value


@attrs.define(eq=False, slots=False)
class NodePortDouble:
    """What a backend may ask, answered from fields; made inside a running loop.

    Every admission is kept in *admitted* and answered with the view's edits, unless *admitting*
    is set. A claim is prepared at once, with one CDI name for each device, and stays so until it
    is released, unless *preparing* or *releasing* is set. Statuses, problems, events and counts
    are kept, too.
    """

    paths: Paths
    node: str = "node-a"
    clock: Clock = attrs.Factory(RealClock)
    meter: Counts = attrs.Factory(Counts)
    leading: Toggle = attrs.Factory(lambda: Toggle(now=True))
    closing: Toggle = attrs.Factory(Toggle)
    kube: KubePort | None = None
    admitting: Admit | None = None
    preparing: Prepare | None = None
    releasing: Release | None = None
    entries: dict[str, LedgerEntry] = attrs.Factory(dict)
    told: list[tuple[str, str]] = attrs.Factory(list)
    """Reason and text of each event."""
    admitted: list[tuple[str, tuple[Piece, ...]]] = attrs.Factory(list)
    statuses: list[BackendStatus] = attrs.Factory(list)
    problems: dict[tuple[str, str], tuple[str, str]] = attrs.Factory(dict)
    """Reason and remedy by code and subject."""
    _view: View = attrs.field(factory=View, alias="view")
    _newer: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def publish(self, view: View) -> None:
        """Let the backend see *view*."""
        self._view = view
        newer, self._newer = self._newer, asyncio.Event()
        newer.set()

    async def views(self) -> AsyncIterator[View]:
        while True:
            newer = self._newer
            yield self._view
            await newer.wait()

    def view(self) -> View:
        return self._view

    def answered(self) -> bool:
        return bool(self._view.snapshot.answered)

    async def admit(self, offer: str, pieces: Sequence[Piece]) -> Edits:
        self.admitted.append((offer, tuple(pieces)))
        if self.admitting is not None:
            return await self.admitting(offer, pieces)
        ids: set[DeviceId] = {piece.device for piece in pieces}
        return Edits(each=FrozenMap((i, self._view.edits[i]) for i in ids))

    async def prepared(self, claim: ClaimRef) -> Prepared | None:
        entry = self.entries.get(claim.uid)
        if entry is None or entry.state is not EntryState.READY:
            return None
        return Prepared(claim=entry.claim, answers=entry.answer)

    async def prepare(self, allocation: Allocation) -> Prepared:
        if self.preparing is not None:
            prepared = await self.preparing(allocation)
        else:
            prepared = Prepared(claim=allocation.claim, answers=tuple(_answers(allocation)))
        self.entries[allocation.claim.uid] = LedgerEntry(
            state=EntryState.READY,
            claim=allocation.claim,
            driver=allocation.driver,
            drivers=allocation.drivers,
            pieces=allocation.pieces,
            answer=prepared.answers,
        )
        return prepared

    async def release(self, claim: str) -> None:
        if self.releasing is not None:
            await self.releasing(claim)
        self.entries.pop(claim, None)

    def claims(self) -> Mapping[str, LedgerEntry]:
        return self.entries

    def tell(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,  # noqa: ARG002 - who is told is not what a test asks
        pod: PodRef | None = None,  # noqa: ARG002 - see above
        warning: bool = True,  # noqa: ARG002 - see above
    ) -> None:
        self.told.append((reason, text))

    def report(self, status: BackendStatus) -> None:
        self.statuses.append(status)

    def problem(self, code: str, subject: str, reason: str, remedy: str = "") -> None:
        self.problems[code, subject] = (reason, remedy)

    def solved(self, code: str, subject: str) -> None:
        self.problems.pop((code, subject), None)


def _answers(allocation: Allocation) -> Iterator[Answer]:
    for piece in allocation.pieces:
        share = f"-{piece.share[:8]}" if piece.share else ""
        name = f"{allocation.claim.uid}-{piece.device.name}{share}"
        yield Answer(
            device=piece.device,
            requests=(piece.request,),
            share=piece.share,
            cdi_ids=(f"{allocation.driver}/claim={name}",),
        )
