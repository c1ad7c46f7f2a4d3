"""What claims hold, have made and left behind, as the record says."""

from collections.abc import Collection

from accelkit.agent.keeper_means import DRA
from accelkit.agent.keeper_undo import UNDOING
from accelkit.agent.ledger import Ledger
from accelkit.core.allocation import ClaimRef
from accelkit.core.claims import EntryState
from accelkit.core.model import DeviceId, Holder, Holding
from accelkit.core.values import HolderKind


def holdings_of(ledger: Ledger) -> tuple[Holding, ...]:
    """What claims hold, whatever their state, of unreadable ones as far as it is known; sorted."""
    held = {
        (piece.device, piece.share, entry.claim)
        for entry in ledger.entries.values()
        for piece in entry.places
    }
    for unread in ledger.unread:
        claim = ClaimRef(uid=unread.uid, namespace="", name="")
        held |= {(device, None, claim) for device in unread.devices}
    return tuple(
        Holding(
            device=device,
            share=share,
            through=DRA,
            holder=Holder(
                kind=HolderKind.CLAIM,
                namespace=claim.namespace or None,
                claim=claim.name or None,
                uid=claim.uid,
            ),
        )
        for device, share, claim in sorted(held, key=lambda h: (h[0], h[1] or "", h[2].uid))
    )


def made_by(ledger: Ledger) -> frozenset[DeviceId]:
    """Partitions that were made for a claim, or are about to be."""
    return frozenset(device for entry in ledger.entries.values() for device in entry.create)


def unmade_by(ledger: Ledger) -> frozenset[DeviceId]:
    """Those of claims that are being undone: they are gone, or may be at any moment."""
    entries = tuple(ledger.entries.values())
    releasing = (e.create for e in entries if e.state is EntryState.RELEASING)
    # What is unmade is struck off the list, while the claim has its places until all of it is.
    unmade = (e.handles.keys() - {*e.create} for e in entries if e.state in UNDOING)
    return frozenset(device for devices in (*releasing, *unmade) for device in devices)


def given_by(ledger: Ledger) -> dict[DeviceId, str]:
    """Partitions that were made for a claim, and were there when it was ready; with its uid."""
    ready = (e for e in ledger.entries.values() if e.state is EntryState.READY)
    return {device: entry.claim.uid for entry in ready for device in entry.create}


def awaited_by(ledger: Ledger) -> frozenset[DeviceId]:
    """Devices only of claims that are being prepared: they may only come to be there."""
    working, rest = set[DeviceId](), set[DeviceId]()
    for entry in ledger.entries.values():
        (working if entry.state is EntryState.WORKING else rest).update(
            piece.device for piece in entry.places
        )
    return frozenset(working - rest)


def stuck_in(ledger: Ledger) -> frozenset[DeviceId]:
    """Devices of claims that could not be undone."""
    return frozenset(
        piece.device
        for entry in ledger.entries.values()
        if entry.state is EntryState.STUCK
        for piece in entry.places
    )


def renamed_in(ledger: Ledger, drivers: Collection[str]) -> frozenset[DeviceId]:
    """Devices that claims have from drivers that are called otherwise now: *drivers*."""
    return frozenset(
        piece.device
        for entry in ledger.entries.values()
        for piece in entry.places
        if (name := entry.called.get(piece.device.vendor)) is not None and name not in drivers
    )
