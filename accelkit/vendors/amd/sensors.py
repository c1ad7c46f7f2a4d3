"""What the driver measures: temperatures, power, clocks. Not here: what is too much."""

from collections.abc import Iterator

import attrs

from accelkit import PciFunction
from accelkit.vendors.amd.card import optional

_MOST_DIGITS = 18


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
                    place=optional(function, f"{sensor}_label")[:16] or f"temp{number}",
                    celsius=now / 1000,
                    critical=_limit(function, f"{sensor}_crit"),
                    emergency=_limit(function, f"{sensor}_emergency"),
                )


def read_power(function: PciFunction) -> float | None:
    """Watts; None: it does not say."""
    for folder in _folders(function):
        for name in ("power1_average", "power1_input"):
            if (microwatts := whole_number(function, f"{folder}/{name}")) is not None:
                return microwatts / 1_000_000
    return None


def read_clocks(function: PciFunction) -> Iterator[tuple[str, int]]:
    """Clocks by name (sclk: compute, mclk: memory), in hertz."""
    for folder in _folders(function):
        for number in (1, 2):
            hertz = whole_number(function, f"{folder}/freq{number}_input")
            label = optional(function, f"{folder}/freq{number}_label")[:16]
            if hertz is not None and label.isalnum():
                yield label, hertz


def whole_number(function: PciFunction, name: str) -> int | None:
    """The number in a file; None: it is not there, or no number."""
    text = optional(function, name)
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None


def _limit(function: PciFunction, name: str) -> float | None:
    found = whole_number(function, name)
    return found / 1000 if found else None


def _folders(function: PciFunction) -> tuple[str, ...]:
    names = function.host.names(function.path("hwmon"))
    return tuple(f"hwmon/{name}" for name in sorted(names) if name.startswith("hwmon"))
