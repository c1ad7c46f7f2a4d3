"""What must hold between the facts of a snapshot, whoever reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from accelkit.core.model.device import PART_NAME_LIMIT, SLOTS_LIMIT
from accelkit.core.values import PCIE_KINDS, LinkKind, is_dns_label

if TYPE_CHECKING:
    from accelkit.core.model.device import Device, DeviceId, Profile
    from accelkit.core.model.node import Group, Link


def contradictions(
    devices: Sequence[Device], links: Sequence[Link], groups: Sequence[Group]
) -> tuple[str, ...]:
    """All that is wrong with the facts together, one sentence each; empty when nothing is."""
    by_id = {d.id: d for d in devices}
    return (
        *_repeated_ids(devices),
        *(fault for device in devices for fault in _ill_cut(device)),
        *_misplaced(devices, by_id),
        *_overlapping(devices),
        *_bad_links(links, by_id),
        *_bad_groups(groups, by_id),
    )


def partition_name(parent: str, slug: str, start: int) -> str:
    """The name of the partition that is profile *slug* at *start* of *parent*."""
    return f"{parent}-{slug}-{start}"


def _repeated_ids(devices: Sequence[Device]) -> Iterator[str]:
    for device_id, times in Counter(d.id for d in devices).items():
        if times > 1:
            yield f"{device_id} is reported {times} times"


def _ill_cut(device: Device) -> Iterator[str]:
    """What is wrong with the ways in which *device* can be cut."""
    if not 0 <= device.slots <= SLOTS_LIMIT:
        yield f"{device.id}: it must have at most {SLOTS_LIMIT} slots, found {device.slots}"
    if not device.profiles and not device.modes:
        return  # as nearly all: there are thousands
    for words in ([p.name for p in device.profiles], [p.slug for p in device.profiles]):
        for word in sorted(word for word, times in Counter(words).items() if times > 1):
            yield f"{device.id}: two of its profiles are called {word}"
    modes = {mode.name for mode in device.modes}
    starts = {profile.name: len(profile.starts) for profile in device.profiles}
    for profile in device.profiles:
        for fault in _ill_shaped(profile, device):
            yield f"{device.id}: profile {profile.name} {fault}"
        if profile.mode is not None and profile.mode not in modes:
            yield f"{device.id}: profile {profile.name} needs mode {profile.mode}: there is none"
    for mode in device.modes:
        if mode.cut is not None and not 1 <= mode.count <= starts.get(mode.cut, 0):
            yield f"{device.id}: mode {mode.name} cannot be {mode.count} of {mode.cut}"


def _ill_shaped(profile: Profile, device: Device) -> Iterator[str]:
    if profile.size < 1 or not all(0 <= s <= device.slots - profile.size for s in profile.starts):
        yield f"does not lie in the {device.slots} slots"
    name = partition_name(device.id.name, profile.slug, max(profile.starts, default=0))
    if not is_dns_label(name, PART_NAME_LIMIT):
        yield f"has the slug {profile.slug!r}, which gives partitions no DNS label for a name"
    if profile.limit is not None and profile.limit < 1:
        yield f"has the limit {profile.limit}"
    if min(profile.counters.values(), default=0) < 0:
        yield "needs less than nothing"


def _misplaced(devices: Iterable[Device], by_id: Mapping[DeviceId, Device]) -> Iterator[str]:
    for part in devices:
        if part.parent is None or part.placement is None:
            continue
        parent = by_id.get(part.parent)
        if parent is None:
            yield f"{part.id}: its parent {part.parent} is not there"
        elif part.parent.vendor != part.id.vendor:
            yield f"{part.id}: its parent {part.parent} is another vendor's"
        elif parent.parent is not None:
            yield f"{part.id}: its parent {part.parent} is a partition itself"
        else:
            yield from _ill_placed(part, parent)


def _ill_placed(part: Device, parent: Device) -> Iterator[str]:
    place = part.placement
    assert place is not None
    profile = next((p for p in parent.profiles if p.name == place.profile), None)
    if profile is None:
        yield f"{part.id}: {parent.id} has no profile {place.profile}"
        return
    if place.start not in profile.starts or place.size != profile.size:
        yield f"{part.id}: {place.profile} cannot be at slot {place.start} of {parent.id}"
    if part.id.name != partition_name(parent.id.name, profile.slug, place.start):
        yield f"{part.id}: the name of a partition is its place"


def _overlapping(devices: Iterable[Device]) -> Iterator[str]:
    taken: dict[tuple[DeviceId, int], DeviceId] = {}
    for part in devices:
        if part.parent is None or part.placement is None:
            continue
        for slot in part.placement.slots:
            other = taken.setdefault((part.parent, slot), part.id)
            if other != part.id:
                yield f"{part.id} and {other} overlap in slot {slot} of {part.parent}"
                break


def _bad_links(links: Iterable[Link], by_id: Mapping[DeviceId, Device]) -> Iterator[str]:
    seen: set[tuple[DeviceId, DeviceId, str]] = set()
    for link in links:
        pair = f"the {link.kind} link of {link.a} and {link.b}"
        unknown = [end for end in (link.a, link.b) if end not in by_id]
        if unknown:
            yield f"{pair}: {unknown[0]} is not there"
        if link.count < 1 or (link.bandwidth is not None and link.bandwidth < 0):
            yield f"{pair}: count must be at least 1 and bandwidth not negative"
        sort = "PCIe" if link.kind in PCIE_KINDS else LinkKind(link.kind)
        if (link.a, link.b, sort) in seen:
            yield f"{pair} is reported twice"
        seen.add((link.a, link.b, sort))


def _bad_groups(groups: Iterable[Group], by_id: Mapping[DeviceId, Device]) -> Iterator[str]:
    for group in groups:
        for member in group.members:
            if member not in by_id:
                yield f"group {group.kind}/{group.name}: {member} is not there"
