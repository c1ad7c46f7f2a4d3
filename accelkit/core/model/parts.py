"""Partitions as devices, whether they exist or not."""

from accelkit.core.model.device import Device, DeviceId, Placement, Profile
from accelkit.core.model.invariants import partition_name
from accelkit.core.values import FrozenMap


def part_of(parent: Device, profile: Profile, start: int) -> Device:
    """The partition that is *profile* at *start* of *parent*, as far as its place says what it is.

    It is named by its place. Product and locality are the parent's, kind and attributes the
    profile's and, where that is silent, the parent's; but not attributes of the parent alone.
    """
    inherited = {key: v for key, v in parent.attributes.items() if key not in parent.own}
    return Device(
        id=DeviceId(
            vendor=parent.id.vendor, name=partition_name(parent.id.name, profile.slug, start)
        ),
        kind=profile.kind or parent.kind,
        product=parent.product,
        parent=parent.id,
        placement=Placement(profile=profile.name, start=start, size=profile.size),
        locality=parent.locality,
        attributes=FrozenMap({**inherited, **profile.attributes}),
        capacity=profile.capacity,
    )
