"""One call of the simulated NVML: who calls, on what, in which state. Not here: the functions."""

import ctypes
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

import attrs

from accelkit.testing.machines import Live, State, pointee
from accelkit.vendors.nvidia import facts, states
from accelkit.vendors.nvidia.board import Board

C: TypeAlias = Any  # type: ignore[explicit-any]  # whatever a caller hands to ctypes
P = ParamSpec("P")

SUCCESS = 0
FIRST_GPU, GPU_STEP = 0x10000, 0x1000
MIG_DEVICES, GPU_INSTANCES = 0x100, 0x800
"""Handles are addresses that nobody looks at: of a GPU, and within its step of its instances."""


class Library:
    """What one process has done with the library."""

    def __init__(self, board: Board, live: Live, units: Sequence[str], version: str) -> None:
        self.board = board
        self.live = live
        self.units = tuple(units)
        self.version = version
        self.inits = 0
        self.sets: dict[int, int] = {}
        """Event sets, each with the number of the last event that it has delivered."""


@attrs.frozen
class Call:
    """A call, and the machine's state while it runs."""

    library: Library
    state: State

    @property
    def board(self) -> Board:
        return self.library.board

    def listed(self) -> list[int]:
        """Positions of the GPUs that the driver lists, by PCI address."""
        return [i for i, u in enumerate(self.library.units) if states.listed(self.state, u)]

    def gpu_at(self, where: int) -> "Gpu | int":
        """The GPU of a handle, or the error of using it."""
        index = (where - FIRST_GPU) // GPU_STEP
        if not 0 <= index < len(self.library.units):
            return facts.INVALID_ARGUMENT
        gpu = Gpu(self.library, self.state, index)
        if not states.listed(self.state, gpu.unit) or gpu.fields.get("lost"):
            return facts.GPU_IS_LOST
        seconds = gpu.fields.get("hang")
        if isinstance(seconds, float):
            self.library.live.sleep(seconds)
        return gpu.number("error") or gpu


@attrs.frozen
class Gpu(Call):
    """A call on one GPU."""

    index: int

    @property
    def unit(self) -> str:
        return self.library.units[self.index]

    @property
    def fields(self) -> states.Fields:
        return states.of(self.state, self.unit)

    def number(self, key: str) -> int:
        """The number at *key* of its state; 0 where there is none."""
        return states.number(self.fields, key)

    @property
    def handle(self) -> int:
        return FIRST_GPU + self.index * GPU_STEP


def number(value: C) -> int:
    """A number, whether it came bare or as a ctypes number."""
    bare: C = getattr(value, "value", value)
    return int(bare)


def address(handle: C) -> int:
    """Where a handle points."""
    found: C = ctypes.cast(handle, ctypes.c_void_p).value
    return int(found or 0)


def put(reference: C, where: int, offset: int = 0) -> None:
    """Let the pointer behind *reference* point at *where*."""
    ctypes.c_void_p.from_buffer(pointee(reference), offset).value = where


def fill_pci(info: C, where: str) -> None:
    """Fill an nvmlPciInfo_t: NVML prints eight digits of domain."""
    domain, bus, rest = where.split(":")
    info.domain, info.bus, info.device = int(domain, 16), int(bus, 16), int(rest[:2], 16)
    info.busId = f"{info.domain:08X}:{bus.upper()}:{rest.upper()}".encode()
    info.busIdLegacy = f"{info.domain & 0xFFFF:04X}:{bus.upper()}:{rest.upper()}".encode()


def driver_error(state: State) -> int:
    """What every call answers while something is wrong with the driver; 0: nothing is."""
    if not states.loaded(state):
        return facts.DRIVER_NOT_LOADED
    return facts.VERSION_MISMATCH if states.of(state, states.VENDOR).get("mismatch") else SUCCESS


def ready(function: Callable[Concatenate[Call, P], int]) -> Callable[Concatenate[Library, P], int]:
    """Refuse a call without a session or without a driver."""

    @wraps(function)
    def run(library: Library, /, *args: P.args, **kwargs: P.kwargs) -> int:
        if not library.inits:
            return facts.UNINITIALIZED
        call = Call(library, library.live.state())
        return driver_error(call.state) or function(call, *args, **kwargs)

    return run


def on_gpu(
    function: Callable[Concatenate[Gpu, P], int],
) -> Callable[Concatenate[Library, C, P], int]:
    """The same for a call on a GPU: refuse one that is lost, or none at all."""

    @ready
    @wraps(function)
    def run(call: Call, handle: C, /, *args: P.args, **kwargs: P.kwargs) -> int:
        gpu = call.gpu_at(address(handle))
        return gpu if isinstance(gpu, int) else function(gpu, *args, **kwargs)

    return run


def mig_uuid(board: Board, index: int, instance: states.Instance) -> str:
    """The UUID of a MIG device."""
    what = f"{instance['gi']}/{instance['profile']}/{instance['start']}"
    return f"MIG-{board.made(f'mig/{index}/{what}')}"


def mig_address(index: int, instance: states.Instance) -> int:
    """Where the handle of a MIG device points."""
    return FIRST_GPU + index * GPU_STEP + MIG_DEVICES + instance["gi"]
