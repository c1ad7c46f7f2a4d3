"""What goes wrong on a simulated machine, and when. Not here: what a vendor's verbs mean."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import attrs
import yaml

from accelkit.core.errors import ConfigError
from accelkit.core.units import parse_duration

_KEYS = {"call", "read", "at", "from", "times", "do"}


@attrs.frozen(kw_only=True)
class Fault:
    """*do* happens when something is called, read, or at a time; exactly one of the three."""

    call: str | None = None
    """Name of a library function."""
    read: str | None = None
    """Path of a file."""
    at: float | None = None
    """Seconds after the start of the run."""
    first: int = 1
    """From this call or read on, counted in each process; written ``from``."""
    times: int = 1
    do: str
    """``error CODE``, ``hang 30s``, ``crash``, or a verb of the machine, which then goes on."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.do))


def duration(text: str) -> float:
    """Seconds from a number and a unit, as in 30s or 500ms.

    Raises:
        ConfigError: It is not such a text.
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError([(text, str(error))]) from error


def read_faults(path: str) -> tuple[Fault, ...]:
    """The faults in a YAML or JSON file, which holds a list of them.

    Raises:
        ConfigError: It cannot be read or is malformed; all that is wrong at once.
    """
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([(path, f"cannot be read: {error}")]) from error
    except yaml.YAMLError as error:
        raise ConfigError([(path, f"is not YAML: {' '.join(str(error).split())}")]) from error
    except RecursionError as error:
        raise ConfigError([(path, "is nested too deep")]) from error
    return parse_faults(found, path)


def parse_faults(found: object, where: str) -> tuple[Fault, ...]:
    """Faults from what a file holds; *where* begins the path of each problem.

    Raises:
        ConfigError: All that is wrong, at once.
    """
    if not isinstance(found, list):
        raise ConfigError([(where, "must hold a list of faults")], remedy=_EXAMPLE)
    faults: list[Fault] = []
    problems: list[tuple[str, str]] = []
    for index, item in enumerate(found):
        try:
            faults.append(_parse_fault(item))
        except (ConfigError, ValueError) as error:
            problems.append((f"{where}[{index}]", str(error)))
    if problems:
        raise ConfigError(problems, remedy=_EXAMPLE)
    return tuple(faults)


_EXAMPLE = "write: - {call: nvmlInit_v2, from: 2, times: 1, do: hang 30s}, or {at: 3s, do: VERB}"


def _parse_fault(item: object) -> Fault:
    if not isinstance(item, Mapping):
        raise ValueError("is not a mapping")  # noqa: TRY004 - of the file, not of a caller
    if unknown := sorted(str(key) for key in item if key not in _KEYS):
        raise ValueError(f"unknown key {unknown[0]}; the keys are {', '.join(sorted(_KEYS))}")
    if len(item.keys() & {"call", "read", "at"}) != 1:
        raise ValueError("must say exactly one of call, read and at")
    fault = Fault(
        call=_text(item, "call"),
        read=_text(item, "read"),
        at=None if (at := _text(item, "at")) is None else duration(at),
        first=_count(item, "from"),
        times=_count(item, "times"),
        do=_text(item, "do") or "",
    )
    _check_words(fault)
    return fault


def _text(item: Mapping[object, object], key: str) -> str | None:
    value = item.get(key)
    if value is not None and not (isinstance(value, str) and value):
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value


def _count(item: Mapping[object, object], key: str) -> int:
    value = item.get(key, 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{key} must be a whole number from 1 on, not {value!r}")
    return value


def _check_words(fault: Fault) -> None:
    match fault.words:
        case ():
            raise ValueError("do must say what happens")
        case ("error", code) if fault.call is not None and not code.lstrip("-").isdecimal():
            raise ValueError(f"the error of a call is a number, not {code!r}")
        case ("error",) if fault.call is not None:
            raise ValueError("the error of a call needs its number, as in: error 15")
        case ("hang", time) if fault.at is None:
            duration(time)
        case ("hang",) if fault.at is None:
            raise ValueError("hang needs a duration, as in: hang 30s")
        case _:
            pass


def fault_json(fault: Fault) -> dict[str, object]:
    """The fault as machine.json and fault files write it."""
    item: dict[str, object] = {}
    if fault.call is not None:
        item["call"] = fault.call
    if fault.read is not None:
        item["read"] = fault.read
    if fault.at is not None:
        item["at"] = f"{fault.at:g}s"
    return {**item, "from": fault.first, "times": fault.times, "do": fault.do}
