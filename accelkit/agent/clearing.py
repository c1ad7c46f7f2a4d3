"""An operator's word that a fault is gone. Not here: how it reaches the agent."""

import asyncio
import logging
from collections.abc import Iterator

import attrs

from accelkit.agent.knowledge import Knowledge
from accelkit.core.damping import FLAPPING
from accelkit.core.errors import UnknownDevice
from accelkit.core.evidence import names_of
from accelkit.core.model import Device, DeviceId, Evidence
from accelkit.core.serde.keys import did_you_mean
from accelkit.core.values import freeze

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Clearing:
    """What is gone, as an operator says it."""

    subject: str
    """A device by any of its names, a vendor, or what events were about; ``vendor/`` may be
    before it."""
    code: str | None = None
    """None: all that there was."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Forgotten:
    """What came of it."""

    devices: tuple[DeviceId, ...] = ()
    """Whom it is about; they were read again."""
    evidence: tuple[Evidence, ...] = ()
    """What was forgotten."""


async def clear(knowledge: Knowledge, gone: Clearing) -> Forgotten:
    """Forget evidence, read devices again, and let nothing hold them or their partitions down.

    Raises:
        UnknownDevice: Nothing is called so, or has the code.
    """
    devices = tuple(d for d in knowledge.store.view.snapshot.devices if gone.subject in _words(d))
    about = [e for e in knowledge.heard.evidence if _is_about(e, gone.subject, devices)]
    if not devices and not about:
        raise _unknown(knowledge, gone.subject)
    evidence = tuple(e for e in about if gone.code in {None, e.code})
    ids = frozenset(device.id for device in _with_parts(knowledge, devices))
    codes = {*(e.code for e in about), *_held(knowledge, ids)}
    if gone.code is not None and gone.code not in codes:
        there = f"there is {', '.join(sorted(codes))}" if codes else "there is nothing to clear"
        raise UnknownDevice(
            f"nothing of {gone.subject} has the code {gone.code}: {there}",
            remedy="see: accelkit health",
        )
    knowledge.heard.clear(evidence)
    vendors = {e.vendor for e in evidence} | {i.vendor for i in ids}
    await asyncio.gather(
        *(knowledge.examine(source) for n, source in knowledge.sources.items() if n in vendors)
    )
    whole = gone.subject in vendors and gone.code is None  # nothing else of its devices is gone
    for code in {e.code for e in evidence} if whole else (gone.code,):
        knowledge.forgive(ids, code)
    log.info(
        "health cleared",
        extra={"subject": gone.subject, "codes": [e.code for e in evidence], "code": gone.code},
    )
    return Forgotten(devices=tuple(sorted(ids)), evidence=evidence)


def _with_parts(knowledge: Knowledge, devices: tuple[Device, ...]) -> Iterator[Device]:
    """*devices*, and the partitions that faults of them reach."""
    wholes = {device.id for device in devices}
    snapshot = knowledge.store.view.snapshot
    return (d for d in snapshot.devices if d.id in wholes or d.parent in wholes)


def _words(device: Device) -> frozenset[str]:
    """All that may be said for *device*, and for its vendor as a whole."""
    vendor = device.id.vendor
    names = names_of(device)
    return frozenset({vendor, *names, *(f"{vendor}/{name}" for name in names)})


def _is_about(entry: Evidence, subject: str, devices: tuple[Device, ...]) -> bool:
    if subject == entry.vendor:
        return not entry.subject
    if subject in {entry.subject, f"{entry.vendor}/{entry.subject}"}:
        return True
    return any(d.id.vendor == entry.vendor and entry.subject in names_of(d) for d in devices)


def _held(knowledge: Knowledge, devices: frozenset[DeviceId]) -> Iterator[str]:
    """Codes of what holds *devices* down."""
    for device in devices:
        verdict = knowledge.store.view.verdicts[device]
        if verdict.past is not None:
            yield from (c.code for c in verdict.past.faults)
            if verdict.past.flapping_s is not None:
                yield FLAPPING


def _unknown(knowledge: Knowledge, subject: str) -> UnknownDevice:
    devices = knowledge.store.view.snapshot.devices
    hint = did_you_mean(subject, {word for device in devices for word in _words(device)})
    return UnknownDevice(f"nothing is called {subject} here{hint}", remedy="see: accelkit health")
