"""Processes that use GPUs. Not here: which of them belong to pods."""

from collections.abc import Iterable, Iterator

from accelkit import Device, Holder, HolderKind, Holding, SourceError
from accelkit.vendors.nvidia.nvml import Handle, Nvml

_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ("nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    ("nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
)
"""Newest first: drivers before 510 know the second only."""
_MOST_PID = 1 << 22
"""Linux, include/linux/threads.h, PID_MAX_LIMIT; entries of other layouts show larger numbers."""


def read_holders(nvml: Nvml, devices: Iterable[Device]) -> Iterator[Holding]:
    """One holding for each process of each device; a GPU that cannot be asked has none.

    A GPU that is cut tells the processes of its partitions, which are asked themselves.
    """
    for device in devices:
        if device.handle is None or not device.usable:
            continue
        try:
            handle = nvml.ask("nvmlDeviceGetHandleByUUID", device.handle)
            pids = pids_of(nvml, handle)
        except SourceError:
            continue
        for pid in sorted(pids):
            yield Holding(
                device=device.id,
                through="process",
                holder=Holder(kind=HolderKind.FOREIGN, uid=str(pid)),
            )


def pids_of(nvml: Nvml, handle: Handle) -> set[int]:
    """Processes on a GPU or a MIG device."""
    found: set[int] = set()
    for newest, older in _LISTS:
        processes = nvml.maybe(newest, handle)
        if processes is None:
            processes = nvml.maybe(older, handle) or ()
        found.update(p.pid for p in processes if 0 < p.pid <= _MOST_PID)
    return found
