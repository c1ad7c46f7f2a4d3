"""What vendors measured, as series of the list. Not here: asking them, and writing."""

import math
from collections.abc import Iterable, Mapping

import attrs

from accelkit.core.allocation import Sample
from accelkit.core.model import Device, DeviceId
from accelkit.core.telemetry import DEVICE_LABELS, MEASURES, Metric, MetricType

_KNOWN: Mapping[str, Metric] = {metric.name: metric for metric in MEASURES}
_LONGEST = 128
"""Of a label's value; a longer one is not bounded by hardware."""

Own = tuple[str, ...]
"""Values of a metric's own labels, in the order of the list."""


@attrs.frozen
class Measured:
    """One value that can be written."""

    device: DeviceId
    metric: str
    own: Own
    value: float


def believed(
    samples: Iterable[Sample], devices: Mapping[DeviceId, Device]
) -> tuple[tuple[Measured, ...], Mapping[str, str]]:
    """*samples* that fit the list, one for each series, the last; and by metric what is wrong.

    Args:
        samples: Of one vendor.
        devices: Those that it has now.
    """
    kept: dict[tuple[str, DeviceId, Own], Measured] = {}
    wrong: dict[str, str] = {}
    for sample in samples:
        if sample.device is None or sample.device not in devices:
            continue  # gone meanwhile
        if fault := _fault(sample):
            wrong.setdefault(sample.metric, fault)
            continue
        own = tuple(sample.labels.get(label, "") for label in _own(_KNOWN[sample.metric]))
        kept[sample.metric, sample.device, own] = Measured(
            sample.device, sample.metric, own, sample.value
        )
    return tuple(kept.values()), wrong


def series_of(
    measured: Iterable[Measured], devices: Mapping[DeviceId, Device]
) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    """By metric the value of each series, by its labels; those of the list that have none, too."""
    found: dict[str, dict[tuple[str, ...], float]] = {metric.name: {} for metric in MEASURES}
    for one in measured:
        if (device := devices.get(one.device)) is not None:
            found[one.metric][*_identity(device), *one.own] = one.value
    return found


def _own(metric: Metric) -> tuple[str, ...]:
    return metric.labels[len(DEVICE_LABELS) :]


def _fault(sample: Sample) -> str:
    metric = _KNOWN.get(sample.metric)
    if metric is None:
        return "it is not in the list of metrics"
    if strange := sorted(sample.labels.keys() - set(_own(metric))):
        return f"{', '.join(strange)}: it has no such label"
    if any(len(value) > _LONGEST for value in sample.labels.values()):
        return f"a label is longer than {_LONGEST} characters"
    if not math.isfinite(sample.value):
        return f"{sample.value} is no measure"
    if metric.type is MetricType.COUNTER and sample.value < 0:
        return f"{sample.value} is no count"
    return ""


def _identity(device: Device) -> tuple[str, ...]:
    profile = device.placement.profile if device.placement is not None else ""
    return str(device.id), device.id.vendor, device.product or "", profile
