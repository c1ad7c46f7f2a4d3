from collections.abc import Iterable
from datetime import timedelta
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
    Severity,
    Unreadable,
)
from accelkit.core.evidence import record
from accelkit.vendors.amd.vendor import Amd
from tests.vendors.opened import NOW, Opened


@attrs.define
class Bench(Opened[Amd]):
    """A simulated machine, opened, and a vendor that reads it."""

    def function(self, device: Device, name: str) -> str:
        """The path of a file of a GPU in sysfs."""
        return f"/sys/bus/pci/devices/{device.locality.pci_address}/{name}"

    def wholes(self) -> tuple[Device, ...]:
        return tuple(d for d in self.devices() if d.parent is None)

    def parts(self) -> tuple[Device, ...]:
        return tuple(d for d in self.devices() if d.parent is not None)

    def conditions(self, device: Device, *events: Event) -> dict[str, Condition]:
        told = self.vendor.conditions(self.host, device, evidence(*events))
        return {condition.code: condition for condition in told}

    def codes(self, device: Device, *events: Event) -> dict[str, Severity]:
        return {code: c.severity for code, c in self.conditions(device, *events).items()}

    def findings(self) -> dict[str, Finding]:
        """Findings by suspect."""
        return {finding.suspect: finding for finding in self.vendor.diagnose(self.host)}

    def wrong(self) -> list[tuple[str, str]]:
        """Subjects and codes of what cannot be read."""
        return [(u.subject, u.code) for u in self.discover() if isinstance(u, Unreadable)]


class Make(Protocol):
    """Makes machines: of a product, with as many GPUs, and with what the machine can be told."""

    def __call__(
        self, product: str = "mi300x", count: int = 2, machine: dict[str, str] | None = None
    ) -> Bench: ...


def evidence(*events: Event) -> tuple[Evidence, ...]:
    """*events*, one a second."""
    kept: tuple[Evidence, ...] = ()
    for nth, event in enumerate(events):
        kept = record(kept, "amd", [event], NOW + timedelta(seconds=nth))
    return kept


def grant(devices: Iterable[Device]) -> Grant:
    return Grant(owner="test", granted=[Granted(device=d) for d in devices])
