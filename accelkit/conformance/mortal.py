"""A process that ends at any of its effects, as if it were killed. Not here: what it does."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from accelkit.agent.disk import HostDisk, Mark
from accelkit.core.errors import SourceError
from accelkit.core.host import READ_LIMIT, Door, Finished, Host, Stat
from accelkit.core.tables import FunctionTable
from accelkit.testing.record import NAME

T = TypeVar("T")
LANE = "lane-"
"""How names of threads begin in which agents call plugins."""
REFUSED = 999
"""What a function of a library answers that fails for no reason that anybody knows."""


class Around(Protocol):
    """Stands around every call of a door.

    Args:
        name: Of the call, with what it is about.
        call: Makes it.
        refuse: What it looks like where the host does not do it.
    """

    def __call__(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T: ...


class Crash(BaseException):
    """The process is no more: no code of ours handles this."""


class Process:
    """Counts what it changes on the host, and ends right after the change that it is told.

    Args:
        machine: Directory of the simulated machine that it works at.
        ends_after: The number of the change after which it ends, from 1; None: it does not.
    """

    def __init__(self, machine: str, ends_after: int | None = None) -> None:
        self._machine = machine
        self._ends_after = ends_after
        self.effects: list[str] = []
        """What it changed, in order."""
        self.dead = False
        self._thread = threading.current_thread()
        self._locks: set[int] = set()

    def around(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:  # noqa: ARG002 - it does what is asked
        """Make *call*, which may change the machine."""
        self.alive()
        before = print_of(self._machine)
        try:
            return call()
        finally:
            if print_of(self._machine) != before:
                self._count(name)

    def change(self, name: str, do: Callable[[], T]) -> T:
        """Do what changes a file."""
        self.alive()
        done = do()
        self._count(name)
        return done

    def alive(self) -> None:
        """Do nothing, if there is somebody to do it.

        Raises:
            Crash: There is nobody.
        """
        if self.dead:
            # Threads of the plugin's own end without a word.
            own = threading.current_thread() is self._thread
            raise Crash if own or threading.current_thread().name.startswith(LANE) else SystemExit

    def hold(self, handle: int) -> None:
        """Remember a lock, which ends with the process."""
        self._locks.add(handle)

    def let_go(self, handle: int) -> None:
        self._locks.discard(handle)

    def end(self) -> None:
        """Be no more."""
        self.dead = True
        for handle in self._locks:
            with contextlib.suppress(OSError):
                os.close(handle)
        self._locks.clear()

    def _count(self, name: str) -> None:
        self.effects.append(name)
        if len(self.effects) == self._ends_after:
            self.end()
        self.alive()


def print_of(machine: str) -> tuple[int, int, int]:
    """What is another one when the machine in a directory has changed."""
    found = os.stat(f"{machine}/{NAME}")  # noqa: PTH116 - before and after every call
    return found.st_ino, found.st_mtime_ns, found.st_size


class MortalDisk(HostDisk):
    """The door of the agent to its files, for a process that may end; locks end with it.

    What only such a process can see does not count: that a file is being written, or locked.
    """

    def __init__(self, process: Process) -> None:
        self._process = process

    def marks(self, directory: Path) -> Mapping[str, Mark]:
        self._process.alive()
        return super().marks(directory)

    def mark(self, path: Path) -> Mark | None:
        self._process.alive()
        return super().mark(path)

    def read(self, path: Path) -> bytes | None:
        self._process.alive()
        return super().read(path)

    def write(self, path: Path, content: bytes, mode: int) -> None:
        self._process.alive()
        super().write(path, content, mode)

    def rename(self, old: Path, new: Path) -> None:
        self._process.change(f"{new.name} is written", lambda: HostDisk.rename(self, old, new))

    def remove(self, path: Path) -> None:
        self._process.alive()
        if path.exists():
            self._process.change(f"{path.name} is removed", lambda: HostDisk.remove(self, path))

    def make(self, directory: Path, mode: int) -> None:
        self._process.alive()
        super().make(directory, mode)

    def remove_tree(self, directory: Path) -> None:
        self._process.alive()
        if directory.exists():
            self._process.change(
                f"{directory.name} is removed", lambda: HostDisk.remove_tree(self, directory)
            )

    def lock(self, path: Path) -> int | None:
        self._process.alive()
        handle = super().lock(path)
        if handle is not None:
            self._process.hold(handle)
        return handle

    def unlock(self, path: Path, handle: int, *, remove: bool) -> None:
        self._process.alive()
        self._process.let_go(handle)
        super().unlock(path, handle, remove=remove)


class ToldDoor(Door):
    """Passes every call on through *around*: of files, of programs, of functions of libraries."""

    def __init__(self, host: Host, around: Around) -> None:
        super().__init__(host)
        self._around = around

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        call = self._host.read
        return self._around(f"read {path}", lambda: call(path, limit), lambda: _refuse(path))

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        call = self._host.read_bytes
        return self._around(f"read {path}", lambda: call(path, limit), lambda: _refuse(path))

    def exists(self, path: str) -> bool:
        call = self._host.exists
        return self._around(f"look for {path}", lambda: call(path), lambda: call(path))

    def names(self, path: str) -> tuple[str, ...]:
        call = self._host.names
        return self._around(f"list {path}", lambda: call(path), lambda: call(path))

    def stat(self, path: str) -> Stat | None:
        call = self._host.stat
        return self._around(f"look at {path}", lambda: call(path), lambda: _refuse(path))

    def write(self, path: str, text: str) -> None:
        call = self._host.write
        return self._around(f"write {path}", lambda: call(path, text), lambda: _refuse(path))

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        call = self._host.run
        failed = Finished(code=1, out="", err="made to fail")
        name = " ".join(argv[:1])
        return self._around(f"run {name}", lambda: call(argv, timeout_s), lambda: failed)

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        call = self._host.ioctl
        return self._around(
            f"ioctl {path}", lambda: call(path, request, payload), lambda: _refuse(path)
        )

    def library(self, soname: str) -> FunctionTable:
        return _ToldTable(self._host.library(soname), self._around)

    def module(self, name: str) -> FunctionTable:
        return _ToldTable(self._host.module(name), self._around)


class _ToldTable:
    """A library whose functions are called through *around*."""

    def __init__(self, table: FunctionTable, around: Around) -> None:
        self._table, self._around = table, around

    def __getattr__(self, name: str) -> object:
        function = getattr(self._table, name)
        if not callable(function):
            return function
        around = self._around

        def call(*arguments: object) -> object:
            return around(name, lambda: function(*arguments), lambda: REFUSED)

        return call


def _refuse(path: str) -> NoReturn:
    raise SourceError(f"{path}: input/output error (made to fail)", operation="door")
