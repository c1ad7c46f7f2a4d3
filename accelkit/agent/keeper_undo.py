"""From an entry to none: what it lists is undone, and nothing else. Not here: when to try again."""

import logging
from collections.abc import Iterator
from typing import TypeAlias

import attrs

from accelkit.agent.keeper_means import GONE, Means, Patience
from accelkit.agent.left import Gone
from accelkit.core.allocation import Setting
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import NoSpace, PartitionInUse
from accelkit.core.model import Device, DeviceId

log = logging.getLogger(__name__)

UNDOING = frozenset({EntryState.RELEASING, EntryState.STUCK})
Key: TypeAlias = tuple[str, DeviceId | None, str]
"""What a setting is of: vendor, device, key."""


async def undo(means: Means, entry: LedgerEntry, patience: Patience) -> None:
    """Undo *entry*, which is held; what is done is struck off its list.

    Raises:
        AccelkitError: Something could not be undone yet; the entry says what is left.
    """
    seen = means.view().devices  # what is gone need not be in the view once it says so
    entry = await _begun(means, entry, patience)
    uid = entry.claim.uid
    means.files.remove(entry.driver, uid)
    for (vendor, _, _), setting in reversed(tuple(settings_of(entry))):
        await means.hardware.revert(vendor, setting)
        settings = tuple(one for one in entry.settings if one != setting)
        entry = means.put(attrs.evolve(entry, settings=settings))
    for device in reversed(entry.create):
        if not await _destroy(means, entry, device) and device in seen:
            await _note_if_away(means, entry, device, seen[device].root)
        entry = means.put(
            attrs.evolve(entry, create=tuple(one for one in entry.create if one != device))
        )
    means.ledger.remove_scratch(uid)
    means.drop(uid)


async def _begun(means: Means, entry: LedgerEntry, patience: Patience) -> LedgerEntry:
    """*entry* as it is being undone: without the settings that other claims want, too.

    Decided while nobody else decides: who wants a setting that is listed here waits.
    """
    state = EntryState.STUCK if entry.state is EntryState.STUCK else EntryState.RELEASING
    if not entry.settings:
        return entry if entry.state is state else _marked(means, entry, state)
    async with means.ledger.locks.places(patience.until):
        means.ledger.refresh(locked=True)
        wanted = {
            key
            for other in means.ledger.entries.values()
            if other.claim.uid != entry.claim.uid and other.state not in UNDOING
            for key, _ in settings_of(other)
        }
        mine = tuple(setting for key, setting in settings_of(entry) if key not in wanted)
        begun = attrs.evolve(entry, state=state, settings=mine)
        return begun if begun == entry else means.put(begun)


def _marked(means: Means, entry: LedgerEntry, state: EntryState) -> LedgerEntry:
    """*entry* as it is being undone; where nothing is listed there need be no room to say so.

    Undoing it makes room, and whoever finds it as it was undoes the same again.
    """
    try:
        return means.put(attrs.evolve(entry, state=state))
    except NoSpace:
        if entry.create:
            raise
        return entry


async def _destroy(means: Means, entry: LedgerEntry, device: DeviceId) -> bool:
    """Unmake *device*; False: it is gone, or somebody else's by now."""
    if (found := await _ours(means, entry, device)) is None:
        return False
    means.touch(found.root)
    try:
        await means.hardware.destroy(found)
    finally:
        means.touch(found.root)
    if await _ours(means, entry, device) is not None:
        raise PartitionInUse(f"{device} was unmade, and is still there", device=str(device))
    return True


async def _note_if_away(means: Means, entry: LedgerEntry, device: DeviceId, root: DeviceId) -> None:
    """Note *device*, which is gone, if it may come back: with the whole that it was cut out of."""
    try:
        there = await means.hardware.find(root)
    except GONE:
        return
    if there is None:
        means.ledger.left.note(device, Gone(root=root, handle=entry.handles.get(device)))


async def _ours(means: Means, entry: LedgerEntry, device: DeviceId) -> Device | None:
    found = await means.still_there(device)
    made = entry.handles.get(device)
    if found is not None and made is not None and found.handle not in {made, None}:
        extra = {"device": str(device), "made": made, "found": found.handle}
        log.warning("somebody else's partition has the place of one that is gone", extra=extra)
        return None
    return found


def settings_of(entry: LedgerEntry) -> Iterator[tuple[Key, Setting]]:
    """Each setting of *entry*, and what it is of."""
    for setting in entry.settings:
        # What is of no device is of the vendor of the first: see where it is written down.
        vendor = (setting.device or entry.pieces[0].device).vendor
        yield (vendor, setting.device, setting.key), setting
