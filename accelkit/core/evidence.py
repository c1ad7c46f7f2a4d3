"""Events written down, so that health stays a function of what can be read.

Not here: what events mean; that is the vendor's to say.
"""

from collections.abc import Iterable
from datetime import datetime

from accelkit.core.model import Device, Event, Evidence

MOST_EVIDENCE = 256
"""Entries kept for one vendor."""


def record(
    evidence: Iterable[Evidence], vendor: str, events: Iterable[Event], now: datetime
) -> tuple[Evidence, ...]:
    """Add *events* of *vendor* to *evidence*: one entry per vendor, subject and code.

    Args:
        evidence: What was written down before, of every vendor.
        vendor: Whose events they are.
        events: In the order in which they came; each counts once.
        now: When they came.

    Returns:
        Sorted by vendor, subject and code; at most MOST_EVIDENCE entries of *vendor*, those that
        were last heard of longest ago are dropped.
    """
    kept = {(e.vendor, e.subject, e.code): e for e in evidence}
    for event in events:
        key = (vendor, event.subject or "", event.code)
        before = kept.get(key)
        kept[key] = Evidence(
            vendor=vendor,
            subject=event.subject or "",
            code=event.code,
            source=event.source,
            count=1 if before is None else before.count + 1,
            first=now if before is None else before.first,
            last=now,
            data=event.data,
        )
    of_vendor = sorted(
        (key for key in kept if key[0] == vendor), key=lambda key: (kept[key].last, key)
    )
    for key in of_vendor[: max(0, len(of_vendor) - MOST_EVIDENCE)]:
        del kept[key]
    return tuple(kept[key] for key in sorted(kept))


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
