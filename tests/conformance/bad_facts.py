# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins that say what is wrong about devices and their names."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    AccelkitError,
    Device,
    DeviceId,
    FrozenMap,
    Host,
    SourceError,
    Unreadable,
    dns_label,
)
from accelkit.vendors.sim.vendor import Sim

Found = Iterable[Device | Unreadable]


class Changed(Sim):
    """Each device as *change* makes it of the real one, with its position."""

    def change(self, host: Host, device: Device, position: int) -> Device | None:
        return device

    def discover(self, host: Host) -> Found:
        for position, one in enumerate(super().discover(host)):
            if isinstance(one, Unreadable):
                yield one
            elif (changed := self.change(host, one, position)) is not None:
                yield changed


def named(device: Device, name: str) -> Device:
    return attrs.evolve(device, id=DeviceId(vendor=device.id.vendor, name=name))


class Fickle(Changed):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._calls = 0

    def change(self, host: Host, device: Device, position: int) -> Device:
        self._calls += 1
        return attrs.evolve(device, capacity=FrozenMap({"memory": self._calls}))


class Listed(Changed):
    """Numbers devices in the order in which a directory lists them."""

    def discover(self, host: Host) -> Found:
        self._order = host.names("/sys/bus/pci/devices")
        return super().discover(host)

    def change(self, host: Host, device: Device, position: int) -> Device:
        place = self._order.index(device.locality.pci_address or "")
        return attrs.evolve(device, attributes=FrozenMap({**device.attributes, "place": place}))


class Writing(Sim):
    def discover(self, host: Host) -> Found:
        with contextlib.suppress(AccelkitError):
            host.write("/proc/devices", "mine")
        return super().discover(host)


class AllOrNothing(Sim):
    def discover(self, host: Host) -> Found:
        found = list(super().discover(host))
        if any(isinstance(one, Unreadable) for one in found):
            raise SourceError("one of them is unreadable")
        return found


class Silent(Sim):
    def discover(self, host: Host) -> Found:
        return (one for one in super().discover(host) if isinstance(one, Device))


class Nodeless(Changed):
    """Tells of the nodes that happen to be there."""

    def change(self, host: Host, device: Device, position: int) -> Device:
        nodes = tuple(node for node in device.nodes if host.exists(node.path))
        return attrs.evolve(device, nodes=nodes)


class Remembering(Sim):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._found: list[Device | Unreadable] = []

    def discover(self, host: Host) -> Found:
        self._found = self._found or list(super().discover(host))
        return self._found


class Counting(Changed):
    """A device that comes back has another name."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._times: dict[str, int] = {}
        self._there: set[str] = set()

    def discover(self, host: Host) -> Found:
        found = list(super().discover(host))
        self._there = {str(one.aliases) for one in found if isinstance(one, Device)}
        return found

    def change(self, host: Host, device: Device, position: int) -> Device:
        key = str(device.aliases)
        if key not in self._there:
            self._times[key] = self._times.get(key, 0) + 1
        return named(device, f"{device.id.name}-{self._times[key]}")


class SixtyFour(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device | None:
        return device if position < 64 else None


class Bracketed(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, product="Accelerator [rev. 2]")


class Undeclared(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, attributes=FrozenMap({**device.attributes, "colour": "green"}))


class Reserved(Sim):
    attributes: ClassVar[Mapping[str, type]] = {**Sim.attributes, "kind": str}


class Nameless(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, product=None)

    def software(self, host: Host) -> dict[str, str]:
        return {}


class Twins(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return named(device, "accel")


class Underscored(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return named(device, f"accel_{position}")


class Hashed(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return named(device, f"accel-{hash(device.id.name) % 10**9}")


class BootBound(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        boot = host.read("/proc/sys/kernel/random/boot_id")
        return named(device, f"accel-{boot[:8]}-{position}")


class ByPlace(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return named(device, dns_label(device.locality.pci_address or ""))


class FreelyNamed(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return device if device.parent is None else named(device, f"half-{position}")
