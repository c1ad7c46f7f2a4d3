"""The door to the files that are the record of claims. Not here: what they say, and when.

Every effect on them is one call here, so that a test can end the process before and after each.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

from accelkit.core.errors import LedgerError, NoSpace

MOST_BYTES = 4 << 20
"""Of a file that is read; one that is longer is none of ours."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class Mark(NamedTuple):
    """What tells one content of a path from the next: files are replaced, never changed."""

    inode: int
    changed_ns: int
    size: int


class Disk(Protocol):
    """Files and locks; nothing is waited for.

    Raises:
        OSError: From every method, unless it says otherwise.
    """

    def marks(self, directory: Path) -> Mapping[str, Mark]:
        """Every regular file in *directory* by name; empty if there is no such directory."""
        ...

    def mark(self, path: Path) -> Mark | None:
        """The regular file at *path*; None: there is none."""
        ...

    def read(self, path: Path) -> bytes | None:
        """Its content; None: there is no such file."""
        ...

    def write(self, path: Path, content: bytes, mode: int) -> None:
        """Let *path*, which nobody reads yet, have *content*, down to the medium."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Let *new* be what *old* was, in one step, down to the medium."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file; one that is not there is fine."""
        ...

    def make(self, directory: Path, mode: int) -> None:
        """Make a directory and those above it; one that is there is fine."""
        ...

    def remove_tree(self, directory: Path) -> None:
        """Remove a directory and all below; one that is not there is fine."""
        ...

    def lock(self, path: Path) -> int | None:
        """Lock *path*, making it; ends with the process. None: somebody else has it."""
        ...

    def unlock(self, path: Path, handle: int, *, remove: bool) -> None:
        """Give the lock back; *remove* its file, too."""
        ...

    def sign(self, path: Path, handle: int, text: str) -> None:
        """Write who has a lock into it: nothing if the disk is full, and never what was before."""
        ...

    def owner(self, path: Path) -> str:
        """Who has or had a lock last, as they signed; empty: nobody knows. Never raises."""
        ...

    def fullness(self, directory: Path) -> float:
        """How much of the file system's space is used, from 0 to 1."""
        ...


class HostDisk:
    """The file system of this host."""

    def marks(self, directory: Path) -> Mapping[str, Mark]:
        found: dict[str, Mark] = {}
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        if entry.is_file(follow_symlinks=False):
                            found[entry.name] = _mark(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return {}
        return found

    def mark(self, path: Path) -> Mark | None:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return None
        return _mark(found) if stat.S_ISREG(found.st_mode) else None

    def read(self, path: Path) -> bytes | None:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            # Not the most at once: room for it would be made and thrown away.
            return os.read(handle, min(os.fstat(handle).st_size, MOST_BYTES))
        finally:
            os.close(handle)

    def write(self, path: Path, content: bytes, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, mode)
        try:
            os.fchmod(handle, mode)  # whatever the umask is
            left = memoryview(content)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)  # noqa: PTH105 - the method of a path makes another path
        self._sync(os.path.dirname(new))  # noqa: PTH120 - see above

    def remove(self, path: Path) -> None:
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):  # the latter of what is above it
            return
        self._sync(os.path.dirname(path))  # noqa: PTH120 - see rename

    def make(self, directory: Path, mode: int) -> None:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=mode)
            directory.chmod(mode)  # whatever the umask is

    def remove_tree(self, directory: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)

    def lock(self, path: Path) -> int | None:
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except BaseException:
                os.close(handle)
                raise
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise OSError(errno.EINVAL, "it is no regular file", str(path))
            # Its last holder may have removed the file that was opened here.
            mark = self.mark(path)
            if mark is not None and mark.inode == os.fstat(handle).st_ino:
                break
            os.close(handle)
        return handle

    def sign(self, path: Path, handle: int, text: str) -> None:  # noqa: ARG002 - others need the path
        os.ftruncate(handle, 0)  # first of all: what stood there is true no more
        with contextlib.suppress(OSError):  # a full disk keeps nobody from working
            os.pwrite(handle, text.encode(), 0)

    def unlock(self, path: Path, handle: int, *, remove: bool) -> None:
        try:
            if remove:
                path.unlink(missing_ok=True)
        finally:
            os.close(handle)

    def owner(self, path: Path) -> str:
        try:
            return (self.read(path) or b"").decode(errors="replace")
        except OSError:
            return ""

    def fullness(self, directory: Path) -> float:
        found = os.statvfs(directory)
        return 1.0 - found.f_bavail / found.f_blocks if found.f_blocks else 0.0

    @staticmethod
    def _sync(directory: str) -> None:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mark(found: os.stat_result) -> Mark:
    return Mark(found.st_ino, found.st_mtime_ns, found.st_size)


def temporary(path: Path) -> Path:
    """Where the next content of *path* is written: readers of the directory pass it over."""
    return path.with_name(f".{path.name}.tmp")


def put(disk: Disk, path: Path, content: bytes, mode: int) -> None:
    """Let *path* have *content*, in one step for whoever reads; one writer at a time."""
    written = temporary(path)
    disk.write(written, content, mode)
    disk.rename(written, path)


def take_away(disk: Disk, path: Path) -> None:
    """Remove *path*, and what a writer that ended may have left of it."""
    disk.remove(temporary(path))
    disk.remove(path)


class in_words:  # noqa: N801 - a context, of which a generator takes four times as long
    """Say *what* could not be done where the file system refuses.

    Raises:
        NoSpace: It is full.
        LedgerError: It refuses otherwise.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing is refused yet."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise self._said(error) from error

    def _said(self, error: OSError) -> LedgerError:
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in FULL:
            return NoSpace(
                f"{self._what}: there is no space left{where}",
                remedy="make room on the file system",
            )
        return LedgerError(
            f"{self._what}: {error.strerror}{where}",
            remedy="let the agent write its run directory and the CDI directory",
        )
