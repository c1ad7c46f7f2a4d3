"""What can happen to a simulated chip, as changes of its state. Not here: how it shows."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from accelkit.testing.machines import Json, State
from accelkit.vendors.neuron import facts

if TYPE_CHECKING:
    from accelkit.vendors.neuron.machine import NeuronMachine

VENDOR = "neuron"
ECC = {
    "sram": "sram_ecc_uncorrected",
    "mem": "mem_ecc_uncorrected",
    "repairable": "mem_ecc_repairable_uncorrected",
}
"""Files by what the verb calls them."""
ERRORS = (
    *("hw_nc_ue_error", "hw_hbm_ue_error", "hw_dma_abort_error"),
    *("hw_repairable_hbm_ue_error", "hw_collectives_error"),
)
_TOLD = {
    "hw_nc_ue_error": "NC_UNCORRECTABLE_ERROR",
    "hw_hbm_ue_error": "HBM_UNCORRECTABLE_ERROR",
    "hw_dma_abort_error": "DMA_ERROR",
    "hw_collectives_error": "HANG_ON_COLLECTIVES",
}
"""What the runtime calls, in the kernel's log, the errors of a core that it gives up for."""
READY = 1

Fields: TypeAlias = dict[str, Json]
Step: TypeAlias = Callable[["NeuronMachine", State, tuple[str, ...]], State]


def of(state: State, key: str) -> Fields:
    """The fields of a unit or of the vendor."""
    return state.get(key, {})


def number(fields: Fields, key: str, otherwise: int = 0) -> int:
    """The number at *key*."""
    value = fields.get(key, otherwise)
    return value if isinstance(value, int) else otherwise


def numbers(fields: Fields, key: str) -> dict[str, int]:
    """The numbers below *key*, by name."""
    value = fields.get(key)
    found = value.items() if isinstance(value, dict) else ()
    return {name: count for name, count in found if isinstance(count, int)}


def loaded(state: State) -> bool:
    return of(state, VENDOR).get("loaded", True) is True


def driver(state: State, unit: str) -> str | None:
    """The driver that a chip is bound to; None: none."""
    bound = of(state, unit).get("bound", facts.DRIVER)
    if not loaded(state) and bound == facts.DRIVER:
        return None
    return str(bound) or None


def lnc(machine: "NeuronMachine", state: State) -> int:
    """Physical cores that are one logical core."""
    return number(of(state, VENDOR), "lnc", facts.LNC_DEFAULT) if machine.board.family.lnc else 1


def changed(state: State, key: str, **fields: Json) -> State:
    """*state* with other fields at *key*; None takes one away."""
    merged = {**of(state, key), **fields}
    return {**state, key: {k: v for k, v in merged.items() if v is not None}}


def booted(machine: "NeuronMachine", state: State) -> State:
    """After a reboot: files on disks and chips that were replaced stay as they are."""
    vendor = of(state, VENDOR)
    kept = {key: value for key, value in vendor.items() if key in {"lnc", "no-lnc-file"}}
    return {
        VENDOR: {**kept, "boots": number(vendor, "boots") + 1},
        **{u: {"replaced": n} for u in machine.units() if (n := number(of(state, u), "replaced"))},
    }


def _flag(name: str, verb: str) -> Step:
    def step(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
        return changed(state, machine.unit(verb, args), **{name: True})

    return step


def _at_all(name: str, value: Json) -> Step:
    def step(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
        del machine, args
        return changed(state, VENDOR, **{name: value})

    return step


def _load(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    """Counters of cores begin anew with the driver, and what can be repaired is."""
    del args
    state = changed(state, VENDOR, loaded=None)
    for unit in machine.units():
        lasting = {k: n for k, n in numbers(of(state, unit), "ecc").items() if k != "repairable"}
        state = changed(state, unit, errors=None, ecc={**lasting} or None)
    return state


def _restore(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("restore", args)
    kept = {k: v for k, v in of(state, unit).items() if k == "replaced"}
    return {**state, unit: kept}


def _bind(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("bind", args)
    if len(args) != 2:
        raise machine.misused("bind", "names no driver")
    return changed(state, unit, bound="" if args[1] == "none" else args[1])


def _replace(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("replace", args)
    return {**state, unit: {"replaced": number(of(state, unit), "replaced") + 1}}


def _count(machine: "NeuronMachine", verb: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise machine.misused(verb, f"{text} is no count")
    return int(text)


def _ecc(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("ecc", args)
    if len(args) != 3 or args[1] not in ECC:
        raise machine.misused("ecc", f"needs one of {', '.join(ECC)} and a count")
    counts = numbers(of(state, unit), "ecc") | {args[1]: _count(machine, "ecc", args[2])}
    return changed(state, unit, ecc={**counts})


def _core(machine: "NeuronMachine", verb: str, args: tuple[str, ...]) -> str:
    cores = [str(core) for core in range(machine.board.family.cores)]
    if len(args) < 2 or args[1] not in cores:
        raise machine.misused(verb, f"names no core; they are {', '.join(cores)}")
    return args[1]


def _fail(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit, core = machine.unit("fail", args), _core(machine, "fail", args)
    if len(args) != 4 or args[2] not in ERRORS:
        raise machine.misused("fail", f"needs one of {', '.join(ERRORS)} and a count")
    key = f"{core}/{args[2]}"
    counts = numbers(of(state, unit), "errors") | {key: _count(machine, "fail", args[3])}
    return changed(state, unit, errors={**counts})


def _use(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit, core = machine.unit("use", args), _core(machine, "use", args)
    if len(args) != 3:
        raise machine.misused("use", "needs a number of bytes")
    used = numbers(of(state, unit), "used") | {core: _count(machine, "use", args[2])}
    return changed(state, unit, used={**used})


def _reset(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("reset", args)
    if args[1:] not in {("0",), ("1",), ("2",)}:
        raise machine.misused("reset", "needs a state: 0 resetting, 1 ready, 2 failed")
    return changed(state, unit, reset=int(args[1]))


def _hold(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("hold", args)
    if len(args) != 2 or not (args[1].isascii() and args[1].isdecimal()):
        raise machine.misused("hold", "names no process")
    held = of(state, unit).get("pids")
    before = held if isinstance(held, list) else []
    return changed(state, unit, pids=[*before, int(args[1])])


def _free(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("free", args), pids=None)


def _lnc(machine: "NeuronMachine", state: State, args: tuple[str, ...]) -> State:
    if args not in {("1",), ("2",)} or not machine.board.family.lnc:
        raise machine.misused("lnc", "is 1 or 2, and of Trainium2 and Trainium3 only")
    return changed(state, VENDOR, lnc=int(args[0]), **{"no-lnc-file": None})


def error_told(verb: str, args: tuple[str, ...]) -> str | None:
    """What the runtime calls what happens by *verb*; None: it says nothing of it."""
    match verb, args:
        case "fail", (_, _, counter, count) if int(count):
            return _TOLD.get(counter)
        case "ecc", (_, "sram", count) if int(count):
            return "SRAM_UNCORRECTABLE_ERROR"
        case _:
            return None


VERBS: Mapping[str, tuple[str, Step]] = {
    "lose": ("lose UNIT", _flag("lost", "lose")),
    "restore": ("restore UNIT", _restore),
    "remove": ("remove UNIT", _flag("removed", "remove")),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "replace": ("replace UNIT", _replace),
    "rubbish": ("rubbish UNIT", _flag("rubbish", "rubbish")),
    "no-node": ("no-node UNIT", _flag("no-node", "no-node")),
    "ecc": ("ecc UNIT sram|mem|repairable COUNT", _ecc),
    "fail": ("fail UNIT CORE COUNTER COUNT", _fail),
    "use": ("use UNIT CORE BYTES", _use),
    "reset": ("reset UNIT 0|1|2", _reset),
    "hold": ("hold UNIT PID", _hold),
    "free": ("free UNIT", _free),
    "lnc": ("lnc 1|2", _lnc),
    "no-lnc-file": ("no-lnc-file", _at_all("no-lnc-file", value=True)),
    "unload": ("unload", _at_all("loaded", value=False)),
    "load": ("load", _load),
}
"""Usage and step by verb."""
