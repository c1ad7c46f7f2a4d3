"""Which rule of the policy a device falls under, and what its modes mean. Not here: plans."""

from collections.abc import Mapping

from accelkit.core.model import Device, DeviceId, Mode, Profile, Snapshot
from accelkit.core.policy import Partitioning, Policy
from accelkit.core.selection import matches

NO_RULE = Partitioning()


def partitioning_of(device: Device, policy: Policy, node: str) -> Partitioning:
    """The first rule that selects *device*, a whole one; without any nothing is done to it."""
    if not matches(policy.only, device, node):
        return NO_RULE
    return next((r for r in policy.partitioning if matches(r.select, device, node)), NO_RULE)


def fixed_cut(device: Device, profile: str) -> bool:
    """Whether partitions of *profile* come and go with a mode of *device*."""
    return any(mode.cut == profile for mode in device.modes)


def mode_named(device: Device, name: str | None) -> Mode | None:
    """The mode of *device* with this name."""
    return next((mode for mode in device.modes if mode.name == name), None)


def profile_named(device: Device, name: str) -> Profile | None:
    """The profile of *device* with this name."""
    return next((profile for profile in device.profiles if profile.name == name), None)


def parts_by_parent(snapshot: Snapshot) -> Mapping[DeviceId, tuple[Device, ...]]:
    """The partitions of each device that has some, by id."""
    parts: dict[DeviceId, list[Device]] = {}
    for device in snapshot.devices:
        if device.parent is not None:
            parts.setdefault(device.parent, []).append(device)
    return {parent: tuple(some) for parent, some in parts.items()}
