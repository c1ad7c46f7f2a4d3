"""Doors to a host that are not quite right: shuffled, blind, full of garbage, blocked, watched."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import ParamSpec, Self, TypeVar, cast

from accelkit.core.errors import AccessDenied, SourceError
from accelkit.core.host import READ_LIMIT, Door, Finished, Host, Stat
from accelkit.core.tables import FunctionTable

P = ParamSpec("P")
T = TypeVar("T")


class Watched(Door):
    """Refuses writes like the door of reading calls, and keeps what was tried."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.written: list[str] = []

    def write(self, path: str, text: str) -> None:
        self.written.append(path)
        raise AccessDenied(f"{path}: reading calls may not write ({len(text)} characters)")


class Remembered(Door):
    """A host that does not change: looks at each file once."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._known: dict[tuple[object, ...], object] = {}

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        return self._once(self._host.read, path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        return self._once(self._host.read_bytes, path, limit)

    def exists(self, path: str) -> bool:
        return self._once(self._host.exists, path)

    def names(self, path: str) -> tuple[str, ...]:
        return self._once(self._host.names, path)

    def resolve(self, path: str) -> str:
        return self._once(self._host.resolve, path)

    def stat(self, path: str) -> Stat | None:
        return self._once(self._host.stat, path)

    def under(self, root: str) -> Self:
        below = super().under(root)
        below._known = {}  # noqa: SLF001 - of its own class
        return below

    def _once(self, look: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        key = look.__name__, *args
        if key not in self._known:
            try:
                self._known[key] = look(*args, **kwargs)
            except SourceError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, SourceError):
            raise found.with_traceback(None)
        return cast("T", found)


class Shuffled(Door):
    """Lists directories in another order each time."""

    def __init__(self, host: Host, rng: random.Random) -> None:
        super().__init__(host)
        self._rng = rng

    def names(self, path: str) -> tuple[str, ...]:
        names = list(self._host.names(path))
        self._rng.shuffle(names)
        return tuple(names)


class Blind(Door):
    """Nothing can be read any more: every look fails in a typed way."""

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        raise _unseen(path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        raise _unseen(path, limit)

    def names(self, path: str) -> tuple[str, ...]:
        raise _unseen(path)

    def stat(self, path: str) -> Stat | None:
        raise _unseen(path)

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        raise _unseen(" ".join(argv), timeout_s)

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        raise _unseen(path, request, payload)

    def library(self, soname: str) -> FunctionTable:
        raise _unseen(soname)

    def module(self, name: str) -> FunctionTable:
        raise _unseen(name)


def _unseen(what: str, *_: object) -> SourceError:
    return SourceError(f"{what}: input/output error", operation="read")


class Garbage(Door):
    """Some files hold rubbish, and some functions of libraries fail with any code."""

    def __init__(self, host: Host, rng: random.Random, texts: Sequence[str], share: float) -> None:
        super().__init__(host)
        self._rng, self._texts, self._share = rng, texts, share

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        text = self._host.read(path, limit)
        if self._rng.random() >= self._share:
            return text
        return self._rng.choice([*self._texts, text[: len(text) // 2], text * 2])[:limit]

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        found = self._host.read_bytes(path, limit)
        return found if self._rng.random() >= self._share else self._rng.randbytes(len(found))

    def library(self, soname: str) -> FunctionTable:
        return _Failing(self._host.library(soname), self._rng, self._share)


class _Failing:
    """A library whose functions answer with any error code now and then."""

    def __init__(self, table: FunctionTable, rng: random.Random, share: float) -> None:
        self._table, self._rng, self._share = table, rng, share

    def __getattr__(self, name: str) -> object:
        function = getattr(self._table, name)
        if self._rng.random() >= self._share:
            return function
        code = self._rng.choice([*range(1, 30), 999])
        return lambda *_args: code


class Noted(Door):
    """Keeps the paths of the files that are read."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.files: set[str] = set()

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self.files.add(path)
        return self._host.read(path, limit)


class Swapped(Door):
    """One file, or every file of one name, holds another text."""

    def __init__(self, host: Host, file: str, text: str) -> None:
        super().__init__(host)
        self._file, self._text = file, text

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        found = self._host.read(path, limit)
        meant = self._file in {path, path.rpartition("/")[2]}
        return self._text[:limit] if meant else found


class Meddled(Door):
    """Something happens before each look at a file."""

    def __init__(self, host: Host, meddle: Callable[[], object]) -> None:
        super().__init__(host)
        self._meddle = meddle

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self._meddle()
        return self._host.read(path, limit)

    def exists(self, path: str) -> bool:
        self._meddle()
        return self._host.exists(path)

    def names(self, path: str) -> tuple[str, ...]:
        self._meddle()
        return self._host.names(path)


class Blocked(Door):
    """The first look at a file does not come back before it is told to."""

    def __init__(self, host: Host, entered: threading.Event, go_on: threading.Event) -> None:
        super().__init__(host)
        self._entered, self._go_on = entered, go_on

    def _wait(self) -> None:
        self._entered.set()
        self._go_on.wait()

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self._wait()
        return self._host.read(path, limit)

    def names(self, path: str) -> tuple[str, ...]:
        self._wait()
        return self._host.names(path)

    def stat(self, path: str) -> Stat | None:
        self._wait()
        return self._host.stat(path)

    def library(self, soname: str) -> FunctionTable:
        self._wait()
        return self._host.library(soname)
