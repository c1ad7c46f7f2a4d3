"""Partitions made and unmade through NVML. Not here: modes, and what is there already.

Nothing that the library says is trusted: what is there is what it lists afterwards.
"""

import ctypes
import time
from collections.abc import Callable, Iterator

import attrs

from accelkit import (
    AccelkitError,
    Device,
    PartitionError,
    PartitionInUse,
    Placement,
    PlaceOccupied,
    SourceError,
)
from accelkit.vendors.nvidia import facts, mig
from accelkit.vendors.nvidia.devices import uuid_of
from accelkit.vendors.nvidia.holders import pids_of
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, NvmlError
from accelkit.vendors.nvidia.reading import read_memory

GONE_S = 20.0
"""How long a destroyed instance may still be listed; about a second is common."""
UNDO_S = 8.0
"""The same where it has to fit into the time of a creation that failed."""
AGAIN_S = 2.0
"""After so long a destruction that left something is asked for once more."""
_FIRST_LOOK_S, _LAST_LOOK_S = 0.01, 0.25
_COMPUTE_PROFILES = 9 + 3  # nvml.h, NVML_COMPUTE_INSTANCE_PROFILE_COUNT, and some for later drivers
_SHARED_ENGINES = 0  # nvml.h, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED

_REFUSED = frozenset(
    {facts.INSUFFICIENT_RESOURCES, facts.INVALID_ARGUMENT, facts.NOT_SUPPORTED, facts.IN_USE}
)
"""Answers that will be the same the next time."""


@attrs.frozen(kw_only=True)
class Card:
    """A GPU that can be cut, asked now."""

    nvml: Nvml
    handle: Handle = attrs.field(repr=False)
    cut: mig.Cut
    name: str
    """For people."""

    def at(self, placement: Placement) -> mig.Instance | None:
        """What is exactly there."""
        return next((i for i in self.all() if (i.profile, i.start) == _place(placement)), None)

    def overlapping(self, placement: Placement) -> list[mig.Instance]:
        """Whatever has one of the same slots."""
        wanted = set(placement.slots)
        sizes = {p.name: p.size for p in self.cut.profiles}
        return [i for i in self.all() if wanted & set(range(i.start, i.start + sizes[i.profile]))]

    def all(self) -> tuple[mig.Instance, ...]:
        """Every partition, by first slot."""
        return mig.steady(lambda: mig.read_instances(self.nvml, self.handle, self.cut))


def handle_of(nvml: Nvml, device: Device) -> Handle:
    """The GPU that *device* is, or is a part of.

    Raises:
        NvmlError: With NOT_FOUND where there is none, and whatever else can be wrong.
    """
    return nvml.ask("nvmlDeviceGetHandleByUUID", uuid_of(device.root.name))


def card_of(nvml: Nvml, device: Device) -> Card:
    """The same, and how it can be cut."""
    handle = handle_of(nvml, device)
    cut = mig.read_cut(nvml, handle, read_memory(nvml, handle) or 0)
    return Card(nvml=nvml, handle=handle, cut=cut, name=str(device.root))


def create(
    card: Card,
    placement: Placement,
    read_back: Callable[[], Device],
    *,
    undo_s: float = UNDO_S,
) -> Device:
    """Make the partition, or complete one that was begun; what is there already is answered.

    Args:
        card: The parent.
        placement: Where.
        read_back: The partition as *discover* yields it.
        undo_s: How long what was begun may take to go.

    Raises:
        PlaceOccupied: Something else is there.
        PartitionError: It cannot be made; nothing of it is left.
        SourceError: Could not be known; nothing of it is left.
    """
    _check(card, placement)
    there = card.at(placement)
    if there is not None and there.uuid is not None:
        return read_back()
    if there is not None and there.parts:
        raise PlaceOccupied(
            f"{card.name}: {_words(placement)} is cut further, into {there.parts}",
            device=card.name,
            remedy="whoever cut it must take it away: nvidia-smi mig -dci, nvidia-smi mig -dgi",
        )
    if there is None:
        _make_instance(card, placement)
    try:
        _make_compute(card, placement)
        return read_back()
    except AccelkitError as error:
        _undo(card, placement, undo_s, error)
        raise


def _check(card: Card, placement: Placement) -> None:
    mode = card.nvml.maybe("nvmlDeviceGetMigMode", card.handle)
    if mode is None or mode[0] != 1:
        raise PartitionError(
            f"{card.name} is not in mode {mig.MIG}",
            device=card.name,
            remedy=f"set its mode to {mig.MIG} first",
        )
    known = {p.name: p for p in card.cut.profiles}.get(placement.profile)
    if known is None or placement.start not in known.starts or placement.size != known.size:
        raise PartitionError(f"{card.name}: {_words(placement)} is no place", device=card.name)


def _make_instance(card: Card, placement: Placement) -> None:
    if (others := card.overlapping(placement)) != []:
        raise _occupied(card, placement, others)
    place = card.nvml.array("c_nvmlGpuInstancePlacement_t", 1)[0]
    place.start, place.size = placement.start, placement.size
    number = card.cut.number(placement.profile)
    try:
        card.nvml.ask(
            "nvmlDeviceCreateGpuInstanceWithPlacement", card.handle, number, ctypes.byref(place)
        )
    except NvmlError as error:
        if error.value not in _REFUSED:
            raise
        if (others := card.overlapping(placement)) != []:
            raise _occupied(card, placement, others) from error
        raise PartitionError(
            f"{card.name}: {_words(placement)} cannot be made: {error}",
            device=card.name,
            remedy="other partitions may have its engines, or as many as there can be of them",
        ) from error


def _occupied(card: Card, placement: Placement, others: list[mig.Instance]) -> PlaceOccupied:
    there = ", ".join(f"{i.profile} at slot {i.start}" for i in others)
    return PlaceOccupied(
        f"{card.name}: {_words(placement)} cannot be made, there is {there}", device=card.name
    )


def _make_compute(card: Card, placement: Placement) -> None:
    """Make the compute instance that is all of the GPU instance."""
    there = card.at(placement)
    if there is None:
        raise _lied(card, placement, "made it, but nothing is there")
    instance = card.nvml.ask("nvmlDeviceGetGpuInstanceById", card.handle, there.gi)
    largest = max(compute_profiles(card.nvml, instance), key=lambda p: p.sliceCount, default=None)
    if largest is None:
        raise _lied(card, placement, "can have no compute instance")
    try:
        card.nvml.ask("nvmlGpuInstanceCreateComputeInstance", instance, largest.id)
    except NvmlError as error:
        if error.value not in _REFUSED:
            raise
        raise PartitionError(
            f"{card.name}: {_words(placement)} cannot be completed: {error}", device=card.name
        ) from error
    there = card.at(placement)
    if there is None or there.uuid is None:
        raise _lied(card, placement, "completed it, but nothing can run on it")


def _lied(card: Card, placement: Placement, what: str) -> PartitionError:
    return PartitionError(
        f"{card.name}: {_words(placement)}: the driver says that it {what}",
        device=card.name,
        remedy=facts.KERNEL_LOG,
    )


def compute_profiles(nvml: Nvml, instance: Handle) -> Iterator[Answer]:
    """Sizes of compute instances that a GPU instance can have."""
    for index in range(_COMPUTE_PROFILES):
        info = nvml.maybe(
            "nvmlGpuInstanceGetComputeInstanceProfileInfo",
            instance,
            index,
            _SHARED_ENGINES,
            version=1,
        )
        if info is not None:
            yield info


def _undo(card: Card, placement: Placement, undo_s: float, why: AccelkitError) -> None:
    """Take away what was begun.

    Raises:
        PartitionError: It is still there.
    """
    try:
        destroy(card, placement, undo_s)
    except AccelkitError as error:
        raise PartitionError(
            f"{why}; what was begun could not be undone: {error}",
            device=card.name,
            remedy=error.remedy or why.remedy,
        ) from why


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
                f"{card.name}: {_words(placement)} is still there {patience_s:g} s after the "
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
        f"{card.name}: {_words(placement)} is in use {who}",
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


def _place(placement: Placement) -> tuple[str, int]:
    return placement.profile, placement.start


def _words(placement: Placement) -> str:
    return f"{placement.profile} at slot {placement.start}"
