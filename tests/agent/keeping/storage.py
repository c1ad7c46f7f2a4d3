"""File systems that outlive processes, and the doors of processes to them.

One is in memory, one is a real directory; both end a process before any of its effects.
"""

import contextlib
import errno
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs

from accelkit.agent.disk import Disk, HostDisk, Mark
from tests.agent.keeping.process import Process


class Storage(Protocol):
    """Files, by the paths that they have on a node."""

    def door(self, process: Process) -> Disk:
        """What *process* may do."""
        ...

    def path(self, path: Path) -> Path:
        """Where *path* of the node is."""
        ...

    def contents(self) -> dict[str, bytes]:
        """All files."""
        ...

    def folders(self) -> set[str]:
        """All directories."""
        ...

    def add(self, path: str, content: bytes) -> None:
        """Let a file be there, and what is above it."""
        ...


@attrs.define
class File:
    content: bytes
    inode: int


@attrs.define
class MemoryStorage:
    """Directories and files; locks are of processes, and of inodes."""

    files: dict[str, File] = attrs.Factory(dict)
    directories: set[str] = attrs.Factory(lambda: {"/", "/run", "/var", "/var/run"})
    locks: dict[int, Process] = attrs.Factory(dict)
    full: bool = False
    """Nothing can be written."""
    inodes: int = 0

    def door(self, process: Process) -> "MemoryDisk":
        return MemoryDisk(self, process)

    def path(self, path: Path) -> Path:
        return path

    def contents(self) -> dict[str, bytes]:
        return {path: file.content for path, file in self.files.items()}

    def folders(self) -> set[str]:
        return self.directories

    def add(self, path: str, content: bytes) -> None:
        self.inodes += 1
        self.files[path] = File(content, self.inodes)
        self.directories.update(str(above) for above in Path(path).parents)

    def wipe(self, directory: Path) -> None:
        """Remove a directory and all below."""
        above = f"{directory}/"
        for path in [p for p in self.files if p.startswith(above)]:
            del self.files[path]
        self.directories = {
            d for d in self.directories if not d.startswith(above) and d != str(directory)
        }


class MemoryDisk:
    """What one process may do to a storage; see ``accelkit.agent.disk.Disk``."""

    def __init__(self, storage: MemoryStorage, process: Process) -> None:
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
            self._process.effect(f"remove {directory.name}", lambda: self._storage.wipe(directory))

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

    def sign(self, path: Path, handle: int, text: str) -> None:
        self._process.effect(f"sign {path.name}", partial(self._sign, str(path), handle, text))

    def _sign(self, path: str, handle: int, text: str) -> None:
        file = self._storage.files.get(path)
        if file is not None and file.inode == handle:  # else it was removed meanwhile
            file.content = b"" if self._storage.full else text.encode()

    def owner(self, path: Path) -> str:
        return (self.read(path) or b"").decode()

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


@attrs.define
class RealStorage:
    """A real directory that stands for the root of the node."""

    root: Path

    def door(self, process: Process) -> "RealDisk":
        return RealDisk(process)

    def path(self, path: Path) -> Path:
        return self.root / path.relative_to("/")

    def contents(self) -> dict[str, bytes]:
        return {
            f"/{path.relative_to(self.root)}": path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def folders(self) -> set[str]:
        return {f"/{p.relative_to(self.root)}" for p in self.root.rglob("*") if p.is_dir()}

    def add(self, path: str, content: bytes) -> None:
        there = self.path(Path(path))
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(content)


class RealDisk(HostDisk):
    """The door of the product, for a process that may end; its locks end with it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._locks: set[int] = set()
        process.last.append(self._close)

    def write(self, path: Path, content: bytes, mode: int) -> None:
        for part in (content[: len(content) // 2], content):
            self._process.effect(f"write {path.name}", partial(super().write, path, part, mode))

    def rename(self, old: Path, new: Path) -> None:
        self._process.effect(f"rename {new.name}", partial(super().rename, old, new))

    def remove(self, path: Path) -> None:
        self._process.effect(f"remove {path.name}", partial(super().remove, path))

    def make(self, directory: Path, mode: int) -> None:
        self._process.effect(f"make {directory.name}", partial(super().make, directory, mode))

    def remove_tree(self, directory: Path) -> None:
        self._process.effect(f"remove {directory.name}", partial(super().remove_tree, directory))

    def lock(self, path: Path) -> int | None:
        handle = self._process.effect(f"lock {path.name}", partial(super().lock, path))
        if handle is not None:
            self._locks.add(handle)
        return handle

    def unlock(self, path: Path, handle: int, *, remove: bool) -> None:
        if remove:
            self._process.effect(f"remove {path.name}", lambda: path.unlink(missing_ok=True))
        self._process.effect(
            f"unlock {path.name}", partial(super().unlock, path, handle, remove=False)
        )
        self._locks.discard(handle)

    def sign(self, path: Path, handle: int, text: str) -> None:
        self._process.effect(f"sign {path.name}", partial(super().sign, path, handle, text))

    def marks(self, directory: Path) -> Mapping[str, Mark]:
        self._process.alive()
        return super().marks(directory)

    def read(self, path: Path) -> bytes | None:
        self._process.alive()
        return super().read(path)

    def _close(self) -> None:
        for handle in self._locks:
            with contextlib.suppress(OSError):
                os.close(handle)
        self._locks.clear()
