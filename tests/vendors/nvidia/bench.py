import json
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol, Self

import attrs

from accelkit import (
    Condition,
    Device,
    Event,
    Finding,
    Link,
    Severity,
    Unreadable,
)
from accelkit.core.evidence import of_device
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_faults
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.opened import Opened, as_evidence

Answer = Callable[..., int]  # type: ignore[explicit-any]  # of any C signature


@attrs.define
class Bench(Opened[Nvidia]):
    """A simulated machine, opened, and a vendor that reads it."""

    def fail(self, call: str, do: str, *, first: int = 1, times: int = 1_000_000) -> None:
        set_faults(self.directory, [Fault(call=call, first=first, times=times, do=do)])

    def state(self, unit: str, *fields: str) -> dict[str, object]:
        """What of *fields* the machine's record has of a unit."""
        record = json.loads(Path(self.directory, "machine.json").read_text(encoding="utf-8"))
        found = record["state"].get(unit, {})
        return {field: found[field] for field in fields if field in found}

    def unreadable(self) -> list[Unreadable]:
        return [d for d in self.discover() if isinstance(d, Unreadable)]

    def links(self, devices: tuple[Device, ...] | None = None) -> dict[tuple[int, int], list[Link]]:
        """Links by the positions of their ends."""
        found = devices or self.devices()
        links = list(self.vendor.links(self.host, found))
        return {
            (i, j): [k for k in links if {k.a, k.b} == {found[i].id, found[j].id}]
            for i, j in combinations(range(len(found)), 2)
        }

    def listen(self) -> list[Event]:
        return list(self.vendor.listen(self.host, 0.0))

    def conditions(
        self, device: Device, events: Iterable[Event] = (), parent: Device | None = None
    ) -> list[Condition]:
        kept = as_evidence("nvidia", events)
        return list(self.vendor.conditions(self.host, device, of_device(kept, device, parent)))

    def codes(self, device: Device, events: Iterable[Event] = ()) -> dict[str, Severity]:
        return {c.code: c.severity for c in self.conditions(device, events)}

    def findings(self) -> list[Finding]:
        return list(self.vendor.diagnose(self.host))


class Table:
    """A library, some of whose functions lie."""

    def __init__(self, honest: object, lies: Mapping[str, Answer]) -> None:
        self._honest = honest
        self._lies = lies

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        function = getattr(self._honest, name)
        lie = self._lies.get(name)
        return function if lie is None else lambda *args: lie(function, *args)


class Liar(MachineHost):
    """A machine whose library lies."""

    lies: Mapping[str, Answer] = {}

    def library(self, soname: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        return Table(super().library(soname), self.lies)

    def under(self, root: str) -> Self:
        raise AssertionError(root)


class Make(Protocol):
    """Makes machines: of a product, with as many GPUs, and with what the machine can be told."""

    def __call__(
        self,
        product: str = "h100",
        count: int = 2,
        options: NvidiaOptions | None = None,
        machine: dict[str, str] | None = None,
    ) -> Bench: ...
