"""The keeper of claims: what was promised is written down before it is done. Not here: files."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import attrs

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.hardware import Hardware
from accelkit.agent.keeper_holdings import (
    awaited_by,
    given_by,
    holdings_of,
    made_by,
    renamed_in,
    stuck_in,
    unmade_by,
)
from accelkit.agent.keeper_means import CALL_S, Means, Observe, Patience, Tell
from accelkit.agent.keeper_releases import Releases
from accelkit.agent.keeper_reserve import reserve
from accelkit.agent.keeper_steps import take_steps
from accelkit.agent.keeper_undo import UNDOING
from accelkit.agent.keeper_watch import Watch
from accelkit.agent.keeper_work import Work
from accelkit.agent.ledger import Ledger
from accelkit.agent.problems import Problems
from accelkit.agent.signals import within
from accelkit.core.allocation import Allocation, ClaimRef, Piece, Prepared
from accelkit.core.claims import EntryState, LedgerEntry, is_uid
from accelkit.core.clock import Clock
from accelkit.core.errors import AccelkitError, ClaimMismatch, LedgerBusy, PrepareFailed
from accelkit.core.foreign import code_of, in_words
from accelkit.core.model import DeviceId, Holding, Problem
from accelkit.core.view import View

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R", "_Preparing", "_Releasing")


@attrs.frozen
class _Preparing:
    allocation: Allocation
    patience: Patience
    task: asyncio.Task[Prepared]


@attrs.define
class _Releasing:
    task: asyncio.Task[None]
    asked: bool
    """Somebody wants it released; else only what is half undone is undone on."""


class Keeper:
    """Prepares claims, releases them, and loses none, whenever a process ends.

    Several keepers may share one run directory; each sees what the others wrote.

    Args:
        ledger: The record of claims.
        files: The claims' files in the CDI directory.
        hardware: The vendors.
        view: The newest view.
        drivers: Names of our DRA drivers now: whose CDI files without a claim are ours to remove.
        give_up_after_s: How long a release may fail before it is answered as done.
        changed: Called when holdings, *made* or *stuck* may be other than before.
        tell: Emits events.
        observe: Notes seconds: metric, seconds, labels.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        files: ClaimFiles,
        hardware: Hardware,
        view: Callable[[], View],
        clock: Clock,
        drivers: Callable[[], Collection[str]],
        give_up_after_s: Callable[[], float],
        changed: Callable[[], None],
        tell: Tell,
        observe: Observe,
    ) -> None:
        self._means = Means(
            ledger=ledger,
            files=files,
            hardware=hardware,
            view=view,
            clock=clock,
            observe=observe,
            changed=changed,
        )
        self._drivers = drivers
        self._ledger = ledger
        self._files = files
        self._clock = clock
        self._tell = tell
        self._observe = observe
        self._problems = Problems(clock.now)
        self._releases = Releases(self._means, drivers, give_up_after_s, tell, self._problems)
        self._watch = Watch(self._means, drivers, tell, self._problems)
        self._preparing: dict[str, _Preparing] = {}
        self._releasing: dict[str, _Releasing] = {}

    @property
    def entries(self) -> Mapping[str, LedgerEntry]:
        """All claims of this boot that can be read, by uid; as of the last look."""
        return self._ledger.entries

    async def load(self) -> None:
        """Read the record; nothing is undone here. To be called once, before anything else.

        What cannot be read is set aside, and what is not on disk of the CDI files is made again.

        Raises:
            LedgerError: The run directory cannot be read or written.
        """
        self._ledger.open()
        self._watch.look()
        log.info("claims read", extra={"claims": len(self.entries)})

    async def prepare(self, allocation: Allocation) -> Prepared:
        """Make a claim's devices usable; see :meth:`NodePort.prepare`."""
        claim = _checked(allocation.claim)
        until = self._clock.monotonic() + CALL_S
        # Waited for in the caller, so that a call whose caller goes meanwhile does not start.
        while (release := self._releasing.get(claim.uid)) is not None:
            text = f"claim {claim.name} is still being released"
            await self._wait(release.task, until, text)
        running = self._preparing.get(claim.uid)
        if running is None:
            running = self._start(allocation)
        elif not _same(running.allocation.pieces, allocation.pieces):
            raise ClaimMismatch(
                f"claim {claim.name} is being prepared with other devices", claim=claim.uid
            )
        await self._wait(running.task, until, f"claim {claim.name} is still being prepared")
        return running.task.result()

    async def prepared(self, claim: ClaimRef) -> Prepared | None:
        """The answer for a claim that is READY; see :meth:`NodePort.prepared`."""
        entry = self._ledger.look(_checked(claim).uid)
        if entry is None or entry.state is not EntryState.READY:
            return None
        return self._answer(entry)

    async def release(self, uid: str) -> None:
        """Undo what was done for a claim; see :meth:`NodePort.release`."""
        _checked(ClaimRef(uid=uid, namespace="", name=""))
        running = self._releasing.get(uid)
        if running is None or running.task.done():
            running = self._start_release(uid, asked=True)
        running.asked = True
        text = f"claim {uid} is still being released"
        await self._wait(running.task, self._clock.monotonic() + CALL_S, text)
        running.task.result()

    async def mend(self) -> None:
        """Look at the directories, and make again what is missing or other than written.

        To be called every second. Never raises.
        """
        self._watch.look()

    async def retry(self) -> None:
        """Go on with releases that failed and are due, each in a task of its own.

        To be called every second; returns at once. Never raises.
        """
        for uid in self._releases.due():
            if uid not in self._preparing and uid not in self._releasing:
                self._start_release(uid, asked=False)

    async def reconcile(self, gone: Collection[str], used: Collection[tuple[str, str]]) -> None:
        """Release what nobody needs any more: by the leader alone.

        Args:
            gone: Uids of claims that the API server does not have (by name: gone, or other uid).
            used: Namespace and name of every claim that the kubelet lists for a pod.

        A claim is released when it is *gone* and not *used* in two calls in a row; a CDI file of
        ours without a claim is removed when two calls in a row found it. Never raises.
        """
        for uid in self._watch.left_behind(gone, used):
            try:
                await self.release(uid)
            except AccelkitError as error:
                log.warning("claim left behind", extra={"claim": uid, "error": str(error)})
        self._watch.remove_orphans()

    def holdings(self) -> tuple[Holding, ...]:
        """What claims hold, whatever their state, of unreadable ones as far as it is known."""
        return holdings_of(self._ledger)

    @property
    def made(self) -> frozenset[DeviceId]:
        """Partitions that were made for a claim, or are about to be."""
        return made_by(self._ledger)

    @property
    def given(self) -> Mapping[DeviceId, str]:
        """Those of claims that are ready, with the claim's uid: they were there."""
        return given_by(self._ledger)

    @property
    def awaited(self) -> frozenset[DeviceId]:
        """Devices only of claims that are being prepared: they may only come to be there."""
        return awaited_by(self._ledger)

    @property
    def unmade(self) -> frozenset[DeviceId]:
        """Those of claims that are being undone."""
        return unmade_by(self._ledger)

    @property
    def stuck(self) -> frozenset[DeviceId]:
        """Devices of claims that could not be undone."""
        return stuck_in(self._ledger)

    @property
    def renamed(self) -> frozenset[DeviceId]:
        """Devices of claims whose driver is called otherwise by now."""
        return renamed_in(self._ledger, self._drivers())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the record, its directories, or a release; by code and subject."""
        return self._problems.all

    async def settle(self) -> None:
        """Return when no preparation and no release runs in this process."""
        while self._preparing or self._releasing:
            preparing = [one.task for one in self._preparing.values()]
            await asyncio.wait([*preparing, *(one.task for one in self._releasing.values())])

    def _start(self, allocation: Allocation) -> _Preparing:
        uid, patience = allocation.claim.uid, Patience(self._clock)
        task = asyncio.create_task(self._prepare(allocation, patience), name=f"prepare {uid}")
        running = self._preparing[uid] = _Preparing(allocation, patience, task)
        task.add_done_callback(lambda _: self._ended(self._preparing, uid, running))
        return running

    def _start_release(self, uid: str, *, asked: bool) -> _Releasing:
        task = asyncio.create_task(self._release(uid), name=f"release {uid}")
        running = self._releasing[uid] = _Releasing(task, asked)
        task.add_done_callback(lambda _: self._ended(self._releasing, uid, running))
        return running

    @staticmethod
    def _ended(all_running: dict[str, R], uid: str, running: R) -> None:
        if all_running.get(uid) is running:
            del all_running[uid]
        if not running.task.cancelled():
            running.task.exception()  # told where it was raised; nobody may be there to take it

    async def _wait(self, task: asyncio.Task[T], until: float, text: str) -> None:
        """Return when *task* has ended, which goes on if the caller does not."""
        left = until - self._clock.monotonic()
        await within(self._clock, left, asyncio.shield(task))
        if not task.done():
            raise LedgerBusy(text, remedy="it goes on; ask again")

    async def _prepare(self, allocation: Allocation, patience: Patience) -> Prepared:
        began = self._clock.monotonic()
        outcome = "cut-off"
        try:
            prepared = await self._prepare_held(allocation, patience)
            outcome = "ok"
        except Exception as error:
            failure = error if isinstance(error, AccelkitError) else _broken(error)
            outcome = code_of(failure)
            pod = allocation.pods[0] if len(allocation.pods) == 1 else None
            if not patience.unwanted:
                self._tell("PrepareFailed", str(failure), claim=allocation.claim, pod=pod)
            log.warning(
                "claim not prepared",
                extra={"claim": allocation.claim.uid, "code": outcome, "error": str(failure)},
                exc_info=None if failure is error else error,
            )
            if failure is error:
                raise
            raise failure from error
        finally:
            vendor = allocation.pieces[0].device.vendor if allocation.pieces else ""
            took = self._clock.monotonic() - began
            self._observe("accelkit_prepare_seconds", took, (vendor, outcome))
        return prepared

    async def _prepare_held(self, allocation: Allocation, patience: Patience) -> Prepared:
        uid = allocation.claim.uid
        async with self._ledger.locks.claim(uid, patience.until):
            entry = await self._found(allocation)
            if entry is not None and entry.state is EntryState.READY:
                return self._answer(entry)
            try:
                began = self._clock.monotonic()
                entry, terms = await reserve(self._means, allocation, entry, patience)
                work = Work(
                    means=self._means,
                    allocation=allocation,
                    entry=entry,
                    terms=terms,
                    patience=patience,
                )
                work.took("reserve", self._clock.monotonic() - began)
                return _prepared(await take_steps(work))
            except Exception:
                await self._undo_failed(uid)
                raise

    async def _found(self, allocation: Allocation) -> LedgerEntry | None:
        """What an earlier attempt left of a claim: READY, or WORKING with the same pieces."""
        claim = allocation.claim
        entry = self._ledger.look(claim.uid)
        if entry is None:
            return None
        same = _same(entry.pieces, allocation.pieces)
        if entry.state is EntryState.READY and not same:
            raise ClaimMismatch(
                f"claim {claim.name} was prepared with other devices",
                claim=claim.uid,
                remedy="end the pods that use them; they are given back then",
            )
        if same and entry.state in {EntryState.READY, EntryState.WORKING}:
            return entry
        await self._releases.undo(claim.uid)
        if self._ledger.look(claim.uid) is not None:
            raise PrepareFailed(
                f"claim {claim.name} could not be undone after an earlier attempt",
                claim=claim.uid,
                remedy="see the problems of `accelkit devices`; a restart of the node ends it",
            )
        return None

    async def _undo_failed(self, uid: str) -> None:
        """Undo what a preparation that failed has done; its error is what is told."""
        try:
            if self._ledger.look(uid) is not None:
                await self._releases.undo(uid)
        except AccelkitError as error:
            log.warning("claim not undone", extra={"claim": uid, "error": str(error)})

    async def _release(self, uid: str) -> None:
        began = self._clock.monotonic()
        outcome = "cut-off"
        known = self.entries.get(uid)
        try:
            await self._release_held(uid)
            outcome = "ok"
        except AccelkitError as error:
            outcome = code_of(error)
            log.warning("claim not released", extra={"claim": uid, "error": str(error)})
            raise
        finally:
            vendor = known.pieces[0].device.vendor if known and known.pieces else ""
            took = self._clock.monotonic() - began
            self._observe("accelkit_release_seconds", took, (vendor, outcome))

    async def _release_held(self, uid: str) -> None:
        if (running := self._preparing.get(uid)) is not None:
            # However long it takes: the kubelet may never ask again.
            running.patience.unwanted = True
            self._means.wake()
            await asyncio.wait([running.task])
        patience = Patience(self._clock)
        async with self._ledger.locks.claim(uid, patience.until):
            # Another instance may have undone it, and prepared it anew, since it was due.
            entry = self._ledger.look(uid)
            if self._releasing[uid].asked or (entry is not None and entry.state in UNDOING):
                await self._releases.undo(uid)

    def _answer(self, entry: LedgerEntry) -> Prepared:
        if entry.cdi is not None and not self._files.right(entry.cdi):
            self._files.write(entry.cdi)
        return _prepared(entry)


def _prepared(entry: LedgerEntry) -> Prepared:
    return Prepared(claim=entry.claim, answers=entry.answer)


def _checked(claim: ClaimRef) -> ClaimRef:
    if not is_uid(claim.uid):
        raise ClaimMismatch(
            f"{claim.uid!r} is no uid of a claim", remedy="look at who asked for it"
        )
    return claim


def _same(some: tuple[Piece, ...], others: tuple[Piece, ...]) -> bool:
    """Whether both are the same pieces, whatever they were had under."""
    return {attrs.evolve(p, offer="") for p in some} == {attrs.evolve(p, offer="") for p in others}


def _broken(error: Exception) -> PrepareFailed:
    return PrepareFailed(
        f"preparing it broke: {in_words(error)}", remedy="report it, with the agent's log"
    )
