"""What can happen to a simulated TPU host. Not here: how its files show it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from accelkit.testing.machines import Json, Machine, State

METADATA = ("full", "ambiguous", "none")
"""What the host says of its slice."""

Step = Callable[[dict[str, Json], tuple[str, ...]], bool]


def _sets(**fields: Json) -> Step:
    """A verb without arguments beyond the unit."""

    def step(own: dict[str, Json], args: tuple[str, ...]) -> bool:
        own.update(fields)
        return not args

    return step


def _hold(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    match args:
        case (pid,) | (pid, "pod") if pid.isdecimal() and len(pid) <= len("4194304"):
            own["holders"] = [*listed(own.get("holders")), " ".join(args)]
            return True
        case _:
            return False


def _errors(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    own["errors"] = "".join(args)
    return len(args) == 1 and args[0].isdecimal()


def _bind(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    own["driver"] = "".join(args)
    return len(args) == 1


def _status(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    own["status"] = "".join(args)
    return args in {("ALIVE",), ("DEAD",), ("LAMED",), ("DRIVER_EXITING",)}


def _free(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    own.pop("holders", None)
    return not args


def _restore(own: dict[str, Json], args: tuple[str, ...]) -> bool:
    own.clear()
    return not args


_UNIT_VERBS: Mapping[str, tuple[str, Step]] = {
    "lose": ("lose UNIT", _sets(lost=True)),
    "restore": ("restore UNIT", _restore),
    "hide": ("hide UNIT", _sets(hidden=True)),
    "narrow": ("narrow UNIT", _sets(lanes=4)),
    "share": ("share UNIT", _sets(shared=True)),
    "halve": ("halve UNIT", _sets(halved=True)),
    "rubbish": ("rubbish UNIT", _sets(rubbish=True)),
    "status": ("status UNIT STATUS", _status),
    "errors": ("errors UNIT COUNT", _errors),
    "bind": ("bind UNIT DRIVER|none", _bind),
    "hold": ("hold UNIT PID [pod]", _hold),
    "free": ("free UNIT", _free),
}
VERBS: Mapping[str, str] = MappingProxyType(
    {
        **{verb: usage for verb, (usage, _) in _UNIT_VERBS.items()},
        "metadata": f"metadata {'|'.join(METADATA)}",
        "unload": "unload",
        "load": "load",
    }
)
"""Verbs with their usage."""


def after(machine: Machine, state: State, verb: str, args: tuple[str, ...]) -> State:
    """What *state* becomes by *verb*.

    Raises:
        ConfigError: The arguments are wrong.
    """
    if verb in _UNIT_VERBS:
        unit = machine.unit(verb, args)
        step = _UNIT_VERBS[verb][1]
        done, args = step(state.setdefault(unit, {}), args[1:]), args[1:]
    else:
        done = _of_host(state.setdefault(machine.vendor, {}), verb, args)
    if not done:
        raise machine.misused(verb, f"cannot be done with {' '.join(args) or 'nothing'}")
    return state


def _of_host(common: dict[str, Json], verb: str, args: tuple[str, ...]) -> bool:
    if verb == "metadata":
        common["metadata"] = "".join(args)
        return len(args) == 1 and args[0] in METADATA
    common["unloaded"] = verb == "unload"
    return not args


def booted(common: Mapping[str, Json], vendor: str) -> State:
    """Groups are numbered anew; what the host is told of its slice stays."""
    boots = common.get("boots", 0)
    assert isinstance(boots, int)
    kept = {"metadata": common["metadata"]} if "metadata" in common else {}
    return {vendor: {**kept, "boots": boots + 1}}


def listed(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []
