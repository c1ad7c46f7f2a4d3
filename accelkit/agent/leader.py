"""Who leads on this node: the instance that holds the lock. Not here: what a leader does."""

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from accelkit.core.errors import ConfigError

LOCK = "leader.lock"


def prepare_run_directory(path: Path) -> None:
    """Make the run directory, for us alone; one that holds something keeps its mode.

    Raises:
        ConfigError: It cannot be made or written, or everybody may write it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(path.iterdir()):  # as a volume that was made for us; never /run or /tmp itself
            path.chmod(0o700)
        if path.stat().st_mode & stat.S_IWOTH:
            raise ConfigError(
                [("$.paths.run", f"everybody may write {path}, and so take over its sockets")],
                remedy="choose a directory of the agent's own",
            )
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            [("$.paths.run", f"{path} cannot be written: {error.strerror}")],
            remedy="choose a directory that the agent may write, best on tmpfs",
        ) from error


class Lease:
    """The leader lock of a run directory: an flock, which ends with its process."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK
        self._file: int | None = None
        self.elsewhere = False
        """Whether another instance had the lock at the last look."""

    def check(self) -> bool:
        """Take the lock if nobody has it; whether it is ours.

        A lock whose file was removed or replaced is given up: another instance locks the new one.
        """
        if self._file is not None and not self._same():
            self.release()
        if self._file is None:
            self._file = self._take()
        return self._file is not None

    def release(self) -> None:
        """Let another instance lead; may be called twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _take(self) -> int | None:
        self.elsewhere = False
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # the directory is gone and cannot be made: nobody can lead
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.elsewhere = True
            os.close(file)
            return None
        # Whose it is, for people; a disk that is full keeps nobody from leading.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        return file

    def _same(self) -> bool:
        assert self._file is not None
        ours = os.fstat(self._file)
        try:
            there = self._path.stat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
