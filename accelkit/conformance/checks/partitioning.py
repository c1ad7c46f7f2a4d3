"""P: what devices say of how they can be cut, and how much there is. Not here: cutting them."""

from collections.abc import Iterator, Mapping

from accelkit.backends.dra.document import render
from accelkit.backends.dra.pool import Pool, PoolDevice
from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import (
    Bed,
    beds,
    fit,
    fresh,
    lacking,
    left_over,
    rigs,
    words,
)
from accelkit.conformance.keeping import view_of
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.core.errors import AccelkitError
from accelkit.core.model import Device, DeviceId, Placement, Profile
from accelkit.core.policy import DraPolicy
from accelkit.core.vendor import SupportsPartitioning


def cuttable(bench: PluginBench) -> Iterator[tuple[Rig, tuple[Device, ...]]]:
    """Every machine with a device that says how it can be cut, and all its devices.

    Raises:
        Unanswered: There is none, though the plugin says that it cuts devices.
        Inapplicable: The one product that is looked at cannot be cut.
    """
    found = False
    for rig in rigs(bench):
        devices = rig.devices()
        if any(device.profiles for device in devices):
            found = True
            yield rig, devices
    if not found:
        raise lacking(bench.subject, "has devices that can be cut")


def within_totals(bench: PluginBench) -> Iterator[str]:
    for _, devices in cuttable(bench):
        for device in (d for d in devices if d.profiles):
            for profile in device.profiles:
                yield from _beyond(device, profile)
            break  # those of one product say the same


def _beyond(device: Device, profile: Profile) -> Iterator[str]:
    name = f"{device.id}: profile {profile.name}"
    count = next((m.count for m in device.modes if m.cut == profile.name), 1)
    for key, amount in profile.capacity.items():
        if count * amount > device.capacity.get(key, count * amount):
            whole = device.capacity[key]
            yield f"{name} has {amount} of {key}, {count} times, and the whole device {whole}"
    for key, amount in profile.counters.items():
        if amount > device.counters.get(key, amount):
            yield f"{name} needs {amount} of {key}, and there are {device.counters[key]}"


def conserved(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench, every=True):
        before = bed.seen()
        for profile in _small_and_large(bed):
            yield from _filled(bed, profile)
        yield from told(str(bed.parent.id), left_over(before, bed.seen()))


def _small_and_large(bed: Bed) -> set[str]:
    sizes = sorted({(place.size, place.profile) for place in bed.free})
    return {name for _, name in (sizes[0], sizes[-1])[-bed.tries :]}


def _filled(bed: Bed, profile: str) -> Iterator[str]:
    """What is wrong with as many partitions of *profile* as there is room for."""
    made: dict[Placement, Device] = {}
    for place in (p for p in bed.free if p.profile == profile and fit(bed.parent, *made, p)):
        found = bed.tried(place)
        if isinstance(found, AccelkitError):
            beside = f"beside {len(made)} others" if made else "alone"
            yield _promised(bed, place, beside, found)
            break
        made[place] = found
    for key, whole in bed.parent.capacity.items():
        together = sum(part.capacity.get(key, 0) for part in made.values())
        if together > whole:
            yield (
                f"{bed.parent.id}: {len(made)} partitions {profile} have {together} of {key}, "
                f"and the whole device {whole}"
            )
    for part in reversed(made.values()):
        bed.destroy(part)


def _promised(bed: Bed, place: Placement, beside: str, why: AccelkitError) -> str:
    """That a partition cannot be made, though its device promises it."""
    return (
        f"{bed.parent.id}: {words(place)} cannot be made {beside}, and nothing that the device "
        f"says of its profiles excludes it: {why}"
    )


def exclusive(bench: PluginBench) -> Iterator[str]:
    for rig, devices in cuttable(bench):
        whole = [device for device in devices if device.parent is None]
        if len(whole) != len(rig.units()):
            yield (
                f"{len(whole)} devices hang at no other, and the machine has {len(rig.units())}: "
                f"{whole[-1].id} may be a part of one that it does not name"
            )
        pool = published(rig)
        if pool is not None:
            yield from _not_all(pool, {device.id.name: device for device in whole})


def _not_all(pool: Pool, whole: Mapping[str, Device]) -> Iterator[str]:
    """Whole devices that leave something of what their partitions take."""
    totals = {s.name: s.counters for one in pool.slices for s in one.counter_sets}
    for device in _devices(pool):
        for consumption in device.consumes:
            total = totals[consumption.counter_set]
            if device.name in whole and consumption.counters != total:
                yield f"{device.name} takes {consumption.counters}, which is not all of {total}"
            if not consumption.counters:
                yield f"{device.name} takes nothing of {consumption.counter_set}"


def published(rig: Rig) -> Pool | None:
    """What the plugin's DRA driver publishes; None: nothing."""
    view = view_of(rig.report(), rig.reading(rig.devices()), rig.vendor)
    return next(iter(render(view, DraPolicy()).pools.values()), None)


def _devices(pool: Pool) -> Iterator[PoolDevice]:
    return (device for one in pool.slices for device in one.devices)


def colliding(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench):
        for first in bed.some()[:2]:
            made = bed.made(first)
            for second in _beside(bed, first)[: 1 + bed.tries // 3]:
                found = bed.tried(second)
                if isinstance(found, AccelkitError):
                    yield _promised(bed, second, f"beside {words(first)}", found)
                else:
                    bed.destroy(found)
            bed.destroy(made)


def _beside(bed: Bed, first: Placement) -> list[Placement]:
    """Places that the device says can be there with *first*, the nearest first."""
    rest = [p for p in bed.some(len(bed.free)) if p != first and fit(bed.parent, first, p)]
    return sorted(rest, key=lambda p: max(p.start - first.start, first.start - p.start))


def nothing_empty(bench: PluginBench) -> Iterator[str]:
    for rig in rigs(bench):
        devices = rig.devices()
        for device in devices:
            yield from _half_said(device)
        pool = published(rig)
        for one in pool.slices if pool is not None else ():
            for counter_set in one.counter_sets:
                if not counter_set.counters:
                    yield f"the counter set {counter_set.name} is published without any counter"


def _half_said(device: Device) -> Iterator[str]:
    says = [
        word
        for word, said in (("slots", device.slots), ("totals", device.counters))
        if said and not device.profiles
    ]
    if says:
        yield f"{device.id} cannot be cut, and has {' and '.join(says)} of partitions"
    for profile in device.profiles:
        if not profile.starts:
            yield f"{device.id}: profile {profile.name} can be nowhere"
    if device.profiles and device.parent is not None:
        yield f"{device.id} is a partition, and has profiles"


def same_when_ill(bench: PluginBench) -> Iterator[str]:
    for rig, devices in cuttable(bench):
        before = {d.id: _facts(d) for d in devices}
        for feature in (Feature.FAULT, Feature.FLAW):
            if bench.subject.words_for(feature) is None:
                continue
            rig.do(feature, rig.units()[0])
            yield from _changed(before, {i: _facts(d) for i, d in fresh(rig).items()})
            rig.do(feature, rig.units()[0], undo=True)


def _facts(device: Device) -> tuple[object, ...]:
    return device.slots, device.counters, device.profiles, device.capacity, device.placement


def _changed(
    before: Mapping[DeviceId, tuple[object, ...]], after: Mapping[DeviceId, tuple[object, ...]]
) -> Iterator[str]:
    for i in before:
        if i not in after:
            yield f"{i} is not there any more when a device is ill"
        elif after[i] != before[i]:
            yield f"{i} says otherwise how it can be cut, or how much it has, when a device is ill"


_BADGE = (Badge.PARTITIONING,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "P01",
        "No partition has or needs more than the whole device has.",
        within_totals,
        SupportsPartitioning,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P02",
        "As many partitions can be there as the device says, with no more than it has.",
        conserved,
        SupportsPartitioning,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P03",
        "A whole device takes all that its partitions compete for.",
        exclusive,
        SupportsPartitioning,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P04",
        "Partitions that cannot be there together compete for something that runs out.",
        colliding,
        SupportsPartitioning,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P09",
        "Devices that cannot be cut say nothing of partitions.",
        nothing_empty,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P13",
        "How a device can be cut does not depend on its health.",
        same_when_ill,
        SupportsPartitioning,
        Feature.MACHINE,
        Feature.FAULT,
        badges=_BADGE,
    ),
)
