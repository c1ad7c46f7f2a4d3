"""What can happen to a simulated AMD machine. Not here: which files show it."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from accelkit import ConfigError, SourceError
from accelkit.testing.machines import Entry, File, Json, Link, State
from accelkit.vendors.amd import facts, simulated
from accelkit.vendors.amd.board import Board, number
from accelkit.vendors.amd.card import COMPUTE_FILE, MEMORY_FILE
from accelkit.vendors.amd.simulated import mapping

if TYPE_CHECKING:
    from accelkit.vendors.amd.machine import AmdMachine

Happen = Callable[["AmdMachine", State, tuple[str, ...]], State]
Rest = tuple[str, ...]
NO_DRIVER = "none"
KFD_FILE = "properties"
"""Of the node that KFD has of a GPU."""
_RUBBISH = "\x00rubbish"


def _of_unit(verb: str, change: Callable[[dict[str, Json], Rest], None]) -> Happen:
    """A verb that changes one unit; *change* raises ValueError where its words are wrong."""

    def happen(machine: "AmdMachine", state: State, args: Rest) -> State:
        unit = machine.unit(verb, args)
        try:
            change(state.setdefault(unit, {}), args[1:])
        except ValueError as error:
            raise machine.misused(verb, str(error)) from error
        return state

    return happen


def _no_more(rest: Rest) -> None:
    if rest:
        raise ValueError(f"takes no {rest[0]}")


def _set(name: str, value: Json) -> Callable[[dict[str, Json], Rest], None]:
    def change(own: dict[str, Json], rest: Rest) -> None:
        _no_more(rest)
        own[name] = value

    return change


def _restore(own: dict[str, Json], rest: Rest) -> None:
    """All is as it was, but for the mode."""
    _no_more(rest)
    for name in [*own]:
        if name != "compute":
            del own[name]


def _whole(name: str) -> Callable[[dict[str, Json], Rest], None]:
    """A verb with one whole number."""

    def change(own: dict[str, Json], rest: Rest) -> None:
        if len(rest) != 1 or not rest[0].isdecimal():
            raise ValueError("needs one whole number")
        own[name] = int(rest[0])

    return change


def _ras(own: dict[str, Json], rest: Rest) -> None:
    blocks = ", ".join(simulated.BLOCKS)
    if len(rest) not in {2, 3} or not all(word.isdecimal() for word in rest[1:]):
        raise ValueError(f"needs a block ({blocks}), errors that were not corrected, and corrected")
    if rest[0] not in simulated.BLOCKS:
        raise ValueError(f"knows the blocks {blocks}")
    own["ras"] = {**mapping(own.get("ras")), rest[0]: [int(n) for n in (*rest[1:], "0")[:2]]}


def _pages(own: dict[str, Json], rest: Rest) -> None:
    if len(rest) != 1 or not {*rest[0]} <= {*"RPF"}:
        raise ValueError("needs a letter for each page: R retired, P pending, F failed")
    own["pages"] = rest[0]


def _counted(verb: str, change: Callable[[dict[str, Json], Rest], None]) -> Happen:
    """The same of errors, which only some GPUs count."""
    counted = _of_unit(verb, change)

    def happen(machine: "AmdMachine", state: State, args: Rest) -> State:
        if not machine.board.counts_errors:
            raise machine.misused(verb, "needs a product that counts errors, and no guest")
        return counted(machine, state, args)

    return happen


def _hide(machine: "AmdMachine", state: State, args: Rest) -> State:
    unit, name = _unit_and_file(machine, state, "hide", args)
    own = state.setdefault(unit, {})
    hidden = own.get("hidden")
    own["hidden"] = [*(hidden if isinstance(hidden, list) else ()), name]
    return state


def _rubbish(machine: "AmdMachine", state: State, args: Rest) -> State:
    named = args if len(args) > 1 else (*args, KFD_FILE)
    unit, name = _unit_and_file(machine, state, "rubbish", named, KFD_FILE)
    own = state.setdefault(unit, {})
    own["files"] = {**mapping(own.get("files")), name: _RUBBISH}
    return state


def _unit_and_file(
    machine: "AmdMachine", state: State, verb: str, args: Rest, *others: str
) -> tuple[str, str]:
    """A unit, and a file that its PCI function has, or one of *others*."""
    unit = machine.unit(verb, args)
    known = {*machine.files(state, machine.units().index(unit)), *others}
    if len(args) < 2:
        raise machine.misused(verb, "needs one file")
    if args[1] not in known:
        raise machine.misused(verb, f"there is no file {args[1]}")
    return unit, args[1]


def _bind(own: dict[str, Json], rest: Rest) -> None:
    if len(rest) != 1:
        raise ValueError("needs the name of a driver")
    own["bound"] = rest[0]


def _hold(own: dict[str, Json], rest: Rest) -> None:
    if not 1 <= len(rest) <= 2 or not all(word.isdecimal() for word in rest):
        raise ValueError("needs the number of a process, and of a partition")
    held = own.get("holders")
    partition = int(rest[1]) if len(rest) > 1 else 0
    own["holders"] = [*(held if isinstance(held, list) else ()), [int(rest[0]), partition]]


def _free(own: dict[str, Json], rest: Rest) -> None:
    _no_more(rest)
    own.pop("holders", None)


_UNIT_VERBS: Mapping[str, tuple[str, Callable[[dict[str, Json], Rest], None]]] = {
    "remove": ("remove UNIT", _set("removed", True)),
    "lose": ("lose UNIT", _set("lost", True)),
    "restore": ("restore UNIT", _restore),
    "unsupport": ("unsupport UNIT", _set("unsupported", True)),
    "bind": (f"bind UNIT DRIVER|{NO_DRIVER}", _bind),
    "heat": ("heat UNIT CELSIUS", _whole("temperature")),
    "narrow": ("narrow UNIT LANES", _whole("width")),
    "busy": ("busy UNIT PERCENT", _whole("busy")),
    "fill": ("fill UNIT BYTES", _whole("used")),
    "hold": ("hold UNIT PID [PARTITION]", _hold),
    "free": ("free UNIT", _free),
}


def _common(verb: str) -> Happen:
    """A verb of the whole machine."""

    def happen(machine: "AmdMachine", state: State, args: Rest) -> State:
        common = state.setdefault(machine.vendor, {})
        match verb, args:
            case "unload", ():
                _idle(machine, state, verb)
                common["unloaded"] = True
            case "load", () if common.pop("unloaded", False):
                _started(machine, state)
            case "load", ():
                pass
            case (("no-kfd" | "kfd"), ()):
                common["nokfd"] = verb == "no-kfd"
            case "minors", (count,) if count.isdecimal():
                common["minors"] = int(count)
            case "memory", (mode,) if mode in machine.board.product.memory_modes:
                _idle(machine, state, verb)
                common["nps"] = mode
                for unit in machine.units():
                    state.get(unit, {}).pop("compute", None)
                _renewed(machine, state)
            case _:
                raise machine.misused(verb, f"cannot be done with {' '.join(args) or 'nothing'}")
        return state

    return happen


def _idle(machine: "AmdMachine", state: State, verb: str) -> None:
    """Check that nobody uses a GPU.

    Raises:
        ConfigError: Somebody does: the driver is not taken out then, and refuses other modes.
    """
    held = tuple(holders(machine, state))
    if pids := sorted({pid for _, _, pid in held}):
        units = sorted({machine.units()[index] for index, _, _ in held})
        raise ConfigError(
            [(verb, f"amdgpu is in use by process {', '.join(map(str, pids))}")],
            remedy=f"first: {'; '.join(f'free {unit}' for unit in units)}",
        )


def _started(machine: "AmdMachine", state: State) -> None:
    """A driver that is loaded brings the memory mode that was asked for, and counts anew."""
    common = state.setdefault(machine.vendor, {})
    if (wanted := common.pop("wanted", None)) is not None:
        common["nps"] = wanted
    for unit in machine.units():
        for field in ("compute", "ras"):
            state.get(unit, {}).pop(field, None)
    _renewed(machine, state)


def _mode(machine: "AmdMachine", state: State, args: Rest) -> State:
    """Of one GPU, or of all where none is named."""
    units = machine.units() if len(args) == 1 else (machine.unit("mode", args),)
    known = machine.board.compute_modes(_memory(machine.board, state))
    if not args or len(args) > 2 or args[-1] not in known:
        raise machine.misused("mode", f"its modes are {', '.join(known) or 'none'}")
    _idle(machine, state, "mode")
    for unit in units:
        state.setdefault(unit, {})["compute"] = args[-1]
    return _renewed(machine, state)


VERBS: Mapping[str, tuple[str, Happen]] = {
    **{verb: (usage, _of_unit(verb, change)) for verb, (usage, change) in _UNIT_VERBS.items()},
    "ras": ("ras UNIT BLOCK UNCORRECTED [CORRECTED]", _counted("ras", _ras)),
    "pages": ("pages UNIT LETTERS", _counted("pages", _pages)),
    "rubbish": ("rubbish UNIT [FILE]", _rubbish),
    "hide": ("hide UNIT FILE", _hide),
    "mode": ("mode [UNIT] MODE", _mode),
    "memory": ("memory MODE", _common("memory")),
    "minors": ("minors COUNT", _common("minors")),
    "no-kfd": ("no-kfd", _common("no-kfd")),
    "kfd": ("kfd", _common("kfd")),
    "unload": ("unload", _common("unload")),
    "load": ("load", _common("load")),
}


def _memory(board: Board, state: State) -> str:
    cut = board.cut(state, 0)
    return "" if cut is None else cut.memory


def _renewed(machine: "AmdMachine", state: State) -> State:
    common = state.setdefault(machine.vendor, {})
    common["generation"] = number(common.get("generation")) + 1
    return state


def holders(machine: "AmdMachine", state: State) -> Iterator[tuple[int, int, int]]:
    """Processes that use GPUs: index, partition, process."""
    for index, unit in enumerate(machine.units()):
        held = state.get(unit, {}).get("holders")
        for pair in held if isinstance(held, list) else ():
            if isinstance(pair, list):
                yield index, number(pair[1]), number(pair[0])


def holding(machine: "AmdMachine", state: State) -> Iterator[Entry]:
    """What shows that processes use GPUs."""
    board = machine.board
    for index, partition, pid in holders(machine, state):
        minor = board.minor(state, index, partition)
        folder = f"/proc/{pid}"
        yield Link(path=f"{folder}/fd/{minor}", target=f"/dev/dri/renderD{minor}")
        yield Link(path=f"{folder}/fd/3", target=facts.KFD_NODE)
        kfd = f"{facts.KFD_PROCESSES}/{pid}"
        yield File(path=f"{kfd}/pasid", content=f"{0x8000 + pid % 4096}\n")
        vram = f"{kfd}/vram_{board.kfd_id(index, partition)}"
        yield File(path=vram, content=f"{1 << 30}\n")


def written(machine: "AmdMachine", state: State, path: str, text: str) -> State | None:
    """What the driver makes of it.

    Raises:
        SourceError: It refuses.
    """
    folder, _, name = path.rpartition("/")
    if name not in {COMPUTE_FILE, MEMORY_FILE}:
        return None
    board = machine.board
    for index, unit in enumerate(machine.units()):
        if folder != board.folder(index):
            continue
        wanted = text.strip().upper()
        if board.guest:
            raise _refusal(path, "Operation not permitted")
        if name == MEMORY_FILE:
            if wanted not in board.product.memory_modes:
                raise _refusal(path, "Invalid argument")
            state.setdefault(machine.vendor, {})["wanted"] = wanted
            return state
        if wanted not in board.compute_modes(_memory(board, state)):
            raise _refusal(path, "Invalid argument")
        if next(holders(machine, state), None) is not None:
            raise _refusal(path, "Device or resource busy")
        state.setdefault(unit, {})["compute"] = wanted
        return _renewed(machine, state)
    return None


def _refusal(path: str, why: str) -> SourceError:
    return SourceError(f"{path}: cannot write it: {why}", operation="write")
