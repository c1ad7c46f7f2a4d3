"""What keeps GPUs from being served, in words. Reads only; works without the driver."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import attrs

from accelkit import (
    DriverNotReady,
    Finding,
    Host,
    LibraryMissing,
    MissingParts,
    PciFunction,
    SourceError,
    StartOver,
    file_finding,
)
from accelkit.vendors.nvidia import driver, edits, nodes
from accelkit.vendors.nvidia.discovery import FOREIGN_DRIVERS, bound_to, unsupported_platform
from accelkit.vendors.nvidia.nvml import Nvml
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import count_gpus, read_excluded

_ANSWER_S = 5.0
"""Seconds for all GPUs together."""
_TOOLKIT = ("/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime")


def diagnose(
    host: Host,
    functions: Sequence[PciFunction],
    session: Callable[[], Nvml],
    driver_root: str,
) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it."""
    if (platform := unsupported_platform(host)) is not None:
        yield Finding(
            symptom="no GPU is offered",
            suspect="platform",
            proof=platform.reason,
            remedy=platform.remedy,
            sure=True,
        )
        return
    if not functions:
        yield Finding(
            symptom="no GPU is offered",
            suspect="hardware",
            proof="no PCI function of vendor 0x10de and class 0x0300 or 0x0302 is in sysfs",
            remedy="check that the node has a GPU and that the agent sees the host's /sys",
        )
        return
    yield from _binding(functions)
    if driver.loaded_version(host) is None:
        yield Finding(
            symptom="no GPU is offered",
            suspect="the nvidia kernel module",
            proof="/sys/module/nvidia/version is not there",
            remedy="modprobe nvidia; see dmesg for the reason if that fails",
            sure=True,
        )
        return
    yield from _nodes(host)
    served = sum(bound_to(function) in {"nvidia", None} for function in functions)
    yield from _library(host, session, served)
    yield from _files(host, driver_root)


def _binding(functions: Sequence[PciFunction]) -> Iterator[Finding]:
    for function in functions:
        driver = bound_to(function)
        if driver == "nvidia" or driver is None:
            continue
        wanted = driver in FOREIGN_DRIVERS
        yield Finding(
            symptom=f"GPU {function.address} is not offered",
            suspect=driver,
            proof=f"{function.path('driver')} leads to {driver}",
            remedy="bind it to nvidia, unless a virtual machine is to have it"
            if wanted
            else f"blacklist {driver} and reboot",
            sure=not wanted,
        )


def _files(host: Host, driver_root: str) -> Iterator[Finding]:
    try:
        edits.find_driver(host, driver_root)
    except MissingParts as error:
        yield Finding(
            symptom="containers cannot get the driver's files",
            suspect="driver libraries",
            proof=str(error),
            remedy=error.remedy,
            sure=True,
        )
    toolkit = next((path for path in _TOOLKIT if host.exists(path)), None)
    if toolkit is not None and not any(host.exists(path) for path in edits.HOOK_PROGRAMS):
        yield Finding(
            symptom="programs do not find libcuda.so.1 in images of another distribution",
            suspect="the container toolkit",
            proof=f"{toolkit} is there, {' and '.join(edits.HOOK_PROGRAMS)} are not",
            remedy="install nvidia-container-toolkit 1.17 or later",
        )


def _nodes(host: Host) -> Iterator[Finding]:
    wanted = [*nodes.CONTROL]
    wanted += [f"/dev/{n}" for n in host.names("/dev") if n[:6] == "nvidia" and n[6:].isdecimal()]
    for path in wanted:
        finding = file_finding(
            host,
            path,
            "containers cannot use GPUs",
            users="GPUs",
            missing="nvidia-modprobe -u -c 0, or nvidia-smi, makes it",
            closed="set NVreg_DeviceFileMode=0666, or run the containers with the group of it",
        )
        if finding is not None:
            yield finding


def _library(host: Host, session: Callable[[], Nvml], functions: int) -> Iterator[Finding]:
    try:
        nvml = session()
        listed = count_gpus(nvml)
        excluded = read_excluded(nvml)
        yield from _each(nvml, listed)
    except StartOver as error:
        loaded = f"{error}; that of the loaded module is {driver.loaded_version(host)}"
        yield attrs.evolve(
            _failing("driver and library have different versions", error), proof=loaded
        )
        return
    except LibraryMissing as error:
        yield _failing("NVML", error)
        return
    except (DriverNotReady, SourceError) as error:
        yield _failing("the driver", error)
        return
    if listed + len(excluded) < functions:
        out = f" and excludes {len(excluded)}" if excluded else ""
        yield Finding(
            symptom="GPUs are missing",
            suspect="some GPUs",
            proof=f"{functions} are in sysfs, the driver lists {listed}{out}",
            remedy="see dmesg for NVRM messages; a GPU that fell off the bus needs a reboot",
        )


def _failing(suspect: str, error: SourceError) -> Finding:
    return Finding(
        symptom="no GPU is offered",
        suspect=suspect,
        proof=str(error),
        remedy=error.remedy,
        sure=True,
    )


def _is_persistent(nvml: Nvml, index: int) -> bool:
    handle = nvml.ask("nvmlDeviceGetHandleByIndex", index)
    return bool(nvml.maybe("nvmlDeviceGetPersistenceMode", handle) != 0)


def _each(nvml: Nvml, listed: int) -> Iterator[Finding]:
    """What each GPU answers; one that hangs keeps nobody from hearing of the others."""
    jobs = {index: partial(_is_persistent, nvml, index) for index in range(listed)}
    answers = Patience(_ANSWER_S).gather(jobs)
    for index, answer in answers.items():
        if isinstance(answer, SourceError):
            yield Finding(
                symptom="a GPU is missing",
                suspect=f"the GPU with index {index}",
                proof=str(answer),
                remedy=answer.remedy,
                sure=True,
            )
    off = sum(answer is False for answer in answers.values())
    if off:
        yield Finding(
            symptom="programs start slowly and error counts vanish",
            suspect="persistence mode",
            proof=f"it is off on {off} of {listed} GPUs",
            remedy="run nvidia-persistenced",
        )
