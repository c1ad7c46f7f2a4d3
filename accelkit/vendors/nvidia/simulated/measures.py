"""The simulated NVML: what GPUs measure. They are idle, or busy where a process has them open."""

from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, strangers
from accelkit.vendors.nvidia.simulated.calls import SUCCESS, C, Gpu, number, on_gpu

_BUSY_PERCENT, _MEMORY_PERCENT = 90, 40
_IDLE_C, _BUSY_C = 33, 61
_IDLE_MW, _BUSY_MW, _LIMIT_MW = 70_000, 520_000, 700_000
_ENERGY_MJ = 3_600_000
_CLOCKS_MHZ = ((345, 1980), (345, 1980), (2619, 2619), (765, 1545))
"""Idle and busy, by nvml.h's nvmlClockType_t; of an H100 SXM."""


def _is_busy(gpu: Gpu) -> bool:
    return any(True for _ in strangers.holders(gpu.state, gpu.unit))


def celsius(gpu: Gpu) -> int:
    """How warm it is."""
    return (_BUSY_C if _is_busy(gpu) else _IDLE_C) + gpu.index % 4


@on_gpu
def rates(gpu: Gpu, out: C) -> int:
    if gpu.fields.get("mig"):
        return facts.NOT_SUPPORTED
    found, busy = pointee(out), _is_busy(gpu)
    found.gpu, found.memory = (_BUSY_PERCENT, _MEMORY_PERCENT) if busy else (0, 0)
    return SUCCESS


@on_gpu
def codec(gpu: Gpu, out: C, period: C) -> int:
    if gpu.fields.get("mig"):
        return facts.NOT_SUPPORTED
    pointee(out).value, pointee(period).value = 0, 167_000
    return SUCCESS


@on_gpu
def temperature(gpu: Gpu, sensor: C, out: C) -> int:
    if number(sensor):
        return facts.INVALID_ARGUMENT
    pointee(out).value = celsius(gpu)
    return SUCCESS


@on_gpu
def temperature_v(gpu: Gpu, out: C) -> int:
    info = pointee(out)
    if info.sensorType:
        return facts.INVALID_ARGUMENT
    info.temperature = celsius(gpu)
    return SUCCESS


@on_gpu
def power(gpu: Gpu, out: C) -> int:
    pointee(out).value = _BUSY_MW if _is_busy(gpu) else _IDLE_MW
    return SUCCESS


@on_gpu
def power_limit(gpu: Gpu, out: C) -> int:
    del gpu
    pointee(out).value = _LIMIT_MW
    return SUCCESS


@on_gpu
def energy(gpu: Gpu, out: C) -> int:
    pointee(out).value = _ENERGY_MJ * (gpu.index + 1)
    return SUCCESS


@on_gpu
def clock(gpu: Gpu, kind: C, out: C) -> int:
    if not 0 <= number(kind) < len(_CLOCKS_MHZ):
        return facts.INVALID_ARGUMENT
    pointee(out).value = _CLOCKS_MHZ[number(kind)][_is_busy(gpu)]
    return SUCCESS


@on_gpu
def replays(gpu: Gpu, out: C) -> int:
    del gpu
    pointee(out).value = 0
    return SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetUtilizationRates": rates,
    "nvmlDeviceGetEncoderUtilization": codec,
    "nvmlDeviceGetDecoderUtilization": codec,
    "nvmlDeviceGetTemperature": temperature,
    "nvmlDeviceGetTemperatureV": temperature_v,
    "nvmlDeviceGetPowerUsage": power,
    "nvmlDeviceGetEnforcedPowerLimit": power_limit,
    "nvmlDeviceGetTotalEnergyConsumption": energy,
    "nvmlDeviceGetClockInfo": clock,
    "nvmlDeviceGetPcieReplayCounter": replays,
}
