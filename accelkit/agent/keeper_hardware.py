"""Modes and partitions of a claim: listed before they are made, looked at before and after."""

from collections.abc import Iterator
from functools import partial

import attrs

from accelkit.agent.keeper_work import Work
from accelkit.core.errors import DeviceUnavailable, PrepareFailed
from accelkit.core.grants import Term
from accelkit.core.model import Device, DeviceId
from accelkit.core.values import FrozenMap


async def set_modes(work: Work) -> None:
    """Bring whole devices into the modes that the entry names.

    Raises:
        DeviceUnavailable: One is not there any more, or cut by somebody else.
        PrepareFailed: It did not come into its mode.
        AccelkitError: The vendor could not do it.
    """
    found: dict[DeviceId, Device] = {}
    for device, mode in work.entry.modes.items():
        if _may_differ(work, device, mode):
            found[device] = await _in_mode(work, device, mode)
    for whole in _wholes(work):
        if whole.id not in found and not whole.usable:  # in the view, which may be old
            found[whole.id] = await work.found(whole.id)
        if not found.get(whole.id, whole).usable:
            raise DeviceUnavailable(f"{whole.id} is cut into partitions and not to be had whole")
    work.know(found)


def modes_matter(work: Work) -> bool:
    """Whether there is anything to do for *set_modes*."""
    return bool(work.entry.modes) or not all(device.usable for device in _wholes(work))


def _wholes(work: Work) -> Iterator[Device]:
    """Whole devices that the claim uses."""
    for term in work.terms:
        if term.device.parent is None and not term.piece.admin:
            yield term.device


def _may_differ(work: Work, device: DeviceId, mode: str) -> bool:
    """Whether the view may be wrong about the mode of *device*: claims may have changed it."""
    view = work.means.view()
    known = view.devices.get(device)
    parts = any(part.parent == device for part in view.potential)
    return known is None or known.mode != mode or parts or work.means.settling(device)


async def _in_mode(work: Work, device: DeviceId, mode: str) -> Device:
    found = await work.found(device)
    if found.mode != mode:
        work.means.touch(device)
        await work.patiently(partial(work.means.hardware.set_mode, found, mode))
        work.means.touch(device)
        found = await work.found(device)
    if found.mode != mode:
        raise PrepareFailed(
            f"{device} was set to mode {mode}, and is in mode {found.mode}", claim=work.uid
        )
    return found


async def create(work: Work) -> None:
    """Make the partitions of the claim that are missing: what is listed, and nothing else.

    Raises:
        DeviceUnavailable: One is there, but cannot be used, or its whole device is not there.
        PrepareFailed: It was made and is not there.
        AccelkitError: The vendor could not do it.
    """
    found: dict[DeviceId, Device] = {}
    missing: list[Device] = []
    for term in _changing(work):
        device = term.device
        there = await work.look_for(device.id)
        if there is not None and (there.usable or term.piece.admin):
            found[device.id] = there
        elif term.piece.admin or (there is not None and device.id not in work.entry.create):
            raise DeviceUnavailable(f"{device.id} cannot be used as it stands")
        else:
            missing.append(device)
    new = [device.id for device in missing if device.id not in work.entry.create]
    work.write(attrs.evolve(work.entry, create=(*work.entry.create, *new)))
    for device in missing:
        found[device.id] = await _made(work, device)
    handles = {i: d.handle for i, d in found.items() if i in work.entry.create and d.handle}
    work.write(attrs.evolve(work.entry, handles=FrozenMap({**work.entry.handles, **handles})))
    work.know(found)


def _changing(work: Work) -> Iterator[Term]:
    """Partitions that may be other than the view says: claims make and unmake them."""
    view = work.means.view()
    cut = {part.parent for part in view.potential}
    # Of a device that is also only looked at, what counts is that it is used.
    for term in {t.device.id: t for t in sorted(work.terms, key=_used)}.values():
        device = term.device
        if device.parent is not None and (
            device.parent in cut
            or device.id not in view.devices
            or device.id in {*view.made, *work.entry.create}
            or work.means.settling(device.parent)
        ):
            yield term


def _used(term: Term) -> bool:
    return not term.piece.admin


async def _made(work: Work, device: Device) -> Device:
    assert device.parent is not None
    assert device.placement is not None
    parent = await work.found(device.parent)
    work.means.touch(parent.id)
    try:
        await work.patiently(partial(work.means.hardware.create, parent, device.placement))
    finally:
        work.means.touch(parent.id)
    found = await work.look_for(device.id)
    if found is None or found.placement != device.placement or not found.usable:
        raise PrepareFailed(
            f"{device.id} was made, and is not there when it is looked for",
            claim=work.uid,
            remedy="look for faults of the driver in the kernel log",
        )
    return found
