"""Arguments of C functions as bytes: before a call, after it, and written back.

A handle is an address that means something to the library alone: it is kept as it is.
"""

import ctypes
from typing import TypeAlias

Kept: TypeAlias = int | float | str | dict[str, str] | None
"""A number, or bytes under the key ``bytes`` or ``memory`` in hexadecimal."""
BYTES, MEMORY = "bytes", "memory"


def kept(argument: object) -> Kept:
    """What *argument* says, with what it points to; equal for calls that are the same."""
    if argument is None or isinstance(argument, int | float | str):
        return argument
    if isinstance(argument, ctypes.c_char_p):
        argument = argument.value or b""
    if isinstance(argument, bytes):
        return {BYTES: argument.hex()}
    return {MEMORY: bytes(memory_of(argument)).hex()}


def write_back(argument: object, after: Kept) -> None:
    """Let what *argument* points to be as it was *after* the call."""
    if isinstance(after, dict) and MEMORY in after:
        memory, content = memory_of(argument), bytes.fromhex(after[MEMORY])
        size = min(len(memory), len(content))
        memory[:size] = content[:size]


def memory_of(argument: object) -> memoryview:
    """The bytes of a ctypes object, or of the one that it points to."""
    whole = getattr(argument, "_obj", None)  # byref()
    if whole is None:
        whole = _pointee(argument)
    return memoryview(whole).cast("B")  # type: ignore[arg-type]  # any ctypes object has a buffer


def _pointee(argument: object) -> object:
    """Of a pointer to something with a size that; an opaque handle is an address itself."""
    kind = getattr(argument, "_type_", None)
    if (
        isinstance(argument, ctypes._Pointer)  # noqa: SLF001 - ctypes has no other name for it
        and isinstance(kind, type)
        and ctypes.sizeof(kind)
        and bool(argument)  # it points to something
    ):
        return argument.contents
    return argument
