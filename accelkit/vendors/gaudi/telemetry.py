"""What the driver's files measure. Not here: what only the maker's library tells."""

import re
from collections.abc import Iterator

from accelkit import Device, FrozenMap, Host, Sample, SourceError
from accelkit.vendors.gaudi.cards import Card, names_like
from accelkit.vendors.gaudi.health import card_of

_SENSOR = re.compile(r"(temp|power)([0-9]{1,2})_input")
_METRICS = {
    "temp": ("hw_temperature_celsius", 1e-3, (-100.0, 300.0)),
    "power": ("hw_power_watts", 1e-6, (0.0, 10_000.0)),
}
"""Metric, factor and what can be: Linux, Documentation/hwmon/sysfs-interface."""
_ERRORS = ("correctable", "nonfatal", "fatal")
"""Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats."""
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
        yield from _clock(card, device)
        yield from _errors(card, device)


def _sample(device: Device, metric: str, value: float, **labels: str) -> Sample:
    return Sample(device=device.id, metric=metric, value=float(value), labels=FrozenMap(labels))


def _sensors(card: Card, device: Device) -> Iterator[Sample]:
    host, home = card.function.host, card.function.path("hwmon")
    try:
        folders = [f"{home}/{name}" for name in host.names(home) if name.startswith("hwmon")]
        files = [(folder, name) for folder in folders for name in names_like(host, folder, _SENSOR)]
    except SourceError:
        return
    for folder, name in files:
        sensor = name.removesuffix("_input")
        metric, factor, (least, most) = _METRICS[sensor.rstrip("0123456789")]
        try:
            value = float(host.read(f"{folder}/{name}")) * factor
        except (SourceError, ValueError):
            continue  # a card in reset answers no sensor
        if least <= value <= most:
            yield _sample(device, metric, round(value, 6), sensor=sensor)


def _clock(card: Card, device: Device) -> Iterator[Sample]:
    try:
        mhz = card.number("clk_cur_freq_mhz", 100_000)
    except SourceError:
        return
    if mhz:
        yield _sample(device, "hw_frequency_hertz", mhz * 1_000_000)


def _errors(card: Card, device: Device) -> Iterator[Sample]:
    for kind in _ERRORS:
        try:
            lines = card.function.read(f"aer_dev_{kind}").splitlines()
        except SourceError:
            continue
        for line in lines:
            name, _, count = line.strip().partition(" ")
            if name.startswith("TOTAL_ERR") and count.isascii() and count.isdecimal():
                total = min(int(count[:20]), _MOST)
                yield _sample(device, "hw_errors_total", total, type=f"pcie_{kind}")
