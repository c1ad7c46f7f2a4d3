# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins that cut devices wrongly, or say wrongly how they can be cut."""

from collections.abc import Callable, Iterable
from typing import ClassVar

import attrs

from accelkit import (
    Device,
    FrozenMap,
    Host,
    Placement,
    PlaceOccupied,
    Profile,
    SourceError,
)
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_facts import Changed, Found


class OtherProfiles(Changed):
    """Each profile as *profile* makes it of the real one."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        return profile

    def change(self, host: Host, device: Device, position: int) -> Device:
        profiles = tuple(self.profile(device, profile) for profile in device.profiles)
        return attrs.evolve(device, profiles=profiles)


class Boastful(OtherProfiles):
    """Partitions have more than the device."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        memory = 2 * device.capacity["memory"]
        return attrs.evolve(profile, capacity=FrozenMap({"memory": memory}))


class Greedy(OtherProfiles):
    """Partitions need more of a counter than there is."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        return attrs.evolve(profile, counters=FrozenMap({"engines": 3}))

    def change(self, host: Host, device: Device, position: int) -> Device:
        changed = super().change(host, device, position)
        return attrs.evolve(changed, counters=FrozenMap({"engines": 2}))


class Phantom(OtherProfiles):
    """Each partition has all of the memory."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        return attrs.evolve(profile, capacity=device.capacity)

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        return attrs.evolve(made, capacity=parent.capacity)


class Lax(OtherProfiles):
    """Says that large partitions have room between small ones."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        return attrs.evolve(profile, size=1)


class Crowded(Lax):
    """Says that there are as many large partitions as small ones."""

    def profile(self, device: Device, profile: Profile) -> Profile:
        return attrs.evolve(profile, size=1, starts=tuple(range(device.slots)), limit=None)


class Orphaning(Changed):
    """Tells of partitions as if they were devices."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, parent=None, placement=None)


class Hollow(Changed):
    """Every device has slots, though nothing can be made in them."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, slots=4, counters=FrozenMap({"engines": 4}))


class Nowhere(Changed):
    """Every device can be cut, but nowhere."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        profile = Profile(name="none", slug="none", size=1, starts=())
        return attrs.evolve(device, slots=1, profiles=(profile,))


class Shrinking(OtherProfiles):
    """A device that is ill has less room."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        faults = host.read(f"/sys/bus/pci/devices/{device.locality.pci_address}/faults")
        return attrs.evolve(device, counters=FrozenMap({"engines": 1 if faults else 2}))


class Early(Sim):
    """Comes back from unmaking a partition while it is still there."""

    late: ClassVar[list[Callable[[], None]]] = []

    def discover(self, host: Host) -> Found:
        yield from super().discover(host)
        while self.late:
            self.late.pop()()

    def destroy(self, host: Host, partition: Device) -> None:
        destroy = super().destroy
        self.late.append(lambda: destroy(host, partition))


class Astray(Sim):
    """Answers with another partition than the one that it was asked for."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        assert made.placement is not None
        return attrs.evolve(made, placement=attrs.evolve(made.placement, start=0))


class Impatient(Sim):
    """Makes a partition that is there a second time."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        if placement in {part.placement for part in _parts(self, host, parent)}:
            raise PlaceOccupied(f"{parent.id}: there is something already")
        return super().create(host, parent, placement)


class Stubborn(Sim):
    """Cannot unmake what is not there."""

    def destroy(self, host: Host, partition: Device) -> None:
        if partition.id not in {
            part.id for part in self.discover(host) if isinstance(part, Device)
        }:
            raise SourceError(f"{partition.id} is not there")
        super().destroy(host, partition)


class Leaving(Sim):
    """Does not undo what was begun."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        host.read(f"/sys/bus/pci/devices/{parent.locality.pci_address}/minor")
        return made


class Sweeping(Sim):
    """Unmakes all partitions of a device, to be sure."""

    def destroy(self, host: Host, partition: Device) -> None:
        for part in _parts(self, host, partition):
            super().destroy(host, part)


class Careless(Sim):
    """Unmakes whatever has a slot of the partition."""

    def destroy(self, host: Host, partition: Device) -> None:
        assert partition.placement is not None
        mine = set(partition.placement.slots)
        for part in _parts(self, host, partition):
            if part.placement and not mine.isdisjoint(part.placement.slots):
                super().destroy(host, part)


class Pushy(Sim):
    """Takes away what is where a partition is to be made."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        try:
            return super().create(host, parent, placement)
        except PlaceOccupied:
            for part in _parts(self, host, parent):
                if part.placement and set(part.placement.slots) & set(placement.slots):
                    super().destroy(host, part)
            return super().create(host, parent, placement)


class Vague(Sim):
    """Says of a place that is taken only that something went wrong."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        try:
            return super().create(host, parent, placement)
        except PlaceOccupied as error:
            raise SourceError("driver error 5") from error


class Forcing(Sim):
    """Sets a mode whatever is there."""

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        for part in _parts(self, host, device):
            self.destroy(host, part)
        super().set_mode(host, device, mode)


class OneWay(Sim):
    """Says that it has set the first mode again, and has not."""

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        if mode != "single":
            super().set_mode(host, device, mode)


class Nodding(Sim):
    """Says that a mode is set that there is not."""

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        if mode in {known.name for known in device.modes}:
            super().set_mode(host, device, mode)


class Numbering(Changed):
    """Tells partitions from each other by their numbers among those that are there."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        if device.parent is None:
            return device
        return attrs.evolve(device, handle=str(position))

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        return next(part for part in _parts(self, host, parent) if part.id == made.id)


def _parts(vendor: Sim, host: Host, device: Device) -> Iterable[Device]:
    """The partitions of a whole device, or of that of a partition."""
    found = vendor.discover(host)
    return [one for one in found if isinstance(one, Device) and one.parent == device.root]
