"""Machines whose devices can be cut or set, as the subject has them. Not here: any check."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from accelkit.conformance.bench import PluginBench, Rig
from accelkit.conformance.keeping import Seen, other, seen_of
from accelkit.conformance.model import Inapplicable, Unanswered
from accelkit.conformance.subjects import Cut, PluginSubject
from accelkit.core.errors import AccelkitError, PluginError
from accelkit.core.model import Device, DeviceId, Placement, Profile, part_of
from accelkit.core.partition import counters
from accelkit.core.partitioning.rules import fixed_cut, profile_named
from accelkit.core.places import can_be_set
from accelkit.core.vendor import Vendor
from accelkit.core.working import create_partition, destroy_partition, set_device_mode

T = TypeVar("T")
UNITS = 2
TRIES = 8
"""Places that are tried on the first machine; on each other one it is one of them."""


def ways(subject: PluginSubject) -> tuple[Cut, ...]:
    """Every machine of *subject*: of its product or else of all, and others that it names."""
    machine = subject.simulated
    assert machine is not None
    products = (subject.product,) if subject.product else machine.products
    named = (how for how in (subject.claimed, subject.cut) if how is not None)
    found = [attrs.evolve(how, product=how.product or products[0]) for how in named]
    return tuple(dict.fromkeys([*(Cut(product=product) for product in products), *found]))


def rigs(bench: PluginBench, *, count: int = UNITS) -> Iterator[Rig]:
    """The plugin on a fresh machine of every sort."""
    for way in ways(bench.subject):
        yield bench.rigged(bench.machine(way, count=count))


@attrs.frozen(kw_only=True)
class Bed:
    """A device out of which partitions can be cut one by one now."""

    rig: Rig
    parent: Device
    free: tuple[Placement, ...]
    """Every place at which nothing is, in the maker's order."""
    tries: int
    """So many places can be tried without taking too long."""

    def create(self, place: Placement, vendor: Vendor | None = None) -> Device:
        """Make a partition, as the agent does.

        Raises:
            AccelkitError: The plugin could not, or must not answer so.
        """
        return create_partition(vendor or self.rig.vendor, self.rig.host, self.parent, place)

    def tried(self, place: Placement) -> Device | AccelkitError:
        """A partition, or why it is not made."""
        return tried(lambda: self.create(place))

    def made(self, place: Placement, vendor: Vendor | None = None) -> Device:
        """A partition where one can be.

        Raises:
            Unanswered: It cannot be made.
        """
        try:
            return self.create(place, vendor)
        except AccelkitError as error:
            raise Unanswered(f"{self.parent.id}: {words(place)} cannot be made: {error}") from error

    def destroy(self, partition: Device, vendor: Vendor | None = None) -> None:
        """Unmake a partition, as the agent does.

        Raises:
            Unanswered: It cannot be unmade.
        """
        try:
            destroy_partition(vendor or self.rig.vendor, self.rig.host, partition)
        except AccelkitError as error:
            raise Unanswered(f"{partition.id} cannot be unmade: {error}") from error

    def part(self, place: Placement) -> Device:
        """The partition that is or could be at *place*, as far as its place says what it is."""
        profile = profile_named(self.parent, place.profile)
        assert profile is not None
        return part_of(self.parent, profile, place.start)

    def parts(self) -> dict[DeviceId, Device]:
        """The partitions that are there, seen by a plugin that knows nothing of before."""
        devices = fresh(self.rig).values()
        return {device.id: device for device in devices if device.parent == self.parent.id}

    def some(self, most: int | None = None) -> list[Placement]:
        """*most* places, or as many as can be tried: of as many profiles as possible."""
        places = self.rig.bench.rng.sample(self.free, len(self.free))
        firsts = list({p.profile: p for p in places}.values())
        return [*firsts, *(p for p in places if p not in firsts)][: most or self.tries]

    def seen(self) -> Seen:
        assert self.rig.directory is not None
        return seen_of(self.rig.directory)


def words(place: Placement) -> str:
    return f"{place.profile} at slot {place.start}"


def fresh(rig: Rig) -> dict[DeviceId, Device]:
    """All devices by id, seen by a plugin that knows nothing of before."""
    report = rig.report(vendor=rig.bench.plugin())
    return {device.id: device for device in report.devices}


def beds(
    bench: PluginBench, *, count: int = UNITS, every: bool = False, needed: bool = True
) -> Iterator[Bed]:
    """One device to cut on a fresh machine of the first sort that has one, or of *every* one.

    Args:
        bench: Of the plugin.
        count: Units of a machine.
        every: Look at all sorts of machines.
        needed: False: none is fine where modes alone cut devices.

    Raises:
        Unanswered: There is none, though the plugin says that it cuts devices.
        Inapplicable: Modes alone cut devices, or the one product that is looked at has none.
    """
    done: set[str | None] = set()
    by_mode = False
    for way in ways(bench.subject):
        if way.product not in done:
            rig = bench.rigged(bench.machine(way, count=count))
            by_mode |= any(mode.cut for device in rig.devices() for mode in device.modes)
            if (bed := _bed(rig, 1 if done else TRIES)) is not None:
                done.add(way.product)
                yield bed
                if not every:
                    return
    if done or (by_mode and not needed):
        return
    if by_mode:
        raise Inapplicable("all partitions come and go with modes of their devices")
    raise lacking(bench.subject, "has devices out of which partitions can be cut one by one")


def lacking(subject: PluginSubject, what: str) -> Exception:
    """What is to be raised where no machine has what a check is about."""
    if subject.product:
        return Inapplicable(f"no machine of product {subject.product} {what}")
    return Unanswered(f"no product of the simulated machine {what}")


def _bed(rig: Rig, tries: int) -> Bed | None:
    for device in rig.devices():
        mode = next((profile.mode or device.mode for profile in carved(device)), None)
        if not carved(device):
            continue
        if mode != device.mode:
            set_mode(rig, device, mode or "")
        devices = fresh(rig)
        parent = devices[device.id]
        taken = {
            slot
            for part in devices.values()
            if part.parent == parent.id and part.placement
            for slot in part.placement.slots
        }
        free = tuple(p for p in places_of(parent) if taken.isdisjoint(p.slots))
        if free:
            return Bed(rig=rig, parent=parent, free=free, tries=tries)
    return None


def set_mode(rig: Rig, device: Device, mode: str) -> None:
    """Bring a device into a mode that it can be brought into.

    Raises:
        Unanswered: It does not come into it.
    """
    try:
        set_device_mode(rig.vendor, rig.host, device, mode)
    except AccelkitError as error:
        raise Unanswered(f"{device.id} cannot be set to mode {mode}: {error}") from error
    found = fresh(rig).get(device.id)
    if found is None or found.mode != mode:
        now = "is gone" if found is None else f"is in mode {found.mode}"
        raise Unanswered(f"{device.id} was set to mode {mode}, and {now}")


def carved(device: Device) -> tuple[Profile, ...]:
    """Profiles that can be made one by one, in the present mode or one that can be set."""
    return tuple(
        p
        for p in device.profiles
        if not fixed_cut(device, p.name)
        and (p.mode in {None, device.mode} or can_be_set(device, p.mode or ""))
    )


def places_of(parent: Device) -> tuple[Placement, ...]:
    """All that can be cut out of *parent* one by one in its mode, in the maker's order."""
    return tuple(
        Placement(profile=p.name, start=start, size=p.size)
        for p in parent.profiles
        if not fixed_cut(parent, p.name) and p.mode in {None, parent.mode}
        for start in p.starts
    )


def fit(parent: Device, *places: Placement) -> bool:
    """Whether the facts of *parent* say that all of *places* can be there together."""
    competing = counters(parent)
    taken: dict[str, int] = {}
    for place in places:
        for key, amount in competing.takes[place.profile, place.start].items():
            taken[key] = taken.get(key, 0) + amount
    return all(amount <= competing.totals[key] for key, amount in taken.items())


def tried(call: Callable[[], T]) -> T | AccelkitError:
    """What *call* returns, or why it is refused.

    Raises:
        Unanswered: It is refused, but not as its contract says.
    """
    try:
        return call()
    except PluginError as error:
        raise Unanswered(str(error)) from error
    except AccelkitError as error:
        return error


def refusal(call: Callable[[], object]) -> AccelkitError | None:
    """Why *call* is refused; None: it is not."""
    outcome = tried(call)
    return outcome if isinstance(outcome, AccelkitError) else None


def left_over(before: Seen, after: Seen) -> Iterator[str]:
    """What is not as it was; the first few."""
    return (f"{path} is not as it was before" for path in other(before, after)[:3])
