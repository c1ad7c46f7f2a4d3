"""The AMD vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from accelkit import (
    Access,
    Condition,
    ContainerEdits,
    Device,
    Edits,
    Event,
    Evidence,
    Finding,
    FrozenMap,
    Grant,
    Granted,
    Group,
    Holding,
    Host,
    Link,
    MissingParts,
    PartitionError,
    PciFunction,
    PciMatch,
    Placement,
    Sample,
    Signal,
    Signals,
    SupportsDiagnosis,
    SupportsGroups,
    SupportsHealth,
    SupportsHolders,
    SupportsLinks,
    SupportsPartitioning,
    SupportsSignals,
    SupportsTelemetry,
    Unreadable,
    Vendor,
    Version,
    holders_of,
    pci_functions,
)
from accelkit.vendors.amd import (
    diagnosis,
    discovery,
    facts,
    health,
    kernel,
    links,
    modes,
    smi,
    telemetry,
)


class Amd(
    Vendor,
    SupportsHealth,
    SupportsSignals,
    SupportsLinks,
    SupportsGroups,
    SupportsHolders,
    SupportsDiagnosis,
    SupportsTelemetry,
    SupportsPartitioning,
):
    """GPUs and their partitions, through KFD and sysfs."""

    name = "amd"
    domain = "amd.com"
    hardware = (PciMatch(vendor=facts.PCI_VENDOR, classes=facts.CLASSES),)
    native = True
    machine = "accelkit.vendors.amd.machine:AmdMachine"
    signals = Signals(
        uevents=("drm", "pci", "kfd"),
        kernel_log=("amdgpu",),
        # A driver that comes or goes, partitions that do, and device files that come later.
        files=(facts.MODULE, f"{facts.KFD}/topology/generation_id", facts.KFD_NODE, "/dev/dri/*"),
    )
    attributes: ClassVar[Mapping[str, type]] = {
        "uuid": str,
        "pciDeviceId": str,
        "productName": str,
        "serial": str,
        "vbiosVersion": str,
        "gfxTarget": str,
        "hiveId": str,
        "computePartition": str,
        "memoryPartition": str,
        "partitionProfile": str,
        "driverVersion": Version,
        "driverSrcVersion": str,
    }
    access = Access(
        read=("/sys", "/proc"),
        write=("/sys/devices",),
        devices=(facts.KFD_NODE, "/dev/dri/*"),
        host_pid=True,
    )

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._names: tuple[frozenset[str], smi.Told] | None = None

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        makers = discovery.Makers(whole=self.device, part=self.partition)
        found = tuple(discovery.discover_all(host, self._functions(host), makers))
        nameless = frozenset(
            d.locality.pci_address or ""
            for d in found
            if isinstance(d, Device) and d.parent is None and "productName" not in d.attributes
        )
        for one in found:
            yield smi.enriched(one, self._told(host, nameless)) if isinstance(one, Device) else one

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        return health.read_conditions(host, device, evidence)

    def interpret(self, signal: Signal) -> Iterable[Event]:
        return kernel.interpret(signal)

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        return links.read_links(host, devices) if devices else ()

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        return links.hives(devices)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        # Of a GPU that is cut the files are those of its first partition.
        own = {d.id: d.nodes for d in devices if d.usable}
        shared = facts.KFD_NODE
        return holders_of(
            host, {i: [n.on_host for n in nodes if n.path != shared] for i, nodes in own.items()}
        )

    def diagnose(self, host: Host) -> Iterable[Finding]:
        return diagnosis.diagnose(host, self._functions(host), lambda: self.discover(host))

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        return telemetry.read_samples(host, devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return Edits(each=FrozenMap({g.device.id: _edits_of(host, g) for g in grant.granted}))

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        return modes.existing(parent, placement, self._devices(host))

    def destroy(self, host: Host, partition: Device) -> None:
        if any(device.id == partition.id for device in self._devices(host)):
            raise PartitionError(
                f"{partition.id} cannot be unmade by itself",
                device=str(partition.id),
                remedy=f"set another mode of {partition.root}, which ends all of them",
            )

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        def family() -> tuple[Device, ...]:
            return tuple(d for d in self._devices(host) if d.root == device.id)

        modes.set_mode(
            host,
            device,
            mode,
            held=lambda: self.holders(host, family()),
            look=lambda: self._devices(host),
        )

    def software(self, host: Host) -> Mapping[str, str]:
        return discovery.read_software(host)

    def _devices(self, host: Host) -> tuple[Device, ...]:
        return tuple(found for found in self.discover(host) if isinstance(found, Device))

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return pci_functions(host, self.hardware)

    def _told(self, host: Host, nameless: frozenset[str]) -> smi.Told:
        """What the library says of GPUs without a name; asked once for the same GPUs."""
        if not nameless:
            return {}
        if self._names is None or self._names[0] != nameless:
            self._names = (nameless, smi.read_names(host))
        return self._names[1]


def _edits_of(host: Host, granted: Granted) -> ContainerEdits:
    """The device files alone: a program sees the GPUs whose files it has, and numbers those."""
    device = granted.device
    if missing := [node.on_host for node in device.nodes if not host.exists(node.on_host)]:
        raise MissingParts(
            f"{device.id}: {', '.join(missing)} not there",
            remedy="udev makes them when amdgpu is loaded; see dmesg for amdgpu and kfd",
        )
    return ContainerEdits(nodes=device.nodes)
