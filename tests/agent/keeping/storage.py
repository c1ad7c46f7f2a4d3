"""A file system in memory, that outlives processes, and its door for one of them."""

import errno
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import attrs

from accelkit.agent.disk import Mark
from tests.agent.keeping.process import Process


@attrs.define
class File:
    content: bytes
    inode: int


@attrs.define
class Storage:
    """Directories and files; locks are of processes, and of inodes."""

    files: dict[str, File] = attrs.Factory(dict)
    directories: set[str] = attrs.Factory(set)
    locks: dict[int, Process] = attrs.Factory(dict)
    full: bool = False
    """Nothing can be written."""
    inodes: int = 0

    def add(self, path: str, content: bytes) -> None:
        self.inodes += 1
        self.files[path] = File(content, self.inodes)

    def contents(self) -> dict[str, bytes]:
        """What outlives every process, by path."""
        return {path: file.content for path, file in sorted(self.files.items())}


class MemoryDisk:
    """What one process may do to a storage; see ``accelkit.agent.disk.Disk``."""

    def __init__(self, storage: Storage, process: Process) -> None:
        self._storage = storage
        self._process = process
        self._handles = 0

    def marks(self, directory: Path) -> Mapping[str, Mark]:
        self._process.alive()
        above = f"{directory}/"
        return {
            path.removeprefix(above): _mark(file)
            for path, file in self._storage.files.items()
            if path.startswith(above) and "/" not in path.removeprefix(above)
        }

    def mark(self, path: Path) -> Mark | None:
        self._process.alive()
        file = self._storage.files.get(str(path))
        return None if file is None else _mark(file)

    def read(self, path: Path) -> bytes | None:
        self._process.alive()
        file = self._storage.files.get(str(path))
        return None if file is None else file.content

    def write(self, path: Path, content: bytes, mode: int) -> None:  # noqa: ARG002 - modes have no effect here
        self._check(path)
        # Twice: a process may end in the middle of it.
        for part in (content[: len(content) // 2], content):
            self._process.effect(f"write {path.name}", partial(self._storage.add, str(path), part))

    def rename(self, old: Path, new: Path) -> None:
        files = self._storage.files
        if str(old) not in files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(old))
        self._check(new)

        def rename() -> None:
            files[str(new)] = files.pop(str(old))

        self._process.effect(f"rename {new.name}", rename)

    def remove(self, path: Path) -> None:
        self._process.alive()
        if str(path) in self._storage.files:
            self._process.effect(
                f"remove {path.name}", lambda: self._storage.files.pop(str(path), None)
            )

    def make(self, directory: Path, mode: int) -> None:  # noqa: ARG002 - see above
        self._process.alive()
        wanted = {str(directory), *(str(above) for above in directory.parents)}
        if not wanted <= self._storage.directories:
            self._process.effect(
                f"make {directory.name}", lambda: self._storage.directories.update(wanted)
            )

    def remove_tree(self, directory: Path) -> None:
        self._process.alive()
        if str(directory) in self._storage.directories:
            self._process.effect(f"remove {directory.name}", lambda: self.wipe(directory))

    def wipe(self, directory: Path) -> None:
        """Remove a directory and all below."""
        above = f"{directory}/"
        for path in [p for p in self._storage.files if p.startswith(above)]:
            del self._storage.files[path]
        self._storage.directories = {
            d for d in self._storage.directories if not d.startswith(above) and d != str(directory)
        }

    def lock(self, path: Path) -> int | None:
        self._check_directory(path)
        if str(path) not in self._storage.files:
            self._process.effect(f"make {path.name}", lambda: self._storage.add(str(path), b""))
        inode = self._storage.files[str(path)].inode
        if inode in self._storage.locks and not self._storage.locks[inode].dead:
            return None
        return self._process.effect(f"lock {path.name}", lambda: self._lock(inode))

    def _lock(self, inode: int) -> int:
        self._storage.locks[inode] = self._process
        return inode

    def unlock(self, path: Path, handle: int, *, remove: bool) -> None:
        self._process.alive()
        if remove:
            self.remove(path)
        self._process.effect(f"unlock {path.name}", lambda: self._storage.locks.pop(handle, None))

    def owner(self, path: Path) -> str:  # noqa: ARG002 - all are in one real process
        return "7"

    def fullness(self, directory: Path) -> float:  # noqa: ARG002 - there is one file system
        return 1.0 if self._storage.full else 0.0

    def _check(self, path: Path) -> None:
        self._check_directory(path)
        if self._storage.full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def _check_directory(self, path: Path) -> None:
        self._process.alive()
        if str(path.parent) not in self._storage.directories:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))


def _mark(file: File) -> Mark:
    return Mark(file.inode, 0, len(file.content))
