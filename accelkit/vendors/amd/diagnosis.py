"""What keeps GPUs from being served, in words. Reads only; works without the driver."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from accelkit import Device, Finding, Host, PciFunction, SourceError, Unreadable, file_finding
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.modes import kfd_users

_SEEN_BY_NAME = {
    "driver-not-ready": "the amdgpu kernel module",
    "kfd-missing": "the kernel",
    "no-compute": "KFD",
    "access-denied": "the agent's rights",
    "same-identity": "the GPU's firmware",
}
"""Whom to suspect, by what discovery says."""
_SURE = frozenset({"driver-not-ready", "kfd-missing", "access-denied"})


def diagnose(
    host: Host,
    functions: Sequence[PciFunction],
    look: Callable[[], Iterable[Device | Unreadable]],
) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it."""
    if not functions:
        yield Finding(
            symptom="no GPU is offered",
            suspect="hardware",
            proof="no PCI function of vendor 0x1002 and class 0x03 or 0x12 is in sysfs",
            remedy="check that the node has a GPU and that the agent sees the host's /sys",
        )
        return
    yield from _binding(functions)
    try:
        found = tuple(look())
    except SourceError as error:
        yield Finding(
            symptom="no GPU is offered",
            suspect=_SEEN_BY_NAME.get(error.code, "KFD"),
            proof=str(error),
            remedy=error.remedy or "see dmesg for kfd",
            sure=True,
        )
        return
    missing = (one for one in found if isinstance(one, Unreadable))
    yield from (_finding(one) for one in missing if one.code != "partition-missing")  # counted
    devices = tuple(one for one in found if isinstance(one, Device))
    yield from _counts(devices)
    yield from _files(host, devices)
    yield from _users(host, devices)


def _binding(functions: Sequence[PciFunction]) -> Iterator[Finding]:
    for function in functions:
        try:
            driver = function.driver
        except SourceError:  # discovery says why
            continue
        if driver in facts.FOREIGN_DRIVERS:
            yield Finding(
                symptom=f"GPU {function.address} is not offered",
                suspect=str(driver),
                proof=f"{function.path('driver')} leads to {driver}",
                remedy="bind it to amdgpu, unless a virtual machine is to have it",
            )


def _finding(one: Unreadable) -> Finding:
    return Finding(
        symptom=f"{one.subject} is not offered",
        suspect=_SEEN_BY_NAME.get(one.code, "amdgpu"),
        proof=one.reason,
        remedy=one.remedy,
        sure=one.code in _SURE,
    )


def _counts(devices: Iterable[Device]) -> Iterator[Finding]:
    """How many partitions there are, and how many there should be."""
    several = tuple(devices)
    counts = {
        d.id: mode.count for d in several for mode in d.modes if mode.name == d.mode and mode.cut
    }
    found = sum(d.parent in counts for d in several)
    expected = sum(counts.values())
    if found < expected:
        yield Finding(
            symptom="partitions are missing",
            suspect="the kernel's device numbers",
            proof=f"the modes of the GPUs stand for {expected} partitions, {found} are there",
            remedy="take display adapters out of use that have minors, or use a newer kernel",
        )


def _files(host: Host, devices: Iterable[Device]) -> Iterator[Finding]:
    paths = sorted({n.on_host for d in devices if d.usable for n in d.nodes})
    for path in paths:
        finding = file_finding(
            host,
            path,
            "containers cannot use GPUs",
            users="GPUs",
            missing="udev makes it; let the agent see the host's /dev",
            closed="give the pods the group of it (supplementalGroups: render, video), "
            "or let udev set mode 0666",
        )
        if finding is not None:
            yield finding
            if not finding.sure:
                return  # they are all alike


def _users(host: Host, devices: Iterable[Device]) -> Iterator[Finding]:
    users = kfd_users(host)
    if users and any(d.modes for d in devices):
        yield Finding(
            symptom="compute modes of GPUs cannot be set",
            suspect="processes that use KFD",
            proof=f"process {', '.join(users[:8])} uses {facts.KFD_NODE}",
            remedy="end them before GPUs are cut: one is in the way of all",
        )
