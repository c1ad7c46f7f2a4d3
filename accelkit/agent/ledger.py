"""The record of this boot's claims, a file each. Not here: what is done for a claim."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import attrs

from accelkit.agent.disk import Disk, Mark, in_words, put, take_away, temporary
from accelkit.agent.ledger_damaged import SetAside, Unread, unread
from accelkit.agent.ledger_locks import Locks
from accelkit.agent.left import Left
from accelkit.core.claim_record import Record, read_record, write_record
from accelkit.core.claims import LedgerEntry, is_uid
from accelkit.core.clock import Clock
from accelkit.core.errors import LedgerEntry as BadEntry, LedgerNewer
from accelkit.core.model import DeviceId

log = logging.getLogger(__name__)

MARKER = ".kept"
"""A file beside the entries: without it, they were not removed one by one."""
SUFFIX = ".json"
_PRIVATE, _FILE = 0o700, 0o600
_SCRATCH = 0o1777
"""Containers write into it, whoever their user is."""


class Ledger:
    """Entries in ``<run>/<boot>/claims``, shared by all instances on the node.

    What is remembered is as of the last look; whoever decides looks first. An entry is written
    only while its claim is locked, and first written only while places are.

    Args:
        run: The run directory.
        boot: Id of this boot: what earlier ones left is void.
        writer: Our version.
        disk: The door to files.
    """

    def __init__(self, run: Path, boot: str, *, writer: str, clock: Clock, disk: Disk) -> None:
        self._run = run
        self._boot = boot
        self._claims = run / boot / "claims"
        self._scratch = run / boot / "scratch"
        self._quarantine = run / boot / "quarantine"
        self._writer = writer
        self._clock = clock
        self._disk = disk
        self.locks = Locks(
            run=run,
            claims=self._claims,
            disk=disk,
            clock=clock,
            make=self._make,
            has_entry=lambda uid: uid in self._marks,
        )
        self._damaged = SetAside(self._quarantine, disk)
        self.left = Left(run / boot / "left", disk)
        self._records: dict[str, Record] = {}
        self._entries: dict[str, LedgerEntry] = {}
        self._users: dict[DeviceId, set[str]] = {}
        """Claims that have a piece of a device, by uid."""
        self._marks: dict[str, Mark] = {}
        """Of the files that were looked at, readable or not."""
        self._newer: dict[str, Unread] = {}
        self._marker: Mark | None = None
        self.changes = 0
        """Counts what was read, written and removed."""
        self.wiped = 0
        """How often the directory was found emptied, and was filled again."""

    @property
    def entries(self) -> Mapping[str, LedgerEntry]:
        """All entries that can be read, by uid."""
        return MappingProxyType(self._entries)

    def users_of(self, devices: Iterable[DeviceId]) -> tuple[LedgerEntry, ...]:
        """Entries that can be read and have a piece of any of *devices*, by uid."""
        uids = {uid for device in devices for uid in self._users.get(device, ())}
        return tuple(self._entries[uid] for uid in sorted(uids))

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Entries that cannot be read, by uid; not those that were written anew."""
        damaged = (one for one in self._damaged.all if one.uid not in self._entries)
        return tuple(sorted((*self._newer.values(), *damaged), key=lambda one: one.uid))

    def open(self) -> None:
        """Make the directories, read all entries, and remove what writers that ended left.

        Raises:
            LedgerError: The run directory cannot be read or written.
        """
        with in_words(f"{self._run / self._boot} cannot be made"):
            self._make()
            self._marker = self._disk.mark(self._claims / MARKER)
        self.refresh()
        with in_words(f"{self._claims} cannot be cleaned"):
            for name in self._disk.marks(self._claims):
                uid = _uid_of(name)
                if uid is not None and (name.startswith(".") or uid not in self._marks):
                    with self.locks.free(uid) as free:
                        if free:
                            self._disk.remove(temporary(self._path(uid)))

    def forget_other_boots(self) -> None:
        """Remove what earlier boots left; what it describes ended with them.

        Raises:
            LedgerError: It cannot be removed.
        """
        with in_words(f"{self._run} cannot be cleaned"):
            for path in sorted(self._run.iterdir()) if self._run.exists() else ():
                if path.name != self._boot and (path / "claims").is_dir():
                    log.info("earlier boot forgotten", extra={"boot": path.name})
                    self._disk.remove_tree(path)

    def refresh(self, *, locked: bool = False) -> None:
        """Read what is other than remembered.

        A directory that was emptied as a whole is filled again from memory: if places are
        *locked*, or as soon as nobody else has the lock.

        Raises:
            LedgerError: The directory cannot be read or written.
        """
        with in_words(f"{self._claims} cannot be read"):
            marks = self._disk.marks(self._claims)
            if self._marker is not None and marks.get(MARKER) != self._marker:
                self._fill_again(locked=locked)
                return
            for name, mark in marks.items():
                uid = name.removesuffix(SUFFIX)
                if self._marks.get(uid) != mark and uid != name and is_uid(uid):
                    self._take(uid, mark)
            for uid in [uid for uid in self._marks if f"{uid}{SUFFIX}" not in marks]:
                self._forget(uid)
            self._damaged.refresh()

    def look(self, uid: str) -> LedgerEntry | None:
        """The entry of a claim as it stands now; None: there is none that can be read.

        Raises:
            LedgerNewer: A later version wrote it.
            LedgerError: It cannot be looked at.
        """
        with in_words(f"the entry of claim {uid} cannot be read"):
            mark = self._disk.mark(self._path(uid))
            if mark is None and uid in self._marks:
                self.refresh()
            elif mark is not None and self._marks.get(uid) != mark:
                self._take(uid, mark)
        if uid in self._newer:
            raise self._newer[uid].error
        return self._entries.get(uid)

    def put(self, entry: LedgerEntry) -> LedgerEntry:
        """Write *entry*; returns it as it was written.

        Raises:
            NoSpace: The disk is full.
            LedgerError: It cannot be written.
        """
        uid = entry.claim.uid
        before = self._records.get(uid)
        same = before is not None and before.entry.state is entry.state
        since = before.entry.since if before is not None and same else self._clock.now()
        entry = attrs.evolve(entry, writer=self._writer, since=since)
        record = Record(entry, before.tree if before is not None else {})
        with in_words(f"claim {uid} cannot be written down"):
            try:
                self._write(record)
            except FileNotFoundError:  # the directory was removed
                self._fill_again(locked=True)
                self._write(record)
        return entry

    def drop(self, uid: str) -> None:
        """Remove the entry of a claim, damaged ones too; one that is not there is fine.

        Raises:
            LedgerError: It cannot be removed.
        """
        with in_words(f"the entry of claim {uid} cannot be removed"):
            take_away(self._disk, self._path(uid))
            self._damaged.remove(uid)
        self._forget(uid)

    def make_scratch(self, uid: str) -> None:
        """Make the directory of a claim; one that is there is fine."""
        with in_words(f"the scratch directory of claim {uid} cannot be made"):
            self._disk.make(self.scratch(uid), _SCRATCH)

    def remove_scratch(self, uid: str) -> None:
        with in_words(f"the scratch directory of claim {uid} cannot be removed"):
            self._disk.remove_tree(self.scratch(uid))

    def scratch(self, uid: str) -> Path:
        return self._scratch / uid

    def fullness(self) -> float:
        """How much of the run directory's file system is used, from 0 to 1."""
        with in_words(f"{self._run} cannot be looked at"):
            return self._disk.fullness(self._run)

    def _path(self, uid: str) -> Path:
        return self._claims / f"{uid}{SUFFIX}"

    def _make(self) -> None:
        for directory in (self._claims, self._quarantine, self._scratch):
            self._disk.make(directory, _PRIVATE)
        marker = self._claims / MARKER
        if self._disk.mark(marker) is None:
            # Made as a lock is: of instances that start at once, none replaces another's.
            handle = self._disk.lock(marker)
            if handle is not None:
                self._disk.unlock(marker, handle, remove=False)

    def _fill_again(self, *, locked: bool) -> None:
        """Fill a directory that was emptied, unless somebody else does."""
        if not locked:
            with self.locks.places_free() as free:
                if free:
                    self._fill_again(locked=True)
            return
        self._make()
        for uid, record in tuple(self._records.items()):
            if self._disk.mark(self._path(uid)) is None:
                self._write(record)
        self._marker = self._disk.mark(self._claims / MARKER)
        self.wiped += 1
        log.warning("run directory was emptied, and filled again", extra={"path": str(self._run)})

    def _write(self, record: Record) -> None:
        path = self._path(record.entry.claim.uid)
        put(self._disk, path, write_record(record), _FILE)
        self._keep(record, self._disk.mark(path))

    def _take(self, uid: str, mark: Mark) -> None:
        """Read the entry of a claim anew; set it aside if it is damaged."""
        content = self._disk.read(self._path(uid))
        self._forget(uid)
        if content is None:
            return
        try:
            self._keep(_read(uid, content), mark)
        except LedgerNewer as error:
            self._marks[uid] = mark
            self._newer[uid] = unread(uid, content, error)
        except BadEntry as error:
            with self.locks.free(uid) as free:
                # Whoever works on it may have written it anew meanwhile.
                if free and self._disk.read(self._path(uid)) == content:
                    self._disk.make(self._quarantine, _PRIVATE)
                    self._damaged.take(self._path(uid), uid, content, error)

    def _keep(self, record: Record, mark: Mark | None) -> None:
        uid = record.entry.claim.uid
        self._forget(uid)
        self._records[uid] = record
        self._entries[uid] = record.entry
        for piece in record.entry.pieces:
            self._users.setdefault(piece.device, set()).add(uid)
        if mark is not None:
            self._marks[uid] = mark

    def _forget(self, uid: str) -> None:
        self.changes += 1
        if (entry := self._entries.pop(uid, None)) is not None:
            for device in {piece.device for piece in entry.pieces}:
                self._users[device].discard(uid)
                if not self._users[device]:
                    del self._users[device]
        for known in (self._marks, self._records, self._newer):
            known.pop(uid, None)


def _read(uid: str, content: bytes) -> Record:
    record = read_record(content)
    if record.entry.claim.uid != uid:
        raise BadEntry(f"it is about claim {record.entry.claim.uid}")
    return record


def _uid_of(name: str) -> str | None:
    """The claim to which a file called *name* belongs: entry, lock or what is being written."""
    uid = name.removeprefix(".").removesuffix(".tmp").removesuffix(SUFFIX).removesuffix(".lock")
    return uid if is_uid(uid) else None
