"""Partitions unmade through NVML, until they are gone. Not here: making them."""

import ctypes
import time
from collections.abc import Iterator

from accelkit import PartitionInUse, Placement, SourceError
from accelkit.vendors.nvidia import facts, mig
from accelkit.vendors.nvidia.card import Card, compute_profiles, words
from accelkit.vendors.nvidia.holders import pids_of
from accelkit.vendors.nvidia.nvml import Handle, Nvml, NvmlError

GONE_S = 20.0
"""How long a destroyed instance may still be listed; about a second is common."""
AGAIN_S = 2.0
"""After so long a destruction that left something is asked for once more."""
_FIRST_LOOK_S, _LAST_LOOK_S = 0.01, 0.25


def destroy(card: Card, placement: Placement, patience_s: float = GONE_S) -> None:
    """Unmake the partition; returns when it is gone, at once if it is not there.

    Raises:
        PartitionInUse: Somebody uses it, or it does not go.
        SourceError: Could not be known.
    """
    end = time.monotonic() + patience_s
    again, pause = 0.0, _FIRST_LOOK_S
    while (gi := _instance_id(card, placement)) is not None:
        now = time.monotonic()
        if now >= end:
            raise PartitionInUse(
                f"{card.name}: {words(placement)} is still there {patience_s:g} s after the "
                "driver said that it is destroyed",
                device=card.name,
                remedy=facts.KERNEL_LOG,
            )
        if now >= again:
            try:
                _unmake(card, gi, placement)
            except NvmlError:
                if not again:
                    raise  # later it may be about what is left of it, and only looking tells
            again = now + AGAIN_S
        else:
            time.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK_S)


def _instance_id(card: Card, placement: Placement) -> int | None:
    """The GPU instance of that profile in that place."""
    number = card.cut.number(placement.profile)
    if number is None:
        return None
    try:
        found = list(mig.gpu_instances(card.nvml, card.handle, number, card.cut))
    except NvmlError as error:
        if error.value in facts.ABSENT:  # not in MIG mode, or gone between two calls
            return None
        raise
    return next((info.id for info in found if info.placement.start == placement.start), None)


def _unmake(card: Card, gi: int, placement: Placement) -> None:
    """Destroy its parts, then itself; what is gone already is fine."""
    if pids := sorted(_pids(card, gi)):
        raise _in_use(card, placement, f"by process {', '.join(map(str, pids))}")
    instance = card.nvml.maybe("nvmlDeviceGetGpuInstanceById", card.handle, gi)
    if instance is None:
        return
    try:
        # Parts first: an instance with parts is in use.
        for compute in list(_compute_instances(card.nvml, instance)):
            _unless_gone(card.nvml, "nvmlComputeInstanceDestroy", compute)
        _unless_gone(card.nvml, "nvmlGpuInstanceDestroy", instance)
    except NvmlError as error:
        if error.value != facts.IN_USE:
            raise
        raise _in_use(card, placement, "by somebody whom no list of processes shows") from error


def _unless_gone(nvml: Nvml, function: str, handle: Handle) -> None:
    try:
        nvml.ask(function, handle)
    except NvmlError as error:
        if error.value not in {facts.NOT_FOUND, facts.INVALID_ARGUMENT}:
            raise


def _in_use(card: Card, placement: Placement, who: str) -> PartitionInUse:
    return PartitionInUse(
        f"{card.name}: {words(placement)} is in use {who}",
        device=card.name,
        remedy="end what uses it; monitoring agents hold partitions, too",
    )


def _pids(card: Card, gi: int) -> set[int]:
    """Processes on any part of a GPU instance, as far as they can be seen."""
    found: set[int] = set()
    for owner, handle in mig.mig_handles(card.nvml, card.handle):
        if owner == gi:
            try:
                found |= pids_of(card.nvml, handle)
            except SourceError:  # then the driver's own refusal must do
                continue
    return found


def _compute_instances(nvml: Nvml, instance: Handle) -> Iterator[Handle]:
    for profile in compute_profiles(nvml, instance):
        most = min(profile.instanceCount, mig.MOST_SLOTS)
        handles, count = nvml.array("c_nvmlComputeInstance_t", most), ctypes.c_uint(most)
        if (
            nvml.maybe(
                "nvmlGpuInstanceGetComputeInstances",
                instance,
                profile.id,
                handles,
                ctypes.byref(count),
            )
            is not None
        ):
            yield from handles[: min(most, count.value)]
