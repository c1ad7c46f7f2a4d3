"""Function tables: what a C library is to its caller. Not here: how a host finds one."""

from typing import Any, Protocol


class FunctionTable(Protocol):
    """Functions by name, called as ctypes calls them.

    A missing name raises AttributeError, as a library without that symbol does.
    """

    def __getattr__(self, name: str) -> Any: ...  # type: ignore[explicit-any]  # of any signature
