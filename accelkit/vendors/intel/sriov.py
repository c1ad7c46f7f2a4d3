"""Virtual functions: a GPU cut by their number. Not here: what each of them shows."""

import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from accelkit import (
    AccessDenied,
    Device,
    FrozenMap,
    Host,
    Mode,
    ModeBusy,
    PartitionError,
    PciFunction,
    Profile,
    SourceError,
    holders_of,
)
from accelkit.vendors.intel import cards, facts
from accelkit.vendors.intel.reading import link_at, number_at

WHOLE = "whole"
REACHED_S = 20.0
"""How long the driver may take to bring virtual functions up."""
_PAUSE_S = 0.05
_COUNTS = (1, 2, 4, 8, 16, 32, 64)
"""What is offered, beside as many as there can be and what is there: each further number would be
another counter of every partition."""
_OF_VIRTUAL: Mapping[str, bool | str] = MappingProxyType({"type": "vf", "sriov": False})
"""What each of them says, whatever its GPU does."""


def total_of(function: PciFunction) -> int:
    """How many virtual functions it can have; 0: it cannot be cut.

    Source:
        Linux, Documentation/ABI/testing/sysfs-bus-pci, sriov_totalvfs and sriov_numvfs.
    """
    total = number_at(function.host, function.path("sriov_totalvfs"))
    return total if total is not None and 0 < total <= facts.MOST_VFS else 0


def count_of(function: PciFunction, total: int) -> int:
    """How many of *total* it has now."""
    count = number_at(function.host, function.path("sriov_numvfs"))
    return count if count is not None and 0 < count <= total else 0


@attrs.frozen(kw_only=True)
class Cut:
    """How a GPU can be cut, and how it is."""

    total: int
    """Virtual functions that it can have; 0: none."""
    count: int
    """That it has."""


def mode_name(count: int) -> str:
    """What the mode with *count* virtual functions is called."""
    return f"vfs-{count}" if count else WHOLE


def profile_name(count: int) -> str:
    """What one of *count* virtual functions is called."""
    return f"vf-of-{count}"


def _counts(cut: Cut) -> list[int]:
    """Numbers that are offered, and the one that is there."""
    return sorted({*(n for n in _COUNTS if n <= cut.total), cut.total, cut.count} - {0})


def modes_of(cut: Cut) -> list[Mode]:
    """Not live: no claim sets them, since whoever has another virtual function would lose it."""
    cuts = [Mode(name=mode_name(n), cut=profile_name(n), count=n) for n in _counts(cut)]
    return [Mode(name=WHOLE), *cuts] if cuts else []


def profiles_of(cut: Cut, memory: int | None) -> list[Profile]:
    """One of each number; the driver divides the memory evenly."""
    return [
        Profile(
            name=profile_name(n),
            slug=f"vf{n}",
            size=1,
            starts=tuple(range(n)),
            limit=n,
            mode=mode_name(n),
            capacity=FrozenMap({} if memory is None else {"memory": memory // n}),
            attributes=FrozenMap(_OF_VIRTUAL),
        )
        for n in _counts(cut)
    ]


def virtual_functions(
    function: PciFunction, count: int
) -> Iterator[tuple[int, PciFunction | None]]:
    """Position and function of each of the *count* that it has; None: it does not show."""
    for position in range(count):
        address = link_at(function, f"virtfn{position}")
        found = None if address is None else PciFunction(address=address, host=function.host)
        yield position, found


def memory_of_vf(physical: cards.Card, position: int) -> int | None:
    """Bytes of memory that a virtual function was given; None: the driver does not say it to us.

    Source:
        xe of Linux 7.0: sriov_admin/vfN/profile/vram_quota, which counts from 1. i915 of Intel's
        packages: prelim_iov/vfN/gtM/lmem_quota of the card, one of each tile.
    """
    host, name = physical.function.host, f"vf{position + 1}"
    if "sriov_admin" in physical.files:
        paths = [physical.function.path(f"sriov_admin/{name}/profile/vram_quota")]
    else:
        folder = f"{physical.folder}/prelim_iov/{name}"
        paths = [f"{folder}/{gt}/lmem_quota" for gt in host.names(folder)]
    try:
        parts = [number_at(host, path) for path in paths]
    except SourceError:
        return None
    return sum(part for part in parts if part is not None and part > 0) or None


def set_mode(host: Host, device: Device, mode: str, patience_s: float = REACHED_S) -> None:
    """Return when *device* has as many virtual functions as *mode* says, each with its driver.

    Raises:
        ModeBusy: Somebody uses it or one of its virtual functions.
        PartitionError: It has no such mode, or did not come into it.
    """
    function = PciFunction(address=device.locality.pci_address or "", host=host)
    wanted = next((m.count for m in device.modes if m.name == mode), None)
    total = total_of(function)
    if wanted is None or wanted > total:
        known = ", ".join(m.name for m in device.modes) or "none"
        raise PartitionError(
            f"{device.id} has no mode {mode}; its modes: {known}", device=str(device.id)
        )
    before = count_of(function, total)
    if before == wanted:
        return
    _refuse_if_busy(function, device, mode, before)
    _write(function, device, wanted, before)
    _wait(function, device, wanted, patience_s)


def _refuse_if_busy(function: PciFunction, device: Device, mode: str, before: int) -> None:
    virtual = [vf for _, vf in virtual_functions(function, before) if vf is not None]
    all_of = [cards.card_of(each) for each in (function, *virtual)]
    paths = [node.path for card in all_of for node in card.nodes]
    pids = sorted({int(h.holder.uid or 0) for h in holders_of(function.host, {device.id: paths})})
    who = [f"process {pid}" for pid in pids]
    who += [f"whoever has {c.function.address} by {c.driver}" for c in all_of if c.passed_on]
    if who:
        raise ModeBusy(
            f"{device.id} cannot come into mode {mode} now: {', '.join(who)} would lose it",
            device=str(device.id),
            remedy="end what uses it; monitoring agents and display servers hold GPUs, too",
        )


def _write(function: PciFunction, device: Device, wanted: int, before: int) -> None:
    """From one number to another the way leads through 0, else the kernel refuses it."""
    path = function.path("sriov_numvfs")
    try:
        if before:
            function.host.write(path, "0")
    except AccessDenied:  # it says what is needed
        raise
    except SourceError as error:
        raise ModeBusy(
            f"{device.id}: its virtual functions do not go: {error}",
            device=str(device.id),
            remedy="shut down the virtual machines that have them",
        ) from error
    try:
        if wanted:
            function.host.write(path, str(wanted))
    except SourceError as error:
        _take_back(function, before)
        if isinstance(error, AccessDenied):
            raise
        raise PartitionError(
            f"{device.id} did not get {wanted} virtual functions: {error}",
            device=str(device.id),
            remedy="see dmesg; quotas that were set by hand may leave too little for so many",
        ) from error


def _take_back(function: PciFunction, before: int) -> None:
    if before and not count_of(function, before):
        try:
            function.host.write(function.path("sriov_numvfs"), str(before))
        except SourceError:  # the refusal that is raised says more
            return


def _wait(function: PciFunction, device: Device, wanted: int, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while lacking := _lacking(function, wanted):
        if time.monotonic() >= end:
            raise PartitionError(
                f"{device.id} does not have {wanted} virtual functions {patience_s:g} s after "
                f"they were set: {lacking}",
                device=str(device.id),
                remedy="see dmesg; without sriov_drivers_autoprobe no driver is bound",
            )
        time.sleep(_PAUSE_S)


def _lacking(function: PciFunction, wanted: int) -> str:
    """What is not there yet; empty: nothing."""
    if (count := count_of(function, total_of(function))) != wanted:
        return f"it has {count} virtual functions"
    automatic = number_at(function.host, function.path("sriov_drivers_autoprobe")) != 0
    for position, vf in virtual_functions(function, wanted):
        if vf is None:
            return f"virtfn{position} is not there"
        nodes = cards.card_of(vf).nodes
        if automatic and not (nodes and all(function.host.exists(n.path) for n in nodes)):
            return f"{vf.address} has no device files"
    return ""
