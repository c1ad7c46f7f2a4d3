from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    Device,
    Edits,
    Event,
    Evidence,
    Finding,
    Grant,
    Granted,
    Host,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device, record
from accelkit.testing.simulate import set_state
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define
class Bench:
    """A simulated host, opened, and a vendor that reads it."""

    directory: str
    host: Host
    vendor: Tpu

    def do(self, *verbs: str) -> None:
        for verb in verbs:
            set_state(self.directory, verb.split())

    def path(self, path: str) -> Path:
        return Path(self.directory + path)

    def discover(self) -> list[Device | Unreadable]:
        return list(self.vendor.discover(self.host))

    def devices(self) -> tuple[Device, ...]:
        return tuple(d for d in self.discover() if isinstance(d, Device))

    def unreadable(self) -> dict[str, str]:
        """Codes by subject."""
        return {u.subject: u.code for u in self.discover() if isinstance(u, Unreadable)}

    def legal(self) -> set[tuple[int, ...]]:
        """Positions of the devices of each legal set."""
        found = self.devices()
        order = {device.id: i for i, device in enumerate(found)}
        return {tuple(order[m] for m in g.members) for g in self.vendor.groups(found)}

    def links(self) -> set[tuple[int, int]]:
        """Positions of the devices at both ends of each link."""
        found = self.devices()
        order = {device.id: i for i, device in enumerate(found)}
        return {(order[k.a], order[k.b]) for k in self.vendor.links(self.host, found)}

    def edits(self, *positions: int) -> Edits:
        found = self.devices()
        return self.vendor.edits(self.host, grant(*(found[p] for p in positions)))

    def env(self, *positions: int) -> Mapping[str, str]:
        """What a container with the devices at these positions is told."""
        return self.edits(*positions).whole.env

    def conditions(self, device: Device, events: Iterable[Event] = ()) -> list[Condition]:
        kept = evidence(events)
        return list(self.vendor.conditions(self.host, device, of_device(kept, device, None)))

    def codes(self, device: Device, events: Iterable[Event] = ()) -> dict[str, Severity]:
        return {c.code: c.severity for c in self.conditions(device, events)}

    def findings(self) -> list[Finding]:
        return list(self.vendor.diagnose(self.host))


class Make(Protocol):
    """Makes hosts: of a product, with as many chips, and with what the machine can be told."""

    def __call__(
        self,
        product: str = "v5e",
        count: int = 8,
        options: TpuOptions | None = None,
        **machine: str,
    ) -> Bench: ...


def evidence(events: Iterable[Event]) -> tuple[Evidence, ...]:
    return record((), "tpu", events, NOW)


def grant(*devices: Device) -> Grant:
    return Grant(owner="test", granted=[Granted(device=d) for d in devices])
