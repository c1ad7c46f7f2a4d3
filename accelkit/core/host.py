"""The only door to the machine: files, commands and libraries, below one root."""

from collections.abc import Sequence
from copy import copy
from typing import Protocol, Self

import attrs

from accelkit.core.errors import AccessDenied
from accelkit.core.tables import FunctionTable

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Where a host tells which boot this is (Documentation/admin-guide/sysctl/kernel.rst)."""
KMSG = "/dev/kmsg"
"""The kernel's log (Documentation/ABI/testing/dev-kmsg)."""
UEVENTS = "/dev/uevents"
"""Where a simulated machine writes what a kernel sends to sockets, a message a line."""
READ_LIMIT = 1 << 20
"""Bytes; longer files are cut there."""


@attrs.frozen(kw_only=True)
class Stat:
    """What kind of file is at a path."""

    kind: str
    """c, b: device node; f: file; d: directory; s: socket; o: anything else."""
    major: int | None = None
    minor: int | None = None
    mode: int = 0
    """Permission bits."""
    changed_ns: int = attrs.field(default=0, eq=False)
    """Of a file: when its content changed last, to tell it from an earlier one; 0: not known.
    The times of device nodes change with every use, and say nothing."""


@attrs.frozen(kw_only=True)
class Finished:
    """A command that ended."""

    code: int
    out: str
    err: str


class Host(Protocol):
    """The same doors in production, in a capture and in a simulator.

    Paths are absolute host paths.
    """

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        """The text at *path*, undecodable bytes replaced, one final newline stripped.

        Raises:
            NotThere: No such file.
            AccessDenied: The process may not read it.
            SourceError: Anything else.
        """
        ...

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; of a missing directory none."""
        ...

    def resolve(self, path: str) -> str:
        """*path* with every link followed, inside the host's root only.

        Raises:
            NotThere: A part of *path* is missing.
        """
        ...

    def stat(self, path: str) -> Stat | None:
        """What is at *path*, links followed; None: nothing."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write to an existing file; refused in a read call.

        Raises:
            AccessDenied: The call may not write, or the process may not.
            SourceError: Anything else.
        """
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        """Run a host binary, named by its absolute path.

        Raises:
            NotThere: No such program.
            SourceTimeout: It did not end in *timeout_s*.
        """
        ...

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes: ...

    def library(self, soname: str) -> FunctionTable:
        """C functions as ctypes sees them.

        Raises:
            LibraryMissing: The library is not there or cannot be loaded.
        """
        ...

    def module(self, name: str) -> FunctionTable:
        """A Python binding, imported on first use.

        Raises:
            LibraryMissing: The import failed, whatever the reason.
        """
        ...

    def under(self, root: str) -> Self:
        """The same doors below another root, such as a driver container's."""
        ...

    def outside(self, path: str) -> str:
        """*path* as the container runtime finds it: itself on a real host."""
        ...

    @property
    def live(self) -> bool:
        """Whether libraries are the machine's own, loaded into this process."""
        ...


class Door:
    """A host that passes everything on; who changes one answer inherits the others."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        return self._host.read(path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        return self._host.read_bytes(path, limit)

    def exists(self, path: str) -> bool:
        return self._host.exists(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self._host.names(path)

    def resolve(self, path: str) -> str:
        return self._host.resolve(path)

    def stat(self, path: str) -> Stat | None:
        return self._host.stat(path)

    def write(self, path: str, text: str) -> None:
        self._host.write(path, text)

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        return self._host.run(argv, timeout_s)

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        return self._host.ioctl(path, request, payload)

    def library(self, soname: str) -> FunctionTable:
        return self._host.library(soname)

    def module(self, name: str) -> FunctionTable:
        return self._host.module(name)

    def under(self, root: str) -> Self:
        below = copy(self)
        below._host = self._host.under(root)  # noqa: SLF001 - of its own class
        return below

    def outside(self, path: str) -> str:
        return self._host.outside(path)

    @property
    def live(self) -> bool:
        return self._host.live


class ReadOnly(Door):
    """A host that refuses writes: what read calls get."""

    def write(self, path: str, text: str) -> None:  # noqa: ARG002 - refused whatever it is
        raise AccessDenied(
            f"{path}: discovering, health and other reading calls may not write",
            operation="write",
            remedy="change hardware only in create, destroy, set_mode, apply and revert",
        )
