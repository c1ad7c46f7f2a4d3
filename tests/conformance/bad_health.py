# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins that are wrong about health."""

import threading
from collections.abc import Iterable

import attrs

from accelkit import (
    Condition,
    Device,
    DeviceId,
    Edits,
    Event,
    Evidence,
    Grant,
    Host,
    Severity,
    SourceError,
    pci_functions,
)
from accelkit.core.evidence import names_of
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_facts import Changed, Found


class Hopeful(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        try:
            return list(super().conditions(host, device, evidence))
        except SourceError:
            return []


class EdgeTriggered(Sim):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._told: set[tuple[DeviceId, str]] = set()

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for condition in super().conditions(host, device, evidence):
            if (device.id, condition.code) not in self._told:
                self._told.add((device.id, condition.code))
                yield condition


class OneWay(Sim):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._bad: dict[DeviceId, tuple[Condition, ...]] = {}

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        now = tuple(super().conditions(host, device, evidence))
        return self._bad.setdefault(device.id, now) if now else self._bad.get(device.id, ())


class Contagious(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for function in pci_functions(host, self.hardware):
            for line in function.read("faults").splitlines():
                yield Condition(code=line.split()[0], severity=Severity.FATAL)


class Alarmed(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        try:
            return list(super().conditions(host, device, evidence))
        except SourceError:
            return [Condition(code="no-answer", severity=Severity.FATAL)]


class Strict(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for condition in super().conditions(host, device, evidence):
            yield attrs.evolve(condition, severity=Severity.FATAL)


class Dropping(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device | None:
        return None if list(self.conditions(host, device, ())) else device


class Repeating(Sim):
    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        told = host.read("/run/sim/sim/events").splitlines()
        return [
            Event(subject=subject, code=code, source="queue")
            for _, subject, code in (line.split() for line in told)
        ]


class Ringing(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        yield Condition(code="bell", severity=Severity.INFO, message="\a" * 2000)


class Locked(Sim):
    """One lock around everything."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._lock = threading.RLock()

    def discover(self, host: Host) -> Found:
        with self._lock:
            return list(super().discover(host))

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        with self._lock:
            return list(super().listen(host, timeout_s))

    def edits(self, host: Host, grant: Grant) -> Edits:
        with self._lock:
            return super().edits(host, grant)


class Weary(Sim):
    """Tells two faults of a device, and no third."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._ill: dict[DeviceId, bool] = {}
        self._faults: dict[DeviceId, int] = {}

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        told = list(super().conditions(host, device, evidence))
        if told and not self._ill.get(device.id):
            self._faults[device.id] = self._faults.get(device.id, 0) + 1
        self._ill[device.id] = bool(told)
        return told if self._faults.get(device.id, 0) <= 2 else []


class Forgetful(Sim):
    """Keeps what it heard to itself."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._events: list[Event] = []

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        heard = list(super().listen(host, timeout_s))
        self._events += heard
        return heard

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        yield from super().conditions(host, device, ())
        for code in {e.code for e in self._events if e.subject in names_of(device)}:
            yield Condition(code=code, severity=Severity.DEGRADED)
