"""What can happen to a simulated Intel GPU, as changes of state. Not here: how it shows."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from accelkit import SourceError
from accelkit.testing.machines import Json, State
from accelkit.vendors.intel import facts

if TYPE_CHECKING:
    from accelkit.vendors.intel.machine import IntelMachine

VENDOR = "intel"
REASONS = ("pl1", "pl2", "pl4", "thermal", "prochot", "ratl", "vr_thermalert", "vr_tdc")
"""Why a GPU may run slower, as both drivers call it."""
METHODS = ("none", "rebind", "bus-reset", "vendor-specific")
"""Ways to bring a wedged GPU back, by how much they disturb (Linux, drm-uapi.rst)."""
_KEPT = ("vfs", "passed", "bound", "holders")
"""Fields that say how a GPU is used, not how it is."""
_DRIVERS_OWN = {"dump", "vfs", "passed"}
"""Fields of what goes with the driver."""

Fields: TypeAlias = dict[str, Json]
Step: TypeAlias = Callable[["IntelMachine", State, tuple[str, ...]], State]


def of(state: State, key: str) -> Fields:
    """The fields of a unit or of the vendor."""
    return state.get(key, {})


def changed(state: State, key: str, **fields: Json) -> State:
    """*state* with other fields at *key*; None takes one away."""
    merged = {**of(state, key), **fields}
    return {**state, key: {k: v for k, v in merged.items() if v is not None}}


def number(fields: Fields, key: str, default: int = 0) -> int:
    """The number at *key*."""
    value = fields.get(key, default)
    return value if isinstance(value, int) else default


def names(fields: Fields, key: str) -> list[str]:
    """The texts at *key*."""
    value = fields.get(key)
    return [str(item) for item in value] if isinstance(value, list) else []


def texts(fields: Fields, key: str) -> dict[str, str]:
    """The texts by name at *key*."""
    value = fields.get(key)
    return {n: str(t) for n, t in value.items()} if isinstance(value, dict) else {}


def holders(fields: Fields) -> list[tuple[str, int | None]]:
    """Processes that have a GPU open, each with the virtual function that it has, if it is one."""
    found = cast("list[list[Json]]", fields.get("holders", []))
    return [(str(pid), None if vf is None else int(str(vf))) for pid, vf in found]


def loaded(state: State) -> bool:
    return not of(state, VENDOR).get("unloaded", False)


def booted(machine: "IntelMachine", state: State) -> State:
    """Nothing is left but that cards have other numbers; what firmware is damaged stays damaged."""
    probes = number(of(state, VENDOR), "probes") + 1
    damaged: State = {
        u: {"survival": True} for u in machine.units() if of(state, u).get("survival")
    }
    return {VENDOR: {"probes": probes}, **damaged}


def with_vfs(machine: "IntelMachine", state: State, unit: str, text: str) -> State:
    """What writing to sriov_numvfs does.

    Raises:
        SourceError: The kernel or the driver refuses it.

    Source:
        Linux, drivers/pci/pci-sysfs.c, sriov_numvfs_store.
    """
    own, most = of(state, unit), machine.product.vfs
    now, wanted = number(own, "vfs"), int(text) if text.strip().isdecimal() else -1
    if not 0 <= wanted <= most:
        raise SourceError(f"sriov_numvfs of {unit}: numerical result out of range", vendor=VENDOR)
    if wanted == now:
        return state
    if now and wanted:
        raise SourceError(f"sriov_numvfs of {unit}: device or resource busy", vendor=VENDOR)
    if any(vf is not None for _, vf in holders(own)) or names(own, "passed"):
        raise SourceError(f"sriov_numvfs of {unit}: device or resource busy", vendor=VENDOR)
    if wanted > number(own, "room", most):
        raise SourceError(f"sriov_numvfs of {unit}: no space left on device", vendor=VENDOR)
    return changed(state, unit, vfs=wanted or None)


def _lose(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("lose", args), lost=True)


def _restore(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("restore", args)
    return {**state, unit: {k: v for k, v in of(state, unit).items() if k in _KEPT}}


def _bind(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """What follows from unbinding and binding: whatever the driver had is gone."""
    unit = machine.unit("bind", args)
    if len(args) != 2:
        raise machine.misused("bind", "names no driver")
    default = machine.driver
    bound = None if args[1] == default else "" if args[1] == "none" else args[1]
    return changed(_driverless(state, unit), unit, bound=bound)


def _driverless(state: State, unit: str) -> State:
    return {**state, unit: {k: v for k, v in of(state, unit).items() if k not in _DRIVERS_OWN}}


def _unload(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """Every GPU is unbound.

    Source:
        Linux, drivers/gpu/drm/xe/xe_pci.c, xe_pci_remove: it disables virtual functions.
    """
    del args
    for unit in machine.units():
        if of(state, unit).get("bound", machine.driver) in facts.DRIVERS:
            state = _driverless(state, unit)
    return changed(state, VENDOR, unloaded=True)


def _load(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """Cards may have other numbers, as after a boot."""
    del machine, args
    vendor = of(state, VENDOR)
    probes = number(vendor, "probes") + (not loaded(state))
    return changed(state, VENDOR, unloaded=None, probes=probes)


def _health(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("health", args)
    if len(args) != 2 or not machine.product.tells_health:
        raise machine.misused("health", "needs a word, and a product that shows its health")
    return changed(state, unit, health=None if args[1] == "ok" else args[1])


def _throttle(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("throttle", args)
    if not {*args[1:]} <= {*REASONS}:
        raise machine.misused("throttle", f"knows the reasons {', '.join(REASONS)}")
    return changed(state, unit, throttle=list(args[1:]) or None)


def _heat(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("heat", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("heat", "needs degrees Celsius")
    return changed(state, unit, celsius=int(args[1]))


def _wedge(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """The driver gives it up, or has recovered it; what it tells is a uevent."""
    unit = machine.unit("wedge", args)
    methods = args[1].split(",") if len(args) == 2 else [""]
    if not {*methods} <= {*METHODS}:
        raise machine.misused("wedge", f"knows {', '.join(METHODS)}, with commas between")
    survival = True if "vendor-specific" in methods else None
    return changed(state, unit, dump=True, survival=survival)


def _vfs(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """What somebody else does with sriov_numvfs."""
    unit = machine.unit("vfs", args)
    if len(args) != 2:
        raise machine.misused("vfs", "needs a number")
    try:
        return with_vfs(machine, with_vfs(machine, state, unit, "0"), unit, args[1])
    except SourceError as error:
        raise machine.misused("vfs", str(error)) from error


def _pass(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """A virtual function is bound for a virtual machine."""
    unit = machine.unit("pass", args)
    position = _position(machine, "pass", state, unit, args[1:])
    return changed(state, unit, passed=[*names(of(state, unit), "passed"), str(position)])


def _position(
    machine: "IntelMachine", verb: str, state: State, unit: str, args: tuple[str, ...]
) -> int:
    if len(args) == 1 and args[0].isdecimal() and int(args[0]) < number(of(state, unit), "vfs"):
        return int(args[0])
    raise machine.misused(verb, "needs the position of a virtual function that is there")


def _hold(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("hold", args)
    if len(args) not in {2, 3} or not args[1].isdecimal():
        raise machine.misused("hold", "needs a process id, and perhaps a virtual function")
    vf = _position(machine, "hold", state, unit, args[2:]) if len(args) == 3 else None
    held = cast("list[Json]", of(state, unit).get("holders", []))
    return changed(state, unit, holders=[*held, [args[1], vf]])


def _free(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("free", args), holders=None, passed=None)


def _room(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    """Quotas that were set by hand leave room for so many virtual functions only."""
    unit = machine.unit("room", args)
    if len(args) != 2 or not args[1].isdecimal():
        raise machine.misused("room", "needs a number of virtual functions")
    return changed(state, unit, room=int(args[1]))


def _rubbish(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("rubbish", args)
    if len(args) != 2:
        raise machine.misused("rubbish", "needs a file of the function")
    if args[1] not in machine.files(state, unit):
        raise machine.misused("rubbish", f"there is no file {args[1]}")
    files = {**texts(of(state, unit), "files"), args[1]: "\x00rubbish"}
    return changed(state, unit, files=cast("Json", files))


def _flag(key: str, verb: str) -> Step:
    def step(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
        return changed(state, machine.unit(verb, args), **{key: True})

    return step


def _all(key: str, value: Json) -> Step:
    def step(machine: "IntelMachine", state: State, args: tuple[str, ...]) -> State:
        del machine, args
        return changed(state, VENDOR, **{key: value})

    return step


VERBS: Mapping[str, tuple[str, Step]] = {
    "lose": ("lose UNIT", _lose),
    "restore": ("restore UNIT", _restore),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "fall": ("fall UNIT", _flag("fallen", "fall")),
    "health": ("health UNIT ok|warning|critical", _health),
    "throttle": ("throttle UNIT REASON...", _throttle),
    "heat": ("heat UNIT CELSIUS", _heat),
    "sleep": ("sleep UNIT", _flag("asleep", "sleep")),
    "wedge": ("wedge UNIT METHOD[,METHOD]", _wedge),
    "vfs": ("vfs UNIT COUNT", _vfs),
    "pass": ("pass UNIT VF", _pass),
    "room": ("room UNIT COUNT", _room),
    "hold": ("hold UNIT PID [VF]", _hold),
    "free": ("free UNIT", _free),
    "rubbish": ("rubbish UNIT FILE", _rubbish),
    "unload": ("unload", _unload),
    "load": ("load", _load),
    "no-nodes": ("no-nodes", _all("nodeless", value=True)),
    "no-autoprobe": ("no-autoprobe", _all("manual", value=True)),
}
"""Usage and step by verb."""
