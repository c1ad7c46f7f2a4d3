"""What the driver's files measure. Not here: what only the maker's library tells."""

import re
from collections.abc import Iterator

from accelkit import Device, FrozenMap, Host, Sample, SourceError
from accelkit.vendors.gaudi.cards import Card, names_like
from accelkit.vendors.gaudi.health import card_of

_SENSOR = re.compile(r"temp([0-9]{1,2})_input")
_MILLI, _MICRO, _MEGA = 1e-3, 1e-6, 1e6
"""Units of hwmon: Linux, Documentation/hwmon/sysfs-interface.rst."""
_HOTTEST_C, _MOST_W = 300.0, 10_000.0
"""More is taken as rubbish."""
_MOST = 1 << 53


def samples_of(host: Host, devices: tuple[Device, ...]) -> Iterator[Sample]:
    """Temperatures, power, clock, memory and PCIe errors; of a card in reset only what is told."""
    for device in devices:
        if "memory" in device.capacity:
            yield _sample(device, "hw_memory_size_bytes", device.capacity["memory"])
        try:
            card = card_of(host, device)
        except SourceError:
            continue
        yield from _sensors(card, device)
        yield from _settings(card, device)
        yield from _errors(card, device)


def _sample(device: Device, metric: str, value: float, **labels: str) -> Sample:
    return Sample(device=device.id, metric=metric, value=float(value), labels=FrozenMap(labels))


def _sensors(card: Card, device: Device) -> Iterator[Sample]:
    """What sensors measure; the firmware decides which there are, and names none."""
    host, home = card.function.host, card.function.path("hwmon")
    try:
        folders = [f"{home}/{name}" for name in host.names(home) if name.startswith("hwmon")]
        files = [(folder, name) for folder in folders for name in names_like(host, folder, _SENSOR)]
    except SourceError:
        return
    for folder, name in files:
        celsius = _value(host, f"{folder}/{name}", _MILLI)
        if celsius is not None and -_HOTTEST_C < celsius < _HOTTEST_C:
            sensor = name.removesuffix("_input")
            yield _sample(device, "hw_temperature_celsius", celsius, sensor=sensor)
    for folder in folders[:1]:
        watts = _value(host, f"{folder}/power1_input", _MICRO)
        if watts is not None and 0 <= watts < _MOST_W:
            yield _sample(device, "hw_power_watts", watts)


def _value(host: Host, path: str, factor: float) -> float | None:
    try:
        return round(float(host.read(path)) * factor, 6)
    except (SourceError, ValueError):
        return None  # a card in reset answers no sensor


def _settings(card: Card, device: Device) -> Iterator[Sample]:
    """Its clock and the power that it may take.

    Source:
        Linux, Documentation/ABI/testing/sysfs-driver-habanalabs: megahertz, milliwatts.
    """
    mhz = _value(card.function.host, f"{card.folder}/clk_cur_freq_mhz", _MEGA)
    if mhz is not None and 0 < mhz < 1e11:
        yield _sample(device, "hw_frequency_hertz", mhz, domain="compute")
    watts = _value(card.function.host, f"{card.folder}/max_power", _MILLI)
    if watts is not None and 0 < watts < _MOST_W:
        yield _sample(device, "hw_power_limit_watts", watts)


def _errors(card: Card, device: Device) -> Iterator[Sample]:
    for kind, total in card.function.errors().items():
        yield _sample(device, "hw_errors_total", min(total, _MOST), type=f"pcie-{kind}")
