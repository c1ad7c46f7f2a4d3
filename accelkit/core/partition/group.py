"""A layout over several devices: which device holds which part. Not here: places on one device."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from accelkit.core.errors import Misfit, UnsatisfiableLayout
from accelkit.core.model import Device, Placement
from accelkit.core.partition.arranging import Arrangement, Present, arranged, arrangement
from accelkit.core.partition.placing import place
from accelkit.core.partition.table import Counts, Table, TooMuchError, table_of
from accelkit.core.values import freeze

MOST_TRIED = 4_000
"""Parts of a layout that are tried on devices; then the question stays open."""

Part: TypeAlias = Counts
"""What a device gets, in the order of the profiles that are asked for."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Member:
    """A device of a group, and what is on it."""

    device: Device
    existing: frozenset[Placement] = frozenset()
    pinned: frozenset[Placement] = frozenset()
    """Must stay where they are."""


@attrs.frozen(kw_only=True)
class _Room:
    """What one device can hold of what is asked for."""

    parts: tuple[Part, ...]
    """All that its pinned partitions are in; those that keep most first, then the largest."""
    there: Part
    """What exists."""
    kept: Callable[[Part], int | None]
    """How many existing partitions a part can keep; None: it does not fit beside pinned ones."""

    @property
    def most(self) -> Part:
        return tuple(map(max, zip(*self.parts, strict=True)))


def place_group(
    members: Sequence[Member],
    layout: Mapping[str, int],
    *,
    offered: Collection[str] | None = None,
) -> tuple[Arrangement, ...]:
    """Find places for exactly the partitions of *layout* on all *members* together.

    Of all arrangements that contain what is pinned one that keeps most existing partitions.

    Args:
        members: Devices, of one product or of several.
        layout: How many of each profile in all.
        offered: Profiles whose openings count on each device; None: all.

    Returns:
        One arrangement for each member, in their order.

    Raises:
        UnsatisfiableLayout: There is none, or finding out would take too long.
    """
    wanted = {name: n for name, n in layout.items() if n}
    if any(place.profile not in wanted for member in members for place in member.pinned):
        raise _refused(members, Misfit.PINNED, "partitions that it does not have must stay")
    try:
        found = _divided(members, tuple(wanted), tuple(wanted.values()))
    except TooMuchError:
        raise _refused(members, Misfit.UNDECIDED, "finding out takes too long") from None
    if found is None:
        raise _refused(members, Misfit.GEOMETRY, "there is no room for all of it")
    return tuple(
        place(m.device, dict(zip(wanted, part, strict=True)), m.existing, m.pinned, offered=offered)
        for m, part in zip(members, found, strict=True)
    )


def _refused(members: Sequence[Member], why: Misfit, said: str) -> UnsatisfiableLayout:
    names = ", ".join(str(member.device.id) for member in members)
    return UnsatisfiableLayout(f"the layout cannot be divided among {names}: {said}", why=why)


def _divided(
    members: Sequence[Member], names: Sequence[str], wanted: Part
) -> tuple[Part, ...] | None:
    """The part of each member; None: they cannot hold it all.

    Raises:
        TooMuchError: It would take too long.
    """
    rooms: dict[tuple[Table, frozenset[Placement], frozenset[Placement]], _Room] = {}
    of_member = []
    for m in members:
        key = (table_of(m.device), m.existing, m.pinned)
        if key not in rooms:
            rooms[key] = _room(m, names, wanted)
        of_member.append(rooms[key])
    if not all(room.parts for room in of_member):
        return None
    # Those with something worth keeping come first, and equal ones together.
    first = {id(room): n for n, room in enumerate(rooms.values())}
    order = sorted(
        range(len(members)),
        key=lambda n: (-sum(map(min, of_member[n].there, wanted)), first[id(of_member[n])]),
    )
    found = _best([of_member[n] for n in order], wanted)
    if found is None:
        return None
    return tuple(part for _, part in sorted(zip(order, found, strict=True)))


def _room(member: Member, names: Sequence[str], wanted: Part) -> _Room:
    table = table_of(member.device)
    present = Present(existing=member.existing, pinned=member.pinned)
    positions = [table.index.get(name) for name in names]

    def counted(places: Collection[Placement]) -> Part:
        profiles = [place.profile for place in places]
        return tuple(profiles.count(name) for name in names)

    there = counted(member.existing)
    known: dict[Part, int | None] = {}

    def kept(part: Part) -> int | None:
        if not member.existing and not member.pinned:
            return 0
        if part not in known:
            starts = arranged(table, _spread(table, positions, part), present, ())
            known[part] = None if starts is None else arrangement(table, starts, present, ()).kept
        return known[part]

    parts = _parts(table, positions, counted(member.pinned), wanted)
    return _Room(
        parts=tuple(sorted(parts, key=lambda p: (-sum(map(min, p, there)), -sum(p), p))),
        there=there,
        kept=kept,
    )


def _spread(table: Table, positions: Sequence[int | None], part: Part) -> Counts:
    """*part* as counts of the table."""
    counts = [0] * len(table.profiles)
    for position, n in zip(positions, part, strict=False):
        if position is not None:
            counts[position] = n
    return tuple(counts)


def _parts(
    table: Table, positions: Sequence[int | None], least: Part, most: Part
) -> Iterator[Part]:
    """Everything from *least* to *most* that an empty device can hold.

    Raises:
        TooMuchError: There is too much.
    """
    reach = table.reach
    if reach is None:
        raise TooMuchError

    def deeper(part: Part) -> Iterator[Part]:
        if len(part) == len(positions):
            yield part
            return
        position = positions[len(part)]
        limit = 0 if position is None else min(most[len(part)], table.limits[position])
        for n in range(limit + 1):
            counts = _spread(table, positions, (*part, n))
            # More does not fit where less does not.
            if table.exhausted(counts) or table.shaped(counts) not in reach:
                return
            if n >= least[len(part)]:
                yield from deeper((*part, n))

    return deeper(())


def _best(rooms: Sequence[_Room], wanted: Part) -> tuple[Part, ...] | None:
    """Parts of the rooms that make up *wanted* and keep most; None: there are none.

    Rooms meet only in what is left for the later ones, so each pair of both is solved once.
    """
    there = _sums([room.there for room in rooms], wanted)
    most = _sums([room.most for room in rooms], wanted)
    solved: dict[tuple[int, Part], tuple[int, tuple[Part, ...]] | None] = {}
    tried = 0

    def best(depth: int, left: Part) -> tuple[int, tuple[Part, ...]] | None:
        nonlocal tried
        if any(map(int.__gt__, left, most[depth])):
            return None
        if depth == len(rooms):
            return 0, ()
        if (depth, left) in solved:
            return solved[depth, left]
        ceiling = sum(map(min, left, there[depth]))
        top = None
        for part in _worthwhile(rooms[depth], left, keeping=ceiling > 0):
            tried += 1
            if tried > MOST_TRIED:
                raise TooMuchError
            kept = rooms[depth].kept(part)
            later = None
            if kept is not None:
                later = best(depth + 1, tuple(map(int.__sub__, left, part)))
            if kept is None or later is None or (top and kept + later[0] <= top[0]):
                continue
            top = (kept + later[0], (part, *later[1]))
            if top[0] == ceiling:
                break
        solved[depth, left] = top
        return top

    found = best(0, wanted)
    return None if found is None else found[1]


def _sums(parts: Sequence[Part], wanted: Part) -> list[Part]:
    """What each one and all that follow have together; nothing at the end."""
    sums = [tuple(0 for _ in wanted)]
    for part in reversed(parts):
        sums.append(tuple(map(int.__add__, sums[-1], part)))
    return sums[::-1]


def _worthwhile(room: _Room, left: Part, *, keeping: bool) -> list[Part]:
    """The parts to try; where there is nothing to keep, only those that cannot be extended."""
    fitting = [part for part in room.parts if not any(map(int.__gt__, part, left))]
    if keeping:
        return fitting
    known = set(fitting)
    return [
        part
        for part in fitting
        if not any((*part[:n], part[n] + 1, *part[n + 1 :]) in known for n in range(len(part)))
    ]
