"""Which places on a device exclude each other, and which mode they need. Not here: who has them."""

from collections.abc import Mapping

from accelkit.core.allocation import Piece
from accelkit.core.model import Device, DeviceId, Placement, partition_name
from accelkit.core.values import Scope


def places_on(root: Device) -> dict[DeviceId, Placement | None]:
    """Every place on the whole device *root*: itself, as None, and all that it can be cut to.

    By name alone: what was there before, or is not there yet, has the same.
    """
    places: dict[DeviceId, Placement | None] = {root.id: None}
    for profile in root.profiles:
        for start in profile.starts:
            name = partition_name(root.id.name, profile.slug, start)
            places[DeviceId(vendor=root.id.vendor, name=name)] = Placement(
                profile=profile.name, start=start, size=profile.size
            )
    return places


def exclude(mine: Piece, other: Piece, places: Mapping[DeviceId, Placement | None]) -> bool:
    """Whether two claims cannot have *mine* and *other* at once.

    Two shares of one device can; a device and its partitions, and partitions that overlap, cannot.
    *places* are those on the device that *mine* is, or is cut out of.
    """
    if mine.device == other.device:
        return mine.share is None or other.share is None
    if mine.device not in places or other.device not in places:
        return False
    one, two = places[mine.device], places[other.device]
    if one is None or two is None:
        return True
    return one.start < two.slots.stop and two.start < one.slots.stop


def mode_for(device: Device, root: Device) -> str | None:
    """The mode that *root* must be in for *device*, itself or a partition of it.

    A partition's profile names it. A whole device needs one in which it is not cut: its present
    one if that is such a mode. None: any will do.
    """
    if device.placement is not None:
        return next((p.mode for p in root.profiles if p.name == device.placement.profile), None)
    cutting = {profile.mode for profile in root.profiles if profile.mode is not None}
    if not cutting:
        return None
    uncut = [m.name for m in root.modes if m.cut is None and m.name not in cutting]
    if root.mode in uncut:
        return root.mode
    return uncut[0] if uncut else None


def can_be_set(root: Device, mode: str) -> bool:
    """Whether *root* can come into *mode* without harm to anything but itself."""
    return any(m.name == mode and m.live and m.disturbs is not Scope.VENDOR for m in root.modes)
