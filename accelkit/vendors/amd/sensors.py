"""What the driver measures: temperatures, power, clocks. Not here: what is too much."""

from collections.abc import Iterable, Iterator

import attrs

from accelkit import PciFunction
from accelkit.vendors.amd.card import optional

_MOST_DIGITS = 18
_MOST_LABEL = 16


@attrs.frozen(kw_only=True)
class Temperature:
    """One sensor; temperatures in degrees Celsius."""

    place: str
    """edge, junction or mem."""
    celsius: float
    critical: float | None
    emergency: float | None


def read_temperatures(function: PciFunction) -> tuple[Temperature, ...]:
    """All sensors of a GPU that answer.

    Source: Linux, Documentation/hwmon/sysfs-interface.rst: millidegrees.
    """
    return tuple(_temperatures(function))


def _temperatures(function: PciFunction) -> Iterator[Temperature]:
    for folder in _folders(function):
        for number in (1, 2, 3):
            sensor = f"{folder}/temp{number}"
            now = whole_number(function, f"{sensor}_input")
            if now is not None:
                yield Temperature(
                    place=_label(function, sensor) or f"temp{number}",
                    celsius=now / 1000,
                    critical=_limit(function, f"{sensor}_crit"),
                    emergency=_limit(function, f"{sensor}_emergency"),
                )


def read_power(function: PciFunction, names: Iterable[str]) -> float | None:
    """Watts in the first of the files *names* that is there; None: none is."""
    for folder in _folders(function):
        for name in names:
            if (microwatts := whole_number(function, f"{folder}/{name}")) is not None:
                return microwatts / 1_000_000
    return None


def read_clocks(function: PciFunction) -> Iterator[tuple[str, int]]:
    """Clocks by name (sclk: compute, mclk: memory), in hertz."""
    for folder in _folders(function):
        for number in (1, 2):
            hertz = whole_number(function, f"{folder}/freq{number}_input")
            label = _label(function, f"{folder}/freq{number}")
            if hertz is not None and label:
                yield label, hertz


def whole_number(function: PciFunction, name: str) -> int | None:
    """The number in a file; None: it is not there, or no number."""
    text = optional(function, name)
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None


def _label(function: PciFunction, sensor: str) -> str:
    """What the driver calls a sensor; empty: it does not say."""
    text = optional(function, f"{sensor}_label")
    return text if text.isascii() and text.isalnum() and len(text) <= _MOST_LABEL else ""


def _limit(function: PciFunction, name: str) -> float | None:
    found = whole_number(function, name)
    return found / 1000 if found else None


def _folders(function: PciFunction) -> tuple[str, ...]:
    names = function.host.names(function.path("hwmon"))
    return tuple(f"hwmon/{name}" for name in sorted(names) if name.startswith("hwmon"))
