"""What can happen to a simulated GPU, as changes of the machine's state. Not here: how it shows."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from accelkit.testing.faults import duration
from accelkit.testing.machines import Json, Part, State
from accelkit.vendors.nvidia import xid
from accelkit.vendors.nvidia.products import MigProfile, Product

if TYPE_CHECKING:
    from accelkit.vendors.nvidia.machine import NvidiaMachine

VENDOR = "nvidia"
MOST_EVENTS = 64
"""Events that are kept for listeners that are slow."""
NONE, GPU_RESET, NODE_REBOOT = 0, 1, 2
"""Recovery actions. Source: nvml.h, nvmlDeviceGpuRecoveryAction_t."""

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
    return not fields.get("removed") and fields.get("bound", "nvidia") == "nvidia"


def minor(state: State, part: Part, index: int) -> int:
    """The minor number of a GPU: another one after each boot, where there are several."""
    return (index + number(of(state, VENDOR), "boots")) % part.count


def number(fields: Fields, key: str) -> int:
    """The number at *key*; 0 where there is none."""
    value = fields.get(key, 0)
    return value if isinstance(value, int) else 0


def cap(index: int, gi: int, ci: int | None) -> int:
    """The minor of a capability, far from those of other GPUs."""
    return 1 + index * 256 + gi * 9 + (0 if ci is None else ci + 1)


class Instance(TypedDict):
    """A GPU instance, and the compute instance that is all of it, if there is one."""

    gi: int
    ci: int | None
    profile: str
    start: int


def instances(state: State, unit: str) -> list[Instance]:
    """GPU instances of a unit."""
    return cast("list[Instance]", of(state, unit).get("instances", []))


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
        kept |= {u: {"mig": True} for u in machine.units() if of(state, u).get("mig")}
    return kept


def _set(state: State, key: str, **fields: Json) -> State:
    merged = {**of(state, key), **fields}
    return {**state, key: {k: v for k, v in merged.items() if v is not None}}


def _lose(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return _set(state, machine.unit("lose", args), lost=True)


def _restore(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("restore", args)
    kept = {k: v for k, v in of(state, unit).items() if k in {"mig", "instances"}}
    return {**state, unit: kept}


def _remove(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    return _set(state, machine.unit("remove", args), removed=True)


def _bind(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("bind", args)
    if len(args) != 2:
        raise machine.misused("bind", "names no driver")
    return _set(state, unit, bound="" if args[1] == "none" else args[1])


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
        state = _set(state, unit, recovery=action)
    return add_event(state, unit, xid.XID_EVENT, code, gi)


def add_event(state: State, unit: str, kind: int, data: int, gi: int = 0xFFFFFFFF) -> State:
    """An event that every listener hears once."""
    fields = of(state, VENDOR)
    sequence = number(fields, "sequence") + 1
    ci = 0 if gi != 0xFFFFFFFF else 0xFFFFFFFF
    kept = cast("list[Json]", fields.get("events", []))[-MOST_EVENTS + 1 :]
    return _set(
        state, VENDOR, sequence=sequence, events=[*kept, [sequence, unit, kind, data, gi, ci]]
    )


def _hang(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """Every call on the GPU takes so long."""
    unit = machine.unit("hang", args)
    if len(args) != 2:
        raise machine.misused("hang", "needs a time")
    return _set(state, unit, hang=duration(args[1]))


def _event(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("event", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("event", "needs the event's type")
    return add_event(state, unit, int(args[1]), 0)


def _mend(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    """Load, or install: whatever was wrong with the driver."""
    del machine, args
    return _set(state, VENDOR, loaded=None, mismatch=None, uninstalled=None, nodes=None)


def _flag(name: str, value: Json) -> Step:
    def step(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
        del machine, args
        return _set(state, VENDOR, **{name: value})

    return step


def _number(name: str, verb: str, most: int | None = None) -> Step:
    def step(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
        unit = machine.unit(verb, args)
        if len(args) != 2 or not args[1].isdecimal():
            raise machine.misused(verb, "needs a number, as in nvml.h")
        if most is not None and int(args[1]) > most:
            raise machine.misused(verb, f"{args[1]} is none of its numbers")
        return _set(state, unit, **{name: int(args[1])})

    return step


def _mig(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("mig", args)
    if args[1:] not in {("on",), ("off",)} or not machine.board.product.profiles:
        raise machine.misused("mig", "needs on or off, and a product that has it")
    if args[1] == "on":
        return _set(state, unit, mig=True)
    return _set(state, unit, mig=None, instances=None)


def _profile(product: Product, name: str = "") -> MigProfile | None:
    """The profile *name*; 3g stands for the first of three slices, whatever its memory."""
    return next((p for p in product.profiles if name in {p.name, p.name.split(".")[0]}), None)


def _create(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("create-mig", args)
    profile = _profile(machine.board.product, *args[1:2])
    if profile is None or len(args) < 3 or not args[2].isdecimal():
        raise machine.misused("create-mig", "needs a profile of the product and a slot")
    if not of(state, unit).get("mig"):
        raise machine.misused("create-mig", f"{unit} is not in MIG mode")
    start, bare = int(args[2]), args[3:] == ("bare",)
    present = instances(state, unit)
    sizes = {p.name: p.size for p in machine.board.product.profiles}
    taken = {s for i in present for s in range(i["start"], i["start"] + sizes[i["profile"]])}
    if start not in profile.starts or taken & set(range(start, start + profile.size)):
        raise machine.misused("create-mig", f"{profile.name} cannot be at slot {start}")
    ids = {i["gi"] for i in present}
    gi = next(g for g in range(7, 7 + len(ids) + 1) if g not in ids)
    made: Instance = {"gi": gi, "profile": profile.name, "start": start, "ci": None if bare else 0}
    return _set(state, unit, instances=cast("Json", [*present, made]))


def _destroy(machine: "NvidiaMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("destroy-mig", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("destroy-mig", "needs the first slot")
    present = instances(state, unit)
    left = [i for i in present if i["start"] != int(args[1])]
    if left == present:
        raise machine.misused("destroy-mig", f"nothing begins at slot {args[1]}")
    return _set(state, unit, instances=cast("Json", left))


VERBS: Mapping[str, tuple[str, Step]] = {
    "lose": ("lose UNIT", _lose),
    "restore": ("restore UNIT", _restore),
    "remove": ("remove UNIT", _remove),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "xid": ("xid UNIT NUMBER [GPU-INSTANCE]", _xid),
    "event": ("event UNIT TYPE", _event),
    "mig": ("mig UNIT on|off", _mig),
    "create-mig": ("create-mig UNIT PROFILE|SIZE SLOT [bare]", _create),
    "destroy-mig": ("destroy-mig UNIT SLOT", _destroy),
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
    "busy": ("busy UNIT PID", _number("busy", "busy")),
    "unload": ("unload", _flag("loaded", value=False)),
    "load": ("load", _mend),
    "mismatch": ("mismatch", _flag("mismatch", value=True)),
    "uninstall": ("uninstall", _flag("uninstalled", value=True)),
    "no-nodes": ("no-nodes", _flag("nodes", value=False)),
}
"""Usage and step by verb."""
