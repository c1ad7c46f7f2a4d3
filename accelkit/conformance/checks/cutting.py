"""P: making partitions, unmaking them, and modes. Not here: what devices say of it."""

from collections.abc import Iterable, Iterator

import attrs

from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import (
    Bed,
    beds,
    fit,
    fresh,
    left_over,
    places_of,
    refusal,
    rigs,
    words,
)
from accelkit.conformance.faulty import Numbered, Refusing, Steps
from accelkit.conformance.keeping import Seen
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable, Unanswered
from accelkit.core.errors import AccelkitError, PartitionError, PlaceOccupied
from accelkit.core.model import Device, Mode, Placement
from accelkit.core.reading import contract
from accelkit.core.values import Scope
from accelkit.core.vendor import SupportsPartitioning
from accelkit.core.working import set_device_mode
from accelkit.testing.simulate import set_state

SURVIVORS = 3
PID = "4711"


def restored(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench, every=True, needed=False):
        for place in bed.some()[:3]:
            yield from _made_and_unmade(bed, place)
    for rig in rigs(bench):
        yield from _set_and_back(rig)


def _made_and_unmade(bed: Bed, place: Placement) -> Iterator[str]:
    before, there = bed.seen(), bed.parts()
    made = bed.made(place)
    found = bed.parts().get(made.id)
    if found is None:
        yield f"{made.id} was made, and discovery does not find it"
    elif found != made:
        wrong = [
            f.name for f in attrs.fields(Device) if getattr(found, f.name) != getattr(made, f.name)
        ]
        yield f"{made.id} is another one for create than for discovery: {', '.join(wrong)}"
    after = bed.seen()
    for again in (bed.made(place), bed.made(place, bed.rig.bench.plugin())):
        if again != made:
            yield f"{made.id} is there, and making it answers something else"
    yield from told(f"{made.id} is made again", left_over(after, bed.seen()))
    bed.destroy(made, bed.rig.bench.plugin())
    if made.id in bed.parts():
        yield f"{made.id} was unmade, and is still there when destroy returns"
    bed.destroy(made)
    bed.destroy(made, bed.rig.bench.plugin())
    if bed.parts() != there:
        yield f"{bed.parent.id} has other partitions than before {words(place)} came and went"
    yield from told(f"{made.id} is unmade", left_over(before, bed.seen()))


def _set_and_back(rig: Rig) -> Iterator[str]:
    """What is wrong with modes that can be set, one after another, and the first again."""
    devices = rig.devices()
    device = next((d for d in devices if d.modes), None)
    if device is None or device.mode is None or any(d.parent == device.id for d in devices):
        return
    before = fresh(rig)
    for mode in device.modes:
        if mode.name != device.mode and mode.disturbs is not Scope.VENDOR:
            yield from _cut_by(rig, device, mode)
    if _set(rig, device, device.mode) is None and fresh(rig) != before:
        yield f"{device.id} is in mode {device.mode} again, and something is not as it was"


def _set(rig: Rig, device: Device, mode: str) -> AccelkitError | None:
    """Why a mode is not set; None: it is."""
    return refusal(lambda: set_device_mode(rig.vendor, rig.host, device, mode))


def _cut_by(rig: Rig, device: Device, mode: Mode) -> Iterator[str]:
    if _set(rig, device, mode.name) is not None:
        return
    devices = fresh(rig)
    parts = [d for d in devices.values() if d.parent == device.id]
    if devices[device.id].mode != mode.name:
        yield f"{device.id} was set to mode {mode.name}, and is in mode {devices[device.id].mode}"
    if mode.cut is not None and len(parts) != mode.count:
        yield f"{device.id} has {len(parts)} partitions in mode {mode.name}, not {mode.count}"


def rolled_back(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench, count=1):
        place = bed.free[-1]
        before = bed.seen()
        steps = Steps(bed.rig.directory or "")
        _create(bed, place, steps)
        bed.destroy(bed.part(place), bench.plugin())
        if not steps.changing:
            raise Unanswered(f"{bed.parent.id}: making {words(place)} changes nothing")
        for number in _spread(range(steps.changing[0], steps.count), bed.tries):
            yield from _fails_at(bed, place, number, before)


def _spread(numbers: range, most: int) -> list[int]:
    """Some of *numbers*, the first and the last among them."""
    step = max(1, -(-len(numbers) // most))
    return sorted({*numbers[::step], numbers[-1]})


def _create(bed: Bed, place: Placement, numbered: Numbered) -> Device:
    """Make a partition by a plugin that knows nothing of before, each call *numbered*."""
    vendor = bed.rig.bench.plugin()
    assert isinstance(vendor, SupportsPartitioning)
    numbered.begin()
    with contract(vendor, "create"):
        return vendor.create(numbered.door(bed.rig.host), bed.parent, place)


def _fails_at(bed: Bed, place: Placement, number: int, before: Seen) -> Iterator[str]:
    broken = Refusing(number)
    name = f"{bed.part(place).id}, where {{}} fails while it is made"
    error = refusal(lambda: _create(bed, place, broken))
    what = name.format(broken.refused or "nothing")
    there = bed.part(place).id in bed.parts()
    if error is None and not there:
        yield f"{what}: create says that it is there, and it is not"
    elif error is not None and there:
        yield f"{what}: it is there all the same: {error}"
    elif error is not None:
        yield from told(what, left_over(before, bed.seen()))
        bed.made(place, bed.rig.bench.plugin())
    bed.destroy(bed.part(place), bed.rig.bench.plugin())
    yield from told(f"{what}, and is made and unmade after that", left_over(before, bed.seen()))


def only_its_own(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench):
        first, *rest = bed.some()
        mine = bed.made(first)
        others = [p for p in rest if fit(bed.parent, first, p)]
        theirs = {i: d for p in others[:1] for i, d in [(bed.made(p).id, bed.made(p))]}
        for place in _over(bed, first)[:2]:
            bed.destroy(bed.part(place), bench.plugin())
            if mine.id not in bed.parts():
                yield f"{bed.part(place).id} is not there, and unmaking it takes {mine.id} away"
                return
        bed.destroy(mine, bench.plugin())
        for i, device in theirs.items():
            if bed.parts().get(i) != device:
                yield f"{i} is not there as it was, now that {mine.id} is unmade"
            bed.destroy(device)


def _over(bed: Bed, place: Placement) -> list[Placement]:
    """Other places that have a slot of *place*."""
    return [
        p for p in places_of(bed.parent) if p != place and not set(p.slots).isdisjoint(place.slots)
    ]


def occupied(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench):
        for first in bed.some()[:2]:
            mine = bed.made(first)
            after = bed.seen()
            over = _over(bed, first)
            for place in bench.rng.sample(over, min(len(over), 3)):
                yield from _refused(bed, place, mine, PlaceOccupied)
            for place in _nowhere(bed, first):
                yield from _refused(bed, place, mine, PartitionError)
            yield from told(f"after what is refused beside {mine.id}", left_over(after, bed.seen()))
            bed.destroy(mine, bench.plugin())


def _nowhere(bed: Bed, place: Placement) -> Iterator[Placement]:
    yield attrs.evolve(place, start=bed.parent.slots)
    yield attrs.evolve(place, size=place.size + 1)
    yield attrs.evolve(place, profile="no-such-profile")


def _refused(bed: Bed, place: Placement, mine: Device, kind: type[AccelkitError]) -> Iterator[str]:
    error = refusal(lambda: bed.create(place, bed.rig.bench.plugin()))
    what = f"{bed.parent.id}: {words(place)}"
    if error is None:
        yield f"{what} is made, where {mine.id} is or no place is"
    elif not isinstance(error, kind):
        yield f"{what} is refused with {error.code}, and not with {kind.code}: {error}"
    if mine.id not in bed.parts():
        yield f"{what} takes {mine.id} away"


def busy(bench: PluginBench) -> Iterator[str]:
    found = False
    for rig in rigs(bench, count=1):
        device = next((d for d in rig.devices() if d.parent is None and d.modes), None)
        if device is not None:
            found = True
            yield from _stays(rig, device, ["no-such-mode"], "there is no such mode")
            yield from _held(rig, device)
    if not found:
        raise Inapplicable("no device has modes that can be set")
    for bed in beds(bench, count=1, needed=False):
        modes = [mode.name for mode in bed.parent.modes if mode.name != bed.parent.mode]
        part = bed.made(bed.free[0])
        yield from _stays(bed.rig, bed.parent, modes, f"{part.id} is there")
        if bed.parts().get(part.id) != part:
            yield f"{part.id} is not there as it was, now that another mode was asked for"


def _held(rig: Rig, device: Device) -> Iterator[str]:
    """What is wrong while a process uses *device*."""
    machine = rig.bench.subject.simulated
    if machine is None or not machine.verbs.get("hold", "").startswith("hold UNIT PID"):
        return
    set_state(rig.directory or "", ("hold", rig.units()[0], PID))
    modes = [mode.name for mode in device.modes if mode.name != device.mode]
    yield from _stays(rig, device, modes, "a process uses it")


def _stays(rig: Rig, device: Device, modes: Iterable[str], why: str) -> Iterator[str]:
    for mode in modes:
        error = _set(rig, device, mode)
        if error is None:
            yield f"{device.id} is set to mode {mode}, though {why}"
        elif not isinstance(error, PartitionError):
            yield f"{device.id}: mode {mode} is refused with {error.code}, as if nobody could know"
        found = fresh(rig).get(device.id)
        if found is None or found.mode != device.mode:
            yield f"{device.id} is not in mode {device.mode} any more, though {why}"


def same_names(bench: PluginBench) -> Iterator[str]:
    for bed in beds(bench):
        made: dict[Placement, Device] = {}
        for place in sorted(bed.free, key=lambda p: (p.size, p.start)):
            if len(made) < SURVIVORS and fit(bed.parent, *made, place):
                made[place] = bed.made(place)
        going, *staying = made.values()
        for again in range(2):
            if again:
                bed.made(going.placement or bed.free[0])
            else:
                bed.destroy(going)
            there = bed.parts()
            for part in staying:
                if there.get(part.id) != part:
                    how = "is not there" if part.id not in there else "is another one"
                    yield f"{part.id} {how} when {going.id} {'comes' if again else 'goes'}"
        if going.id not in bed.parts():
            yield f"{going.id} has another name when it is made again"
        for part in made.values():
            bed.destroy(part)


_NEEDS = (SupportsPartitioning, Feature.MACHINE)
_BADGE = (Badge.PARTITIONING,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "P05",
        "What is made and unmade again leaves everything as it was.",
        restored,
        *_NEEDS,
        badges=_BADGE,
    ),
    in_process(
        "P06",
        "Of a partition that could not be made nothing is left.",
        rolled_back,
        *_NEEDS,
        badges=_BADGE,
    ),
    in_process(
        "P07",
        "Unmaking a partition touches no other one.",
        only_its_own,
        *_NEEDS,
        badges=_BADGE,
    ),
    in_process(
        "P08",
        "A place that is taken, or that is none, is refused and left alone.",
        occupied,
        *_NEEDS,
        badges=_BADGE,
    ),
    in_process(
        "P10",
        "The mode of a device that is in use stays, and asking for another one is refused.",
        busy,
        *_NEEDS,
        badges=_BADGE,
    ),
    in_process(
        "P14",
        "Partitions that stay are the same when others come and go.",
        same_names,
        *_NEEDS,
        badges=_BADGE,
        must=False,
    ),
)
