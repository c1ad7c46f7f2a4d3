from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    Device,
    Event,
    Evidence,
    Finding,
    Grant,
    Granted,
    Host,
    Sample,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device, record
from accelkit.core.host import ReadOnly
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state
from accelkit.vendors.intel.vendor import Intel, IntelOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define
class Bench:
    """A simulated machine, opened, and a vendor that reads it."""

    directory: str
    work: MachineHost
    vendor: Intel

    @property
    def host(self) -> Host:
        return ReadOnly(self.work)

    def do(self, *verbs: str) -> None:
        for verb in verbs:
            set_state(self.directory, verb.split())

    def discover(self) -> list[Device | Unreadable]:
        return list(self.vendor.discover(self.host))

    def devices(self) -> tuple[Device, ...]:
        return tuple(d for d in self.discover() if isinstance(d, Device))

    def unreadable(self) -> list[Unreadable]:
        return [d for d in self.discover() if isinstance(d, Unreadable)]

    def paths(self, device: Device) -> list[str]:
        return [node.path for node in device.nodes]

    def conditions(self, device: Device, *events: Event) -> list[Condition]:
        kept = of_device(evidence(events), device, None)
        return list(self.vendor.conditions(self.host, device, kept))

    def codes(self, device: Device, *events: Event) -> dict[str, Severity]:
        return {c.code: c.severity for c in self.conditions(device, *events)}

    def findings(self) -> list[Finding]:
        return list(self.vendor.diagnose(self.host))

    def samples(self) -> list[Sample]:
        return list(self.vendor.samples(self.host, self.devices()))

    def put(self, path: str, text: str = "") -> Path:
        """A file that the machine does not have."""
        file = Path(self.directory + path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

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


def evidence(events: Iterable[Event]) -> tuple[Evidence, ...]:
    return record((), "intel", events, NOW)


def grant(*devices: Device, admin: bool = False) -> Grant:
    return Grant(owner="test", granted=[Granted(device=d, admin=admin) for d in devices])
