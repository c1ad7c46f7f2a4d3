"""A host as somebody found it: files, programs and libraries from a capture."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelkit.core.errors import AccessDenied, ConfigError, LibraryMissing, NotThere, SourceError
from accelkit.core.host import KMSG, READ_LIMIT, Finished, Stat
from accelkit.core.real_host import RealHost
from accelkit.core.tables import FunctionTable
from accelkit.testing.captures.arguments import BYTES, Kept, kept, write_back
from accelkit.testing.captures.layout import (
    COMMANDS,
    DEAD,
    DENIED,
    FAILED,
    FILES,
    FORMAT,
    LOG,
    MARKS,
    MODULES,
    NAME,
    NOT_SUPPORTED,
    TAPE,
    UNFINISHED,
    UNKNOWN,
    UNREAD,
    tape_of,
)
from accelkit.testing.captures.modules import ReplayedModule, is_call

_AGAIN = "copy it again, or capture again"


class CaptureHost:
    """The host that a capture is; see Host for what each method promises.

    What was not captured is not there; what was looked at and not read cannot be read.
    """

    def __init__(self, directory: str) -> None:
        """Open the capture in *directory*.

        Raises:
            ConfigError: There is none, or it is malformed.
        """
        self._folder = Path(directory)
        self._told = _read(self._folder)
        self._files = RealHost(str(self._folder / FILES))
        self._log = self._folder / LOG
        self._prefix = ""
        self._tables: dict[str, ReplayedTable] = {}
        self._lines = _lines(self._folder / COMMANDS, _is_command)
        # What is wrong with a tape is told here: later it would be the plugin's fault.
        self._tapes = {
            path.name: _lines(path, _is_call) for path in (self._folder / TAPE).glob("*")
        }
        self._calls = {
            path.name: _lines(path, is_call) for path in (self._folder / MODULES).glob("*")
        }
        self._modules: dict[str, ReplayedModule] = {}
        self._lock = threading.Lock()

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        return self.read_bytes(path, limit).decode(errors="replace").removesuffix("\n")

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        if path == KMSG and self._log.exists():
            return self._log.read_bytes()[:limit]
        try:
            return self._files.read_bytes(path, limit)
        except NotThere:
            real = self._led(path)
            if self._files.exists(real + DENIED):
                raise AccessDenied(f"{path}: it might not be read", operation="read") from None
            if self._files.exists(real + FAILED):
                raise SourceError(self._files.read(real + FAILED), operation="read") from None
            if self._files.exists(real + UNREAD):
                raise SourceError(f"{path}: the capture has its name only") from None
            raise

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(sorted({_unmarked(name) for name in self._files.names(path)}))

    def resolve(self, path: str) -> str:
        real = self._led(path)
        if any(self._files.exists(real + mark) for mark in ("", *MARKS)):
            return real
        return self._files.resolve(path)

    def _led(self, path: str) -> str:
        """Where links lead: what is there may be marked, so that they lead nowhere themselves."""
        try:
            return self._files.inside(path)  # resolve() wants something to be there
        except OSError:  # links that lead to each other
            return path

    def stat(self, path: str) -> Stat | None:
        if path == KMSG and self._log.exists():
            return Stat(kind="f", mode=0o444)
        real = self._led(path)
        for mark in ("", *MARKS):
            if (found := self._files.stat(real + mark)) is not None:
                whole = self._prefix + real
                node = self._told["nodes"].get(whole)
                return found if node is None else Stat(**node)
        return None

    def write(self, path: str, text: str) -> None:  # noqa: ARG002 - nothing can be written
        raise AccessDenied(f"{path}: a capture cannot be changed", operation="write")

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:  # noqa: ARG002 - it is known
        words = [self._prefix + argv[0], *argv[1:]] if argv else []
        with self._lock:
            told = [line for line in self._lines if line["argv"] == words]
            if len(told) > 1:
                self._lines.remove(told[0])
        if not told:
            raise NotThere(f"{' '.join(argv)}: the capture has no such command")
        if "error" in told[0]:
            raise SourceError(told[0]["error"], operation="run")
        return Finished(code=told[0]["code"], out=told[0]["out"], err=told[0]["err"])

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        raise SourceError(f"{path}: request {request:#x} ({len(payload)} B) is not in the capture")

    def library(self, soname: str) -> FunctionTable:
        whole = f"{self._prefix}/{soname}"
        wrong = self._told["libraries"].get(whole, f"{soname} is not in the capture")
        if wrong is not None:
            raise LibraryMissing(wrong, operation="library")
        with self._lock:
            if whole not in self._tables:
                tape = Path(tape_of(whole.strip("/"))).name
                self._tables[whole] = ReplayedTable(soname, self._tapes.get(tape, ()))
            return self._tables[whole]

    def module(self, name: str) -> FunctionTable:
        wrong = self._told.get("modules", {}).get(name, f"{name} is not in the capture")
        if wrong is not None:
            raise LibraryMissing(wrong, operation="module")
        with self._lock:
            if name not in self._modules:
                self._modules[name] = ReplayedModule(name, self._calls.get(f"{name}.jsonl", ()))
            return self._modules[name]

    def under(self, root: str) -> "CaptureHost":
        below = object.__new__(CaptureHost)
        below.__dict__.update(self.__dict__)
        below._files = self._files.under(root)
        below._prefix = self._prefix + self._files.resolve(root)
        return below

    def outside(self, path: str) -> str:
        return path

    @property
    def live(self) -> bool:
        return False


class ReplayedTable:
    """A library that answers as it once did: the same call in order, and at last the last answer.

    A call that was not captured has no answer.
    """

    def __init__(self, soname: str, tape: Sequence[Mapping[str, Any]]) -> None:  # type: ignore[explicit-any]  # JSON
        self._soname = soname
        self._answers: dict[str, dict[str, list[Mapping[str, Any]]]] = {}  # type: ignore[explicit-any]  # the same
        self._lock = threading.Lock()
        for line in tape:
            calls = self._answers.setdefault(line["symbol"], {})
            if "missing" not in line:
                calls.setdefault(json.dumps(line["before"]), []).append(line)

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        calls = self._answers.get(name)
        if not calls:
            raise AttributeError(f"{self._soname}: undefined symbol: {name}")

        def call(*args: object) -> object:
            with self._lock:
                told = calls.get(json.dumps([kept(arg) for arg in args]))
                if told is None:
                    return NOT_SUPPORTED.get(self._soname, UNKNOWN)
                line = told.pop(0) if told[1:] else told[0]
            for arg, after in zip(args, line["after"], strict=True):
                write_back(arg, after)
            return _bare(line["code"])

        return call


def _bare(code: Kept) -> object:
    return bytes.fromhex(code[BYTES]) if isinstance(code, dict) else code


def _read(folder: Path) -> Mapping[str, Any]:  # type: ignore[explicit-any]  # JSON
    path = folder / NAME
    told = _parsed(_text(path), str(path))
    found = told.get("format") if isinstance(told, dict) else None
    if found == UNFINISHED:
        remedy = "remove it, and capture again"
        raise ConfigError([(str(path), "the capture was not finished")], remedy=remedy)
    if found != FORMAT or not _is_told(told):
        text = f"its format is {str(found)[:40]!r}, and {FORMAT!r} is read"
        if found == FORMAT:
            text = f"it is damaged: it does not say what {FORMAT!r} does"
        raise ConfigError([(str(path), text)], remedy="capture again with this version")
    return told  # type: ignore[no-any-return]  # JSON


def _is_told(told: Any) -> bool:  # type: ignore[explicit-any]  # JSON
    try:
        for node in told["nodes"].values():
            Stat(**node)
        reasons = (*told["libraries"].values(), *told.get("modules", {}).values())
        return all(why is None or isinstance(why, str) for why in reasons)
    except (KeyError, TypeError, AttributeError):
        return False


def _is_command(line: Any) -> bool:  # type: ignore[explicit-any]  # JSON
    if not isinstance(line, dict) or not isinstance(line.get("argv"), list):
        return False
    if "error" in line:
        return isinstance(line["error"], str)
    return isinstance(line.get("code"), int) and all(
        isinstance(line.get(key), str) for key in ("out", "err")
    )


def _is_call(line: Any) -> bool:  # type: ignore[explicit-any]  # JSON
    if not isinstance(line, dict) or not isinstance(line.get("symbol"), str):
        return False
    if "missing" in line:
        return True
    before, after = line.get("before"), line.get("after")
    if not (isinstance(before, list) and isinstance(after, list) and len(before) == len(after)):
        return False
    return "code" in line and not isinstance(line["code"], (str, list))


def _lines(path: Path, fits: Callable[[object], bool]) -> list[dict[str, Any]]:  # type: ignore[explicit-any]  # JSON
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        place = f"{path}:{number}"
        told = _parsed(line, place)
        if not fits(told):
            raise ConfigError([(place, "it is damaged: no call is written so")], remedy=_AGAIN)
        found.append(told)
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError([(str(path), f"it cannot be read: {error}")], remedy=_AGAIN) from error


def _parsed(text: str, place: str) -> Any:  # type: ignore[explicit-any]  # JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError([(place, f"it is no JSON: {error}")], remedy=_AGAIN) from error


def _unmarked(name: str) -> str:
    marks = (*MARKS, DEAD)
    return next((name.removesuffix(mark) for mark in marks if name.endswith(mark)), name)
