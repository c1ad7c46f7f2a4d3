"""The TPU vendor: which ability is where. Not here: how each of them works."""

from collections.abc import Iterator, Mapping
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
    Group,
    Holding,
    Host,
    Link,
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
)
from accelkit.vendors.tpu import (
    diagnosis,
    discovery,
    edits,
    health,
    holders,
    kernel,
    mesh,
    telemetry,
    versions,
)
from accelkit.vendors.tpu.chips import HARDWARE, read_chips
from accelkit.vendors.tpu.facts import SHAPES, TPU_ENV
from accelkit.vendors.tpu.slices import Said, Unknown, read_topology


@attrs.frozen(kw_only=True)
class TpuOptions:
    """The operator's block."""

    topology: str = attrs.field(default="")
    """Of the slice, as 4x4 or 2x2x4; empty: as /etc/tpu/tpu-env says."""
    chips_per_host: int = attrs.field(default=0)
    """0: as that file says, or else as many as there are."""

    @topology.validator
    def _check_topology(self, _attribute: object, topology: str) -> None:
        try:
            read_topology(topology or "1x1")
        except Unknown as error:
            raise ValueError(f"{error}; write it as 4x4 or 2x2x4") from error

    @chips_per_host.validator
    def _check_chips_per_host(self, _attribute: object, chips: int) -> None:
        if chips not in {0, *SHAPES}:
            sizes = ", ".join(str(size) for size in SHAPES)
            raise ValueError(f"chipsPerHost must be one of {sizes}, or 0, not {chips}")


class Tpu(
    Vendor,
    SupportsHealth,
    SupportsSignals,
    SupportsLinks,
    SupportsGroups,
    SupportsHolders,
    SupportsDiagnosis,
    SupportsTelemetry,
):
    """Chips of TPU virtual machines, through files alone."""

    name = "tpu"
    domain = "google.com"
    hardware = HARDWARE
    machine = "accelkit.vendors.tpu.machine:TpuMachine"
    sets = True
    signals = Signals(
        uevents=("pci", "vfio", "accel"),
        kernel_log=kernel.PATTERNS,
        files=(TPU_ENV, "/dev/vfio/*", "/dev/accel*"),
    )
    attributes: ClassVar[Mapping[str, type]] = {
        "generation": str,
        "index": int,
        "block2": int,
        "block4": int,
        "coresPerChip": int,
        "acceleratorType": str,
        "topology": str,
        "chipsPerHost": int,
        "hosts": int,
        "workerId": int,
    }
    options = TpuOptions
    access = Access(
        # To see whose files are open, which is all that tells who has a chip.
        capabilities=("SYS_PTRACE",),
        read=("/sys", "/proc", "/etc/tpu"),
        devices=("/dev/vfio/*", "/dev/accel*"),
        host_pid=True,
    )

    def __init__(self, options: TpuOptions) -> None:
        super().__init__(options)
        self._said = Said(topology=options.topology, chips_per_host=options.chips_per_host)
        self._users = holders.Users()

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        for found in discovery.discover_all(self, host, self._inventory(host)):
            if isinstance(found, Device):
                self._users.know(found)
            yield found

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterator[Condition]:
        chip = discovery.chip_of(host, device)
        yield from health.read_conditions(host, chip, device, evidence)
        yield from self._users.conditions(host, device)

    def interpret(self, signal: Signal) -> Iterator[Event]:
        return kernel.heard(signal)

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterator[Link]:  # noqa: ARG002 - discovery has found their places
        return mesh.read_links(devices)

    def groups(self, devices: tuple[Device, ...]) -> Iterator[Group]:
        return mesh.legal_sets(devices)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterator[Holding]:
        return holders.read_holders(host, devices)

    def diagnose(self, host: Host) -> Iterator[Finding]:
        here = self._inventory(host)
        found = discovery.discover_all(self, host, here)
        nodes = {d.id: holders.own_nodes(d) for d in found if isinstance(d, Device)}
        return diagnosis.diagnose(host, here, holders.strangers(host, nodes))

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterator[Sample]:
        return telemetry.read_samples(host, devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        return edits.make_edits(host, grant, self._said, lambda: self._inventory(host))

    def software(self, host: Host) -> Mapping[str, str]:
        """The kernel, which VFIO is a part of, and the driver of /dev/accelN where it says it."""
        return versions.read_versions(host, read_chips(host))

    def _inventory(self, host: Host) -> discovery.Inventory:
        return discovery.read_inventory(host, self._said)
