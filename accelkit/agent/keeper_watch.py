"""Whether the directories are as they were written, and what nobody needs any more."""

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial

from accelkit.agent.keeper_means import Means, Tell
from accelkit.agent.keeper_releases import KEEPER
from accelkit.agent.problems import Problems
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import LedgerEntry as BadEntry, LedgerError

log = logging.getLogger(__name__)

NEARLY_FULL = 0.9
CDI = "cdi-file"
"""Code of what keeps CDI files from being as they should be; its subjects are whose they are."""
TOLD_FOR_S = 3600.0
"""For so long it is said that the record was emptied."""


class Watch:
    """Compares what is on disk with the record; nothing of it ever raises."""

    def __init__(
        self,
        means: Means,
        drivers: Callable[[], Collection[str]],
        tell: Tell,
        problems: Problems,
    ) -> None:
        self._means = means
        self._drivers = drivers
        self._tell = tell
        self._problems = problems
        self._unread: set[str] = set()
        self._changes = 0
        self._wiped = 0
        self._emptied = 0.0
        self._gone: frozenset[str] = frozenset()
        self._orphans: frozenset[str] = frozenset()

    def look(self) -> None:
        """Read what others wrote, and make again what is missing of our CDI files."""
        self._attempt("ledger-failed", "", self._read)
        self._attempt("run-directory-full", "", self._measure)
        self._attempt(CDI, "claims", self._mend_files)

    def left_behind(
        self, gone: Collection[str], used: Collection[tuple[str, str]]
    ) -> tuple[str, ...]:
        """Claims that are gone and not used, now and the last time."""
        entries = self._means.ledger.entries
        now = frozenset(
            uid
            for uid in gone
            if uid in entries
            and (entries[uid].claim.namespace, entries[uid].claim.name) not in used
        )
        twice, self._gone = now & self._gone, now
        return tuple(sorted(twice))

    def remove_orphans(self) -> None:
        """Remove CDI files of ours without a claim that were there the last time, too."""
        self._attempt(CDI, "no claims", self._remove_orphans)

    def _attempt(self, code: str, subject: str, do: Callable[[], None]) -> None:
        try:
            do()
        except LedgerError as error:
            self._problems.note(KEEPER, code, subject, str(error), error.remedy)
        else:
            self._problems.solve(KEEPER, code, subject)

    def _read(self) -> None:
        ledger = self._means.ledger
        ledger.refresh()
        if ledger.changes != self._changes:
            self._changes = ledger.changes
            self._means.tell_all()
        if ledger.wiped != self._wiped:
            self._wiped = ledger.wiped
            self._emptied = self._means.clock.monotonic()
            self._problems.note(
                KEEPER,
                "run-directory-emptied",
                "",
                "the run directory was emptied while claims were prepared; it was filled again",
                "find out who removes files there",
            )
        elif self._means.clock.monotonic() > self._emptied + TOLD_FOR_S:
            self._problems.solve(KEEPER, "run-directory-emptied", "")
        unread = {one.uid: one for one in ledger.unread}
        for uid in unread.keys() - self._unread:
            error = unread[uid].error
            self._problems.note(KEEPER, error.code, uid, str(error), error.remedy)
            if isinstance(error, BadEntry):
                self._tell("LedgerEntryQuarantined", str(error))
        for uid in self._unread - unread.keys():
            for code in ("ledger-entry", "ledger-newer", "ledger-failed"):
                self._problems.solve(KEEPER, code, uid)
        self._unread = set(unread)

    def _measure(self) -> None:
        used = self._means.ledger.fullness()
        if used > NEARLY_FULL:
            raise LedgerError(
                f"the run directory's file system is {used:.0%} full",
                remedy="make room: claims are refused when it is full",
            )

    def _mend_files(self) -> None:
        entries = tuple(self._means.ledger.entries.values())
        _one_by_one(partial(self._mend_file, entry) for entry in entries)

    def _mend_file(self, entry: LedgerEntry) -> None:
        if not self._right(entry):
            self._mend(entry.claim.uid)

    def _mend(self, uid: str) -> None:
        """Make the file of a claim again, if nobody works on the claim."""
        with self._means.ledger.locks.free(uid) as free:
            entry = self._means.ledger.look(uid) if free else None
            if entry is not None and entry.cdi is not None and not self._right(entry):
                self._means.files.write(entry.cdi)
                log.warning("CDI file made again", extra={"claim": uid, "file": entry.cdi.file})

    def _right(self, entry: LedgerEntry) -> bool:
        ready = entry.state is EntryState.READY and entry.cdi is not None
        return not ready or entry.cdi is None or self._means.files.right(entry.cdi)

    def _remove_orphans(self) -> None:
        ledger = self._means.ledger
        claims = {*ledger.entries, *(one.uid for one in ledger.unread)}
        found = self._means.files.orphans(self._drivers(), claims)
        twice, self._orphans = found.keys() & self._orphans, frozenset(found)
        _one_by_one(partial(self._remove_orphan, file, found[file]) for file in sorted(twice))

    def _remove_orphan(self, file: str, uid: str) -> None:
        ledger = self._means.ledger
        with ledger.locks.free(uid) as free:
            if free and ledger.look(uid) is None:
                self._means.files.remove_orphan(file)
                log.info("CDI file without a claim removed", extra={"file": file})


def _one_by_one(acts: Iterable[Callable[[], None]]) -> None:
    """Do all of *acts*, whichever fail.

    Raises:
        LedgerError: The first that there was.
    """
    failed: LedgerError | None = None
    for act in acts:
        try:
            act()
        except LedgerError as error:
            failed = failed or error
    if failed is not None:
        raise failed
