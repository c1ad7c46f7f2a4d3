"""NVML's MIG functions in Python, for a simulated machine. Not here: making instances."""

import ctypes
from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, states
from accelkit.vendors.nvidia.board import Board
from accelkit.vendors.nvidia.products import MigProfile
from accelkit.vendors.nvidia.simulated.calls import (
    FIRST_GPU,
    GPU_INSTANCES,
    GPU_STEP,
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    mig_address,
    number,
    on_gpu,
    put,
    ready,
)

_MOST = 7


@on_gpu
def mode(gpu: Gpu, current: C, pending: C) -> int:
    if not gpu.board.product.profiles:
        return facts.NOT_SUPPORTED
    pointee(current).value = pointee(pending).value = int(bool(gpu.fields.get("mig")))
    return SUCCESS


@on_gpu
def most_devices(gpu: Gpu, out: C) -> int:
    pointee(out).value = _MOST if gpu.board.product.profiles else 0
    return SUCCESS


@on_gpu
def profile_info(gpu: Gpu, index: C, out: C) -> int:
    for profile in gpu.board.product.profiles:
        if profile.index == number(index):
            info = pointee(out)
            info.id, info.sliceCount, info.instanceCount = (
                profile.number,
                profile.slices,
                profile.limit,
            )
            (
                info.multiprocessorCount,
                info.copyEngineCount,
                info.decoderCount,
                info.jpegCount,
                info.ofaCount,
            ) = profile.engines
            info.encoderCount = 0
            info.memorySizeMB = profile.memory_mb
            if hasattr(info, "name"):
                info.name = profile.name.encode()
            return SUCCESS
    return facts.NOT_SUPPORTED


@on_gpu
def placements(gpu: Gpu, wanted: C, array: C, amount: C) -> int:
    profile = _profile(gpu.board, number(wanted))
    if profile is None:
        return facts.NOT_SUPPORTED
    pointee(amount).value = len(profile.starts)
    if array is not None:
        for index, start in enumerate(profile.starts):
            array[index].start, array[index].size = start, profile.size
    return SUCCESS


@on_gpu
def gpu_instances(gpu: Gpu, wanted: C, array: C, amount: C) -> int:
    profile = _profile(gpu.board, number(wanted))
    if profile is None or not gpu.fields.get("mig"):
        return facts.NOT_SUPPORTED
    found = [i for i in states.instances(gpu.state, gpu.unit) if i["profile"] == profile.name]
    pointers = (ctypes.c_void_p * len(array)).from_buffer(array)
    for index, instance in enumerate(found):
        base = FIRST_GPU + gpu.index * GPU_STEP
        pointers[index] = base + GPU_INSTANCES + instance["gi"]
    pointee(amount).value = len(found)
    return SUCCESS


@ready
def instance_info(call: Call, handle: C, out: C) -> int:
    where = address(handle)
    gpu = call.gpu_at(where)
    if isinstance(gpu, int):
        return gpu
    gi = (where - FIRST_GPU) % GPU_STEP - GPU_INSTANCES
    for instance in states.instances(call.state, gpu.unit):
        if instance["gi"] == gi:
            profile = next(p for p in call.board.product.profiles if p.name == instance["profile"])
            info = pointee(out)
            put(out, FIRST_GPU + gpu.index * GPU_STEP)
            info.id, info.profileId = gi, profile.number
            info.placement.start, info.placement.size = instance["start"], profile.size
            return SUCCESS
    return facts.INVALID_ARGUMENT


@on_gpu
def device_by_index(gpu: Gpu, index: C, out: C) -> int:
    # The index is that of the first slot, so that there are holes as on hardware.
    for instance in states.instances(gpu.state, gpu.unit):
        if instance["start"] == number(index) and instance["ci"] is not None:
            put(out, mig_address(gpu.index, instance))
            return SUCCESS
    return facts.NOT_FOUND


def _of_device(call: Call, handle: C) -> states.Instance | int:
    where = address(handle)
    gpu = call.gpu_at(where)
    if isinstance(gpu, int):
        return gpu
    found = (
        i for i in states.instances(call.state, gpu.unit) if mig_address(gpu.index, i) == where
    )
    return next(found, facts.INVALID_ARGUMENT)


@ready
def gpu_instance_id(call: Call, handle: C, out: C) -> int:
    instance = _of_device(call, handle)
    if isinstance(instance, int):
        return instance
    pointee(out).value = instance["gi"]
    return SUCCESS


@ready
def compute_instance_id(call: Call, handle: C, out: C) -> int:
    instance = _of_device(call, handle)
    if isinstance(instance, int):
        return instance
    pointee(out).value = instance["ci"]
    return SUCCESS


@ready
def attributes(call: Call, handle: C, out: C) -> int:
    instance = _of_device(call, handle)
    if isinstance(instance, int):
        return instance
    profile = next(p for p in call.board.product.profiles if p.name == instance["profile"])
    info = pointee(out)
    info.multiprocessorCount = profile.engines[0]
    info.gpuInstanceSliceCount = info.computeInstanceSliceCount = profile.slices
    info.memorySizeMB = profile.memory_mb
    return SUCCESS


def _profile(board: Board, wanted: int) -> MigProfile | None:
    return next((p for p in board.product.profiles if p.number == wanted), None)


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetMigMode": mode,
    "nvmlDeviceGetMaxMigDeviceCount": most_devices,
    "nvmlDeviceGetGpuInstanceProfileInfoV": profile_info,
    "nvmlDeviceGetGpuInstanceProfileInfo": profile_info,
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": placements,
    "nvmlDeviceGetGpuInstances": gpu_instances,
    "nvmlGpuInstanceGetInfo": instance_info,
    "nvmlDeviceGetMigDeviceHandleByIndex": device_by_index,
    "nvmlDeviceGetGpuInstanceId": gpu_instance_id,
    "nvmlDeviceGetComputeInstanceId": compute_instance_id,
    "nvmlDeviceGetAttributes_v2": attributes,
}
