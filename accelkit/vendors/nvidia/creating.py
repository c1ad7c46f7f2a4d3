"""Partitions made through NVML, or completed. Not here: what is there already, and modes.

Nothing that the library says is trusted: what is there is what it lists afterwards.
"""

import ctypes
from collections.abc import Callable

from accelkit import AccelkitError, Device, PartitionError, Placement, PlaceOccupied
from accelkit.vendors.nvidia import facts, mig
from accelkit.vendors.nvidia.card import Card, compute_profiles, words
from accelkit.vendors.nvidia.destroying import destroy
from accelkit.vendors.nvidia.nvml import NvmlError

UNDO_S = 8.0
"""How long what was begun may take to go: it has to fit into the time of the creation."""
_REFUSED = frozenset(
    {facts.INSUFFICIENT_RESOURCES, facts.INVALID_ARGUMENT, facts.NOT_SUPPORTED, facts.IN_USE}
)
"""Answers that will be the same the next time."""


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
            f"{card.name}: {words(placement)} is cut further, into {there.parts}",
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
        raise PartitionError(f"{card.name}: {words(placement)} is no place", device=card.name)


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
            f"{card.name}: {words(placement)} cannot be made: {error}",
            device=card.name,
            remedy="other partitions may have its engines, or as many as there can be of them",
        ) from error


def _occupied(card: Card, placement: Placement, others: list[mig.Instance]) -> PlaceOccupied:
    there = ", ".join(f"{i.profile} at slot {i.start}" for i in others)
    return PlaceOccupied(
        f"{card.name}: {words(placement)} cannot be made, there is {there}", device=card.name
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
            f"{card.name}: {words(placement)} cannot be completed: {error}", device=card.name
        ) from error
    there = card.at(placement)
    if there is None or there.uuid is None:
        raise _lied(card, placement, "completed it, but nothing can run on it")


def _lied(card: Card, placement: Placement, what: str) -> PartitionError:
    return PartitionError(
        f"{card.name}: {words(placement)}: the driver says that it {what}",
        device=card.name,
        remedy=facts.KERNEL_LOG,
    )


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
