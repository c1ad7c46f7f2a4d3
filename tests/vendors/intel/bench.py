from pathlib import Path
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    Device,
    Event,
    Finding,
    Grant,
    Granted,
    Sample,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device
from accelkit.testing.machine_host import MachineHost
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.opened import Opened, as_evidence


@attrs.define
class Bench(Opened[Intel]):
    """A simulated machine, opened, and a vendor that reads it."""

    work: MachineHost
    """The same machine, to be written into."""

    def unreadable(self) -> list[Unreadable]:
        return [d for d in self.discover() if isinstance(d, Unreadable)]

    def paths(self, device: Device) -> list[str]:
        return [node.path for node in device.nodes]

    def conditions(self, device: Device, *events: Event) -> list[Condition]:
        kept = of_device(as_evidence("intel", events), device, None)
        return list(self.vendor.conditions(self.host, device, kept))

    def codes(self, device: Device, *events: Event) -> dict[str, Severity]:
        return {c.code: c.severity for c in self.conditions(device, *events)}

    def findings(self) -> list[Finding]:
        return list(self.vendor.diagnose(self.host))

    def samples(self) -> list[Sample]:
        return list(self.vendor.samples(self.host, self.devices()))

    def sysfs(self, address: str = "0000:03:00.0") -> Path:
        return Path(self.directory, "sys/bus/pci/devices", address).resolve()


class Make(Protocol):
    """Makes machines: of a product, with as many GPUs, and with what the machine can be told."""

    def __call__(
        self,
        product: str = "flex-170",
        count: int = 2,
        options: IntelOptions | None = None,
        machine: dict[str, str] | None = None,
    ) -> Bench: ...


def grant(*devices: Device, admin: bool = False) -> Grant:
    return Grant(owner="test", granted=[Granted(device=d, admin=admin) for d in devices])
