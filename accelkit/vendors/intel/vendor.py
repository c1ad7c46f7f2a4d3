"""The Intel GPU vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    Access,
    Condition,
    Device,
    Edits,
    Event,
    Evidence,
    Finding,
    Grant,
    Holding,
    Host,
    Link,
    PartitionError,
    PciFunction,
    PciMatch,
    Placement,
    Sample,
    Signal,
    SupportsDiagnosis,
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
    switch_links,
)
from accelkit.vendors.intel import (
    cards,
    diagnosis,
    discovery,
    edits,
    events,
    facts,
    health,
    sensors,
    sriov,
)


@attrs.frozen(kw_only=True)
class IntelOptions:
    """The operator's block."""

    offer: discovery.Offered = discovery.Offered.VF
    """What of a GPU with virtual functions may be handed out: vf, pf, or both."""
    by_path: edits.ByPath = edits.ByPath.NONE
    """Links below /dev/dri/by-path in containers: none or all."""


class Intel(
    Vendor,
    SupportsHealth,
    SupportsSignals,
    SupportsLinks,
    SupportsHolders,
    SupportsDiagnosis,
    SupportsTelemetry,
    SupportsPartitioning,
):
    """GPUs of the drivers i915 and xe, and their virtual functions, by files alone."""

    name = "intel"
    domain = "gpu.intel.com"
    hardware = (PciMatch(vendor=facts.PCI_VENDOR, classes=(facts.VGA, facts.DISPLAY)),)
    machine = "accelkit.vendors.intel.machine:IntelMachine"
    signals = events.SIGNALS
    attributes: ClassVar[Mapping[str, type]] = {
        "family": str,
        "driver": str,
        "type": str,
        "pciId": str,
        "pciAddress": str,
        "sriov": bool,
        "integrated": bool,
        "tiles": int,
        "driverVersion": Version,
    }
    options = IntelOptions
    access = Access(
        read=("/sys", "/proc"),
        write=("/sys/bus/pci/devices/*/sriov_numvfs",),
        devices=("/dev/dri/*", "/dev/mei*"),
        host_pid=True,
    )

    def __init__(self, options: IntelOptions) -> None:
        super().__init__(options)
        self._chosen = options

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        if functions := self._functions(host):
            software = cards.software_of(host)
            yield from discovery.discover_all(self, functions, software, self._chosen.offer)

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        return health.read_conditions(host, device, evidence)

    def interpret(self, signal: Signal) -> Iterable[Event]:
        return events.meaning(signal)

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        places = {d.handle: d.id for d in devices if d.parent is None and d.handle is not None}
        return switch_links(host, places, maker=facts.PCI_VENDOR)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        return holders_of(host, {d.id: [n.path for n in d.nodes] for d in devices})

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        return sensors.samples(host, devices)

    def diagnose(self, host: Host) -> Iterable[Finding]:
        return diagnosis.diagnose(host, self._functions(host))

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.make_edits(host, grant, self._chosen.by_path)

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        for found in self.discover(host):
            if (
                isinstance(found, Device)
                and found.parent == parent.id
                and found.placement == placement
            ):
                return found
        raise PartitionError(
            f"{parent.id}: {placement.profile} comes with its mode only, with all others of it",
            device=str(parent.id),
            remedy="set the mode: partitioning with how: mode, or a layout",
        )

    def destroy(self, host: Host, partition: Device) -> None:
        for found in self.discover(host):
            if isinstance(found, Device) and found.id == partition.id:
                raise PartitionError(
                    f"{partition.id} goes with the mode of its GPU only, with all others of it",
                    device=str(partition.id),
                    remedy="set another mode",
                )

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        sriov.set_mode(host, device, mode)

    def software(self, host: Host) -> Mapping[str, str]:
        found = cards.software_of(host)
        kernel = {} if found.kernel is None else {"kernel": found.kernel}
        return {**kernel, **found.modules}

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return pci_functions(host, self.hardware)
