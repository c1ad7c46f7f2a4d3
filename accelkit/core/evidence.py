"""Events written down, so that health stays a function of what can be read.

Not here: what events mean; that is the vendor's to say.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

import attrs

from accelkit.core.model import Device, Event, Evidence

MOST_EVIDENCE = 256
"""Entries kept for one vendor."""
_NEXT = timedelta(microseconds=1)
Key: TypeAlias = tuple[str, str, str]
"""Vendor, subject and code."""


def record(
    evidence: Iterable[Evidence],
    vendor: str,
    events: Iterable[Event],
    now: datetime,
    serious: Collection[str] = (),
    *,
    now_s: float | None = None,
) -> tuple[Evidence, ...]:
    """Add *events* of *vendor* to *evidence*: one entry per vendor, subject and code.

    Args:
        evidence: What was written down before, of every vendor.
        vendor: Whose events they are.
        events: In the order in which they came; each counts once.
        now: When they came. No two entries of *vendor* have it as their time, and later ones have
            later times though the clock was set back: of a fault and its cure they show the order.
        serious: Codes of entries that are the last to be dropped.
        now_s: Monotonic seconds of *now*.

    Returns:
        Sorted by vendor, subject and code; at most MOST_EVIDENCE entries of *vendor*, those that
        were last heard of longest ago are dropped.
    """
    kept = {key_of(e): e for e in evidence}
    at = max((e.last for e in kept.values() if e.vendor == vendor), default=None)
    for event in events:
        at = now if at is None or at < now else at + _NEXT
        key = (vendor, event.subject or "", event.code)
        before = kept.get(key)
        kept[key] = Evidence(
            vendor=vendor,
            subject=event.subject or "",
            code=event.code,
            source=event.source,
            count=1 if before is None else before.count + 1,
            first=at if before is None else before.first,
            last=at,
            data=event.data,
            last_s=now_s,
        )
    return _bounded(kept, serious)


def merge(one: Iterable[Evidence], other: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """What two instances wrote down who heard the same; bounded as by *record*.

    Of an entry that both have the greater count holds: each may have missed what the other heard.
    """
    kept = {key_of(e): e for e in one}
    for entry in other:
        key = key_of(entry)
        kept[key] = _joined(kept[key], entry) if key in kept else entry
    return _bounded(kept, ())


def _joined(one: Evidence, other: Evidence) -> Evidence:
    return attrs.evolve(
        other if other.last > one.last else one,
        count=max(one.count, other.count),
        first=min(one.first, other.first),
    )


def key_of(entry: Evidence) -> Key:
    """What there is one entry of."""
    return entry.vendor, entry.subject, entry.code


def _bounded(kept: Mapping[Key, Evidence], serious: Collection[str]) -> tuple[Evidence, ...]:
    """*kept* in order, without the oldest where a vendor has too many."""
    vendors: dict[str, list[Key]] = {}
    for key in sorted(kept, key=lambda key: (key[2] in serious, kept[key].last, key)):
        vendors.setdefault(key[0], []).append(key)
    left = (key for keys in vendors.values() for key in keys[-MOST_EVIDENCE:])
    return tuple(kept[key] for key in sorted(left))


def names_of(device: Device) -> frozenset[str]:
    """Every word that an event, a problem or a person may use for *device*."""
    place = device.locality.pci_address
    return frozenset({device.id.name, *device.aliases, *((place,) if place else ())})


def of_device(
    evidence: Iterable[Evidence], device: Device, parent: Device | None = None
) -> tuple[Evidence, ...]:
    """What is known of *device*, of its *parent* and of its vendor as a whole; in given order."""
    subjects = {"", *names_of(device), *(names_of(parent) if parent else ())}
    return tuple(e for e in evidence if e.vendor == device.id.vendor and e.subject in subjects)
