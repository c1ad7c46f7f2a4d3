"""The AMD vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from accelkit import (
    Access,
    ContainerEdits,
    Device,
    Edits,
    FrozenMap,
    Grant,
    Granted,
    Host,
    MissingParts,
    PciFunction,
    PciMatch,
    Signals,
    Unreadable,
    Vendor,
    Version,
    pci_functions,
)
from accelkit.vendors.amd import discovery, facts


class Amd(Vendor):
    """GPUs and their partitions, through KFD and sysfs."""

    name = "amd"
    domain = "amd.com"
    hardware = (PciMatch(vendor=facts.PCI_VENDOR, classes=facts.CLASSES),)
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
        read=("/sys",),
        write=("/sys/bus/pci/devices",),
        devices=(facts.KFD_NODE, "/dev/dri/*"),
        host_pid=True,
    )

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        makers = discovery.Makers(whole=self.device, part=self.partition)
        return discovery.discover_all(host, self._functions(host), makers)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return Edits(each=FrozenMap({g.device.id: _edits_of(host, g) for g in grant.granted}))

    def software(self, host: Host) -> Mapping[str, str]:
        return discovery.read_software(host)

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return pci_functions(host, self.hardware)


def _edits_of(host: Host, granted: Granted) -> ContainerEdits:
    """The device files alone: a program sees the GPUs whose files it has, and numbers those."""
    device = granted.device
    if missing := [node.on_host for node in device.nodes if not host.exists(node.on_host)]:
        raise MissingParts(
            f"{device.id}: {', '.join(missing)} not there",
            remedy="udev makes them when amdgpu is loaded; see dmesg for amdgpu and kfd",
        )
    return ContainerEdits(nodes=device.nodes)
