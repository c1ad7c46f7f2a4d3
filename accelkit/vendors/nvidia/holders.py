"""Processes that use GPUs. Not here: which of them belong to pods."""

from collections.abc import Iterable, Iterator
from functools import partial

from accelkit import Device, Holder, HolderKind, Holding, SourceError
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml
from accelkit.vendors.nvidia.patience import Patience

_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ("nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    ("nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
)
"""Newest first: drivers before 510 know the second only, and some have other entries in the first.

Source: drivers 535 before 535.98 fill entries of 32 bytes in lists of version 3, others of 24.
"""
_MOST_PID = 1 << 22
"""Linux, include/linux/threads.h, PID_MAX_LIMIT."""


def read_holders(nvml: Nvml, devices: Iterable[Device], patience: Patience) -> Iterator[Holding]:
    """One holding for each process of each device; a GPU that cannot be asked has none.

    A GPU that is cut tells the processes of its partitions, which are asked themselves.
    """
    asked = (device for device in devices if device.handle is not None and device.usable)
    return patience.of_each(asked, partial(_of_device, nvml))


def _of_device(nvml: Nvml, device: Device) -> Iterator[Holding]:
    try:
        pids = pids_of(nvml, nvml.ask("nvmlDeviceGetHandleByUUID", device.handle))
    except SourceError:
        return
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
        pids = _pids(nvml.maybe(newest, handle))
        if pids is None or not all(map(_is_pid, pids)):
            pids = _pids(nvml.maybe(older, handle)) or pids or ()
        found.update(filter(_is_pid, pids))
    return found


def _pids(processes: Answer) -> tuple[int, ...] | None:
    return None if processes is None else tuple(p.pid for p in processes)


def _is_pid(pid: int) -> bool:
    return 0 < pid <= _MOST_PID
