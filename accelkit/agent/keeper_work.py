"""One claim on its way to READY: what is known of it so far. Not here: the steps."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import attrs

from accelkit.agent.keeper_means import Means, Patience
from accelkit.core.allocation import Allocation, Answer, Edits, Grant
from accelkit.core.claims import CdiRecord, LedgerEntry
from accelkit.core.errors import DeviceUnavailable
from accelkit.core.grants import Term, grants_of, main_request
from accelkit.core.model import Device, DeviceId
from accelkit.core.values import Enforcement

T = TypeVar("T")


@attrs.define(kw_only=True)
class Work:
    """A claim that is being prepared, and held."""

    means: Means
    allocation: Allocation
    entry: LedgerEntry
    """WORKING, as it is on disk."""
    terms: tuple[Term, ...]
    """What holds for each piece; with the devices as they were seen last."""
    patience: Patience
    told: list[tuple[Grant, Edits]] = attrs.Factory(list)
    """What containers need, as far as it was told along with what must hold."""
    cdi: CdiRecord | None = None
    """The file that was written for it."""
    answer: tuple[Answer, ...] = ()
    """What the kubelet will be told."""
    trace: list[tuple[str, float]] = attrs.Factory(list)
    """Steps that were taken, and the milliseconds of each."""
    _sets: tuple[Grant, ...] | None = attrs.field(default=None, init=False)
    """Those of *terms*, once they were asked for."""

    @property
    def uid(self) -> str:
        return self.entry.claim.uid

    def took(self, step: str, seconds: float) -> None:
        """Note how long a step took."""
        vendor = self.terms[0].device.id.vendor if self.terms else ""
        self.trace.append((step, round(seconds * 1000, 3)))
        self.means.observe("accelkit_prepare_step_seconds", seconds, (vendor, step))

    def write(self, entry: LedgerEntry) -> None:
        """Write down what is done next, unless it stands there already."""
        if entry != self.entry:
            self.entry = self.means.put(entry)

    def know(self, devices: Mapping[DeviceId, Device]) -> None:
        """Go on with *devices* as they are now."""
        self.terms = tuple(
            attrs.evolve(term, device=devices.get(term.device.id, term.device))
            for term in self.terms
        )
        self._sets = None

    @property
    def needs_scratch(self) -> bool:
        """Whether a library enforces limits, and keeps its files somewhere."""
        return any(term.sharing.enforce is Enforcement.LIBRARY for term in self.terms)

    @property
    def sets(self) -> tuple[Grant, ...]:
        """The sets of this claim, as few as can be."""
        if self._sets is None:
            self._sets = self.split()
        return self._sets

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self.means.patiently(self.patience, call)

    async def look_for(self, device: DeviceId) -> Device | None:
        """*device* as the hardware shows it now; None: it is not there."""
        return await self.patiently(lambda: self.means.hardware.find(device))

    async def found(self, device: DeviceId) -> Device:
        """*device* as the hardware shows it now.

        Raises:
            DeviceUnavailable: It is not there.
        """
        found = await self.look_for(device)
        if found is None:
            raise DeviceUnavailable(
                f"{device} is not there any more", remedy="see `accelkit devices`"
            )
        return found

    def split(self, apart: frozenset[str] = frozenset()) -> tuple[Grant, ...]:
        """The sets of this claim; those of vendors in *apart* by request."""

        def request(term: Term) -> str:
            split = term.device.id.vendor in apart
            return main_request(term.piece.request) if split else ""

        return grants_of(
            self.terms,
            owner=f"claim/{self.uid}",
            pods=self.allocation.pods,
            scratch=str(self.means.ledger.scratch(self.uid)) if self.needs_scratch else None,
            apart=request,
        )
