"""A door that keeps what goes through it. Not here: reading it again."""

import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelkit.core.errors import AccelkitError, AccessDenied, LibraryMissing, NotThere, SourceError
from accelkit.core.host import READ_LIMIT, Door, Finished, Host, Stat
from accelkit.core.tables import FunctionTable
from accelkit.testing.captures.arguments import kept
from accelkit.testing.captures.layout import (
    COMMANDS,
    DEAD,
    DENIED,
    FAILED,
    FILES,
    MARKS,
    MODULES,
    UNREAD,
    tape_of,
)
from accelkit.testing.captures.modules import RecordedModule

_OPEN = re.compile(r"/proc/\d+/fd/\d+")
"""A file that a process has open: only device files are kept, and of others not even the name."""


class Keeper:
    """Writes a capture; may be used by several threads.

    What goes wrong with that is kept: a plugin must not take it for an answer.

    Args:
        folder: Of the capture; it is there, and empty.
    """

    def __init__(self, folder: Path) -> None:
        self.nodes: dict[str, dict[str, object]] = {}
        """What is at paths that are no plain files or directories."""
        self.libraries: dict[str, str | None] = {}
        """Sonames by whole path; and why one could not be loaded."""
        self.modules: dict[str, str | None] = {}
        """Names of Python bindings; and why one could not be imported."""
        self.wrong: OSError | None = None
        """Why something could not be kept: the first time."""
        self._folder = folder
        self._files = folder / FILES
        self._files.mkdir()
        self._lock = threading.Lock()

    def line(self, name: str, content: object) -> None:
        """Add a line to a file of the capture."""
        path = self._folder / name
        with self._writing():
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(content) + "\n")

    def place(self, host: Host, prefix: str, path: str) -> Path:
        """Where *path* is in the tree, links on the way made."""
        here = ""
        for part in (p for p in path.split("/") if p):
            there = f"{here}/{part}"
            try:
                real = host.resolve(there)
            except AccelkitError:
                real = there
            if real != there:
                self._link(prefix + there, prefix + real)
                self.place(host, prefix, real)
            here = real
        return self._at(prefix + here)

    def put(self, place: Path, content: bytes, mark: str = "") -> None:
        """Keep the content of a file, or that there is none."""
        with self._writing():
            if place.is_dir():
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            known = (place, *(_marked(place, one) for one in MARKS))
            if mark == UNREAD and any(path.exists() for path in known):
                return
            for old in MARKS:
                _marked(place, old).unlink(missing_ok=True)
            (_marked(place, mark) if mark else place).write_bytes(content)

    def folder(self, place: Path) -> None:
        with self._writing():
            if place.is_file():
                return
            _marked(place, UNREAD).unlink(missing_ok=True)
            place.mkdir(parents=True, exist_ok=True)

    def _link(self, path: str, target: str) -> None:
        place, real = self._at(path), self._at(target)
        with self._writing():
            if place.is_symlink():
                return
            _marked(place, UNREAD).unlink(missing_ok=True)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(os.path.relpath(real, place.parent))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except OSError as error:
                self.wrong = self.wrong or error

    def _at(self, path: str) -> Path:
        return self._files / path.strip("/")


class RecordingHost(Door):
    """Keeps what is read, run and called; refuses nothing and changes nothing.

    Args:
        host: What is behind it.
        keeper: Writes it down.
        prefix: The root of *host* below that of the capture.
    """

    def __init__(self, host: Host, keeper: Keeper, prefix: str = "") -> None:
        super().__init__(host)
        self._keeper = keeper
        self._prefix = prefix

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        return self.read_bytes(path, limit).decode(errors="replace").removesuffix("\n")

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        place = self._keeper.place(self._host, self._prefix, path)
        try:
            content = self._host.read_bytes(path, limit)
        except NotThere:
            raise
        except AccessDenied:
            self._keeper.put(place, b"", DENIED)
            raise
        except SourceError as error:
            self._keeper.put(place, str(error).encode(), FAILED)
            raise
        self._keeper.put(place, content)
        return content

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def names(self, path: str) -> tuple[str, ...]:
        found = self._host.names(path)
        place = self._keeper.place(self._host, self._prefix, path)
        if found or self._host.exists(path):
            self._keeper.folder(place)
        for name in found:
            if self._note(f"{path.rstrip('/')}/{name}") is None:
                self._keeper.put(place / name, b"", DEAD)
        return found

    def resolve(self, path: str) -> str:
        found = self._host.resolve(path)
        self._note(path)
        return found

    def stat(self, path: str) -> Stat | None:
        return self._note(path)

    def _note(self, path: str) -> Stat | None:
        """What is at *path*, kept as far as it can be seen from outside."""
        found = self._host.stat(path)
        if found is not None and _OPEN.fullmatch(path) and found.kind not in {"b", "c"}:
            return found
        place = self._keeper.place(self._host, self._prefix, path)
        if found is None:
            return None
        if found.kind == "d":
            self._keeper.folder(place)
        else:
            self._keeper.put(place, b"", UNREAD)
        if found.kind not in {"d", "f"}:
            known = {"kind": found.kind, "mode": found.mode}
            numbers = {"major": found.major, "minor": found.minor}
            whole = self._prefix + self._host.resolve(path)
            self._keeper.nodes[whole] = {**known, **numbers}
        return found

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        words = [self._prefix + argv[0], *argv[1:]] if argv else []
        try:
            found = self._host.run(argv, timeout_s)
        except SourceError as error:
            self._keeper.line(COMMANDS, {"argv": words, "error": str(error)})
            raise
        ended = {"code": found.code, "out": found.out, "err": found.err}
        self._keeper.line(COMMANDS, {"argv": words, **ended})
        return found

    def library(self, soname: str) -> FunctionTable:
        whole = f"{self._prefix}/{soname}"
        try:
            table = self._host.library(soname)
        except LibraryMissing as error:
            self._keeper.libraries[whole] = str(error)
            raise
        self._keeper.libraries[whole] = None
        return RecordedTable(table, self._keeper, tape_of(whole.strip("/")))

    def module(self, name: str) -> FunctionTable:
        try:
            module = self._host.module(name)
        except LibraryMissing as error:
            self._keeper.modules[name] = str(error)
            raise
        self._keeper.modules[name] = None
        file = f"{MODULES}/{name}.jsonl"
        return RecordedModule(module, lambda told: self._keeper.line(file, told))

    def under(self, root: str) -> "RecordingHost":
        inside = self._host.resolve(root)
        self._note(root)
        return RecordingHost(self._host.under(root), self._keeper, self._prefix + inside)

    @property
    def live(self) -> bool:
        return False


class RecordedTable:
    """A library of which each call is kept."""

    def __init__(self, table: FunctionTable, keeper: Keeper, tape: str) -> None:
        self._table = table
        self._keeper = keeper
        self._tape = tape

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            function = getattr(self._table, name)
        except AttributeError:
            self._keeper.line(self._tape, {"symbol": name, "missing": True})
            raise

        def call(*args: object) -> object:
            before = [kept(arg) for arg in args]
            code = function(*args)
            after = [kept(arg) for arg in args]
            told = {"symbol": name, "before": before, "code": kept(code), "after": after}
            self._keeper.line(self._tape, told)
            return code

        return call


def _marked(place: Path, mark: str) -> Path:
    return place.with_name(place.name + mark)
