"""What is left to do until devices are as planned, in order. Not here: doing it."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from accelkit.core.model import Device, DeviceId, Placement, Snapshot, partition_name
from accelkit.core.partitioning.rules import (
    fixed_cut,
    mode_named,
    parts_by_parent,
    profile_named,
)
from accelkit.core.partitioning.wanted import Plan, Wanted
from accelkit.core.values import Scope, freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Destroy:
    """Unmake a partition."""

    partition: DeviceId

    def __str__(self) -> str:
        return f"destroy {self.partition}"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class SetMode:
    """Set the mode of a whole device."""

    device: DeviceId
    mode: str

    def __str__(self) -> str:
        return f"set-mode {self.device} {self.mode}"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Create:
    """Make a partition, or complete one that was begun."""

    device: DeviceId
    """The whole device."""
    placement: Placement
    partition: DeviceId
    """What it will be called."""

    def __str__(self) -> str:
        return f"create {self.partition}"


Step: TypeAlias = Destroy | SetMode | Create


def steps(snapshot: Snapshot, plan: Plan) -> tuple[Step, ...]:
    """What is left to do until *snapshot* is as planned; nothing for what has to wait.

    Destroying comes first, so that what is created has room and modes can change; then modes,
    those that disturb most first; then creating. Within these by device, then by first slot.
    """
    parts = parts_by_parent(snapshot)
    found: list[tuple[_Order, Step]] = []
    for wanted in plan.wanted:
        device = snapshot.by_id.get(wanted.device)
        if device is not None and not wanted.waits:
            found += _steps_of(device, parts.get(device.id, ()), wanted)
    return tuple(step for _, step in sorted(found, key=lambda pair: pair[0]))


_Order: TypeAlias = tuple[int, bool, DeviceId, int]
"""Phase, whether it disturbs its device alone, device, first slot."""


def _steps_of(
    device: Device, parts: Iterable[Device], wanted: Wanted
) -> Iterator[tuple[_Order, Step]]:
    mode = mode_named(device, wanted.mode)
    changes = mode is not None and mode.name != device.mode
    present = set()
    for part in parts:
        place = part.placement
        assert place is not None
        if fixed_cut(device, place.profile):  # comes and goes with its mode
            present.add(place)
        elif changes or place not in wanted.places:
            yield (0, True, device.id, place.start), Destroy(partition=part.id)
        elif part.usable or place not in wanted.begun:
            present.add(place)
    if mode is not None and changes:
        alone = mode.disturbs is not Scope.VENDOR
        yield (1, alone, device.id, 0), SetMode(device=device.id, mode=mode.name)
    for place in wanted.places:
        if place not in present and not fixed_cut(device, place.profile):
            step = Create(device=device.id, placement=place, partition=_named(device, place))
            yield (2, True, device.id, place.start), step


def _named(device: Device, place: Placement) -> DeviceId:
    profile = profile_named(device, place.profile)
    assert profile is not None
    name = partition_name(device.id.name, profile.slug, place.start)
    return DeviceId(vendor=device.id.vendor, name=name)
