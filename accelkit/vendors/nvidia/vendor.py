"""The NVIDIA vendor: which ability is where. Not here: how each of them works."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    Access,
    Condition,
    Device,
    DriverNotReady,
    Edits,
    Event,
    Evidence,
    Finding,
    Grant,
    Holding,
    Host,
    LibraryMissing,
    Link,
    PartitionError,
    PciFunction,
    PciMatch,
    Placement,
    Sample,
    Setting,
    Signal,
    Signals,
    SupportsDiagnosis,
    SupportsEvents,
    SupportsHealth,
    SupportsHolders,
    SupportsLinks,
    SupportsPartitioning,
    SupportsPreparation,
    SupportsSignals,
    SupportsTelemetry,
    Unreadable,
    Vendor,
    Version,
    is_host_path,
    pci_functions,
)
from accelkit.vendors.nvidia import (
    diagnosis,
    discovery,
    driver,
    edits,
    facts,
    health,
    holders,
    links,
    modes,
    nodes,
    settings,
    sharing,
    telemetry,
    xid,
)
from accelkit.vendors.nvidia.card import Card, card_of
from accelkit.vendors.nvidia.creating import create as create_at
from accelkit.vendors.nvidia.destroying import destroy as destroy_at
from accelkit.vendors.nvidia.listening import Ear
from accelkit.vendors.nvidia.nvml import Nvml, NvmlError
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import read_driver, read_gpu

_MOST_SESSIONS = 8
"""Doors to one host that are used side by side; more come from doors made for a single call."""
_ASKING_S = 1.5
"""How long GPUs may take to say how they are, of the 2 s of a call for one."""


@attrs.frozen(kw_only=True)
class NvidiaOptions:
    """The operator's block."""

    driver_root: str = "auto"
    """Where the driver is installed; auto: / or /run/nvidia/driver."""
    ignore_xids: tuple[int, ...] = ()
    """XIDs that are never shown."""
    hami_core: str = "/usr/local/vgpu"
    """Folder of libvgpu.so and ld.so.preload, for ``enforce: library``."""
    mps_directory: str = "/run/accelkit/mps"
    """Folder of the MPS daemons, for ``enforce: mps``: mps in the agent's run directory."""

    def __attrs_post_init__(self) -> None:
        given = {"hamiCore": self.hami_core, "mpsDirectory": self.mps_directory}
        if self.driver_root != "auto":
            given["driverRoot"] = self.driver_root
        for key, path in given.items():
            if not is_host_path(path):
                raise ValueError(f"{key} must be an absolute path without .., not {path!r}")


class Nvidia(
    Vendor,
    SupportsHealth,
    SupportsEvents,
    SupportsSignals,
    SupportsLinks,
    SupportsHolders,
    SupportsDiagnosis,
    SupportsPartitioning,
    SupportsPreparation,
    SupportsTelemetry,
):
    """GPUs and MIG instances, through NVML."""

    name = "nvidia"
    domain = "nvidia.com"
    hardware = (PciMatch(vendor=facts.PCI_VENDOR, classes=(facts.DISPLAY, facts.COMPUTE)),)
    platforms = (discovery.WSL, discovery.TEGRA)
    native = True
    machine = "accelkit.vendors.nvidia.machine:NvidiaMachine"
    signals = Signals(
        uevents=("pci",),
        kernel_log=("NVRM: Xid",),
        # A driver that is loaded or unloaded, and device nodes that come later.
        files=("/sys/module/nvidia", "/dev/nvidia*"),
    )
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
        # MIG and the compute mode; nvidia-smi and nvidia-modprobe in the host's or driver's root.
        capabilities=("MKNOD", "SYS_ADMIN", "SYS_CHROOT"),
        read=("/sys", "/proc/driver/nvidia", facts.DRIVER_CONTAINER, "/usr"),
        devices=("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia*", "/dev/nvidia-caps/*"),
    )

    def __init__(self, options: NvidiaOptions) -> None:
        super().__init__(options)
        self._chosen = options
        self._means = sharing.Means(library=options.hami_core, daemons=options.mps_directory)
        self._sessions: dict[Host, Nvml] = {}
        self._patience = Patience(discovery.READING_S)
        self._asking = Patience(_ASKING_S)
        self._ear = Ear()

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        if (platform := discovery.unsupported_platform(host)) is not None:
            yield platform
            return
        functions = {
            f.address: f
            for f in self._functions(host)
            if discovery.bound_to(f) not in discovery.FOREIGN_DRIVERS
        }
        if functions:
            found = discovery.discover_all(
                self, host, functions, lambda: self.nvml(host), self._patience
            )
            yield from (self._shared(host, d) if isinstance(d, Device) else d for d in found)

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        nvml, ignored = self.nvml(host), self._chosen.ignore_xids

        def read() -> list[Condition]:
            now_s = time.monotonic()
            return list(health.read_conditions(nvml, device, evidence, now_s, ignored))

        return self._asking.ask(device.root, read)

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        return self._ear.listen(self.nvml(host), timeout_s)

    def interpret(self, signal: Signal) -> Iterator[Event]:
        if (heard := xid.heard_in(signal.text)) is not None:
            address, number = heard
            yield Event(subject=address, code=xid.code_of(number), source="kernel")

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        return links.read_links(self.nvml(host), devices) if devices else ()

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        return holders.read_holders(self.nvml(host), devices, self._asking) if devices else ()

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        return telemetry.read_samples(self.nvml(host), devices, self._asking) if devices else ()

    def diagnose(self, host: Host) -> Iterable[Finding]:
        return diagnosis.diagnose(
            host, self._functions(host), lambda: self.nvml(host), self._chosen.driver_root
        )

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.make_edits(host, grant, self._chosen.driver_root, self._means)

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        nvml = self.nvml(host)
        card = card_of(nvml, parent)
        return create_at(card, placement, lambda: self._made(host, card, placement))

    def destroy(self, host: Host, partition: Device) -> None:
        if partition.placement is None:
            raise PartitionError(f"{partition.id} is no partition", device=str(partition.id))
        if (card := self._there(host, partition)) is not None:
            destroy_at(card, partition.placement)

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        modes.set_mode(self.nvml(host), device, mode)

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:  # noqa: ARG002 - the grant says it all
        return settings.needs(grant)

    def apply(self, host: Host, setting: Setting) -> None:
        settings.apply(self._tools(host), setting)

    def revert(self, host: Host, setting: Setting) -> None:
        settings.revert(self._tools(host), setting)

    def software(self, host: Host) -> Mapping[str, str]:
        try:
            found = read_driver(self.nvml(host))
        except (LibraryMissing, DriverNotReady):  # each GPU says so
            return {}
        cuda = {} if found.cuda is None else {"cuda": f"{found.cuda.major}.{found.cuda.minor}"}
        return {"driver": found.text, "nvml": found.library, **cuda}

    def close(self) -> None:
        self._ear.close()
        while self._sessions:
            _, nvml = self._sessions.popitem()
            nvml.drop()

    def _shared(self, host: Host, device: Device) -> Device:
        """The same, with what can enforce a share of it."""
        return attrs.evolve(device, sharing=sharing.enforcements(host, self._means, device))

    def _tools(self, host: Host) -> settings.Tools:
        roots = driver.driver_roots(self._chosen.driver_root)
        return settings.Tools(host=host, roots=roots, session=lambda: self.nvml(host))

    def _there(self, host: Host, device: Device) -> Card | None:
        """The GPU of *device*; None: it is gone, or its driver is, and all that was set with it."""
        try:
            return card_of(self.nvml(host), device)
        except DriverNotReady:
            return None
        except LibraryMissing:
            if driver.loaded_version(host) is None:
                return None
            raise
        except NvmlError as error:
            if error.value in {facts.NOT_FOUND, facts.GPU_IS_LOST}:
                return None
            raise

    def _made(self, host: Host, card: Card, placement: Placement) -> Device:
        """The partition at *placement*, as *discover* yields it."""
        nvml = card.nvml
        gpu = read_gpu(nvml, card.handle, read_driver(nvml))
        if (there := card.at(placement)) is not None:
            roots = driver.driver_roots(self._chosen.driver_root)
            nodes.make_instance_nodes(host, roots, gpu.minor, there.gi, there.ci)
        functions = {f.address: f for f in self._functions(host)}
        _, parts = discovery.as_devices(self, host, functions, nvml, gpu)
        for part in parts:
            if isinstance(part, Device) and part.placement == placement:
                return self._shared(host, part)
        raise PartitionError(
            f"{card.name}: {placement.profile} at slot {placement.start} is gone again",
            device=card.name,
        )

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return pci_functions(host, self.hardware)

    def nvml(self, host: Host) -> Nvml:
        """The session of *host*; the library is loaded by the first call."""
        found = self._sessions.get(host)
        if found is None:
            if len(self._sessions) >= _MOST_SESSIONS:
                self.close()
            found = self._sessions[host] = Nvml(host, driver.driver_roots(self._chosen.driver_root))
        return found
