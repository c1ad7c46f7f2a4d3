"""The AWS Neuron vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    Access,
    Condition,
    Device,
    DeviceId,
    Edits,
    Event,
    Evidence,
    Finding,
    Grant,
    Group,
    Holding,
    Host,
    Link,
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
    is_host_path,
    pci_functions,
)
from accelkit.vendors.neuron import (
    chips,
    diagnosis,
    discovery,
    edits,
    facts,
    health,
    kernel,
    lnc,
    sets,
    telemetry,
)
from accelkit.vendors.neuron.places import Places


@attrs.frozen(kw_only=True)
class NeuronOptions:
    """The operator's block."""

    neuron_ls: str = facts.TOOL
    """Program that knows where chips hang, which no file tells; empty: none is run."""

    def __attrs_post_init__(self) -> None:
        if self.neuron_ls and not is_host_path(self.neuron_ls):
            raise ValueError(
                f"neuronLs must be an absolute path without .., not {self.neuron_ls!r}"
            )


class Neuron(
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
    """Inferentia and Trainium chips and their cores, through the files of the driver."""

    name = "neuron"
    domain = "aws.amazon.com"
    hardware = (
        PciMatch(vendor=facts.PCI_VENDOR, devices=facts.PCI_DEVICES),
        # Chips of a sort that is not known here, once their driver is there.
        PciMatch(vendor=facts.PCI_VENDOR, classes=(facts.PCI_CLASS,)),
    )
    sets = True
    machine = "accelkit.vendors.neuron.machine:NeuronMachine"
    signals = Signals(
        uevents=("pci", "neuron_device"),
        kernel_log=kernel.PATTERNS,
        files=(facts.LNC_FILE, "/sys/module/neuron", "/dev/neuron*"),
    )
    attributes: ClassVar[Mapping[str, type]] = {
        "serial": str,
        "deviceId": int,
        "coreCount": int,
        "logicalNeuronCore": int,
        "architecture": str,
        "instanceType": str,
        "driverVersion": Version,
        "topology": str,
        "topology_x": int,
        "topology_y": int,
        "topology4_id": int,
        "topology8_id": int,
        "ultraserverMode": str,
        "serverId2": str,
        "serverId4": str,
        "nodeId2": int,
        "nodeId4": int,
    }
    options = NeuronOptions
    claim_config = edits.NeuronClaim
    access = Access(
        # Files that are for root only; open files of other users' processes; neuron-ls.
        capabilities=("DAC_READ_SEARCH", "SYS_CHROOT", "SYS_PTRACE"),
        read=("/sys", "/proc", "/opt/aws/neuron"),
        write=("/opt/aws/neuron",),
        devices=("/dev/neuron*",),
        host_pid=True,
    )

    def __init__(self, options: NeuronOptions) -> None:
        super().__init__(options)
        self._places = Places(options.neuron_ls)
        self._tool = options.neuron_ls

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        return discovery.discover(self, host, self._functions(host), self._places)

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        return health.read_conditions(host, device, evidence)

    def interpret(self, signal: Signal) -> Iterator[Event]:
        if (event := kernel.heard_in(signal.text)) is not None:
            yield event

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        return sets.links(host, devices)

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        return sets.groups(devices)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        """Of chips only: which core a process has is known to its chip alone."""
        return holders_of(
            host,
            {d.id: [n.on_host for n in d.nodes] for d in devices if d.parent is None},
        )

    def diagnose(self, host: Host) -> Iterable[Finding]:
        return diagnosis.diagnose(host, self._functions(host), self._tool)

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        return telemetry.samples(host, devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.edits_of(host, grant)

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        """Cores are there or not: as the mode says."""
        for device in self.discover(host):
            if (
                isinstance(device, Device)
                and device.parent == parent.id
                and device.placement == placement
            ):
                return device
        raise PartitionError(
            f"{parent.id} has no {placement.profile} at {placement.start}, and cores are not made",
            device=str(parent.id),
            remedy="set its mode: partitioning with how: mode",
        )

    def destroy(self, host: Host, partition: Device) -> None:
        if any(d.id == partition.id for d in self.discover(host) if isinstance(d, Device)):
            raise PartitionError(
                f"{partition.id} is a part of its chip, and is not unmade",
                device=str(partition.id),
                remedy="set the mode of the chip: partitioning with how: mode",
            )

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        lnc.set_mode(host, device, mode, lambda: self._who_has_chips(host))

    def software(self, host: Host) -> Mapping[str, str]:
        version = discovery.driver_text(host)
        return {} if version is None else {"driver": version}

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return tuple(filter(discovery.is_chip, pci_functions(host, self.hardware)))

    def _who_has_chips(self, host: Host) -> set[str]:
        """Processes that have any chip open."""
        files = [f"/dev/{chips.word_of(index)}" for index in chips.indices(host)]
        any_chip = DeviceId(vendor=self.name, name="any")
        return {h.holder.uid for h in holders_of(host, {any_chip: files}) if h.holder.uid}
