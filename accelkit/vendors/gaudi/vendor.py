"""The Gaudi vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from accelkit import (
    Access,
    Condition,
    Device,
    Edits,
    Event,
    Evidence,
    Finding,
    Grant,
    Group,
    Holding,
    Host,
    Link,
    PciFunction,
    PciMatch,
    Sample,
    Signal,
    Signals,
    SupportsDiagnosis,
    SupportsGroups,
    SupportsHealth,
    SupportsHolders,
    SupportsLinks,
    SupportsSignals,
    SupportsTelemetry,
    Unreadable,
    Vendor,
    Version,
    holders_of,
    pci_functions,
)
from accelkit.vendors.gaudi import (
    diagnosis,
    discovery,
    edits,
    facts,
    health,
    links,
    messages,
    software,
    telemetry,
)
from accelkit.vendors.gaudi.cards import node_of


class Gaudi(
    Vendor,
    SupportsHealth,
    SupportsSignals,
    SupportsLinks,
    SupportsGroups,
    SupportsHolders,
    SupportsDiagnosis,
    SupportsTelemetry,
):
    """Gaudi cards, from files alone: a card that is opened cannot be had by anybody else."""

    name = "gaudi"
    domain = "habana.ai"
    hardware = (
        PciMatch(vendor=facts.PCI_VENDOR, devices=tuple(facts.GENERATIONS)),
        PciMatch(vendor=facts.PCI_VENDOR, classes=(facts.ACCELERATOR,)),
    )
    sets = True
    machine = "accelkit.vendors.gaudi.machine:GaudiMachine"
    signals = Signals(
        uevents=("pci", "accel", "habanalabs"),
        kernel_log=messages.PATTERNS,
        # A driver that is loaded or unloaded, and nodes that go and come with resets.
        files=("/sys/module/habanalabs", "/dev/accel/*", "/dev/hl*"),
    )
    attributes: ClassVar[Mapping[str, type]] = {
        "moduleId": int,
        "deviceType": str,
        "formFactor": str,
        "firmwareVersion": str,
        "driverVersion": Version,
    }
    access = Access(
        # To see whose files are open, which is all that tells who has a card.
        capabilities=("SYS_PTRACE",),
        read=("/sys", "/proc", "/etc/habanalabs", *facts.HOOKS),
        devices=("/dev/accel/*", "/dev/hl*", "/dev/infiniband/uverbs*"),
        host_pid=True,
    )

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        return discovery.discover_all(self, host, self._functions(host))

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        return health.read_conditions(host, device, evidence)

    def interpret(self, signal: Signal) -> Iterable[Event]:
        return messages.events_in(signal.text)

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:  # noqa: ARG002 - modules tell it
        return links.links_of(devices)

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        return links.groups_of(devices)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        # Of the node to compute alone: the other one is for whoever looks on.
        nodes = {d.id: (node_of(d.handle),) for d in devices if d.handle is not None}
        return holders_of(host, nodes)

    def diagnose(self, host: Host) -> Iterable[Finding]:
        return diagnosis.diagnose(host, self._functions(host))

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        return telemetry.samples_of(host, devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.make_edits(host, grant)

    def software(self, host: Host) -> Mapping[str, str]:
        found = software.of_module(host)
        return {} if found is None else {"driver": found}

    def _functions(self, host: Host) -> tuple[PciFunction, ...]:
        return pci_functions(host, self.hardware)
