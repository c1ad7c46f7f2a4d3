"""Which files of a directory are written where others may read them. Not here: what is in them."""

import ctypes
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

_MODIFY = 0x2
"""IN_MODIFY of inotify(7)."""
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC
_HEAD = struct.Struct("iIII")


class Written:
    """Notes every file of a directory that is written into under its name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = -1

    def __enter__(self) -> Self:
        self._handle = self._libc.inotify_init1(_NONBLOCK)
        watched = os.fsencode(self._directory)
        if self._libc.inotify_add_watch(self._handle, watched, _MODIFY) < 0:
            error = ctypes.get_errno()
            os.close(self._handle)
            raise OSError(error, os.strerror(error), str(self._directory))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    def names(self) -> set[str]:
        """Files that were written into since the last time."""
        found: set[str] = set()
        while True:
            try:
                raw = os.read(self._handle, 65536)
            except BlockingIOError:
                return found
            while raw:
                *_, length = _HEAD.unpack_from(raw)
                name = raw[_HEAD.size : _HEAD.size + length].rstrip(b"\0")
                found.add(os.fsdecode(name))
                raw = raw[_HEAD.size + length :]
