"""Settings of a claim: agreed among claims and written down, then applied."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import attrs

from accelkit.agent.keeper_undo import UNDOING, Key, settings_of
from accelkit.agent.keeper_work import Work
from accelkit.core.allocation import Setting
from accelkit.core.errors import ConflictingSetting, PrepareFailed
from accelkit.core.grants import vendor_of

Wanted: TypeAlias = Mapping[Key, Setting]


async def apply_settings(work: Work) -> None:
    """Let what the claim's vendor needs be true.

    Raises:
        ConflictingSetting: Another claim wants it otherwise.
        AccelkitError: The vendor could not do it.
    """
    wanted = await _needed(work)
    if not wanted:
        return
    work.told.clear()  # that was before they hold
    await _write(work, wanted)
    for (vendor, _, _), setting in wanted.items():
        await work.patiently(partial(work.means.hardware.apply, vendor, setting))


async def _needed(work: Work) -> Wanted:
    wanted: dict[Key, Setting] = {}
    for grant in work.sets:
        if grant.granted[0].admin:
            continue
        vendor = vendor_of(grant)
        needed = await work.patiently(partial(work.means.hardware.needed, vendor, grant))
        if needed.edits is not None:
            work.told.append((grant, needed.edits))
        for setting in needed.settings:
            if setting.device is None and vendor != work.entry.pieces[0].device.vendor:
                raise PrepareFailed(
                    f"{vendor} needs {setting.key} of no device, in a claim of several vendors",
                    claim=work.uid,
                    remedy=f"ask for the devices of {vendor} in a claim of their own",
                )
            other = wanted.setdefault((vendor, setting.device, setting.key), setting)
            if other.value != setting.value:
                raise _conflict(work, setting, other.value, "this claim itself")
    return wanted


async def _write(work: Work, wanted: Wanted) -> None:
    """Write down what will be set, once nobody wants it otherwise, or is undoing it."""
    kept = [s for key, s in settings_of(work.entry) if key not in wanted]
    entry = attrs.evolve(work.entry, settings=(*kept, *wanted.values()))
    while True:
        async with work.means.ledger.locks.places(work.patience.until):
            work.means.ledger.refresh(locked=True)
            undone = _undone_elsewhere(work, wanted)
            if undone is None:
                work.write(entry)
                return
        if work.patience.over:
            raise undone
        await work.means.pause()


def _undone_elsewhere(work: Work, wanted: Wanted) -> ConflictingSetting | None:
    """Whose undoing of one of *wanted* must be waited for; None: nobody's.

    Raises:
        ConflictingSetting: Another claim that lives wants it otherwise.
    """
    undone: ConflictingSetting | None = None
    for other in work.means.ledger.entries.values():
        if other.claim.uid == work.uid:
            continue
        name = f"the claim {other.claim.namespace}/{other.claim.name}"
        for key, theirs in settings_of(other):
            mine = wanted.get(key)
            if mine is not None and other.state in UNDOING:
                undone = _conflict(work, mine, theirs.value, f"{name}, which is being released,")
            elif mine is not None and mine.value != theirs.value:
                raise _conflict(work, mine, theirs.value, name)
    return undone


def _conflict(work: Work, mine: Setting, value: str, whose: str) -> ConflictingSetting:
    return ConflictingSetting(
        f"{mine.device or 'this node'}: {mine.key} cannot be {mine.value}, "
        f"since {whose} needs {value}",
        claim=work.uid,
        remedy="ask for the same, or for a device that nobody else uses",
    )
