"""The driver's programs on a simulated machine. Not here: its library."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from accelkit import Finished
from accelkit.testing.machines import Json, Live, State
from accelkit.vendors.nvidia import states

if TYPE_CHECKING:
    from accelkit.vendors.nvidia.machine import NvidiaMachine

Tool = Callable[["NvidiaMachine", Live, tuple[str, ...]], Finished]

VOLTA = (7, 0)
"""Older GPUs have no time slices that can be set."""
_MOST_TIMESLICE = 3
_NO_DRIVER, _NO_GPU, _BAD, _NOT_SUPPORTED = 9, 6, 2, 3


def smi(machine: "NvidiaMachine", live: Live, argv: tuple[str, ...]) -> Finished:
    """nvidia-smi, as far as its subcommand compute-policy sets time slices."""
    state = live.state()
    if not states.loaded(state):
        return Finished(
            code=_NO_DRIVER, out="", err="couldn't communicate with the NVIDIA driver\n"
        )
    match argv[1:]:
        case ("compute-policy", "-i", uuid, "--set-timeslice", value) if value.isdecimal():
            return _set_timeslice(machine, live, uuid, int(value))
        case _:
            return _failed(_BAD, f"Invalid combination of input arguments: {argv[1:]}")


def _set_timeslice(machine: "NvidiaMachine", live: Live, uuid: str, value: int) -> Finished:
    state, units = live.state(), dict(zip(machine.board.uuids, machine.units(), strict=True))
    unit = units.get(uuid)
    if unit is None or not states.listed(state, unit) or states.of(state, unit).get("lost"):
        return _failed(_NO_GPU, "No devices were found")
    if machine.board.product.capability < VOLTA or states.mig(state, unit):
        return _failed(_NOT_SUPPORTED, f"Failed to set timeslice for {uuid}: Not Supported")
    if value > _MOST_TIMESLICE:
        return _failed(_BAD, f"Invalid timeslice {value}")
    live.change(lambda old: states.changed(old, unit, timeslice=value or None))
    return Finished(code=0, out=f"Successfully set timeslice for GPU {uuid}\n", err="")


def modprobe(machine: "NvidiaMachine", live: Live, argv: tuple[str, ...]) -> Finished:
    """nvidia-modprobe, as far as it makes device files of rights."""
    del machine
    if not states.loaded(live.state()):
        return _failed(1, "the driver is not loaded")
    match argv[1:]:
        case ("-f", right):
            live.change(lambda state: _with_node(state, right))
            return Finished(code=0, out="", err="")
        case _:
            return _failed(1, f"unrecognized options: {argv[1:]}")


def _failed(code: int, text: str) -> Finished:
    # nvidia-smi says on its output what is wrong.
    return Finished(code=code, out=f"{text}\n", err="")


def _with_node(state: State, right: str) -> State:
    made = cast("list[str]", states.of(state, states.VENDOR).get("made", []))
    return states.changed(state, states.VENDOR, made=cast("Json", sorted({*made, right})))


def has_node(state: State, right: str) -> bool:
    """Whether the device file of a right is there: the driver makes it, unless told not to."""
    vendor = states.of(state, states.VENDOR)
    return vendor.get("caps", True) is True or right in cast("list[str]", vendor.get("made", []))


TOOLS: Mapping[str, Tool] = {"nvidia-smi": smi, "nvidia-modprobe": modprobe}
