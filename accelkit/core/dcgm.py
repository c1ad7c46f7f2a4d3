"""The same measures under the names and labels that dashboards for DCGM expect.

Not here: what DCGM measures and no vendor tells us.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

import attrs

from accelkit.core.model import Device, DeviceId, Holding
from accelkit.core.samples import Measured, Own
from accelkit.core.telemetry import Metric, MetricType

LABELS = (
    *("gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "hostname"),
    *("container", "namespace", "pod"),
)
"""Source: dcgm-exporter 4.8, labels with Kubernetes' names; GPU_I_ID is not known."""


@attrs.frozen
class _Name:
    """A name, and what of our list it is."""

    name: str
    type: MetricType
    source: str
    own: Own
    factor: float
    help: str


_C, _G = MetricType.COUNTER, MetricType.GAUGE
_MEBI, _MEGA = 2.0**-20, 1e-6
_USED, _SIZE = "hw_memory_usage_bytes", "hw_memory_size_bytes"
_USE, _CLOCK, _WARM = "hw_gpu_utilization_ratio", "hw_frequency_hertz", "hw_temperature_celsius"
_WRONG, _ENERGY = "hw_errors_total", "hw_energy_joules_total"
_NAMES = (
    _Name("DCGM_FI_DEV_GPU_UTIL", _G, _USE, ("general",), 100, "Time in use, in percent."),
    _Name("DCGM_FI_DEV_MEM_COPY_UTIL", _G, _USE, ("memory",), 100, "The same of its memory."),
    _Name("DCGM_FI_DEV_ENC_UTIL", _G, _USE, ("encoder",), 100, "The same of its encoders."),
    _Name("DCGM_FI_DEV_DEC_UTIL", _G, _USE, ("decoder",), 100, "The same of its decoders."),
    _Name("DCGM_FI_DEV_FB_USED", _G, _USED, (), _MEBI, "Memory in use, in MiB."),
    _Name("DCGM_FI_DEV_GPU_TEMP", _G, _WARM, ("gpu",), 1, "Temperature, in degrees Celsius."),
    _Name("DCGM_FI_DEV_MEMORY_TEMP", _G, _WARM, ("memory",), 1, "The same of its memory."),
    _Name("DCGM_FI_DEV_POWER_USAGE", _G, "hw_power_watts", (), 1, "Power, in watts."),
    _Name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", _C, _ENERGY, (), 1e3, "Energy, in mJ."),
    _Name("DCGM_FI_DEV_SM_CLOCK", _G, _CLOCK, ("compute",), _MEGA, "Clock, in MHz."),
    _Name("DCGM_FI_DEV_MEM_CLOCK", _G, _CLOCK, ("memory",), _MEGA, "The same of its memory."),
    _Name("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", _C, _WRONG, ("pcie-replay",), 1, "PCIe replays."),
    _Name("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", _C, _WRONG, ("corrected",), 1, "Corrected errors."),
    _Name("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", _C, _WRONG, ("uncorrected",), 1, "Other errors."),
)
"""Source: dcgm-exporter 4.8, default-counters.csv; units and types as there."""
_FREE = "DCGM_FI_DEV_FB_FREE"
"""Memory that is not in use."""

DCGM: tuple[Metric, ...] = (
    *(Metric(name=n.name, type=n.type, labels=LABELS, help=n.help) for n in _NAMES),
    Metric(name=_FREE, type=_G, labels=LABELS, help="Memory that is free, in MiB."),
)


def as_dcgm(
    measured: Iterable[Measured],
    devices: Mapping[DeviceId, Device],
    holdings: Iterable[Holding],
    node: str,
) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    """By name the value of each series, by its labels.

    A shared device has a series for each pod, all with the value of the whole device.
    """
    values = {(m.device, m.metric, m.own): m.value for m in measured if m.device in devices}
    found: dict[str, dict[tuple[str, ...], float]] = {metric.name: {} for metric in DCGM}
    if not values:
        return found
    for device, whose in _labels(devices, holdings, node):
        for one in _NAMES:
            if (value := values.get((device, one.source, one.own))) is not None:
                found[one.name][whose] = value * one.factor
        used, size = (values.get((device, source, ())) for source in (_USED, _SIZE))
        if used is not None and size is not None:
            found[_FREE][whose] = (size - used) * _MEBI
    return found


def _labels(
    devices: Mapping[DeviceId, Device], holdings: Iterable[Holding], node: str
) -> Iterator[tuple[DeviceId, tuple[str, ...]]]:
    users: dict[DeviceId, set[tuple[str, str, str]]] = {}
    for held in holdings:
        who = held.holder
        if who.pod is not None:
            user = (who.container or "", who.namespace or "", who.pod)
            users.setdefault(held.device, set()).add(user)
    whole = sorted(
        (d for d in devices.values() if d.parent is None),
        key=lambda d: (d.id.vendor, d.locality.pci_address or "", d.id),
    )
    next_of: defaultdict[str, Iterator[int]] = defaultdict(count)
    numbers = {device.id: next(next_of[device.id.vendor]) for device in whole}
    for device in devices.values():
        number = numbers.get(device.root, 0)
        profile = device.placement.profile if device.placement is not None else ""
        what = (
            *(str(number), _uuid(device), _bus_id(device)),
            *(f"{device.id.vendor}{number}", device.product or "", profile, node),
        )
        for user in sorted(users.get(device.id, {("", "", "")})):
            yield device.id, (*what, *user)


def _bus_id(device: Device) -> str:
    """Its PCI address as NVML writes it: 00000000:3B:00.0."""
    address = device.locality.pci_address
    return "" if address is None else address.upper().zfill(len("00000000:3B:00.0"))


def _uuid(device: Device) -> str:
    """What the maker calls it, or its name."""
    return str(device.attributes.get("uuid", device.id.name))
