"""Everything NVIDIA on a host, one fault at a time. Not here: what NVML's answers look like."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from accelkit import (
    AccelkitError,
    Device,
    DriverNotReady,
    Host,
    LibraryMissing,
    ModelError,
    NotThere,
    PciFunction,
    SourceError,
    StartOver,
    Unreadable,
    Vendor,
)
from accelkit.vendors.nvidia import devices, facts, mig
from accelkit.vendors.nvidia.fabric import read_fabric
from accelkit.vendors.nvidia.nvml import Nvml, NvmlError, Rubbish
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import (
    Driver,
    Gpu,
    count_gpus,
    read_address,
    read_driver,
    read_excluded,
    read_gpu,
)

READING_S = 6.0
"""Seconds for all GPUs together; a GPU that takes longer is reported as not answering."""

FOREIGN_DRIVERS = frozenset({"vfio-pci", "pci-stub"})
"""Whoever binds a GPU to these means to give it to a virtual machine: it is not ours."""


WSL, TEGRA = "/dev/dxg", "/etc/nv_tegra_release"
"""Files of platforms on which NVML does not tell what is needed.

Source:
    WSL: /dev/dxg stands for all GPUs. Tegra: a file of Linux for Tegra.
"""
FAMILY = "/sys/devices/soc0/family"
"""Of the chip; boards of all makers have it.

Source:
    Linux, Documentation/ABI/testing/sysfs-devices-soc.
"""

Family: TypeAlias = tuple[Device, list[Device | Unreadable]]
"""A whole GPU and what is cut out of it."""


_LOST = "gpu-lost"
_STALE = frozenset({facts.GPU_IS_LOST, facts.UNKNOWN})
"""What a session says of a GPU that was reset since it was opened."""


class _Failed(SourceError):
    """A GPU that cannot be read, with its address as far as it is known."""

    def __init__(self, cause: AccelkitError, address: str | None) -> None:
        super().__init__(str(cause), vendor="nvidia", remedy=cause.remedy)
        self.value = cause.value if isinstance(cause, NvmlError) else None
        self.found = _LOST if self.value == facts.GPU_IS_LOST else cause.code
        self.address = address


def unsupported_platform(host: Host) -> Unreadable | None:
    """The platform, where NVML does not tell what is needed."""
    name = None
    if host.exists(WSL):
        name = "wsl"
    elif host.exists(TEGRA) or _family(host) == "Tegra":
        name = "tegra"
    if name is None:
        return None
    return Unreadable(
        subject=name,
        code="platform-unsupported",
        reason=f"GPUs of this platform ({name}) are not served by this plugin",
        remedy="use a plugin for that platform",
    )


def _family(host: Host) -> str:
    try:
        return host.read(FAMILY).strip()
    except NotThere:
        return ""


def bound_to(function: PciFunction) -> str | None:
    """The kernel driver of a function; None: none."""
    try:
        return function.host.resolve(function.path("driver")).rpartition("/")[2]
    except NotThere:
        return None


def not_ready(function: PciFunction, reason: str, remedy: str = "") -> Unreadable:
    """A GPU whose driver does not serve it, told by the driver that it is bound to."""
    driver = bound_to(function)
    if driver not in {None, "nvidia"}:
        reason = f"it is bound to {driver}"
        remedy = f"blacklist {driver}, or bind the GPU to nvidia"
    elif driver is None:
        reason, remedy = f"no driver is bound; {reason}", remedy or "modprobe nvidia"
    return Unreadable(
        subject=function.address, code="driver-not-ready", reason=reason, remedy=remedy
    )


def discover_all(
    vendor: Vendor,
    host: Host,
    functions: Mapping[str, PciFunction],
    session: Callable[[], Nvml],
    patience: Patience,
) -> Iterator[Device | Unreadable]:
    """Devices and unreadables, by PCI address.

    Args:
        vendor: Makes the devices.
        host: The door.
        functions: GPUs in sysfs, by address.
        session: Opens NVML.
        patience: Keeps track of GPUs that do not answer.

    Raises:
        StartOver: The library must be loaded anew.
        SourceError: Nothing is known about any of them.
    """
    try:
        nvml = session()
        driver = read_driver(nvml)
    except (LibraryMissing, DriverNotReady) as error:
        for function in functions.values():
            yield not_ready(function, str(error), error.remedy)
        return
    excluded = read_excluded(nvml)
    place = partial(as_devices, vendor, host, functions)
    jobs = {
        index: partial(_read_one, nvml, driver, index, place) for index in range(count_gpus(nvml))
    }
    answers = patience.gather(jobs).values()
    if any(isinstance(a, _Failed) and a.value in _STALE for a in answers):
        nvml.drop()  # a session does not see a GPU again that was reset meanwhile
    for found in _told(functions, list(answers)):
        if isinstance(found, Unreadable) and found.subject in excluded:
            yield _excluded(found.subject)
        else:
            yield found


def _excluded(address: str) -> Unreadable:
    return Unreadable(
        subject=address,
        code="driver-not-ready",
        reason="the driver is told to leave it alone",
        remedy="take it out of the module's option NVreg_ExcludedGpus, and load the driver again",
    )


def _told(
    functions: Mapping[str, PciFunction], answers: list[Family | SourceError]
) -> Iterator[Device | Unreadable]:
    good: dict[str, Family] = {}
    bad: dict[str, SourceError] = {}
    nameless: list[SourceError] = []
    for answer in answers:
        if isinstance(answer, StartOver):
            raise answer
        if isinstance(answer, SourceError):
            address = getattr(answer, "address", None)
            if address is None:
                nameless.append(answer)
            else:
                bad[address] = answer
            continue
        whole, _ = answer
        address = whole.locality.pci_address or ""
        if address in good or any(whole.id == other.id for other, _ in good.values()):
            bad[address] = Rubbish(f"two GPUs say they are {whole.handle}")
        else:
            good[address] = answer
    for address in sorted({*good, *bad, *functions}):
        if address in bad:
            yield _unreadable(address, bad[address])
        elif address in good:
            whole, parts = good[address]
            yield from (whole, *parts)
        else:
            yield _unlisted(functions[address], nameless)


def _unlisted(function: PciFunction, nameless: list[SourceError]) -> Unreadable:
    """A GPU in sysfs that no answer names; one of those that only failed, if there are any."""
    if nameless and bound_to(function) == "nvidia":
        return _unreadable(function.address, nameless[0])
    return not_ready(function, "the driver does not list it", facts.KERNEL_LOG)


def _unreadable(address: str, error: SourceError) -> Unreadable:
    code = error.found if isinstance(error, _Failed) else error.code
    return Unreadable(subject=address, code=code, reason=str(error), remedy=error.remedy)


def _read_one(
    nvml: Nvml, driver: Driver, index: int, place: Callable[[Nvml, Gpu], Family]
) -> Family:
    """One GPU and its partitions.

    Raises:
        _Failed: Something about it could not be known.
    """
    address: str | None = None
    try:
        handle = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        address = read_address(nvml, handle)
        return place(nvml, read_gpu(nvml, handle, driver))
    except StartOver:
        raise
    except (SourceError, ModelError) as error:
        raise _Failed(error, address) from error


def as_devices(
    vendor: Vendor, host: Host, functions: Mapping[str, PciFunction], nvml: Nvml, gpu: Gpu
) -> Family:
    """The whole GPU and its partitions, of which some may just be made or unmade."""
    fabric = read_fabric(nvml, gpu.handle)
    if fabric is not None and fabric.clique is not None:
        gpu.facts["fabricClique"] = fabric.clique
    can = gpu.mig is not None
    cut = mig.read_cut(nvml, gpu.handle, gpu.memory or 0) if can else mig.Cut()
    whole = devices.gpu_device(vendor, host, gpu, cut, functions.get(gpu.address))

    place = partial(devices.instance_device, vendor, host, whole, gpu)

    def instances() -> tuple[mig.Instance, ...]:
        return mig.read_instances(nvml, gpu.handle, cut)

    def parts() -> list[Device | Unreadable]:
        return [place(instance) for instance in instances()]

    def parts_as_far_as_known() -> list[Device | Unreadable]:
        return [_known(instance, place, vendor, whole) for instance in instances()]

    if not gpu.mig:
        return whole, []
    try:
        return whole, mig.steady(parts)
    except NotThere:
        return whole, mig.steady(parts_as_far_as_known)


def _known(
    instance: mig.Instance, place: Callable[[mig.Instance], Device], vendor: Vendor, whole: Device
) -> Device | Unreadable:
    """A partition; the others do not wait for one whose rights are gone, or not there yet."""
    try:
        return place(instance)
    except NotThere as error:
        name = devices.instance_name(vendor, whole, instance)
        return Unreadable(subject=name, code=error.code, reason=str(error), remedy=error.remedy)
