"""Entries that cannot be read: set aside, with what can be seen of them. Not here: the others."""

from pathlib import Path

import attrs

from accelkit.agent.disk import Disk
from accelkit.core.claim_record import devices_in, read_record
from accelkit.core.claims import is_uid
from accelkit.core.errors import LedgerError
from accelkit.core.model import DeviceId


@attrs.frozen(kw_only=True)
class Unread:
    """An entry that cannot be read."""

    uid: str
    devices: tuple[DeviceId, ...]
    """Those that it names, as far as can be seen."""
    error: LedgerError


def unread(uid: str, content: bytes, error: LedgerError) -> Unread:
    """What can be said of the entry of a claim whose reading failed with *error*."""
    told = type(error)(f"the entry of claim {uid} cannot be read: {error}", remedy=error.remedy)
    return Unread(uid=uid, devices=devices_in(content), error=told)


class SetAside:
    """Files that were taken out of the record, so that all others are served.

    Every method may raise OSError.
    """

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._known: dict[str, Unread] = {}
        """By the name of the file."""

    @property
    def all(self) -> tuple[Unread, ...]:
        return tuple(self._known.values())

    def take(self, path: Path, uid: str, content: bytes, error: LedgerError) -> None:
        """Set the entry at *path* aside, which has *content*."""
        taken = self._disk.marks(self._directory)
        number = next(n for n in range(len(taken) + 1) if f"{uid}.{n}.json" not in taken)
        name = f"{uid}.{number}.json"
        self._disk.rename(path, self._directory / name)
        self._known[name] = unread(uid, content, error)

    def refresh(self) -> None:
        """Look at what was set aside, by whomever."""
        names = self._disk.marks(self._directory)
        for name in names.keys() - self._known.keys():
            uid = name.partition(".")[0]
            content = self._disk.read(self._directory / name)
            if is_uid(uid) and content is not None:
                self._known[name] = unread(uid, content, _why(content))
        for name in self._known.keys() - names.keys():
            del self._known[name]

    def remove(self, uid: str) -> None:
        """Remove what was set aside of a claim."""
        for name in [name for name, one in self._known.items() if one.uid == uid]:
            self._disk.remove(self._directory / name)
            del self._known[name]


def _why(content: bytes) -> LedgerError:
    try:
        read_record(content)
    except LedgerError as error:
        return error
    return LedgerError("it was set aside by hand", remedy="put it back, or remove it")
