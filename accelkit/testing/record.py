"""machine.json: the whole state of a simulated machine, as a value. Not here: what it means."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, TypeVar
from uuid import UUID

import attrs

from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap, freeze
from accelkit.testing.faults import Fault, fault_json, parse_faults
from accelkit.testing.hosts import MACHINE
from accelkit.testing.machines import Json, Part, State

NAME = MACHINE
FORMAT = "machine/1"
MOST_UNITS = 256
T = TypeVar("T")
_KEYS = {"format", "boot", "parts", "nodes", "state", "faults", "kernel", "uevents", "deviceNodes"}


@attrs.frozen(kw_only=True)
class Numbers:
    """What stat says of a simulated device node."""

    kind: str
    major: int
    minor: int


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Record:
    """What machine.json holds."""

    boot: str
    """UUID of this boot."""
    parts: tuple[Part, ...] = ()
    nodes: FrozenMap[str, Numbers] = FrozenMap()
    """Device nodes by path."""
    state: State = attrs.field(factory=dict)
    faults: tuple[Fault, ...] = ()
    kernel: tuple[str, ...] = ()
    """Lines of the kernel's log, of this boot."""
    uevents: tuple[str, ...] = ()
    """What it has sent, each as ``ACTION@DEVPATH`` and ``KEY=VALUE`` with blanks between."""
    device_nodes: bool = False
    """Nodes are real ones, with the numbers of /dev/null."""


def load(directory: str) -> Record:
    """Read the record of the machine in *directory*.

    Raises:
        ConfigError: It is not there, or not a machine's.
    """
    path = Path(directory, NAME)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(
            [(directory, "there is no simulated machine")],
            remedy="make one: accelkit simulate VENDOR DIR",
        ) from error
    except OSError as error:
        raise ConfigError([(str(path), f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        _refuse(path, f"is not JSON: {error}")
    except RecursionError:
        _refuse(path, "is nested too deep")
    try:
        return _record(found)
    except (ConfigError, ValueError) as error:
        _refuse(path, str(error).replace("\n", "; "))


def _refuse(path: Path, text: str) -> NoReturn:
    raise ConfigError([(str(path), text)], remedy="make the machine anew in an empty directory")


def dump(record: Record) -> str:
    """The text of machine.json."""
    item: dict[str, object] = {
        "format": FORMAT,
        "boot": record.boot,
        "parts": [_part_json(part) for part in record.parts],
        "nodes": {path: attrs.asdict(numbers) for path, numbers in record.nodes.items()},
        "state": record.state,
        "faults": [fault_json(fault) for fault in record.faults],
    }
    for key, lines in (("kernel", record.kernel), ("uevents", record.uevents)):
        if lines:
            item[key] = list(lines)
    if record.device_nodes:
        item["deviceNodes"] = True
    return json.dumps(item, indent=1) + "\n"


def _part_json(part: Part) -> dict[str, object]:
    item: dict[str, object] = {
        "vendor": part.vendor,
        "product": part.product,
        "count": part.count,
        "seed": part.seed,
    }
    return {**item, "options": dict(part.options)} if part.options else item


def _record(found: object) -> Record:
    item = _mapping(found, "$")
    if item.get("format") != FORMAT:
        raise ValueError(f"$.format: {item.get('format')!r} is not {FORMAT}, which is read here")
    if unknown := sorted(item.keys() - _KEYS):
        raise ValueError(f"$.{unknown[0]}: is not a key of {FORMAT}")
    parts = _parts(item.get("parts", []))
    return Record(
        boot=_boot(item.get("boot")),
        parts=parts,
        nodes=FrozenMap(
            {
                path: _numbers(node, f"$.nodes[{path!r}]")
                for path, node in _mapping(item.get("nodes", {}), "$.nodes").items()
            }
        ),
        state=_state(item.get("state", {})),
        faults=parse_faults(item.get("faults", []), "$.faults"),
        kernel=_texts(item.get("kernel", []), "$.kernel"),
        uevents=_texts(item.get("uevents", []), "$.uevents"),
        device_nodes=_of(bool, item.get("deviceNodes", False), "$.deviceNodes"),
    )


def _texts(found: object, where: str) -> tuple[str, ...]:
    return tuple(_of(str, one, f"{where}[{n}]") for n, one in enumerate(_of(list, found, where)))


def _boot(found: object) -> str:
    try:
        return str(UUID(_of(str, found, "$.boot")))
    except ValueError as error:
        raise ValueError(f"$.boot: {found!r} is not a UUID") from error


def _parts(found: object) -> tuple[Part, ...]:
    parts: list[Part] = []
    for index, value in enumerate(_of(list, found, "$.parts")):
        where = f"$.parts[{index}]"
        item = _mapping(value, where)
        if unknown := sorted(item.keys() - {"vendor", "product", "count", "seed", "options"}):
            raise ValueError(f"{where}.{unknown[0]}: is not a key of a part")
        count = _of(int, item.get("count"), f"{where}.count")
        if not 1 <= count <= MOST_UNITS:
            raise ValueError(f"{where}.count: {count} is not from 1 to {MOST_UNITS}")
        options = _mapping(item.get("options", {}), f"{where}.options")
        parts.append(
            Part(
                vendor=_of(str, item.get("vendor"), f"{where}.vendor"),
                product=_of(str, item.get("product"), f"{where}.product"),
                count=count,
                seed=_of(int, item.get("seed", 0), f"{where}.seed"),
                first=sum(part.count for part in parts),
                options=FrozenMap(
                    {k: _of(str, v, f"{where}.options.{k}") for k, v in options.items()}
                ),
            )
        )
    return tuple(parts)


def _numbers(found: object, where: str) -> Numbers:
    item = _mapping(found, where)
    kind = _of(str, item.get("kind"), f"{where}.kind")
    if kind not in {"c", "b"}:
        raise ValueError(f"{where}.kind: {kind!r} is neither c nor b")
    return Numbers(
        kind=kind,
        major=_of(int, item.get("major"), f"{where}.major"),
        minor=_of(int, item.get("minor"), f"{where}.minor"),
    )


def _state(found: object) -> State:
    state: State = {}
    for unit, value in _mapping(found, "$.state").items():
        state[unit] = _mapping(value, f"$.state.{unit}")
    return state


_SORTS: Mapping[type, str] = {str: "a text", int: "a whole number", list: "a list", bool: "a flag"}


def _of(sort: type[T], value: object, where: str) -> T:
    if not isinstance(value, sort) or (isinstance(value, bool) and sort is not bool):
        raise ValueError(f"{where}: must be {_SORTS[sort]}, not {value!r}")
    return value


def _mapping(value: object, where: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be a mapping, not {value!r}")  # noqa: TRY004 - of the file
    return value
