"""Python bindings, kept one level up: functions, plain arguments and what became of them.

A binding that hides its C library has no other seam. What is no plain value, such as a handle, is
kept as a number that stands for it.
"""

import ctypes
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from accelkit.core.tables import FunctionTable
from accelkit.testing.captures.arguments import BYTES

HANDLE = "handle"
NOT_SUPPORTED: Mapping[str, int] = {"amdsmi": 2}
"""Code of the error for what was not asked when it was captured, by module; else 1.

Source: amdsmi.h, AMDSMI_STATUS_NOT_SUPPORTED.
"""
_UNKNOWN = 1
_PLAIN = (bool, int, float, str)


class ReplayedError(Exception):
    """What a function of the binding raised when it was captured."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self._code = code

    def get_error_code(self) -> int | None:
        """As the errors of amdsmi tell it; None: it had none."""
        return self._code


@attrs.frozen
class Handle:
    """Something opaque that the binding once gave."""

    number: int


class Handles:
    """Numbers for what is no plain value: the same for the same thing."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._kept: list[object] = []
        """Alive, so that no other thing gets its place in memory."""

    def plain(self, value: object) -> object:
        """*value* as JSON has it."""
        if value is None or isinstance(value, _PLAIN):
            return value if value is None else _bare(value)
        if isinstance(value, bytes):
            return {BYTES: value.hex()}
        if isinstance(value, Mapping):
            return {str(self.plain(k)): self.plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.plain(one) for one in value]
        if isinstance(value, Handle):
            return {HANDLE: value.number}
        return {HANDLE: self._number(value)}

    def _number(self, value: object) -> int:
        where = _address(value)
        self._kept.append(value)
        key: object = id(value) if where is None else ("at", where)
        return self._numbers.setdefault(key, len(self._numbers))


def _bare(value: object) -> object:
    """Without the class of an enumeration."""
    return next(kind(value) for kind in _PLAIN if isinstance(value, kind))


def _address(value: object) -> int | None:
    """Where a handle of C points to: bindings make a new object for it each time."""
    if isinstance(value, ctypes.c_void_p):
        return value.value or 0
    if isinstance(value, ctypes._Pointer):  # noqa: SLF001 - ctypes has no other name for it
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    return None


class RecordedModule:
    """A binding of which each call is kept."""

    def __init__(self, module: FunctionTable, keep: Callable[[object], None]) -> None:
        self._module = module
        self._keep = keep
        self._handles = Handles()

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._module, name)
        if isinstance(found, type) or not callable(found):
            if isinstance(found, _PLAIN):
                self._keep({"constant": name, "value": _bare(found)})
            return found

        def call(*args: object, **kwargs: object) -> object:
            told = {"function": name, "arguments": self._handles.plain([args, kwargs])}
            try:
                result = found(*args, **kwargs)
            except Exception as error:
                self._keep({**told, "error": _error(error)})
                raise
            self._keep({**told, "result": self._handles.plain(result)})
            return result

        return call


def _error(error: Exception) -> dict[str, object]:
    """What is known of *error*: the bindings of makers tell a code by a method."""
    tell = getattr(error, "get_error_code", None)
    code = tell() if callable(tell) else None
    return {"text": f"{type(error).__name__}: {error}", "code": code if type(code) is int else None}


class ReplayedModule:
    """A binding that answers as it once did: the same call in order, at last the last answer."""

    def __init__(self, name: str, calls: Sequence[Mapping[str, Any]]) -> None:  # type: ignore[explicit-any]  # JSON
        self._name = name
        self._constants: dict[str, object] = {}
        self._calls: dict[str, dict[str, list[Mapping[str, Any]]]] = {}  # type: ignore[explicit-any]  # the same
        self._lock = threading.Lock()
        for line in calls:
            if "constant" in line:
                self._constants[line["constant"]] = line["value"]
            else:
                known = self._calls.setdefault(line["function"], {})
                known.setdefault(json.dumps(line["arguments"]), []).append(line)

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        if name in self._constants:
            return self._constants[name]
        calls = self._calls.get(name)
        if calls is None:
            raise AttributeError(f"module {self._name!r} has no attribute {name!r} in the capture")

        def call(*args: object, **kwargs: object) -> object:
            with self._lock:
                told = calls.get(json.dumps(Handles().plain([args, kwargs])))
                if told is None:
                    code = NOT_SUPPORTED.get(self._name, _UNKNOWN)
                    raise ReplayedError(f"{name}: the capture has no such call", code)
                line = told.pop(0) if told[1:] else told[0]
            if "error" in line:
                raise ReplayedError(line["error"]["text"], line["error"]["code"])
            return _thing(line["result"])

        return call


def is_call(line: object) -> bool:
    """Whether a line of a capture is what RecordedModule writes."""
    if not isinstance(line, dict):
        return False
    if "constant" in line:
        return isinstance(line["constant"], str) and isinstance(line.get("value"), _PLAIN)
    error = line.get("error", {"text": "", "code": None})
    known = isinstance(error, dict) and isinstance(error.get("text"), str) and "code" in error
    named = isinstance(line.get("function"), str) and isinstance(line.get("arguments"), list)
    return known and named and ("error" in line) is not ("result" in line)


def _thing(kept: object) -> object:
    """A value as it was; handles and bytes are what they stand for."""
    if isinstance(kept, list):
        return [_thing(one) for one in kept]
    if isinstance(kept, dict):
        if kept.keys() == {HANDLE} and type(kept[HANDLE]) is int:
            return Handle(kept[HANDLE])
        if kept.keys() == {BYTES} and isinstance(kept[BYTES], str):
            return bytes.fromhex(kept[BYTES])
        return {key: _thing(value) for key, value in kept.items()}
    return kept
