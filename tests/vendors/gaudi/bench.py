"""A simulated Gaudi machine that is open, and what can be asked of it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    ContainerEdits,
    Device,
    Event,
    Evidence,
    Finding,
    Grant,
    Granted,
    Host,
    Severity,
    Signal,
    Unreadable,
)
from accelkit.core.evidence import of_device, record
from accelkit.testing.simulate import set_state
from accelkit.vendors.gaudi.vendor import Gaudi

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define
class Bench:
    """A simulated machine, opened, and a vendor that reads it."""

    directory: str
    host: Host
    vendor: Gaudi

    def do(self, *verbs: str) -> None:
        for verb in verbs:
            set_state(self.directory, verb.split())

    def discover(self) -> list[Device | Unreadable]:
        return list(self.vendor.discover(self.host))

    def devices(self) -> tuple[Device, ...]:
        return tuple(d for d in self.discover() if isinstance(d, Device))

    def unreadable(self) -> list[Unreadable]:
        return [d for d in self.discover() if isinstance(d, Unreadable)]

    def modules(self) -> list[object]:
        """Module ids, in the order of PCI addresses."""
        return [d.attributes.get("moduleId") for d in self.devices()]

    def conditions(self, device: Device, *events: Event) -> dict[str, Condition]:
        told = of_device(evidence(events), device)
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


def grant(*devices: Device) -> Grant:
    return Grant(owner="test", granted=tuple(Granted(device=d) for d in devices))


def evidence(events: Iterable[Event]) -> tuple[Evidence, ...]:
    return record((), "gaudi", events, NOW)


def line(text: str) -> Signal:
    """A line of the kernel log."""
    return Signal(source="kernel", text=text)
