"""The simulated NVML: how GPUs can be cut and are. Not here: cutting them."""

from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, instances, states
from accelkit.vendors.nvidia.instances import Compute, Instance
from accelkit.vendors.nvidia.simulated.calls import (
    FIRST_GPU,
    GPU_STEP,
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    fill_handles,
    gpu_instance_address,
    instance_at,
    instances_of,
    mig_address,
    mig_devices,
    number,
    on_gpu,
    on_instance,
    profile_of,
    put,
    ready,
)


@on_gpu
def mode(gpu: Gpu, current: C, pending: C) -> int:
    if not gpu.board.product.profiles:
        return facts.NOT_SUPPORTED
    pointee(current).value = int(states.mig(gpu.state, gpu.unit))
    pointee(pending).value = int(states.pending_mig(gpu.state, gpu.unit))
    return SUCCESS


@on_gpu
def most_devices(gpu: Gpu, out: C) -> int:
    pointee(out).value = gpu.board.product.most_instances
    return SUCCESS


@on_gpu
def profile_info(gpu: Gpu, index: C, out: C) -> int:
    for profile in gpu.board.product.profiles:
        if profile.index == number(index):
            info = pointee(out)
            info.id, info.sliceCount = profile.number, profile.slices
            info.instanceCount, info.memorySizeMB = profile.limit, profile.memory_mb
            (
                info.multiprocessorCount,
                info.copyEngineCount,
                info.decoderCount,
                info.jpegCount,
                info.ofaCount,
                info.encoderCount,
            ) = profile.engines
            if hasattr(info, "name"):
                info.name = profile.name.encode()
            return SUCCESS
    return facts.NOT_SUPPORTED


@on_gpu
def placements(gpu: Gpu, wanted: C, array: C, amount: C) -> int:
    profile = profile_of(gpu, wanted)
    if profile is None:
        return facts.NOT_SUPPORTED
    pointee(amount).value = len(profile.starts)
    if array is not None:
        for index, start in enumerate(profile.starts):
            array[index].start, array[index].size = start, profile.size
    return SUCCESS


@on_gpu
def remaining(gpu: Gpu, wanted: C, out: C) -> int:
    product, profile = gpu.board.product, profile_of(gpu, wanted)
    if profile is None or not states.mig(gpu.state, gpu.unit):
        return facts.NOT_SUPPORTED
    there, count = instances_of(gpu), 0
    while room := instances.room_at(product, there, profile):
        there.append(instances.fresh(profile, room[0]))
        count += 1
    pointee(out).value = count
    return SUCCESS


@on_gpu
def gpu_instances(gpu: Gpu, wanted: C, array: C, amount: C) -> int:
    profile = profile_of(gpu, wanted)
    if profile is None or not states.mig(gpu.state, gpu.unit):
        return facts.NOT_SUPPORTED
    found = [i["gi"] for i in instances_of(gpu) if i["profile"] == profile.name]
    fill_handles(array, [gpu_instance_address(gpu.index, gi) for gi in found])
    pointee(amount).value = len(found)
    return SUCCESS


@on_gpu
def gpu_instance_by_id(gpu: Gpu, wanted: C, out: C) -> int:
    if not states.mig(gpu.state, gpu.unit):
        return facts.NOT_SUPPORTED
    if instances.find(gpu.state, gpu.unit, number(wanted)) is None:
        return facts.NOT_FOUND
    put(out, gpu_instance_address(gpu.index, number(wanted)))
    return SUCCESS


@on_instance
def instance_info(gpu: Gpu, instance: Instance, out: C) -> int:
    profile = instances.known(gpu.board.product, instance["profile"])
    info = pointee(out)
    put(out, FIRST_GPU + gpu.index * GPU_STEP)
    info.id, info.profileId = instance["gi"], profile.number
    info.placement.start, info.placement.size = instance["start"], profile.size
    return SUCCESS


@on_gpu
def device_by_index(gpu: Gpu, index: C, out: C) -> int:
    # The index is that of the first slot, so that there are holes as on hardware.
    unit = min((p.size for p in gpu.board.product.profiles), default=1)
    for instance, compute in mig_devices(gpu):
        position = instance["computes"].index(compute)
        if instance["start"] // unit + position == number(index):
            put(out, mig_address(gpu.index, instance, compute))
            return SUCCESS
    return facts.NOT_FOUND


def _of_device(call: Call, handle: C) -> tuple[Gpu, Instance, Compute] | int:
    gpu = call.gpu_at(address(handle))
    if isinstance(gpu, int):
        return gpu
    part = instance_at(gpu, address(handle))
    return facts.INVALID_ARGUMENT if part is None else (gpu, *part)


@ready
def gpu_instance_id(call: Call, handle: C, out: C) -> int:
    found = _of_device(call, handle)
    if isinstance(found, int):
        return found
    pointee(out).value = found[1]["gi"]
    return SUCCESS


@ready
def compute_instance_id(call: Call, handle: C, out: C) -> int:
    found = _of_device(call, handle)
    if isinstance(found, int):
        return found
    pointee(out).value = found[2]["ci"]
    return SUCCESS


@ready
def attributes(call: Call, handle: C, out: C) -> int:
    found = _of_device(call, handle)
    if isinstance(found, int):
        return found
    gpu, instance, compute = found
    profile = instances.known(gpu.board.product, instance["profile"])
    info = pointee(out)
    info.multiprocessorCount = profile.engines[0] * compute["slices"] // profile.slices
    info.gpuInstanceSliceCount, info.computeInstanceSliceCount = profile.slices, compute["slices"]
    info.memorySizeMB = profile.memory_mb
    return SUCCESS


@ready
def is_mig_device(call: Call, handle: C, out: C) -> int:
    gpu = call.gpu_at(address(handle))
    if isinstance(gpu, int):
        return gpu
    pointee(out).value = int(instance_at(gpu, address(handle)) is not None)
    return SUCCESS


@ready
def parent_of(call: Call, handle: C, out: C) -> int:
    found = _of_device(call, handle)
    if isinstance(found, int):
        return found
    put(out, found[0].handle)
    return SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetMigMode": mode,
    "nvmlDeviceGetMaxMigDeviceCount": most_devices,
    "nvmlDeviceGetGpuInstanceProfileInfoV": profile_info,
    "nvmlDeviceGetGpuInstanceProfileInfo": profile_info,
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": placements,
    "nvmlDeviceGetGpuInstanceRemainingCapacity": remaining,
    "nvmlDeviceGetGpuInstances": gpu_instances,
    "nvmlDeviceGetGpuInstanceById": gpu_instance_by_id,
    "nvmlGpuInstanceGetInfo": instance_info,
    "nvmlDeviceGetMigDeviceHandleByIndex": device_by_index,
    "nvmlDeviceGetGpuInstanceId": gpu_instance_id,
    "nvmlDeviceGetComputeInstanceId": compute_instance_id,
    "nvmlDeviceGetAttributes_v2": attributes,
    "nvmlDeviceIsMigDeviceHandle": is_mig_device,
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": parent_of,
}
