"""What a GPU measures, by the files of its driver. Not here: what is too much."""

import re
from collections.abc import Iterator

from accelkit import Device, FrozenMap, Host, PciFunction, Sample, SourceError
from accelkit.vendors.intel import cards
from accelkit.vendors.intel.reading import measured_at, text_at

_HWMON = re.compile(r"hwmon[0-9]{1,4}")
_GT = re.compile(r"gt[0-9]{1,3}")
_SENSORS = {"temp1": "gpu", "temp2": "gpu", "temp3": "memory"}
_MILLI, _MICRO, _MEGA = 1e-3, 1e-6, 1e6


def is_asleep(function: PciFunction) -> bool:
    """Whether it has nothing to do and sleeps: looking at sensors and registers would wake it.

    Source:
        Linux, Documentation/ABI/testing/sysfs-devices-power, runtime_status.
    """
    return text_at(function.host, function.path("power/runtime_status")) == "suspended"


def _hwmon(function: PciFunction) -> Iterator[str]:
    """Folders of its sensors; those of i915 belong to the card, those of xe to the function.

    Source:
        Linux, Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon and -i915-hwmon.
    """
    for name in function.host.names(function.path("hwmon")):
        if _HWMON.fullmatch(name):
            yield function.path(f"hwmon/{name}")


def temperatures(function: PciFunction) -> Iterator[tuple[str, float]]:
    """Where it is measured, and degrees Celsius.

    Source:
        xe: temp2_input is the package, temp3_input the memory, since Linux 6.15; i915: temp1_input
        is the package, since 6.13 (unverified). All in thousandths.
    """
    for folder in _hwmon(function):
        for name, where in _SENSORS.items():
            value = measured_at(function.host, f"{folder}/{name}_input")
            if value is not None and -100_000 < value < 1_000_000:
                yield where, value * _MILLI


def _gts(function: PciFunction) -> Iterator[tuple[str, str, str]]:
    """Name, folder of frequencies and beginning of throttle files of each gt.

    Source:
        xe: tileT/gtG/freq0 (Documentation/ABI/testing/sysfs-driver-intel-xe); i915: gt/gtG of the
        card (drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c).
    """
    host, card = function.host, cards.card_of(function)
    for tile in sorted(card.files):
        if re.fullmatch(r"tile[0-9]{1,3}", tile):
            for gt in host.names(function.path(tile)):
                if _GT.fullmatch(gt):
                    folder = function.path(f"{tile}/{gt}/freq0")
                    yield f"{tile}/{gt}", folder, f"{folder}/throttle/reason_"
    gts = "" if card.folder is None else f"{card.folder}/gt"
    for gt in host.names(gts) if gts else ():
        if _GT.fullmatch(gt):
            yield gt, f"{gts}/{gt}", f"{gts}/{gt}/throttle_reason_"


def throttle_reasons(function: PciFunction) -> set[str]:
    """Why it runs slower now, as the driver calls it; empty: it does not."""
    found = set()
    for _, _, beginning in _gts(function):
        folder, _, prefix = beginning.rpartition("/")
        status = "status" if prefix == "reason_" else f"{prefix}status"
        if measured_at(function.host, f"{folder}/{status}") == 0:
            continue
        for name in function.host.names(folder):
            reason = name.removeprefix(prefix)
            if (
                name.startswith(prefix)
                and re.fullmatch(r"[a-z0-9_]{1,20}", reason)
                and measured_at(function.host, f"{folder}/{name}") == 1
            ):
                found.add(reason)
    return found - {"status"}


def samples(host: Host, devices: tuple[Device, ...]) -> Iterator[Sample]:
    """What GPUs measure; what a driver does not show is left out, and is not 0."""
    for device in devices:
        if device.parent is None and device.handle is not None:
            function = PciFunction(address=device.handle, host=host)
            try:
                yield from [] if is_asleep(function) else [*_of(function, device)]
            except SourceError:
                continue


def _of(function: PciFunction, device: Device) -> Iterator[Sample]:
    host = function.host

    def sample(metric: str, value: float, **labels: str) -> Sample:
        return Sample(device=device.id, metric=metric, value=value, labels=FrozenMap(labels))

    if (memory := device.capacity.get("memory")) is not None:
        yield sample("hw_memory_size_bytes", float(memory))
    for where, celsius in dict(temperatures(function)).items():
        yield sample("hw_temperature_celsius", celsius, sensor=where)
    for folder in [*_hwmon(function)][:1]:
        for metric, least, card, package in (
            ("hw_energy_joules_total", 0, "energy1_input", "energy2_input"),
            ("hw_power_limit_watts", 1, "power1_max", "power2_max"),
        ):
            # Some have those of their package alone; a counter must always be the same one.
            name = card if host.exists(f"{folder}/{card}") else package
            if (micro := measured_at(host, f"{folder}/{name}")) is not None and micro >= least:
                yield sample(metric, micro * _MICRO)
    for gt, folder, _ in _gts(function):
        for name in ("act_freq", "rps_act_freq_mhz"):
            if (mhz := measured_at(host, f"{folder}/{name}")) is not None and mhz >= 0:
                yield sample("hw_frequency_hertz", mhz * _MEGA, domain=gt)
