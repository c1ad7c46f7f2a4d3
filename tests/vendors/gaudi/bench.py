"""A simulated Gaudi machine that is open, and what can be asked of it."""

from collections.abc import Mapping
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    ContainerEdits,
    Device,
    Event,
    Finding,
    Severity,
    Signal,
    Unreadable,
)
from accelkit.core.evidence import of_device
from accelkit.vendors.gaudi.vendor import Gaudi
from tests.vendors.opened import Opened, as_evidence, grant


@attrs.define
class Bench(Opened[Gaudi]):
    """A simulated machine, opened, and a vendor that reads it."""

    def unreadable(self) -> list[Unreadable]:
        return [d for d in self.discover() if isinstance(d, Unreadable)]

    def modules(self) -> list[object]:
        """Module ids, in the order of PCI addresses."""
        return [d.attributes.get("moduleId") for d in self.devices()]

    def conditions(self, device: Device, *events: Event) -> dict[str, Condition]:
        told = of_device(as_evidence("gaudi", events), device)
        found = list(self.vendor.conditions(self.host, device, told))
        assert len(found) == len({c.code for c in found})
        return {c.code: c for c in found}

    def severities(self, device: Device, *events: Event) -> dict[str, Severity]:
        return {code: c.severity for code, c in self.conditions(device, *events).items()}

    def whole(self, *devices: Device) -> ContainerEdits:
        return self.vendor.edits(self.host, grant(*devices)).whole

    def variables(self, *devices: Device) -> Mapping[str, str]:
        return self.whole(*devices).env

    def findings(self) -> dict[str, Finding]:
        """What diagnosis says, by suspect."""
        return {f.suspect: f for f in self.vendor.diagnose(self.host)}


class Make(Protocol):
    """Makes a machine of *product* with *count* cards."""

    def __call__(
        self,
        product: str = "gaudi3",
        count: int = 8,
        seed: int = 0,
        machine: dict[str, str] | None = None,
    ) -> Bench: ...


def line(text: str) -> Signal:
    """A line of the kernel log."""
    return Signal(source="kernel", text=text)
