"""NVML through the unmodified pynvml: sessions and errors. Not here: what the answers mean.

The only module that knows pynvml, which is imported on the first call.
"""

import importlib.util
import sys
import threading
from collections.abc import Sequence
from ctypes import c_uint
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

from accelkit import (
    AccessDenied,
    DriverNotReady,
    FunctionTable,
    Host,
    LibraryMissing,
    NotThere,
    SourceError,
    StartOver,
)
from accelkit.vendors.nvidia import facts

_BINDING = "accelkit.vendors.nvidia._pynvml"
_NO_GPUS_IS_FINE = 1  # nvml.h, NVML_INIT_FLAG_NO_GPUS
_MOST_ENTRIES = 1 << 16
"""Of a list; so many processes are on no GPU."""
_loading = threading.Lock()
_thread = threading.local()

Handle: TypeAlias = Any  # type: ignore[explicit-any]  # a ctypes pointer; pynvml has no types
Answer: TypeAlias = Any  # type: ignore[explicit-any]  # numbers, texts, structures of pynvml


class NvmlError(SourceError):
    """NVML answered an error.

    Args:
        function: Of the binding.
        value: The return code.
    """

    code = "nvml-failed"

    def __init__(self, function: str, value: int) -> None:
        words = facts.ERRORS.get(value, "unknown")
        super().__init__(
            f"{function} answered {value} ({words})",
            vendor="nvidia",
            operation=function,
            remedy=facts.REMEDIES.get(value, facts.KERNEL_LOG),
        )
        self.value = value


class Rubbish(SourceError):
    """NVML answered something that cannot be.

    Args:
        text: What, in words.
    """

    code = "rubbish"

    def __init__(self, text: str) -> None:
        super().__init__(
            text, vendor="nvidia", remedy=f"{facts.KERNEL_LOG}, and try another driver version"
        )


class _Switch:
    """Stands where the binding keeps its library; hands each call to the calling thread's table.

    The binding caches functions by name for the life of the process, so what it caches must not
    belong to one host.
    """

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> object:
            table: FunctionTable = _thread.table
            function = getattr(table, name, None)
            if function is None:
                return facts.FUNCTION_NOT_FOUND
            code = function(*arguments)
            # The binding then makes an array of as many, whatever number that is.
            too_many = code == facts.TOO_SMALL and any(map(_is_absurd, arguments))
            return facts.UNKNOWN if too_many else code

        return call


def _is_absurd(argument: object) -> bool:
    """Whether *argument* points to a count that no list of NVML has."""
    count = getattr(argument, "_obj", None)
    return isinstance(count, c_uint) and count.value > _MOST_ENTRIES


@cache
def _load() -> ModuleType:
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise LibraryMissing(
            "the Python binding pynvml is not installed",
            vendor="nvidia",
            remedy="pip install accelkit[nvidia]",
        )
    # A copy of our own: other users of pynvml in this process keep theirs untouched.
    own = importlib.util.spec_from_file_location(_BINDING, spec.origin)
    assert own is not None
    assert own.loader is not None
    module = importlib.util.module_from_spec(own)
    sys.modules[_BINDING] = module  # it looks itself up while it is executed
    own.loader.exec_module(module)
    module.nvmlLib = _Switch()  # type: ignore[attr-defined]  # pynvml has no types
    return module


def binding() -> ModuleType:
    """The one copy of pynvml that works on every host's table.

    Raises:
        LibraryMissing: It is not installed.
    """
    with _loading:
        return _load()


def table_of(host: Host, roots: Sequence[str]) -> FunctionTable:
    """NVML's functions, from the first of *roots* that has them.

    Raises:
        LibraryMissing: None has.
    """
    wrong: list[LibraryMissing] = []
    for root in roots:
        try:
            return (host if root == "/" else host.under(root)).library(facts.LIBRARY)
        except NotThere:
            wrong.append(LibraryMissing(f"{root} is not there", vendor="nvidia"))
        except LibraryMissing as error:
            wrong.append(error)
    raise LibraryMissing(
        "; ".join(str(error) for error in wrong),
        vendor="nvidia",
        remedy="install the NVIDIA driver's libraries, or set driverRoot",
    )


class Nvml:
    """A session of one host; opened by the first call and again after it was dropped.

    Calls may come from any thread, and no lock is held while one runs: a call that never returns
    costs nobody else anything.
    """

    def __init__(self, host: Host, roots: Sequence[str]) -> None:
        self._table = table_of(host, roots)
        self._binding = binding()
        self._state = threading.Lock()
        self._inits = 0
        self.generation = 0
        """Counts drops: what was registered before belongs to a session that is gone."""

    def ask(self, function: str, *arguments: object, **keywords: object) -> Answer:
        """What the binding's *function* answers.

        Raises:
            StartOver: Library and driver have different versions.
            SourceError: Any other failure; NvmlError where it has a return code.
        """
        if not self._inits:
            self._call("nvmlInitWithFlags", _NO_GPUS_IS_FINE)
            with self._state:
                self._inits += 1
        return self._call(function, *arguments, **keywords)

    def maybe(self, function: str, *arguments: object, **keywords: object) -> Answer:
        """The same, or None where this GPU or this driver has no such thing."""
        try:
            return self.ask(function, *arguments, **keywords)
        except NvmlError as error:
            if error.value in facts.ABSENT:
                return None
            raise

    def _call(self, function: str, *arguments: object, **keywords: object) -> Answer:
        _thread.table = self._table
        generation = self.generation
        called = getattr(self._binding, function, None)
        if called is None:  # an older pynvml
            raise NvmlError(function, facts.FUNCTION_NOT_FOUND)
        try:
            return called(*arguments, **keywords)
        except self._binding.NVMLError as error:
            value = int(error.value)
            if value in {facts.UNINITIALIZED, facts.DRIVER_NOT_LOADED}:
                self.drop(generation)
            raise _translated(function, value) from None
        except self._binding.NVMLLibraryMismatchError as error:
            # Some functions of the binding say so where the library lacks their newest version.
            raise NvmlError(function, facts.FUNCTION_NOT_FOUND) from error
        except (ValueError, IndexError, OverflowError, MemoryError) as error:
            # Texts that are none, counts that are too large for the binding's own arrays.
            raise Rubbish(f"{function} answered rubbish: {error}") from error

    def drop(self, generation: int | None = None) -> None:
        """End the session; the next call opens another.

        Args:
            generation: Only if it is this one; None: whichever it is.
        """
        with self._state:
            if generation not in {None, self.generation}:
                return  # somebody else has dropped it meanwhile
            inits, self._inits = self._inits, 0
            self.generation += 1
        for _ in range(inits):
            try:
                self._call("nvmlShutdown")
            except SourceError:  # it is gone already
                return

    def array(self, structure: str, size: int) -> Answer:
        """Room for *size* of a *structure* of the binding; of handles, for instance."""
        return (getattr(self._binding, structure) * size)()

    def new(self, structure: str) -> Answer:
        """A *structure* of the binding, its version filled in."""
        made = getattr(self._binding, structure, None)
        if made is None:  # an older pynvml
            raise NvmlError(structure, facts.FUNCTION_NOT_FOUND)
        return made()


def _translated(function: str, value: int) -> SourceError:
    words = facts.ERRORS.get(value, "")
    where = {"vendor": "nvidia", "operation": function}
    if value == facts.VERSION_MISMATCH:
        return StartOver(
            f"{function}: {words}",
            remedy="reload the kernel module or reboot, then restart the agent",
            **where,
        )
    if value == facts.DRIVER_NOT_LOADED:
        return DriverNotReady(f"{function}: {words}", remedy="modprobe nvidia", **where)
    if value == facts.NO_PERMISSION:
        return AccessDenied(f"{function}: {words}", remedy="run the agent as root", **where)
    return NvmlError(function, value)
