"""Whether a claim may have what it was given, decided and written before hardware is touched."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.agent.admission import check_health, check_law, terms_of
from accelkit.agent.keeper_means import DRA, Means, Patience
from accelkit.agent.keeper_undo import UNDOING
from accelkit.core.allocation import Allocation, Piece, SetOf
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import (
    AllocationError,
    AlreadyAllocated,
    ConflictingSetting,
    DeviceUnavailable,
    UnknownDevice,
)
from accelkit.core.grants import Term, agreed_sharing, asked_for, main_request
from accelkit.core.model import Device, DeviceId, Placement
from accelkit.core.places import can_be_set, exclude, mode_for, places_on
from accelkit.core.values import FrozenMap
from accelkit.core.view import View


@attrs.frozen
class Families:
    """Places on the whole devices that a claim has, or has a part of."""

    of: Mapping[DeviceId, Mapping[DeviceId, Placement | None]]
    """By each device of the claim."""
    around: frozenset[DeviceId]
    """All of them: whatever else somebody has excludes nothing."""


async def reserve(
    means: Means, allocation: Allocation, entry: LedgerEntry | None, patience: Patience
) -> tuple[LedgerEntry, tuple[Term, ...]]:
    """Hold the places of *allocation* for its claim, which is held.

    What an earlier attempt wrote, *entry*, holds them already.

    Returns:
        The entry as it is on disk, WORKING, and what holds for each piece.

    Raises:
        AccelkitError: It cannot be had, or not soon; nothing is written then.
    """
    while True:
        try:
            terms = agreed(means, allocation, held=entry is not None)
            if entry is None:
                entry = await _written(means, allocation, terms, patience)
        except (AlreadyAllocated, DeviceUnavailable, UnknownDevice) as error:
            hopeless = not isinstance(error, AlreadyAllocated) and not _may_come(means, allocation)
            if hopeless or patience.over:
                raise
        else:
            return entry, terms
        await means.pause()


def agreed(means: Means, allocation: Allocation, *, held: bool) -> tuple[Term, ...]:
    """What holds for each piece of *allocation*, as the view, its offers and configurations say.

    Whether they could be had anew is not asked of places that are *held* already.

    Raises:
        UnknownDevice: A device is not offered here.
        DeviceUnavailable: It is leaving, unhealthy, cut, in a mode that cannot be changed, or
            another backend's.
        ConfigRefused: The claim asks for what it may not, or not so.
        IllegalSet: The vendor cannot run this set.
    """
    view = means.view()
    terms = tuple(_term(means, view, allocation, piece, held=held) for piece in allocation.pieces)
    _check_laws(view, terms)
    return terms


def _term(means: Means, view: View, allocation: Allocation, piece: Piece, *, held: bool) -> Term:
    held = held or piece.admin
    offer = terms_of(view, DRA, piece.device, held=held)
    device = view.offered[piece.device]
    if not held:
        _check_usable(view, device)
        check_health(view, device, piece.tolerates)
    asked = asked_for(piece.request, allocation.configs)
    vendor = device.id.vendor
    return Term(
        piece=attrs.evolve(piece, offer=offer.name),
        device=device,
        sharing=agreed_sharing(offer, device, asked.sharing),
        config=means.hardware.config(vendor, asked.vendor) if asked.vendor else None,
        set=asked.set,
    )


def _check_usable(view: View, device: Device) -> None:
    """Check that *device* can be handed out, once its whole device is in the right mode."""
    root = view.devices.get(device.root)
    if root is None:
        raise UnknownDevice(f"{device.id}: {device.root}, which it is cut out of, is not there")
    mode = mode_for(device, root)
    if mode is not None and mode != root.mode:
        if not can_be_set(root, mode):
            raise DeviceUnavailable(
                f"{device.id} needs {root.id} in mode {mode}, and it is in mode {root.mode}",
                remedy="let the operator set the mode: it cannot be set while the node works",
            )
        _check_uncut(view, device)
    elif not device.usable:
        _check_uncut(view, device)
        if not any(part.parent == device.id for part in view.snapshot.devices):
            raise DeviceUnavailable(f"{device.id} cannot be used as it stands")


def _check_uncut(view: View, device: Device) -> None:
    """Check that no partition of *device* is anybody's but a claim's."""
    for part in view.snapshot.devices:
        if part.parent == device.id and part.id not in view.made:
            raise DeviceUnavailable(
                f"{device.id} is cut: {part.id} was made by somebody else",
                remedy=f"remove {part.id}, or let the policy do it (partitioning.foreign)",
            )


def _check_laws(view: View, terms: Iterable[Term]) -> None:
    sets: dict[str, set[DeviceId]] = {}
    for term in terms:
        if not term.piece.admin:
            by_request = term.set is SetOf.REQUEST
            name = main_request(term.piece.request) if by_request else ""
            sets.setdefault(name, set()).add(term.device.id)
    for devices in sets.values():
        check_law(view, devices)


def _may_come(means: Means, allocation: Allocation) -> bool:
    """Whether a device that is not to be had may be, once the view is newer."""
    view = means.view()
    for piece in allocation.pieces:
        known = view.devices.get(piece.device) or view.offered.get(piece.device)
        if piece.device.vendor not in view.snapshot.answered:
            return True
        if known is not None and means.settling(known.root):
            return True
    return False


async def _written(
    means: Means, allocation: Allocation, terms: tuple[Term, ...], patience: Patience
) -> LedgerEntry:
    roots = roots_of(means.view(), terms)
    entry = LedgerEntry(
        state=EntryState.WORKING,
        claim=allocation.claim,
        driver=allocation.driver,
        pieces=tuple(term.piece for term in terms),
        pods=allocation.pods,
        extended=allocation.extended,
        drivers=allocation.drivers,
        modes=FrozenMap(_modes(terms, roots)),
    )
    of_root = {root.id: places_on(root) for root in roots.values()}
    families = Families(
        {t.device.id: of_root[t.device.root] for t in terms if not t.piece.admin},
        frozenset(place for places in of_root.values() for place in places),
    )
    async with means.ledger.locks.places(patience.until) as alone:
        if not alone or not _is_free(means, entry, families):
            means.ledger.refresh(locked=True)
            _check_places(means, entry, families)
        return means.put(entry)


def roots_of(view: View, terms: Iterable[Term]) -> dict[DeviceId, Device]:
    """The whole devices that the claim has, or has a part of."""
    roots = {term.device.root for term in terms}
    return {root: view.devices[root] for root in sorted(roots) if root in view.devices}


def _modes(
    terms: Iterable[Term], roots: Mapping[DeviceId, Device]
) -> Iterator[tuple[DeviceId, str]]:
    for term in terms:
        if not term.piece.admin:
            mode = mode_for(term.device, roots[term.device.root])
            if mode is not None:
                yield term.device.root, mode


def _is_free(means: Means, entry: LedgerEntry, families: Families) -> bool:
    """Whether nobody has what *entry* takes, as far as is remembered: it may have been given back.

    What nobody else decided meanwhile cannot be forgotten.
    """
    try:
        _check_places(means, entry, families)
    except AllocationError:
        return False
    return True


def _check_places(means: Means, entry: LedgerEntry, families: Families) -> None:
    """Check that no other claim has what *entry* takes.

    Raises:
        AlreadyAllocated: One has it, or is giving it back.
        ConflictingSetting: One needs another mode.
    """
    uid = entry.claim.uid
    ledger = means.ledger
    near = ledger.users_of(families.around)
    for other in ledger.entries.values() if entry.modes else near:
        if other.claim.uid == uid:
            continue
        if (place := _taken(entry, other.pieces, families)) is not None:
            name = _named(other)
            raise AlreadyAllocated(
                f"{place.device} is taken: the claim {name} is {other.state} there",
                claim=uid,
                remedy=f"wait until the pods of {name} have ended",
            )
        if entry.modes:
            _check_modes(entry, other)
    for unread in ledger.unread:
        held = [Piece(device=device) for device in unread.devices]
        if unread.uid != uid and (place := _taken(entry, held, families)) is not None:
            raise AlreadyAllocated(
                f"{place.device} may be taken: {unread.error}",
                claim=uid,
                remedy=f"end the pods of claim {unread.uid}, or restart the node",
            )


def _taken(entry: LedgerEntry, others: Iterable[Piece], families: Families) -> Piece | None:
    """The first of *others* that excludes a piece of *entry*."""
    near = [theirs for theirs in others if theirs.device in families.around and not theirs.admin]
    for theirs in near:
        for mine in entry.places:
            if exclude(mine, theirs, families.of[mine.device]):
                return theirs
    return None


def _check_modes(entry: LedgerEntry, other: LedgerEntry) -> None:
    for device, mode in entry.modes.items():
        if other.modes.get(device, mode) != mode:
            name = _named(other)
            kind = AlreadyAllocated if other.state in UNDOING else ConflictingSetting
            raise kind(
                f"{device}: the claim {name} needs mode {other.modes[device]}, this one {mode}",
                claim=entry.claim.uid,
                remedy=f"wait until the pods of {name} have ended",
            )


def _named(entry: LedgerEntry) -> str:
    return f"{entry.claim.namespace}/{entry.claim.name}"
