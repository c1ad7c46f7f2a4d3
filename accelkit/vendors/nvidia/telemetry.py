"""What GPUs measure, under standard names. Not here: how often."""

import math
from collections.abc import Iterable, Iterator
from functools import partial

from accelkit import Device, FrozenMap, Sample, SourceError
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import read_field

_GPU_SENSOR = 0
"""nvml.h, NVML_TEMPERATURE_GPU."""
_CLOCKS = {"graphics": 0, "compute": 1, "memory": 2, "video": 3}
"""nvml.h, nvmlClockType_t."""
_ERRORS = {"corrected": 0, "uncorrected": 1}
"""nvml.h, nvmlMemoryErrorType_t."""
_VOLATILE = 0
"""nvml.h, nvmlEccCounterType_t: since the driver was loaded."""
_SCALED = (
    ("hw_power_watts", "nvmlDeviceGetPowerUsage", 1e-3),
    ("hw_power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit", 1e-3),
    ("hw_energy_joules_total", "nvmlDeviceGetTotalEnergyConsumption", 1e-3),
)
_CODECS = {
    "encoder": "nvmlDeviceGetEncoderUtilization",
    "decoder": "nvmlDeviceGetDecoderUtilization",
}
_MOST = 1 << 53
"""Numbers beyond it are rubbish: all that are not known are all ones."""


def read_samples(nvml: Nvml, devices: Iterable[Device], patience: Patience) -> Iterator[Sample]:
    """Samples of every device that can be asked; what a GPU does not tell is left out.

    A MIG device has its memory alone: all else is told for its GPU.
    """
    asked = (device for device in devices if device.handle is not None)
    return patience.of_each(asked, partial(_of_device, nvml))


def _of_device(nvml: Nvml, device: Device) -> Iterator[Sample]:
    try:
        handle = nvml.ask("nvmlDeviceGetHandleByUUID", device.handle)
        yield from list(_memory(nvml, handle, device))
        if device.parent is None:
            yield from list(_of_gpu(nvml, handle, device))
    except SourceError:
        return


def _sample(device: Device, metric: str, value: float, **labels: str) -> Iterator[Sample]:
    if math.isfinite(value) and 0 <= value < _MOST:
        yield Sample(device=device.id, metric=metric, value=value, labels=FrozenMap(labels))


def _memory(nvml: Nvml, handle: Handle, device: Device) -> Iterator[Sample]:
    if (memory := nvml.maybe("nvmlDeviceGetMemoryInfo", handle)) is None:
        return
    if memory.used <= memory.total <= facts.MOST_MEMORY:
        yield from _sample(device, "hw_memory_usage_bytes", float(memory.used))
        yield from _sample(device, "hw_memory_size_bytes", float(memory.total))


def _of_gpu(nvml: Nvml, handle: Handle, device: Device) -> Iterator[Sample]:
    for task, percent in _utilization(nvml, handle):
        if percent <= 100:
            yield from _sample(device, "hw_gpu_utilization_ratio", percent / 100, task=task)
    for sensor, celsius in _temperatures(nvml, handle):
        yield from _sample(device, "hw_temperature_celsius", float(celsius), sensor=sensor)
    for metric, function, factor in _SCALED:
        if (value := nvml.maybe(function, handle)) is not None:
            yield from _sample(device, metric, value * factor)
    for domain, kind in _CLOCKS.items():
        if (mhz := nvml.maybe("nvmlDeviceGetClockInfo", handle, kind)) is not None:
            yield from _sample(device, "hw_frequency_hertz", mhz * 1e6, domain=domain)
    for name, count in _errors(nvml, handle):
        yield from _sample(device, "hw_errors_total", float(count), type=name)


def _temperatures(nvml: Nvml, handle: Handle) -> Iterator[tuple[str, Answer]]:
    celsius = nvml.maybe("nvmlDeviceGetTemperatureV", handle, _GPU_SENSOR)
    if celsius is None:  # an older driver
        celsius = nvml.maybe("nvmlDeviceGetTemperature", handle, _GPU_SENSOR)
    if celsius is not None:
        yield "gpu", celsius
    if (celsius := read_field(nvml, handle, facts.MEMORY_TEMPERATURE)) is not None:
        yield "memory", celsius


def _utilization(nvml: Nvml, handle: Handle) -> Iterator[tuple[str, Answer]]:
    """Tasks and percent; nothing of a GPU in MIG mode."""
    if (rates := nvml.maybe("nvmlDeviceGetUtilizationRates", handle)) is not None:
        yield "general", rates.gpu
        yield "memory", rates.memory
    for task, function in _CODECS.items():
        if (answer := nvml.maybe(function, handle)) is not None:
            yield task, answer[0]


def _errors(nvml: Nvml, handle: Handle) -> Iterator[tuple[str, Answer]]:
    for name, kind in _ERRORS.items():
        count = nvml.maybe("nvmlDeviceGetTotalEccErrors", handle, kind, _VOLATILE)
        if count is not None:
            yield name, count
    if (replays := nvml.maybe("nvmlDeviceGetPcieReplayCounter", handle)) is not None:
        yield "pcie-replay", replays
