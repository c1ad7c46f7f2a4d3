"""Which device goes into which slice, so that a change rewrites one slice. Pure.

Not here: what a device looks like in a slice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from accelkit.backends.dra.pool import CounterSet, PoolDevice, Slice
from accelkit.core.limits import LATEST
from accelkit.core.values import FrozenMap, freeze

PARENT = "parent"
"""Attribute of a device that names its unit."""
MOST_DEVICES = LATEST.advanced_devices
"""Always: a taint may come at any time and must not force anything to move."""
MOST_SETS = LATEST.counter_sets


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Unit:
    """A physical device with everything of it that is published."""

    name: str
    """Of the physical device; that of its counter set, too."""
    devices: tuple[PoolDevice, ...]
    """In the order in which the scheduler shall try them."""
    counters: FrozenMap[str, int] = FrozenMap()
    """Empty: its devices do not compete."""
    room: int = 0
    """The most devices that it can ever show, if that is known."""


@attrs.frozen
class _Chunk:
    """As much of a unit as one slice holds: all of it, if it can be."""

    unit: str
    devices: tuple[PoolDevice, ...]
    room: int


@attrs.define
class _Draft:
    """A slice in the making."""

    sets: list[CounterSet] = attrs.Factory(list)
    chunks: list[_Chunk] = attrs.Factory(list)
    devices: int = 0
    free: int = MOST_DEVICES
    """How many more devices, counting what may still come of those that are there."""

    def add(self, chunk: _Chunk) -> None:
        self.chunks.append(chunk)
        self.devices += len(chunk.devices)
        self.free -= chunk.room

    def holds(self, chunk: _Chunk) -> bool:
        """Whether *chunk* may stay: what is there now fits."""
        return not self.sets and self.devices + len(chunk.devices) <= MOST_DEVICES

    def takes(self, chunk: _Chunk) -> bool:
        """Whether *chunk* may come."""
        return not self.sets and self.free >= chunk.room

    def slice(self) -> Slice:
        chunks = sorted(self.chunks, key=lambda c: c.unit)
        return Slice(
            counter_sets=tuple(sorted(self.sets, key=lambda s: s.name)),
            devices=tuple(device for chunk in chunks for device in chunk.devices),
        )


def pack(units: Iterable[Unit], previous: Sequence[Slice] = ()) -> tuple[Slice, ...]:
    """Put *units* into slices.

    A unit stays where it is in *previous* while it fits there; others go, largest first, to the
    first slice with room. So what changes inside a unit changes one slice, and only a unit that
    finds no room changes the number of slices. A unit that is gone leaves a hole.

    Args:
        units: Each once.
        previous: What is published now; of devices only names and parents count.

    Returns:
        At least one slice; in a slice units are in the order of their names. The same again for
        itself as *previous*.

    Source:
        Limits of slices: accelkit.core.limits.
    """
    ordered = sorted(units, key=lambda unit: unit.name)
    drafts = [_Draft() for _ in previous]
    _place_sets(ordered, previous, drafts)
    _place_chunks([chunk for unit in ordered for chunk in _chunks(unit)], previous, drafts)
    packed = tuple(draft.slice() for draft in drafts) or (Slice(),)
    return _shortened(packed) if _renewed(packed, previous) else packed


def changed(new: Sequence[Slice], old: Sequence[Slice]) -> tuple[int, ...]:
    """Numbers of the slices of *new* that are not in *old* as they are."""
    return tuple(n for n, one in enumerate(new) if n >= len(old) or one != old[n])


def _chunks(unit: Unit) -> Iterator[_Chunk]:
    if len(unit.devices) <= MOST_DEVICES:
        room = min(MOST_DEVICES, max(unit.room, len(unit.devices)))
        yield _Chunk(unit.name, unit.devices, room)
        return
    for first in range(0, len(unit.devices), MOST_DEVICES):
        part = unit.devices[first : first + MOST_DEVICES]
        yield _Chunk(unit.name, part, len(part))


def _place_chunks(
    chunks: Iterable[_Chunk], previous: Sequence[Slice], drafts: list[_Draft]
) -> None:
    of_device: dict[str, int] = {}
    of_unit: dict[str, Counter[int]] = {}
    for number, one in enumerate(previous):
        for device in one.devices:
            of_device[device.name] = number
            of_unit.setdefault(_unit_of(device), Counter())[number] += 1
    homeless: list[_Chunk] = []
    for chunk in chunks:
        seen = [of_device[d.name] for d in chunk.devices if d.name in of_device]
        there = Counter(seen) if seen else of_unit.get(chunk.unit)
        home = _most_common(there) if there else None
        if home is not None and drafts[home].holds(chunk):
            drafts[home].add(chunk)
        else:
            homeless.append(chunk)
    for chunk in sorted(homeless, key=lambda c: (-c.room, c.unit)):
        draft = next((d for d in drafts if d.takes(chunk)), None)
        if draft is None:
            draft = _Draft()
            drafts.append(draft)
        draft.add(chunk)


def _unit_of(device: PoolDevice) -> str:
    return str(device.attributes.get(PARENT, device.name))


def _most_common(numbers: Mapping[int, int]) -> int:
    return min(numbers, key=lambda n: (-numbers[n], n))


def _place_sets(units: Iterable[Unit], previous: Sequence[Slice], drafts: list[_Draft]) -> None:
    """Counter sets stay where they are, those of vanished units until their slice is written.

    One that devices in *previous* still consume stays longer: it must not go before them.
    """
    wanted = {u.name: CounterSet(name=u.name, counters=u.counters) for u in units if u.counters}
    consumed = {taken.counter_set for one in previous for d in one.devices for taken in d.consumes}
    idle: dict[int, list[CounterSet]] = {}
    written: set[int] = set()
    for number, one in enumerate(previous):
        for old in () if one.devices else one.counter_sets:
            new = wanted.pop(old.name, None)
            if new is not None or old.name in consumed:
                drafts[number].sets.append(new or old)
                written |= {number} if new not in {None, old} else set()
            else:
                idle.setdefault(number, []).append(old)
    for new in wanted.values():
        number = _set_room(previous, drafts)
        drafts[number].sets.append(new)
        written.add(number)
    for number, sets in idle.items():
        drafts[number].sets += [] if number in written else sets


def _set_room(previous: Sequence[Slice], drafts: list[_Draft]) -> int:
    """Number of the first draft with room for a counter set, made if need be."""
    for number, draft in enumerate(drafts):
        of_devices = number < len(previous) and previous[number].devices
        if not of_devices and len(draft.sets) < MOST_SETS:
            return number
    drafts.append(_Draft())
    return len(drafts) - 1


def _renewed(packed: Sequence[Slice], previous: Sequence[Slice]) -> bool:
    """Whether every slice is written anyway: a new generation."""
    devices = sum(
        bool(packed[n].devices or previous[n].devices)
        for n in changed(packed[: len(previous)], previous)
    )
    return len(packed) != len(previous) or devices > 1


def _shortened(packed: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """*packed* without empty slices at its end."""
    last = max((n for n, one in enumerate(packed) if one != Slice()), default=0)
    return packed[: last + 1]
