"""What could be handed out though it is not there yet: a claim would have it made."""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from accelkit.core.model import Device, DeviceId, Profile, Snapshot, part_of
from accelkit.core.partitioning.rules import fixed_cut, partitioning_of, parts_by_parent
from accelkit.core.places import can_be_set, mode_for
from accelkit.core.policy import PartitioningHow, Policy

_REMEMBERED = 256
"""Devices whose partitions are kept as values; the devices of a large node."""


def potential(
    snapshot: Snapshot, policy: Policy, *, makers: Collection[str] | None = None
) -> tuple[Device, ...]:
    """Partitions that do not exist and that a claim may have: ``how: dynamic``.

    Every profile that the rule admits, at each of its places, where the device is in the
    profile's mode or can come into it while its neighbours work. Partitions that come with a mode
    are none: setting it would take others away. Those that overlap what exists are among them.

    Args:
        snapshot: What is there.
        policy: Its ``partitioning`` and ``only``.
        makers: Vendors whose plugins can make partitions; None: all.

    Returns:
        As their vendor makes them, but for nodes, aliases and handle, which they do not have yet;
        by id.
    """
    found = [
        part
        for device in _dynamic(snapshot, policy, makers)
        for part in _parts_of(device, _admitted(device, policy, snapshot.node))
        if part.id not in snapshot.by_id
    ]
    return tuple(sorted(found, key=lambda part: (part.id.vendor, part.id.name)))


def whole_again(
    snapshot: Snapshot, policy: Policy, *, makers: Collection[str] | None = None
) -> frozenset[DeviceId]:
    """Whole devices that are not usable as they stand, and that a claim may have all the same.

    Their mode can be set while their neighbours work, or they are only cut by partitions.
    """
    cut = parts_by_parent(snapshot)
    return frozenset(
        device.id
        for device in _dynamic(snapshot, policy, makers)
        if not device.usable and _can_be_whole(device, cut=device.id in cut)
    )


def _can_be_whole(device: Device, *, cut: bool) -> bool:
    mode = mode_for(device, device)
    if mode is not None and mode != device.mode:
        return can_be_set(device, mode)
    return cut and not any(mode.cut for mode in device.modes)


def _dynamic(
    snapshot: Snapshot, policy: Policy, makers: Collection[str] | None
) -> Iterator[Device]:
    for device in snapshot.devices:
        if (
            device.parent is None
            and device.profiles
            and (makers is None or device.id.vendor in makers)
        ):
            rule = partitioning_of(device, policy, snapshot.node)
            if rule.how is PartitioningHow.DYNAMIC:
                yield device


def _admitted(device: Device, policy: Policy, node: str) -> tuple[Profile, ...]:
    """The profiles that can be made of *device*: those of one mode, as counters know no modes."""
    globs = partitioning_of(device, policy, node).profiles or ("*",)
    can_be = [
        profile
        for profile in device.profiles
        if not fixed_cut(device, profile.name)
        and any(fnmatchcase(profile.name, glob) for glob in globs)
        and (profile.mode in {None, device.mode} or can_be_set(device, profile.mode or ""))
    ]
    modes = {profile.mode for profile in can_be if profile.mode is not None}
    mode = device.mode if device.mode in modes else min(modes, default=None)
    return tuple(profile for profile in can_be if profile.mode in {None, mode})


@lru_cache(maxsize=_REMEMBERED)
def _parts_of(device: Device, profiles: tuple[Profile, ...]) -> tuple[Device, ...]:
    return tuple(part_of(device, profile, s) for profile in profiles for s in profile.starts)
