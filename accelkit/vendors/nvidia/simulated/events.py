"""The simulated NVML: events, which every set delivers once. Not here: what causes them."""

import time
from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, states
from accelkit.vendors.nvidia.simulated.calls import (
    FIRST_GPU,
    GPU_STEP,
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    driver_error,
    number,
    on_gpu,
    put,
    ready,
)

_FIRST_SET = 0x900000
_POLL_S = 0.02


@ready
def set_create(call: Call, out: C) -> int:
    where = _FIRST_SET + max([0, *(s - _FIRST_SET for s in call.library.sets)]) + 1
    # What happened before nobody hears.
    call.library.sets[where] = states.number(states.of(call.state, states.VENDOR), "sequence")
    put(out, where)
    return SUCCESS


@ready
def set_free(call: Call, handle: C) -> int:
    call.library.sets.pop(address(handle), None)
    return SUCCESS


@on_gpu
def event_types(gpu: Gpu, out: C) -> int:
    del gpu
    pointee(out).value = 0xE40F
    return SUCCESS


@on_gpu
def register(gpu: Gpu, types: C, handle: C) -> int:
    del types
    return SUCCESS if address(handle) in gpu.library.sets else facts.INVALID_ARGUMENT


@ready
def set_wait(call: Call, handle: C, out: C, timeout_ms: C) -> int:
    where, left = address(handle), number(timeout_ms) / 1000
    until = time.monotonic() + left  # on a busy host looking takes longer than the pause
    while where in call.library.sets:
        for sequence, unit, kind, data, gi, ci in states.events(call.state):
            if sequence > call.library.sets[where]:
                call.library.sets[where] = sequence
                event = pointee(out)
                put(out, FIRST_GPU + call.library.units.index(unit) * GPU_STEP)
                event.eventType, event.eventData = kind, data
                event.gpuInstanceId, event.computeInstanceId = gi, ci
                return SUCCESS
        if left <= 0 or time.monotonic() >= until:
            return facts.TIMEOUT
        call.library.live.sleep(min(_POLL_S, left))
        left -= _POLL_S
        call = Call(call.library, call.library.live.state())
        if wrong := driver_error(call.state):
            return wrong
    return facts.UNINITIALIZED


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetSupportedEventTypes": event_types,
    "nvmlDeviceRegisterEvents": register,
    "nvmlEventSetCreate": set_create,
    "nvmlEventSetFree": set_free,
    "nvmlEventSetWait_v2": set_wait,
}
