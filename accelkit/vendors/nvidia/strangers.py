"""What others do to a simulated GPU: set its mode, cut it, hold it. Not here: NVML's calls."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from accelkit.testing.faults import duration
from accelkit.testing.machines import Json, State
from accelkit.vendors.nvidia import instances, states

if TYPE_CHECKING:
    from accelkit.vendors.nvidia.machine import NvidiaMachine
    from accelkit.vendors.nvidia.states import Step

HIDDEN = 0
"""Process id of a holder that no list of processes shows, as monitoring agents are."""


def holders(state: State, unit: str) -> list[tuple[int, int | None]]:
    """Process ids that hold a GPU, each with the first slot of the instance that it holds."""
    found = cast("list[list[int | None]]", states.of(state, unit).get("holders", []))
    return cast("list[tuple[int, int | None]]", [tuple(pair) for pair in found])


def held(state: State, unit: str, start: int) -> bool:
    """Whether somebody holds the instance that begins at slot *start*."""
    return any(slot == start for _, slot in holders(state, unit))


def _mig(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("mig", args)
    if args[1:] not in {("on",), ("off",)} or not machine.board.product.profiles:
        raise machine.misused("mig", "needs on or off, and a product that has it")
    return in_mode(state, unit, mig=args[1] == "on")


def in_mode(state: State, unit: str, *, mig: bool) -> State:
    """*state* with a GPU in MIG mode or not; leaving it takes the instances along."""
    if mig:
        return states.changed(state, unit, mig=True, pending=None)
    return states.changed(state, unit, mig=None, pending=None, instances=None)


def _reset(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """What nvidia-smi --gpu-reset does: the pending mode comes, instances go."""
    unit = machine.unit("reset", args)
    state = in_mode(state, unit, mig=states.pending_mig(state, unit))
    return states.changed(state, unit, instances=None, recovery=None, holders=None)


def _create(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit, product = machine.unit("create-mig", args), machine.board.product
    profile = product.profile(args[1]) if len(args) > 1 else None
    if profile is None or len(args) < 3 or not args[2].isdecimal():
        raise machine.misused("create-mig", "needs a profile of the product and a slot")
    if not states.mig(state, unit):
        raise machine.misused("create-mig", f"{unit} is not in MIG mode")
    start, present = int(args[2]), instances.instances(state, unit)
    if start not in instances.room_at(product, present, profile):
        raise machine.misused("create-mig", f"{profile.name} cannot be at slot {start}")
    state, gi = instances.added(product, state, unit, profile, start)
    slices = {(): [profile.slices], ("bare",): [], ("split",): [1] * profile.slices}
    if args[3:] not in slices:
        raise machine.misused("create-mig", f"an instance is bare, split or neither, not {args[3]}")
    for one in slices[args[3:]]:
        made = instances.find(state, unit, gi)
        assert made is not None
        state, _ = instances.with_compute(state, unit, made, one)
    return state


def _destroy(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("destroy-mig", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("destroy-mig", "needs the first slot")
    start = int(args[1])
    there = [i["gi"] for i in instances.instances(state, unit) if i["start"] == start]
    if not there:
        raise machine.misused("destroy-mig", f"nothing begins at slot {start}")
    left = [pair for pair in holders(state, unit) if pair[1] != start]
    return instances.removed(_held(state, unit, left), unit, there[0])


def _hold(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("hold", args)
    if not all(a.isdecimal() for a in args[1:]) and args[1:2] != ("hidden",):
        raise machine.misused("hold", "needs a process id or the word hidden, and perhaps a slot")
    if len(args) not in {2, 3} or not all(a.isdecimal() for a in args[2:]):
        raise machine.misused("hold", "needs who holds it, and perhaps a slot")
    slot = int(args[2]) if len(args) == 3 else None
    starts = {i["start"] for i in instances.instances(state, unit)}
    if slot is not None and slot not in starts:
        raise machine.misused("hold", f"nothing begins at slot {slot}")
    pid = HIDDEN if args[1] == "hidden" else int(args[1])
    return _held(state, unit, [*holders(state, unit), (pid, slot)])


def _free(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return _held(state, machine.unit("free", args), [])


def _held(state: State, unit: str, pairs: list[tuple[int, int | None]]) -> State:
    found = cast("Json", [list(pair) for pair in pairs])
    return states.changed(state, unit, holders=found or None)


def _mps(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """Its MPS daemon comes or goes."""
    unit = machine.unit("mps", args)
    if args[1:] not in {("on",), ("off",)}:
        raise machine.misused("mps", "needs on or off")
    return states.changed(state, unit, mps=args[1] == "on" or None)


def _lag(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("lag", args)
    if len(args) != 2:
        raise machine.misused("lag", "needs a time")
    return states.changed(state, unit, lag=duration(args[1]))


VERBS: Mapping[str, tuple[str, "Step"]] = {
    "mig": ("mig UNIT on|off", _mig),
    "reset": ("reset UNIT", _reset),
    "create-mig": ("create-mig UNIT PROFILE|SIZE SLOT [bare|split]", _create),
    "destroy-mig": ("destroy-mig UNIT SLOT", _destroy),
    "hold": ("hold UNIT PID|hidden [SLOT]", _hold),
    "free": ("free UNIT", _free),
    "mps": ("mps UNIT on|off", _mps),
    "lag": ("lag UNIT 500ms", _lag),
}
"""Usage and step by verb."""
