"""What can happen to a simulated GPU, as changes of the machine's state.

Not here: how it shows, and how GPUs are cut.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from accelkit.testing.faults import duration
from accelkit.testing.machines import Json, Part, State
from accelkit.vendors.nvidia import xid

if TYPE_CHECKING:
    from accelkit.vendors.nvidia.machine import NvidiaMachine

VENDOR = "nvidia"
MOST_EVENTS = 64
"""Events that are kept for listeners that are slow."""
NONE, GPU_RESET, NODE_REBOOT = 0, 1, 2
"""Recovery actions. Source: nvml.h, nvmlDeviceGpuRecoveryAction_t."""

_AILMENTS = ("loaded", "mismatch", "uninstalled", "nodes", "caps")
"""Fields that say what is wrong with the driver."""
_CUT = frozenset({"mig", "pending", "instances", "made", "lag"})
"""Fields that say how a GPU is cut, not how it is."""

Fields: TypeAlias = dict[str, Json]
Step: TypeAlias = Callable[["NvidiaMachine", State, tuple[str, ...]], State]


def of(state: State, key: str) -> Fields:
    """The fields of a unit or of the vendor."""
    return state.get(key, {})


def loaded(state: State) -> bool:
    return of(state, VENDOR).get("loaded", True) is True


def listed(state: State, unit: str) -> bool:
    """Whether the driver serves a GPU, be it well or not."""
    fields = of(state, unit)
    return "removed" not in fields and "excluded" not in fields and bound(fields) == "nvidia"


def bound(fields: Fields) -> str:
    """The kernel driver that a GPU is bound to; empty: none."""
    return str(fields.get("bound", "nvidia"))


def minor(state: State, part: Part, index: int) -> int:
    """The minor number of a GPU: another one after each boot, where there are several."""
    return (index + number(of(state, VENDOR), "boots")) % part.count


def number(fields: Fields, key: str) -> int:
    """The number at *key*; 0 where there is none."""
    value = fields.get(key, 0)
    return value if isinstance(value, int) else 0


def events(state: State) -> list[tuple[int, str, int, int, int, int]]:
    """Sequence number, unit, type, data, GPU instance, compute instance."""
    found = cast("list[list[int | str]]", of(state, VENDOR).get("events", []))
    return cast("list[tuple[int, str, int, int, int, int]]", [tuple(event) for event in found])


def booted(machine: "NvidiaMachine", state: State) -> State:
    """After a reboot: MIG mode survives on GPUs that need a reset for it, instances never do."""
    vendor = of(state, VENDOR)
    # Whoever listens on counts on: numbers of events never go back.
    kept: State = {
        VENDOR: {"boots": number(vendor, "boots") + 1, "sequence": number(vendor, "sequence")}
    }
    if not machine.board.product.resetless:
        kept |= {u: {"mig": True} for u in machine.units() if pending_mig(state, u)}
    return kept


def mig(state: State, unit: str) -> bool:
    """Whether a GPU is in MIG mode."""
    return of(state, unit).get("mig") is True


def pending_mig(state: State, unit: str) -> bool:
    """The same as it will be after a reset."""
    pending = of(state, unit).get("pending")
    return pending if isinstance(pending, bool) else mig(state, unit)


def changed(state: State, key: str, **fields: Json) -> State:
    """*state* with other fields at *key*; None takes one away."""
    merged = {**of(state, key), **fields}
    return {**state, key: {k: v for k, v in merged.items() if v is not None}}


def _lose(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("lose", args), lost=True)


def _restore(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("restore", args)
    kept = {k: v for k, v in of(state, unit).items() if k in _CUT}
    return {**state, unit: kept}


def _remove(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("remove", args), removed=True)


def _exclude(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("exclude", args), excluded=True)


def _bind(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("bind", args)
    if len(args) != 2:
        raise machine.misused("bind", "names no driver")
    return changed(state, unit, bound="" if args[1] == "none" else args[1])


def _xid(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("xid", args)
    if len(args) not in {2, 3} or not all(a.isdecimal() for a in args[1:]):
        raise machine.misused("xid", "needs the number, and perhaps a GPU instance")
    code = int(args[1])
    gi = int(args[2]) if len(args) == 3 else 0xFFFFFFFF
    action = {xid.Action.RESET: GPU_RESET, xid.Action.REBOOT: NODE_REBOOT}.get(
        xid.fault_of(code).action
    )
    if action is not None:
        state = changed(state, unit, recovery=action)
    return add_event(state, unit, xid.XID_EVENT, code, gi)


def add_event(state: State, unit: str, kind: int, data: int, gi: int = 0xFFFFFFFF) -> State:
    """An event that every listener hears once."""
    fields = of(state, VENDOR)
    sequence = number(fields, "sequence") + 1
    ci = 0 if gi != 0xFFFFFFFF else 0xFFFFFFFF
    kept = cast("list[Json]", fields.get("events", []))[-MOST_EVENTS + 1 :]
    return changed(
        state, VENDOR, sequence=sequence, events=[*kept, [sequence, unit, kind, data, gi, ci]]
    )


def _hang(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """Every call on the GPU takes so long."""
    unit = machine.unit("hang", args)
    if len(args) != 2:
        raise machine.misused("hang", "needs a time")
    return changed(state, unit, hang=duration(args[1]))


def _event(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("event", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("event", "needs the event's type")
    return add_event(state, unit, int(args[1]), 0)


def _mend(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """Load, or install: whatever was wrong with the driver."""
    del machine, args
    return changed(
        state, VENDOR, loaded=None, mismatch=None, uninstalled=None, nodes=None, caps=None
    )


def _flag(name: str, value: Json) -> Step:
    def step(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
        del machine, args
        return changed(state, VENDOR, **{name: value})

    return step


def _number(name: str, verb: str, most: int | None = None) -> Step:
    def step(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
        unit = machine.unit(verb, args)
        if len(args) != 2 or not args[1].isdecimal():
            raise machine.misused(verb, "needs a number, as in nvml.h")
        if most is not None and int(args[1]) > most:
            raise machine.misused(verb, f"{args[1]} is none of its numbers")
        return changed(state, unit, **{name: int(args[1])})

    return step


VERBS: Mapping[str, tuple[str, Step]] = {
    "lose": ("lose UNIT", _lose),
    "restore": ("restore UNIT", _restore),
    "remove": ("remove UNIT", _remove),
    "exclude": ("exclude UNIT", _exclude),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "xid": ("xid UNIT NUMBER [GPU-INSTANCE]", _xid),
    "event": ("event UNIT TYPE", _event),
    "recovery": ("recovery UNIT ACTION", _number("recovery", "recovery")),
    "slow": ("slow UNIT REASONS", _number("clocks", "slow")),
    "ecc": ("ecc UNIT COUNT", _number("ecc", "ecc")),
    "remap": ("remap UNIT 1|2", _number("remap", "remap", 2)),
    "dark": ("dark UNIT LINKS", _number("dark", "dark")),
    "fabric": ("fabric UNIT STATE", _number("fabric", "fabric")),
    "hang": ("hang UNIT 30s", _hang),
    "error": ("error UNIT CODE", _number("error", "error")),
    "fabric-mask": ("fabric-mask UNIT MASK", _number("fabric-mask", "fabric-mask")),
    "persistence": ("persistence UNIT 1|2", _number("persistence", "persistence", 2)),
    "unload": ("unload", _flag("loaded", value=False)),
    "load": ("load", _mend),
    "mismatch": ("mismatch", _flag("mismatch", value=True)),
    "uninstall": ("uninstall", _flag("uninstalled", value=True)),
    "no-nodes": ("no-nodes", _flag("nodes", value=False)),
    "no-caps": ("no-caps", _flag("caps", value=False)),
}
"""Usage and step by verb."""
