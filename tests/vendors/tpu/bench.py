from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import attrs

from accelkit import (
    Condition,
    Device,
    Edits,
    Event,
    Finding,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions
from tests.vendors.opened import Opened, as_evidence, grant


@attrs.define
class Bench(Opened[Tpu]):
    """A simulated host, opened, and a vendor that reads it."""

    def path(self, path: str) -> Path:
        return Path(self.directory + path)

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
        kept = as_evidence("tpu", events)
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
