"""Which slices to write, in which order, so that nobody ever sees half a change. Pure.

Consumers believe the highest generation of a pool, and only when as many slices of it are there
as it says. Not here: writing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from accelkit.backends.dra.objects import Owner, slice_name
from accelkit.backends.dra.pool import Pool, Slice
from accelkit.backends.dra.stored import Stored
from accelkit.core.values import freeze

Accepted = Mapping[str, tuple[Slice, str]]
"""By name of an object: what was sent, and the version that the server made of it.

What it keeps then is not what was sent, but sending it again would change nothing."""
_NOTHING: Accepted = {}


class Verb(StrEnum):
    """What is done to an object."""

    DELETE = "delete"
    UPDATE = "update"
    CREATE = "create"


@attrs.frozen(kw_only=True)
class Write:
    """One request."""

    verb: Verb
    name: str
    number: int = -1
    """Of the slice; of one that goes, none."""
    version: str = ""
    """That the object must have; empty: there must be none."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Plan:
    """What is left to do; nothing if there are no writes."""

    writes: tuple[Write, ...] = ()
    """In order; whatever fails, those behind it are not made."""
    generation: int

    @property
    def alters(self) -> bool:
        """Whether anything that is there is written, or goes."""
        return any(write.verb is not Verb.CREATE for write in self.writes)


def plan(
    pool: Pool,
    stored: Collection[Stored],
    owner: Owner,
    *,
    least: int = 0,
    accepted: Accepted = _NOTHING,
) -> Plan:
    """How *stored* becomes *pool*.

    One slice of devices may change by itself, and counter sets may come before it: each write
    leaves a pool that is whole and right. Anything more is a new generation, of which nobody
    believes anything until its last slice is there.

    Args:
        pool: As it shall be.
        stored: The driver's slices of this node.
        owner: The node.
        least: The highest generation that there ever was, if it is known.
        accepted: What the server makes of what it is sent.
    """
    names = [slice_name(pool.driver, pool.name, n) for n in range(len(pool.slices))]
    usable = {one.name: one for one in stored if one.name in names and one.pool == pool.name}
    deletes = [
        Write(verb=Verb.DELETE, name=one.name, version=one.version)
        for one in sorted(stored, key=lambda one: one.name)
        if usable.get(one.name) is not one
    ]
    present = max((one.generation for one in stored), default=0)
    there = [usable.get(name) for name in names]
    stale = [
        number
        for number, one in enumerate(there)
        if one is None
        or not _same(one, pool.slices[number], accepted)
        or (one.generation, one.count) != (present, len(names))
        or not one.owned_by(owner)
    ]
    if _renews(pool.slices, there, stale):
        generation = max(present, least) + 1
        stale = list(range(len(names)))
    else:
        generation = present
    return Plan(
        writes=(*deletes, *_writes(names, there, _sets_first(stale, pool.slices))),
        generation=generation,
    )


def _same(one: Stored, wanted: Slice, accepted: Accepted) -> bool:
    return one.slice == wanted or accepted.get(one.name) == (wanted, one.version)


def _renews(wanted: Sequence[Slice], there: Sequence[Stored | None], stale: Sequence[int]) -> bool:
    """Whether the change cannot be made slice by slice."""
    if any(there[n] is None for n in stale):
        return True
    of_devices = [n for n in stale if not _only_sets(wanted[n]) or not _only_sets(_slice(there[n]))]
    return len(of_devices) > 1 or any(_sets_change(_slice(there[n]), wanted[n]) for n in stale)


def _slice(one: Stored | None) -> Slice | None:
    return None if one is None else one.slice


def _only_sets(one: Slice | None) -> bool:
    return one is not None and bool(one.counter_sets) and not one.devices


def _sets_change(before: Slice | None, after: Slice) -> bool:
    """Whether a counter set that is there becomes another: its devices must change with it."""
    new = {one.name: one for one in after.counter_sets}
    return before is not None and any(new.get(s.name, s) != s for s in before.counter_sets)


def _sets_first(numbers: Sequence[int], slices: Sequence[Slice]) -> list[int]:
    return sorted(numbers, key=lambda n: (not _only_sets(slices[n]), n))


def _writes(
    names: Sequence[str], there: Sequence[Stored | None], numbers: Sequence[int]
) -> Iterator[Write]:
    """What is there is updated before anything is created."""
    for number in numbers:
        if (one := there[number]) is not None:
            name = names[number]
            yield Write(verb=Verb.UPDATE, name=name, number=number, version=one.version)
    for number in numbers:
        if there[number] is None:
            yield Write(verb=Verb.CREATE, name=names[number], number=number)
