"""What can happen to simulated Gaudi cards, as changes of the machine's state.

Not here: how it shows.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from accelkit.testing.machines import Json, State
from accelkit.vendors.gaudi import facts

if TYPE_CHECKING:
    from accelkit.vendors.gaudi.machine import GaudiMachine

VENDOR = "gaudi"
Fields: TypeAlias = dict[str, Json]
Step: TypeAlias = Callable[["GaudiMachine", State, tuple[str, ...]], State]


def of(state: State, key: str) -> Fields:
    """The fields of a unit or of the vendor."""
    return state.get(key, {})


def number(fields: Fields, key: str, otherwise: int = 0) -> int:
    value = fields.get(key, otherwise)
    return value if isinstance(value, int) else otherwise


def texts(fields: Fields, key: str) -> dict[str, str]:
    value = fields.get(key)
    return {k: str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def changed(state: State, key: str, **fields: Json) -> State:
    """*state* with other fields at *key*; None takes one away."""
    merged = {**of(state, key), **fields}
    return {**state, key: {k: v for k, v in merged.items() if v is not None}}


def booted(state: State) -> State:
    """After a reboot all is as new, but the driver finds the cards in another order."""
    return {VENDOR: {"boots": number(of(state, VENDOR), "boots") + 1}}


def _remove(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("remove", args), removed=True)


def _restore(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    return {k: v for k, v in state.items() if k != machine.unit("restore", args)}


def _bind(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit, driver = machine.unit("bind", args), _word(machine, "bind", args)
    return changed(state, unit, bound="" if driver == "none" else driver)


def _status(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("status", args)
    said = " ".join(args[1:]).lower()
    if said not in facts.STATUS:
        raise machine.misused("status", f"is one of: {', '.join(facts.STATUS)}")
    return changed(state, unit, status=said)


def _reset(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    """A hard reset that helps: the driver ends whoever has the card open."""
    unit = machine.unit("reset", args)
    count = number(of(state, unit), "resets") + 1
    return changed(state, unit, resets=count, status=None, holder=None)


def _hold(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit, pid = machine.unit("hold", args), _word(machine, "hold", args)
    if not pid.isdecimal():
        raise machine.misused("hold", f"{pid} is no process id")
    holder = of(state, unit).get("holder")
    if holder is not None:
        raise machine.misused("hold", f"Device or resource busy: {holder} has it open")
    if of(state, unit).get("status") is not None:
        raise machine.misused("hold", "Operation not permitted: it is not operational")
    return changed(state, unit, holder=int(pid))


def _free(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    return changed(state, machine.unit("free", args), holder=None)


def _module(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit, said = machine.unit("module", args), _word(machine, "module", args)
    if said != "none" and not said.isdecimal():
        raise machine.misused("module", f"{said} is no module id")
    return changed(state, unit, module=-1 if said == "none" else int(said))


def _link(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit, lanes = machine.unit("link", args), _word(machine, "link", args)
    if not lanes.isdecimal():
        raise machine.misused("link", f"{lanes} is no number of lanes")
    return changed(state, unit, lanes=int(lanes))


def _port(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit, port = machine.unit("port", args), _word(machine, "port", args)
    if not port.isdecimal() or int(port) >= machine.product.ports:
        raise machine.misused("port", f"there are ports 0 to {machine.product.ports - 1}")
    if args[2:] not in {("up",), ("down",)}:
        raise machine.misused("port", "is up or down")
    return changed(state, unit, ports={**texts(of(state, unit), "ports"), port: args[2]})


def _rubbish(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
    unit = machine.unit("rubbish", args)
    name = args[1] if len(args) > 1 else "module_id"
    if name not in machine.attributes(0, {}):
        raise machine.misused("rubbish", f"there is no file {name}")
    files = {**texts(of(state, unit), "files"), name: "\x00rubbish\n"}
    return changed(state, unit, files={**files})


def _flag(name: str, value: Json) -> Step:
    def step(machine: "GaudiMachine", state: State, args: tuple[str, ...]) -> State:
        del machine, args
        return changed(state, VENDOR, **{name: value})

    return step


def _word(machine: "GaudiMachine", verb: str, args: tuple[str, ...]) -> str:
    if len(args) < 2:
        raise machine.misused(verb, "needs more")
    return args[1]


VERBS: Mapping[str, tuple[str, Step]] = {
    "remove": ("remove UNIT", _remove),
    "restore": ("restore UNIT", _restore),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "status": ("status UNIT WORD...", _status),
    "reset": ("reset UNIT", _reset),
    "hold": ("hold UNIT PID", _hold),
    "free": ("free UNIT", _free),
    "module": ("module UNIT ID|none", _module),
    "link": ("link UNIT LANES", _link),
    "port": ("port UNIT PORT up|down", _port),
    "rubbish": ("rubbish UNIT [FILE]", _rubbish),
    "unload": ("unload", _flag("unloaded", value=True)),
    "load": ("load", _flag("unloaded", value=None)),
    "no-nodes": ("no-nodes", _flag("nodes", value=False)),
    "nodes": ("nodes", _flag("nodes", value=None)),
    "no-verbs": ("no-verbs", _flag("verbs", value=False)),
    "verbs": ("verbs", _flag("verbs", value=None)),
}
"""Usage and step by verb."""
