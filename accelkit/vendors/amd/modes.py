"""Compute modes, set where that disturbs nobody. Not here: partitions, which come with a mode."""

import time
from collections.abc import Callable, Iterable

from accelkit import (
    AccessDenied,
    Device,
    Holding,
    Host,
    ModeBusy,
    NeedsReset,
    NotThere,
    PartitionError,
    PciFunction,
    Placement,
    SourceError,
)
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.card import COMPUTE_FILE, MEMORY_FILE

REACHED_S = 45.0
"""How long the driver may take to show a mode."""
SETTLED_S = 10.0
"""How long KFD may then take to have all partitions: some never come, for lack of minors."""
_PAUSE_S = 0.05
_BUSY, _INVALID = "busy", "invalid argument"
"""What the kernel says (errno(3): EBUSY, EINVAL)."""

Look = Callable[[], Iterable[Device]]
"""The devices that are there now."""


def set_mode(
    host: Host,
    device: Device,
    mode: str,
    *,
    held: Callable[[], Iterable[Holding]],
    look: Look,
    patience_s: float = REACHED_S,
) -> None:
    """Return when *device* is in *mode* with its partitions; at once if it is so.

    A partition that does not come is a problem that discovery tells.

    Raises:
        NeedsReset: The memory mode is another one: that comes with a driver that is loaded anew,
            which is every GPU's.
        ModeBusy: Somebody uses KFD, on whatever GPU.
        PartitionError: It has no such mode, or does not come into it.
    """
    function = PciFunction(address=device.locality.pci_address or "", host=host)
    compute, memory = _words(device, mode)
    if memory and _now(function, MEMORY_FILE) != memory:
        raise _needs_driver(device, mode, memory)
    if _now(function, COMPUTE_FILE) != compute:
        if pids := [h.holder.uid or "" for h in held()]:
            raise _busy(device, mode, pids)
        _write(host, function, device, mode)
    _wait(device, mode, look, patience_s)


def _words(device: Device, mode: str) -> tuple[str, str]:
    """Compute and memory mode, as the driver writes them; the latter may be empty."""
    if mode not in {m.name for m in device.modes}:
        known = ", ".join(m.name for m in device.modes) or "none"
        raise PartitionError(
            f"{device.id} has no mode {mode}; its modes: {known}", device=str(device.id)
        )
    compute, _, memory = mode.upper().partition("-")
    return compute, memory


def _now(function: PciFunction, name: str) -> str:
    try:
        return function.read(name).strip().upper()
    except NotThere:
        return ""


def _needs_driver(device: Device, mode: str, memory: str) -> NeedsReset:
    return NeedsReset(
        f"{device.id} comes into mode {mode} only when the driver is loaded anew",
        device=str(device.id),
        remedy=f"drain the node, write {memory} to {MEMORY_FILE} of every GPU, and reload amdgpu "
        "or reboot: this ends all work on all GPUs",
    )


def kfd_users(host: Host) -> tuple[str, ...]:
    """Processes that use KFD, whichever GPU; empty also where the kernel does not say."""
    try:
        names = host.names(facts.KFD_PROCESSES)
    except SourceError:
        return ()
    return tuple(sorted((name for name in names if name.isdecimal()), key=int))


def _busy(device: Device, mode: str, pids: Iterable[str]) -> ModeBusy:
    who = ", ".join(dict.fromkeys(pids))
    by = f"process {who}" if who else "a process that is not known"
    return ModeBusy(
        f"{device.id} cannot come into mode {mode} now: {facts.KFD_NODE} is in use by {by}",
        device=str(device.id),
        remedy="end what uses any AMD GPU of the node; exporters of metrics use them, too",
    )


def _write(host: Host, function: PciFunction, device: Device, mode: str) -> None:
    compute, _ = _words(device, mode)
    try:
        host.write(function.path(COMPUTE_FILE), compute)
    except AccessDenied:
        raise
    except SourceError as error:
        if _BUSY in str(error).lower():
            raise _busy(device, mode, kfd_users(host)) from error
        why = "the driver does not take it" if _INVALID in str(error).lower() else "it failed"
        raise PartitionError(
            f"{device.id} did not come into mode {mode}: {why}: {error}",
            device=str(device.id),
            remedy="see dmesg for amdgpu; virtual functions and some memory modes take no other",
        ) from error


def _wait(device: Device, mode: str, look: Look, patience_s: float) -> None:
    wanted = next(m for m in device.modes if m.name == mode)
    begun = time.monotonic()
    settled: float | None = None
    while True:
        found = _seen(look)
        waited = time.monotonic() - begun
        now = next((d.mode for d in found if d.id == device.id), None)
        if now == mode:
            settled = waited if settled is None else settled
            parts = sum(d.parent == device.id for d in found)
            if parts == wanted.count or waited - settled >= min(SETTLED_S, patience_s):
                return
        elif waited >= patience_s:
            shown = "is not there" if now is None else f"is in mode {now}"
            raise PartitionError(
                f"{device.id} {shown} {patience_s:g} s after mode {mode} was set",
                device=str(device.id),
                remedy="see dmesg for amdgpu and kfd",
            )
        time.sleep(_PAUSE_S)


def _seen(look: Look) -> tuple[Device, ...]:
    try:
        return tuple(look())
    except SourceError:  # while KFD is made anew
        return ()


def existing(parent: Device, placement: Placement, devices: Iterable[Device]) -> Device:
    """The partition at *placement*, which is there with its mode, or is not.

    Raises:
        PartitionError: It is not there: partitions are not made one by one.
    """
    for device in devices:
        if device.parent == parent.id and device.placement == placement:
            return device
    profile = next((p for p in parent.profiles if p.name == placement.profile), None)
    mode = None if profile is None else profile.mode
    raise PartitionError(
        f"{parent.id}: {placement.profile} at slot {placement.start} cannot be made by itself",
        device=str(parent.id),
        remedy=f"set mode {mode}, which has all of them" if mode else "name one of its profiles",
    )
