"""One driver's slices, kept as they should be: when to write. Not here: what should be in them."""

import random
from collections.abc import Collection, Iterator
from typing import Protocol

import attrs

from accelkit.backends.dra.checking import check_pool
from accelkit.backends.dra.objects import Owner
from accelkit.backends.dra.packing import PARENT
from accelkit.backends.dra.pool import Pool
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices_plan import Plan, Verb, Write, plan
from accelkit.backends.dra.slices_rivals import Rivals
from accelkit.backends.dra.slices_settings import Patience, jitter_of
from accelkit.backends.dra.slices_write import Writer
from accelkit.backends.dra.stored import Stored, published_pool
from accelkit.core.backend import NodePort
from accelkit.core.errors import ApiError, BackendError


class Tell(Protocol):
    """Told whether a driver is published, and what is missing if it is not."""

    def __call__(self, driver: str, *, published: bool, detail: str) -> None: ...


INVALID = "pool-invalid"
NOT_WRITTEN = "slices-not-written"
RIVAL = "foreign-writer"
UNKNOWN_HELD = "held-device-unknown"
_REFUSED = frozenset({400, 422})
_CHANGED = frozenset({404, 409})


@attrs.define
class DriverSlices:
    """Compares what is there with what should be, whenever somebody asks it to."""

    writer: Writer
    node: NodePort
    registrations: Registrations
    patience: Patience
    tell: Tell
    begun_s: float
    rivals: Rivals
    _compared: bool = False
    """What was found at the start was put right, or was right."""
    _left: Pool | None = None
    """What was published last."""
    _unfinished: bool = False
    """Something was written since."""
    _said: tuple[bool, str] | None = None
    _failures: int = 0
    _retry_s: float = 0.0
    _problems: set[str] = attrs.Factory(set)

    @property
    def driver(self) -> str:
        return self.writer.driver

    def hurry(self) -> None:
        """Try again at once: the server is back."""
        self._retry_s = 0.0

    def published(self) -> Pool | None:
        """What is published now, or shall be again if somebody took it away."""
        if self._left is not None and not self._unfinished:
            return self._left
        stored = self.writer.seen.of(self.driver, self.node.clock.monotonic())
        return published_pool(self.driver, self.node.node, stored)

    async def step(self, pool: Pool | None, owner: Owner) -> float | None:
        """Write what has to be written, if it is time.

        Args:
            pool: As it should be; None: the driver has none any more.
            owner: The node.

        Returns:
            When to come again, in monotonic seconds; None: when something has changed.
        """
        now = self.node.clock.monotonic()
        stored = self.writer.seen.of(self.driver, now)
        todo = self._plan(pool, stored, owner)
        if not todo.writes:
            self._settled(pool, stored)
            return None
        self.rivals.look(stored, now, self.registrations.last(self.driver))
        if faults := check_pool(pool) if pool is not None else ():
            self._problem(INVALID, "; ".join(faults[:3]), "report it; what is published stays")
            return None
        self._solved(INVALID)
        if waits := next(self._waits_for(pool), ""):
            self._say(published=False, detail=waits)
            return now + self.patience.look_s
        self._solved(UNKNOWN_HELD)
        when = self._when(pool, todo, now)
        return when if when > now else await self._write(pool, todo, stored, owner)

    def _plan(self, pool: Pool | None, stored: Collection[Stored], owner: Owner) -> Plan:
        if pool is not None:
            accepted, least = self.writer.accepted, self.writer.highest
            return plan(pool, stored, owner, least=least, accepted=accepted)
        gone = (Write(verb=Verb.DELETE, name=s.name, version=s.version) for s in stored)
        return Plan(writes=tuple(gone), generation=0)

    def _settled(self, pool: Pool | None, stored: Collection[Stored]) -> None:
        self.rivals.settled(stored)
        self._compared, self._left, self._unfinished, self._failures = True, pool, False, 0
        for code in tuple(self._problems):
            self._solved(code)
        self._say(published=True)

    def _waits_for(self, pool: Pool | None) -> Iterator[str]:
        """What has to be there before anything may be written."""
        if pool is not None and self.registrations.last(self.driver) is None:
            yield "the kubelet has not registered it yet"
        if not self.node.answered():
            yield "no vendor has answered yet"
        if missing := next(self._unknown_held(pool), None):
            device, claim = missing
            reason = (
                f"claim {claim} holds {device}, which is not known: slices stay as they are, or "
                "its place would be given away"
            )
            self._problem(UNKNOWN_HELD, reason, f"end the pods of {claim}")
            yield reason

    def _unknown_held(self, pool: Pool | None) -> Iterator[tuple[str, str]]:
        """Held devices that are not in *pool*, although what they are part of may be."""
        published = () if pool is None else pool.slices
        devices = {device.name: device for one in published for device in one.devices}
        roots = {f"{device.attributes[PARENT]}-" for device in devices.values()}
        vendors = {device.attributes["vendor"] for device in devices.values()}
        for entry in self.node.claims().values():
            if self.driver not in entry.called.values():
                continue
            for piece in entry.places:
                name = piece.device.name
                ours = piece.device.vendor in vendors and name not in devices
                if ours and any(name.startswith(root) for root in roots):
                    yield name, f"{entry.claim.namespace}/{entry.claim.name}"

    def _when(self, pool: Pool | None, todo: Plan, now: float) -> float:
        """When to write: now, or later."""
        registered = self.registrations.last(self.driver)
        if (stopped := self.rivals.stopped_until(now)) is not None:
            self._problem(
                RIVAL,
                f"somebody else changes the slices of {self.driver} all the time: nothing is "
                "written for a while",
                "see that one agent runs on this node, with one run directory",
            )
            return stopped
        self._solved(RIVAL)
        when = self._retry_s
        if registered is not None and self.registrations.again(self.driver):
            when = max(when, registered + self.patience.wipe_s)
        if pool == self._left:
            when = max(when, self.rivals.answer_at(registered))
        if todo.alters and not self._compared:
            when = max(when, self.begun_s + jitter_of(self.node.node, self.patience.jitter_s))
        return when

    async def _write(
        self, pool: Pool | None, todo: Plan, stored: Collection[Stored], owner: Owner
    ) -> float:
        self._unfinished = True
        vanished = self._left is not None and any(one.verb is Verb.CREATE for one in todo.writes)
        try:
            if vanished:  # with their node, perhaps: those of its uid would go again at once
                owner = await self.writer.server.find_owner()
            await self.writer.write(todo, pool or Pool(driver=self.driver, name=""), stored, owner)
        except BackendError as error:
            self._failed(error)
        else:
            self._compared, self._retry_s = True, 0.0
        now = self.node.clock.monotonic()
        self.rivals.settled(self.writer.seen.of(self.driver, now))
        return max(now, self._retry_s)

    def _failed(self, error: BackendError) -> None:
        status = error.status if isinstance(error, ApiError) else 0
        if status in _REFUSED:
            self.writer.server.stale = True
        shortest, longest = self.patience.again_s
        if not (status in _CHANGED and not self._failures):
            pause = min(longest, shortest * 2.0**self._failures) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients
            self._retry_s = self.node.clock.monotonic() + pause
            self._problem(NOT_WRITTEN, str(error), error.remedy)
        self._failures += 1

    def _problem(self, code: str, reason: str, remedy: str) -> None:
        self._problems.add(code)
        self.node.problem(code, self.driver, reason, remedy)
        self._say(published=False, detail=reason)

    def _say(self, *, published: bool, detail: str = "") -> None:
        if self._said != (published, detail):
            self._said = (published, detail)
            self.tell(self.driver, published=published, detail=detail)

    def _solved(self, code: str) -> None:
        if code in self._problems:
            self._problems.discard(code)
            self.node.solved(code, self.driver)
