"""One call of the simulated NVML: who calls, on what, in which state. Not here: the functions."""

import ctypes
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

import attrs

from accelkit.testing.machines import Function, Live, State, pointee
from accelkit.vendors.nvidia import facts, instances, states
from accelkit.vendors.nvidia.board import Board
from accelkit.vendors.nvidia.instances import Compute, Instance
from accelkit.vendors.nvidia.products import MigProfile

C: TypeAlias = Any  # type: ignore[explicit-any]  # whatever a caller hands to ctypes
P = ParamSpec("P")

SUCCESS = 0
FIRST_GPU, GPU_STEP = 0x10000, 0x1000
MIG_DEVICES, GPU_INSTANCES, COMPUTE_INSTANCES = 0x100, 0x200, 0x300
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

    def change(self, step: Callable[[State], State]) -> None:
        """Let the machine's state be what *step* makes of it."""
        self.library.live.change(step)

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
        state = library.live.state()
        if instances.overdue(state, library.units):
            state = library.live.change(lambda old: instances.purged(old, library.units))
        call = Call(library, state)
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


def on_instance(function: Function) -> Function:
    """The same for a call on a GPU instance: refuse one that is gone."""

    @ready
    @wraps(function)
    def run(call: Call, handle: C, *args: C) -> int:
        gpu = call.gpu_at(address(handle))
        if isinstance(gpu, int):
            return gpu
        for instance in instances_of(gpu):
            if gpu_instance_address(gpu.index, instance["gi"]) == address(handle):
                return int(function(gpu, instance, *args))
        return facts.INVALID_ARGUMENT

    return run


def fill_handles(array: C, where: Sequence[int]) -> None:
    """Let the handles of *array* point to *where*."""
    pointers = (ctypes.c_void_p * len(array)).from_buffer(array)
    for index, one in enumerate(where):
        pointers[index] = one


def profile_of(gpu: Gpu, wanted: C) -> MigProfile | None:
    """The profile with the driver's id *wanted*."""
    return next((p for p in gpu.board.product.profiles if p.number == number(wanted)), None)


def instances_of(gpu: Gpu) -> list[Instance]:
    """What is cut out of a GPU, what is being destroyed included."""
    return instances.instances(gpu.state, gpu.unit)


def mig_uuid(board: Board, index: int, instance: Instance, compute: Compute) -> str:
    """The UUID of a MIG device: another one each time that one is made in its place."""
    what = f"{instance['gi']}/{instance['profile']}/{instance['start']}"
    what += f"/{compute['ci']}" if compute["ci"] else ""
    what += f"#{instance['made']}" if instance["made"] else ""
    return f"MIG-{board.made(f'mig/{index}/{what}')}"


def mig_address(index: int, instance: Instance, compute: Compute) -> int:
    """Where the handle of a MIG device points."""
    return _handle(index, MIG_DEVICES, instance["gi"], compute["ci"])


def gpu_instance_address(index: int, gi: int) -> int:
    """Where the handle of a GPU instance points."""
    return _handle(index, GPU_INSTANCES, gi, 0)


def compute_instance_address(index: int, gi: int, ci: int) -> int:
    """Where the handle of a compute instance points."""
    return _handle(index, COMPUTE_INSTANCES, gi, ci)


def _handle(index: int, sort: int, gi: int, ci: int) -> int:
    return FIRST_GPU + index * GPU_STEP + sort + gi * instances.MOST_COMPUTES + ci


def mig_devices(gpu: Gpu) -> list[tuple[Instance, Compute]]:
    """The MIG devices of a GPU: one for each compute instance."""
    return [(i, c) for i in instances_of(gpu) for c in i["computes"]]


def instance_at(gpu: Gpu, where: int) -> tuple[Instance, Compute] | None:
    """The MIG device whose handle points to *where*."""
    return next((d for d in mig_devices(gpu) if mig_address(gpu.index, *d) == where), None)
