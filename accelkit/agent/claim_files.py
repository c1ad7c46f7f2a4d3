"""Claims' files in the directory that container runtimes read. Not here: what is in them."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from accelkit.agent.disk import Disk, Mark, in_words, put, take_away
from accelkit.core.cdi import FILE_MODE, claim_file, claim_kind, claim_uid, written
from accelkit.core.claims import CdiRecord, is_uid

_DIRECTORY_MODE = 0o755


class ClaimFiles:
    """Files that describe the devices of claims to container runtimes.

    Whoever writes or removes the file of a claim holds that claim.

    Args:
        directory: The dynamic CDI directory, as this process reaches it.
        disk: The door to files.
    """

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._seen: dict[str, tuple[Mark, str]] = {}
        """Files that were found to be right, or were written, and their digest then."""

    def right(self, record: CdiRecord) -> bool:
        """Whether the file is there as it was written; its content is read once.

        Raises:
            LedgerError: It cannot be read.
        """
        path = self._directory / record.file
        with in_words(f"{path} cannot be read"):
            mark = self._disk.mark(path)
            if mark is None:
                return False
            if self._seen.get(record.file) == (mark, record.digest):
                return True
            content = self._disk.read(path)
        if content is None or _digest(content) != record.digest:
            return False
        self._seen[record.file] = mark, record.digest
        return True

    def describe(self, driver: str, uid: str, document: Mapping[str, object]) -> CdiRecord:
        """Write the file of a claim; returns what is to be kept, so that it can be made again.

        Raises:
            NoSpace: The disk is full.
            LedgerError: It cannot be written.
        """
        content = written(document)
        record = CdiRecord(file=claim_file(driver, uid), digest=_digest(content), spec=document)
        self._put(record, content)
        return record

    def write(self, record: CdiRecord) -> None:
        """Let the file be there as *record* says.

        Raises:
            NoSpace: The disk is full.
            LedgerError: It cannot be written.
        """
        self._put(record, written(record.spec))

    def forget_all_but(self, files: Collection[str]) -> None:
        """Forget what other processes have removed."""
        for file in self._seen.keys() - set(files):
            del self._seen[file]

    def remove(self, driver: str, uid: str) -> None:
        """Remove the file of a claim; one that is not there is fine.

        Raises:
            LedgerError: It cannot be removed.
        """
        self._remove(claim_file(driver, uid))

    def orphans(self, drivers: Collection[str], claims: Collection[str]) -> dict[str, str]:
        """Our files, and what was left while one was written, of none of *claims*.

        Returns:
            Name of the file, to the uid of the claim that it was of.

        Raises:
            LedgerError: The directory cannot be read.
        """
        with in_words(f"{self._directory} cannot be read"):
            names = sorted(self._disk.marks(self._directory))
            return {
                file: uid
                for file in dict.fromkeys(_finished(name) for name in names)
                for driver, uid in _claims_of(file, drivers)
                if uid not in claims and self._is_ours(file, driver)
            }

    def remove_orphan(self, file: str) -> None:
        """Remove one of *orphans*.

        Raises:
            LedgerError: It cannot be removed.
        """
        self._remove(file)

    def _put(self, record: CdiRecord, content: bytes) -> None:
        path = self._directory / record.file
        with in_words(f"{path} cannot be written"):
            try:
                put(self._disk, path, content, FILE_MODE)
            except FileNotFoundError:
                self._disk.make(self._directory, _DIRECTORY_MODE)
                put(self._disk, path, content, FILE_MODE)
            mark = self._disk.mark(path)
        if mark is not None:
            self._seen[record.file] = mark, record.digest

    def _remove(self, file: str) -> None:
        with in_words(f"{self._directory}/{file} cannot be removed"):
            take_away(self._disk, self._directory / file)
        self._seen.pop(file, None)

    def _is_ours(self, file: str, driver: str) -> bool:
        """Whether *file* says that it is of *driver*'s claims; what was never finished is ours."""
        content = self._disk.read(self._directory / file)
        if content is None:
            return True
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            return False
        return isinstance(document, dict) and document.get("kind") == claim_kind(driver)


def _finished(name: str) -> str:
    """The name of a file once it is written."""
    hidden = name.startswith(".") and name.endswith(".tmp")
    return name[1:].removesuffix(".tmp") if hidden else name


def _claims_of(file: str, drivers: Collection[str]) -> Iterator[tuple[str, str]]:
    for driver in drivers:
        uid = claim_uid(driver, file)
        if uid is not None and is_uid(uid):
            yield driver, uid


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
