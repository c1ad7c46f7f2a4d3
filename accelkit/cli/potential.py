"""What claims could have made of devices now. Not here: what can be made at all."""

from collections import Counter
from collections.abc import Mapping

from accelkit.core.model import Device, DeviceId
from accelkit.core.view import View


def could_be_made(view: View) -> Mapping[DeviceId, Counter[str]]:
    """Of each whole device how many partitions of which profile there is a free place for.

    Places overlap: whoever takes one may take several. What is in the way of all of them is not
    asked, such as a device that is not healthy.
    """
    there: dict[DeviceId, list[Device]] = {}
    for device in view.snapshot.devices:
        if device.parent is not None:
            there.setdefault(device.parent, []).append(device)
    found: dict[DeviceId, Counter[str]] = {}
    for part in view.potential:
        given = view.assignments.get(part.id)
        if given is None or given.terms is None or part.root in view.held:
            continue
        if not any(_overlap(part, other) for other in there.get(part.root, ())):
            found.setdefault(part.root, Counter())[part.profile or ""] += 1
    return found


def _overlap(one: Device, other: Device) -> bool:
    if one.placement is None or other.placement is None:
        return False
    mine, theirs = one.placement.slots, other.placement.slots
    return mine.start < theirs.stop and theirs.start < mine.stop
