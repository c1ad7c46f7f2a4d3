"""The kernel's own files, programs and libraries, below one root. Not here: simulated machines."""

import contextlib
import ctypes
import errno
import fcntl
import importlib
import io
import os
import stat as modes
from collections.abc import Callable, Iterator, Sequence

from accelkit.core.commands import run_program
from accelkit.core.errors import AccessDenied, LibraryMissing, NotThere, SourceError
from accelkit.core.host import READ_LIMIT, Finished, Stat
from accelkit.core.symlinks import followed
from accelkit.core.tables import FunctionTable

LIBRARY_FOLDERS = (
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib",
)
"""Where distributions keep libraries, most specific first."""

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (modes.S_ISCHR, "c"),
    (modes.S_ISBLK, "b"),
    (modes.S_ISREG, "f"),
    (modes.S_ISDIR, "d"),
    (modes.S_ISSOCK, "s"),
)


class RealHost:
    """The host, or the part of it below *root*; see Host for what each method promises.

    Links are followed inside the root only, as a process with that root would see them.
    """

    def __init__(self, root: str = "/", *, seen_as: str = "") -> None:
        """Open the door.

        Args:
            root: The directory that stands for ``/``, such as a mounted host file system.
            seen_as: What the container runtime calls that directory; empty: ``/``.
        """
        self._root = "" if root == "/" else root.rstrip("/")
        self._seen_as = seen_as

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        text = self.read_bytes(path, limit).decode(errors="replace")
        return text.removesuffix("\n")

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        with translated("read", path), _opened(self._real(path), os.O_RDONLY) as fd:
            parts: list[bytes] = []
            while limit > 0 and (part := os.read(fd, min(limit, 1 << 16))):
                parts.append(part)
                limit -= len(part)
            return b"".join(parts)

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def names(self, path: str) -> tuple[str, ...]:
        with translated("list", path):
            try:
                return tuple(sorted(os.listdir(self._real(path))))  # noqa: PTH208 - names, not paths
            except (FileNotFoundError, NotADirectoryError):
                return ()

    def resolve(self, path: str) -> str:
        with translated("resolve", path):
            inside = self.inside(path)
            os.lstat(self._root + inside)
            return inside

    def stat(self, path: str) -> Stat | None:
        with translated("look at", path):
            try:
                found = os.stat(self._real(path))  # noqa: PTH116 - a path as the caller wrote it
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno == errno.ELOOP:  # links that lead to each other lead to nothing
                    return None
                raise
            kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "o")
            device = kind in "cb"
            return Stat(
                kind=kind,
                major=os.major(found.st_rdev) if device else None,
                minor=os.minor(found.st_rdev) if device else None,
                mode=modes.S_IMODE(found.st_mode),
                changed_ns=found.st_mtime_ns if kind == "f" else 0,
            )

    def write(self, path: str, text: str) -> None:
        with translated("write", path), _opened(self._real(path), os.O_WRONLY | os.O_TRUNC) as fd:
            os.write(fd, text.encode())

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        if not argv or not argv[0].startswith("/"):
            raise SourceError(f"{argv[:1]}: a program is named by its absolute path")
        if not self.exists(argv[0]):
            raise NotThere(f"{argv[0]}: there is no such program")
        return run_program(argv, timeout_s, root=self._root)

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        buffer = bytearray(payload)
        with translated("control", path), _opened(self._real(path), os.O_RDWR) as fd:
            fcntl.ioctl(fd, request, buffer)
        return bytes(buffer)

    def library(self, soname: str) -> FunctionTable:
        name = soname if not self._root else self._library_file(soname)
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            raise LibraryMissing(
                f"{soname} cannot be loaded: {error}", operation="library", remedy=_NO_LIBRARY
            ) from error

    def module(self, name: str) -> FunctionTable:
        return guarded_import(name)

    def under(self, root: str) -> "RealHost":
        inside = self.inside(root)
        return RealHost(self._root + inside, seen_as=self._seen_as + inside)

    def outside(self, path: str) -> str:
        return self._seen_as + path

    @property
    def live(self) -> bool:
        return True

    def _library_file(self, soname: str) -> str:
        for folder in LIBRARY_FOLDERS:
            if self.exists(f"{folder}/{soname}"):
                return self._real(f"{folder}/{soname}")
        raise LibraryMissing(
            f"{soname} is in none of the library folders below {self._root}",
            operation="library",
            remedy=_NO_LIBRARY,
        )

    def _real(self, path: str) -> str:
        """*path* as this process finds it."""
        if not path.startswith("/"):
            raise SourceError(f"{path!r}: a path on the host is absolute")
        return self._root + self.inside(path) if self._root else path

    def inside(self, path: str) -> str:
        """*path* with every link followed below the root; parts that are missing stay as named."""
        return followed(self._root, path)


_NO_LIBRARY = "install the maker's driver libraries on the host, or name the folder that has them"


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    # Not blocking: opening a pipe or a modem must not wait for somebody at the other end.
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def translated(what: str, path: str) -> Iterator[None]:
    """Turn what the kernel says about *path* into errors that say what to do.

    Args:
        what: A verb for the sentence, as in "read".
        path: As the caller wrote it.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotThere(f"{path}: there is no such file", operation=what) from error
    except PermissionError as error:
        raise AccessDenied(
            f"{path}: this process may not {what} it: {error.strerror}",
            operation=what,
            remedy="run as a user who may, or grant the capability that the vendor declares",
        ) from error
    except OSError as error:
        raise SourceError(
            f"{path}: cannot {what} it: {error.strerror or error}", operation=what
        ) from error
    except ValueError as error:  # a NUL byte in a path
        raise SourceError(f"{path!r}: cannot {what} it: {error}", operation=what) from error


def guarded_import(name: str) -> FunctionTable:
    """Import a binding; whatever it prints is dropped, whatever it raises means "not there".

    Raises:
        LibraryMissing: It cannot be imported here.
    """
    # Bindings load C libraries while they are imported, print about it, and look up symbols and
    # environment variables that an older driver does not have; some then raise, or end, anyhow.
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise LibraryMissing(
            f"the Python module {name} cannot be imported: {type(error).__name__}: {error}",
            operation="module",
            remedy=f"install the package that brings {name}, and the driver that it needs",
        ) from error
