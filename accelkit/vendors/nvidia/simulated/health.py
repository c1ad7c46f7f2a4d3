"""The simulated NVML: health and processes. Not here: events."""

from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, strangers
from accelkit.vendors.nvidia.simulated.calls import (
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    instance_at,
    number,
    on_gpu,
    ready,
)
from accelkit.vendors.nvidia.simulated.measures import celsius

INSUFFICIENT_SIZE = 7
_ECC_UNCORRECTED = 1
_MEMORY_WARMER = 10
_VOLTA, _AMPERE = 5, 7


@on_gpu
def field_values(gpu: Gpu, amount: C, out: C) -> int:
    product = gpu.board.product
    known = {facts.RECOVERY_ACTION: gpu.number("recovery")}
    if product.links:  # those have memory with a sensor of its own
        known[facts.MEMORY_TEMPERATURE] = celsius(gpu) + _MEMORY_WARMER
    if product.profiles:
        known[facts.RESETLESS_MIG] = int(product.resetless)
    values = pointee(out)
    for index in range(number(amount)):
        entry = values[index]
        found = known.get(entry.fieldId)
        entry.nvmlReturn = facts.NOT_SUPPORTED if found is None else SUCCESS
        entry.valueType = 1  # nvml.h, NVML_VALUE_TYPE_UNSIGNED_INT
        entry.value.uiVal = found or 0
    return SUCCESS


@on_gpu
def ecc_errors(gpu: Gpu, kind: C, counter: C, out: C) -> int:
    del counter
    pointee(out).value = gpu.number("ecc") if number(kind) == _ECC_UNCORRECTED else 0
    return SUCCESS


@on_gpu
def remapped_rows(gpu: Gpu, corrected: C, other: C, pending: C, failed: C) -> int:
    if gpu.board.product.architecture < _AMPERE:
        return facts.NOT_SUPPORTED
    remap = gpu.number("remap")
    pointee(corrected).value, pointee(other).value = 0, int(remap > 0)
    pointee(pending).value, pointee(failed).value = int(remap == 1), int(remap == 2)
    return SUCCESS


@on_gpu
def retired_pending(gpu: Gpu, out: C) -> int:
    if gpu.board.product.architecture > _VOLTA:
        return facts.NOT_SUPPORTED
    pointee(out).value = int(gpu.number("remap") > 0)
    return SUCCESS


@on_gpu
def clock_reasons(gpu: Gpu, out: C) -> int:
    pointee(out).value = gpu.number("clocks")
    return SUCCESS


@ready
def processes(call: Call, handle: C, amount: C, out: C) -> int:
    gpu = call.gpu_at(address(handle))
    if isinstance(gpu, int):
        return gpu
    part = instance_at(gpu, address(handle))
    pids = [
        pid
        for pid, slot in strangers.holders(gpu.state, gpu.unit)
        if pid != strangers.HIDDEN and (part is None or slot == part[0]["start"])
    ]
    room = pointee(amount).value
    pointee(amount).value = len(pids)
    if len(pids) > room:
        return INSUFFICIENT_SIZE
    for index, pid in enumerate(pids):
        out[index].pid = pid
        out[index].usedGpuMemory = 1 << 30
        out[index].gpuInstanceId = out[index].computeInstanceId = 0xFFFFFFFF
    return SUCCESS


@on_gpu
def no_processes(gpu: Gpu, amount: C, out: C) -> int:
    del gpu, out
    pointee(amount).value = 0
    return SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetFieldValues": field_values,
    "nvmlDeviceGetTotalEccErrors": ecc_errors,
    "nvmlDeviceGetRemappedRows": remapped_rows,
    "nvmlDeviceGetRetiredPagesPendingStatus": retired_pending,
    "nvmlDeviceGetCurrentClocksEventReasons": clock_reasons,
    "nvmlDeviceGetComputeRunningProcesses_v2": processes,
    "nvmlDeviceGetComputeRunningProcesses_v3": processes,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": no_processes,
}
