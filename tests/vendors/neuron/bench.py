from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, Self

import attrs

from accelkit import (
    AccessDenied,
    Condition,
    Device,
    DeviceId,
    Event,
    Finding,
    Grant,
    Granted,
    Group,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_faults
from accelkit.vendors.neuron.vendor import Neuron
from tests.vendors.opened import Opened, as_evidence

CHIPS = "/sys/devices/virtual/neuron_device"


@attrs.define
class Bench(Opened[Neuron]):
    """A simulated machine, opened, and a vendor that reads it."""

    def fail(self, read: str, do: str = "error", *, times: int = 1_000_000) -> None:
        set_faults(self.directory, [Fault(read=read, times=times, do=do)])

    def take(self, path: str) -> None:
        Path(self.directory + path).unlink()

    def chips(self) -> tuple[Device, ...]:
        return tuple(d for d in self.devices() if d.parent is None)

    def cores(self, chip: Device | None = None) -> tuple[Device, ...]:
        found = (d for d in self.devices() if d.parent is not None)
        return tuple(d for d in found if chip is None or d.parent == chip.id)

    def unreadable(self) -> list[tuple[str, str]]:
        return [(d.subject, d.code) for d in self.discover() if isinstance(d, Unreadable)]

    def groups(self) -> list[Group]:
        return list(self.vendor.groups(self.devices()))

    def sets(self, kind: str) -> set[frozenset[DeviceId]]:
        return {frozenset(group.members) for group in self.groups() if group.kind == kind}

    def codes(self, device: Device, events: Iterable[Event] = ()) -> dict[str, Severity]:
        return {c.code: c.severity for c in self.conditions(device, events)}

    def conditions(
        self, device: Device, events: Iterable[Event] = (), parent: Device | None = None
    ) -> list[Condition]:
        kept = of_device(as_evidence("neuron", events), device, parent)
        return list(self.vendor.conditions(self.host, device, kept))

    def findings(self) -> list[Finding]:
        return list(self.vendor.diagnose(self.host))

    def suspects(self) -> list[str]:
        return [finding.suspect for finding in self.findings()]


class Unprivileged(MachineHost):
    """A machine as processes see it that are not root."""

    hidden = ("core_count", "connected_devices", "reset")

    def read(self, path: str, limit: int = 1 << 20) -> str:
        if path.rpartition("/")[2] in self.hidden:
            raise AccessDenied(f"{path}: this process may not read it", operation="read")
        return super().read(path, limit)

    def under(self, root: str) -> Self:
        raise AssertionError(root)


class Make(Protocol):
    """Makes machines: of a product, with as many chips, and with what the machine can be told."""

    def __call__(
        self, product: str = "trn2", count: int = 2, machine: dict[str, str] | None = None
    ) -> Bench: ...


def grant(*devices: Device, config: object | None = None) -> Grant:
    return Grant(owner="test", granted=[Granted(device=d) for d in devices], config=config)
