"""The NVIDIA vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    Access,
    Device,
    Edits,
    Grant,
    Host,
    Link,
    PciMatch,
    Signals,
    SupportsLinks,
    Unreadable,
    Vendor,
    Version,
    pci_functions,
)
from accelkit.vendors.nvidia import discovery, edits, facts, links
from accelkit.vendors.nvidia.nvml import Nvml
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import read_driver

_MOST_SESSIONS = 8
"""Doors to one host that are used side by side; more come from doors made for a single call."""


@attrs.frozen(kw_only=True)
class NvidiaOptions:
    """The operator's block."""

    driver_root: str = "auto"
    """Where the driver is installed; auto: / or /run/nvidia/driver."""
    ignore_xids: tuple[int, ...] = attrs.field(default=(), converter=tuple)
    """XIDs that are never shown."""


class Nvidia(Vendor, SupportsLinks):
    """GPUs and MIG instances, through NVML."""

    name = "nvidia"
    domain = "nvidia.com"
    hardware = (PciMatch(vendor=facts.PCI_VENDOR, classes=(facts.DISPLAY, facts.COMPUTE)),)
    native = True
    machine = "accelkit.vendors.nvidia.machine:NvidiaMachine"
    signals = Signals(uevents=("pci",), kernel_log=("NVRM: Xid",))
    attributes: ClassVar[Mapping[str, type]] = {
        "uuid": str,
        "productName": str,
        "brand": str,
        "architecture": str,
        "addressingMode": str,
        "serial": str,
        "vbiosVersion": str,
        "fabricClique": str,
        "moduleId": int,
        "unifiedMemory": bool,
        "cudaComputeCapability": Version,
        "driverVersion": Version,
        "cudaDriverVersion": Version,
    }
    options = NvidiaOptions
    access = Access(
        capabilities=("SYS_ADMIN",),
        read=("/sys", "/proc/driver/nvidia", facts.DRIVER_CONTAINER, "/usr"),
        devices=("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia*", "/dev/nvidia-caps/*"),
    )

    def __init__(self, options: NvidiaOptions) -> None:
        super().__init__(options)
        self._chosen = options
        self._sessions: dict[Host, Nvml] = {}
        self._patience = Patience()

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        if (platform := discovery.unsupported_platform(host)) is not None:
            yield platform
            return
        functions = {
            f.address: f
            for f in pci_functions(host, self.hardware)
            if discovery.bound_to(f) not in discovery.FOREIGN_DRIVERS
        }
        if functions:
            yield from discovery.discover_all(
                self, host, functions, lambda: self.nvml(host), self._patience
            )

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        return links.read_links(self.nvml(host), devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.make_edits(host, grant, self._chosen.driver_root)

    def software(self, host: Host) -> Mapping[str, str]:
        driver = read_driver(self.nvml(host))
        cuda = {} if driver.cuda is None else {"cuda": f"{driver.cuda.major}.{driver.cuda.minor}"}
        return {"driver": driver.text, "nvml": driver.library, **cuda}

    def close(self) -> None:
        while self._sessions:
            _, nvml = self._sessions.popitem()
            nvml.drop()

    def nvml(self, host: Host) -> Nvml:
        """The session of *host*; the library is loaded by the first call."""
        found = self._sessions.get(host)
        if found is None:
            if len(self._sessions) >= _MOST_SESSIONS:
                self.close()
            found = self._sessions[host] = Nvml(host, edits.driver_roots(self._chosen.driver_root))
        return found
