"""A simulated machine that is open, and a plugin that reads it. Not here: what one maker's can."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

import attrs

from accelkit import Device, Event, Evidence, Grant, Granted, Host, Unreadable, Vendor
from accelkit.core.evidence import record
from accelkit.testing.simulate import set_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)
V = TypeVar("V", bound=Vendor)


@attrs.define
class Opened(Generic[V]):
    """A simulated machine, opened, and a vendor that reads it."""

    directory: str
    host: Host
    vendor: V

    def do(self, *verbs: str) -> None:
        for verb in verbs:
            set_state(self.directory, verb.split())

    def put(self, path: str, content: str | bytes = "") -> Path:
        """Another content of a file that the machine has, or a new file."""
        file = Path(self.directory + path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def discover(self) -> list[Device | Unreadable]:
        return list(self.vendor.discover(self.host))

    def devices(self) -> tuple[Device, ...]:
        return tuple(d for d in self.discover() if isinstance(d, Device))


def as_evidence(vendor: str, events: Iterable[Event]) -> tuple[Evidence, ...]:
    """*events* as evidence, all at once."""
    return record((), vendor, events, NOW)


def grant(*devices: Device) -> Grant:
    """A set of whole devices, or of partitions."""
    return Grant(owner="test", granted=[Granted(device=d) for d in devices])
