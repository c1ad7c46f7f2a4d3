"""Partitions of claims that were given back while their whole device was not there.

It may come back with them, and then they are still ours to be unmade. Not here: who does that.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import attrs

from accelkit.agent.disk import Disk, in_words, put, take_away
from accelkit.core.errors import ModelError
from accelkit.core.model import DeviceId

_SUFFIX = ".json"
_PRIVATE, _FILE = 0o700, 0o600


@attrs.frozen(kw_only=True)
class Gone:
    """A partition that may come back."""

    root: DeviceId
    handle: str | None
    """The maker's id of it: what has another one is not ours."""


class Left:
    """A file for each, shared by all instances on the node.

    Args:
        directory: Of this boot.
        disk: The door to files.
    """

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk

    def note(self, device: DeviceId, gone: Gone) -> None:
        """Remember *device*.

        Raises:
            LedgerError: It cannot be written down.
        """
        content = json.dumps({"device": str(device), "root": str(gone.root), "handle": gone.handle})
        with in_words(f"that {device} may come back cannot be written down"):
            self._disk.make(self._directory, _PRIVATE)
            put(self._disk, self._path(device), content.encode(), _FILE)

    def forget(self, device: DeviceId) -> None:
        """Forget *device*; one that was never noted is fine.

        Raises:
            LedgerError: Its file cannot be removed.
        """
        with in_words(f"the note on {device} cannot be removed"):
            take_away(self._disk, self._path(device))

    def all(self) -> Mapping[DeviceId, Gone]:
        """What was noted, as far as it can be read.

        Raises:
            LedgerError: The directory cannot be read.
        """
        with in_words(f"{self._directory} cannot be read"):
            names = sorted(self._disk.marks(self._directory))
            return dict(
                found
                for name in names
                if name.endswith(_SUFFIX) and (found := self._read(name)) is not None
            )

    def _path(self, device: DeviceId) -> Path:
        return self._directory / f"{device.vendor}~{device.name}{_SUFFIX}"

    def _read(self, name: str) -> tuple[DeviceId, Gone] | None:
        try:
            told = json.loads(self._disk.read(self._directory / name) or b"")
            handle = told["handle"]
            root = DeviceId.parse(told["root"])
            return DeviceId.parse(told["device"]), Gone(
                root=root, handle=None if handle is None else str(handle)
            )
        except (ValueError, KeyError, TypeError, ModelError):  # somebody else's
            return None
