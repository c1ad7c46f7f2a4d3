"""The simulated NVML: cutting GPUs, and undoing it. Not here: what is there.

Source of what is refused and with which code: nvml.h, and what others have seen of drivers R470
to R580: an occupied place is INSUFFICIENT_RESOURCES, whatever is held or has parts is IN_USE.
"""

from collections.abc import Mapping

from accelkit.testing.machines import Function, State, pointee
from accelkit.vendors.nvidia import facts, instances, states, strangers
from accelkit.vendors.nvidia.instances import Compute, Instance
from accelkit.vendors.nvidia.products import MigProfile
from accelkit.vendors.nvidia.simulated.calls import (
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    compute_instance_address,
    fill_handles,
    gpu_instance_address,
    instances_of,
    number,
    on_gpu,
    on_instance,
    profile_of,
    put,
    ready,
)

_SIZES = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
"""nvml.h, NVML_COMPUTE_INSTANCE_PROFILE_*, which is also the driver's id, by slices."""

_GPU_INSTANCE = 8
"""Offset of its handle in nvmlComputeInstanceInfo_t."""


@on_gpu
def set_mode(gpu: Gpu, wanted: C, activation: C) -> int:
    product, mig = gpu.board.product, number(wanted) == 1
    if not product.profiles or gpu.board.is_guest:
        return facts.NOT_SUPPORTED
    status: list[int] = []

    def step(state: State) -> State:
        busy = instances.instances(state, gpu.unit) or strangers.holders(state, gpu.unit)
        if mig == states.mig(state, gpu.unit):
            return states.changed(state, gpu.unit, pending=None)
        if product.resetless and not busy:
            return strangers.in_mode(state, gpu.unit, mig=mig)
        status.append(facts.IN_USE if product.resetless else facts.RESET_REQUIRED)
        return states.changed(state, gpu.unit, pending=mig)

    gpu.change(step)
    pointee(activation).value = status[0] if status else SUCCESS
    return SUCCESS


def _make(gpu: Gpu, profile: MigProfile, start: int | None, out: C) -> int:
    """Make a GPU instance at *start*, or wherever there is room.

    Looked at and done in one change of the machine: another process may be at it, too.
    """
    made: list[int] = []

    def step(state: State) -> State:
        present = instances.instances(state, gpu.unit)
        room = instances.room_at(gpu.board.product, present, profile)
        if not room or start not in {None, *room} or not states.mig(state, gpu.unit):
            return state
        where = room[-1] if start is None else start
        state, gi = instances.added(gpu.board.product, state, gpu.unit, profile, where)
        made.append(gi)
        return state

    gpu.change(step)
    if not made:
        return facts.INSUFFICIENT_RESOURCES
    put(out, gpu_instance_address(gpu.index, made[0]))
    return SUCCESS


@on_gpu
def create(gpu: Gpu, wanted: C, out: C) -> int:
    profile = profile_of(gpu, wanted)
    if profile is None or not states.mig(gpu.state, gpu.unit):
        return facts.NOT_SUPPORTED
    return _make(gpu, profile, None, out)


@on_gpu
def create_at(gpu: Gpu, wanted: C, placement: C, out: C) -> int:
    profile, place = profile_of(gpu, wanted), pointee(placement)
    if profile is None or not states.mig(gpu.state, gpu.unit):
        return facts.NOT_SUPPORTED
    if place.start not in profile.starts or place.size != profile.size:
        return facts.INVALID_ARGUMENT
    return _make(gpu, profile, place.start, out)


@on_instance
def destroy(gpu: Gpu, instance: Instance) -> int:
    refused: list[int] = []

    def step(state: State) -> State:
        there = instances.find(state, gpu.unit, instance["gi"])
        if there is None or there["until"] is not None:
            return state
        if there["computes"] or strangers.held(state, gpu.unit, there["start"]):
            refused.append(facts.IN_USE)
            return state
        return instances.dying(state, gpu.unit, there["gi"])

    gpu.change(step)
    return refused[0] if refused else SUCCESS


@on_instance
def compute_profile(gpu: Gpu, instance: Instance, index: C, engines: C, out: C) -> int:
    slices = {s: k for k, s in _sizes(gpu, instance).items()}.get(number(index))
    if slices is None or number(engines) != 0:
        return facts.NOT_SUPPORTED
    profile = instances.known(gpu.board.product, instance["profile"])
    info = pointee(out)
    info.id, info.sliceCount = number(index), slices
    info.instanceCount = profile.slices // slices
    info.multiprocessorCount = profile.engines[0] * slices // profile.slices
    return SUCCESS


def _sizes(gpu: Gpu, instance: Instance) -> dict[int, int]:
    """Compute profiles of a GPU instance: ids by slices."""
    profile = instances.known(gpu.board.product, instance["profile"])
    return {s: _SIZES[s] for s in instances.compute_slices(profile)}


@on_instance
def compute_instances(gpu: Gpu, instance: Instance, wanted: C, array: C, amount: C) -> int:
    sizes = _sizes(gpu, instance)
    if number(wanted) not in sizes.values():
        return facts.NOT_SUPPORTED
    found = [c["ci"] for c in instance["computes"] if sizes[c["slices"]] == number(wanted)]
    fill_handles(array, [compute_instance_address(gpu.index, instance["gi"], ci) for ci in found])
    pointee(amount).value = len(found)
    return SUCCESS


@on_instance
def compute_by_id(gpu: Gpu, instance: Instance, wanted: C, out: C) -> int:
    if number(wanted) not in {c["ci"] for c in instance["computes"]}:
        return facts.NOT_FOUND
    put(out, compute_instance_address(gpu.index, instance["gi"], number(wanted)))
    return SUCCESS


@on_instance
def create_compute(gpu: Gpu, instance: Instance, wanted: C, out: C) -> int:
    slices = {k: s for s, k in _sizes(gpu, instance).items()}.get(number(wanted))
    if slices is None or instance["until"] is not None:
        return facts.INVALID_ARGUMENT
    made: list[int] = []

    def step(state: State) -> State:
        there = instances.find(state, gpu.unit, instance["gi"])
        if there is None or instances.slices_left(gpu.board.product, there) < slices:
            return state
        state, ci = instances.with_compute(state, gpu.unit, there, slices)
        made.append(ci)
        return state

    gpu.change(step)
    if not made:
        return facts.INSUFFICIENT_RESOURCES
    put(out, compute_instance_address(gpu.index, instance["gi"], made[0]))
    return SUCCESS


def _on_compute(function: Function) -> Function:
    """The call on a compute instance: refuse one that is gone."""

    @ready
    def run(call: Call, handle: C, *args: C) -> int:
        gpu = call.gpu_at(address(handle))
        if isinstance(gpu, int):
            return gpu
        for instance in instances_of(gpu):
            for compute in instance["computes"]:
                where = compute_instance_address(gpu.index, instance["gi"], compute["ci"])
                if where == address(handle):
                    return int(function(gpu, instance, compute, *args))
        return facts.INVALID_ARGUMENT

    return run


@_on_compute
def compute_info(gpu: Gpu, instance: Instance, compute: Compute, out: C) -> int:
    info = pointee(out)
    put(out, gpu.handle)
    put(out, gpu_instance_address(gpu.index, instance["gi"]), _GPU_INSTANCE)
    info.id, info.profileId = compute["ci"], _SIZES[compute["slices"]]
    return SUCCESS


@_on_compute
def destroy_compute(gpu: Gpu, instance: Instance, compute: Compute) -> int:
    refused: list[int] = []

    def step(state: State) -> State:
        there = instances.find(state, gpu.unit, instance["gi"])
        if there is None:
            return state
        if strangers.held(state, gpu.unit, there["start"]):
            refused.append(facts.IN_USE)
            return state
        return instances.without_compute(state, gpu.unit, there, compute["ci"])

    gpu.change(step)
    return refused[0] if refused else SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceSetMigMode": set_mode,
    "nvmlDeviceCreateGpuInstance": create,
    "nvmlDeviceCreateGpuInstanceWithPlacement": create_at,
    "nvmlGpuInstanceDestroy": destroy,
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": compute_profile,
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV": compute_profile,
    "nvmlGpuInstanceGetComputeInstances": compute_instances,
    "nvmlGpuInstanceGetComputeInstanceById": compute_by_id,
    "nvmlGpuInstanceCreateComputeInstance": create_compute,
    "nvmlComputeInstanceGetInfo_v2": compute_info,
    "nvmlComputeInstanceDestroy": destroy_compute,
}
