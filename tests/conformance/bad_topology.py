# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins that are wrong about what connects devices and where they hang."""

from collections.abc import Iterable

import attrs

from accelkit import (
    Device,
    DeviceId,
    Group,
    Host,
    Link,
    LinkKind,
    Locality,
)
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_facts import Changed


class OtherLinks(Sim):
    """Links as *relink* makes them of the real ones."""

    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        return links

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        return self.relink(list(super().links(host, devices)), devices)


class BothWays(OtherLinks):
    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        return [*links, *(attrs.evolve(link, count=link.count + 1) for link in links)]


class Selfish(OtherLinks):
    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        return [*links, *(Link.between(d.id, d.id, LinkKind.DIRECT) for d in devices)]


class Ghostly(OtherLinks):
    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        ghost = DeviceId(vendor="sim", name="zz-ghost")
        return [*links, *(Link.between(d.id, ghost, LinkKind.DIRECT) for d in devices)]


class Laneless(OtherLinks):
    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        return [attrs.evolve(link, count=0) for link in links]


class Forgetful(OtherLinks):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._calls = 0

    def relink(self, links: list[Link], devices: tuple[Device, ...]) -> Iterable[Link]:
        self._calls += 1
        return links[self._calls % 2 :]


class Relocated(Changed):
    """Hangs where *where* says."""

    def where(self, device: Device) -> Locality:
        return device.locality

    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, locality=self.where(device))


class FarAway(Relocated):
    def where(self, device: Device) -> Locality:
        return attrs.evolve(device.locality, numa_node=7, near_nodes=())


class Misspelt(Relocated):
    def where(self, device: Device) -> Locality:
        return attrs.evolve(device.locality, pcie_root="0000:00")


class Guessing(Relocated):
    """Takes the NUMA node from the bus."""

    def where(self, device: Device) -> Locality:
        node = 1 - (device.locality.numa_node or 0)
        return attrs.evolve(device.locality, numa_node=node, near_nodes=(node,))


class Homeless(Relocated):
    def where(self, device: Device) -> Locality:
        return device.locality if device.parent is None else Locality()


class TwiceUsable(Changed):
    def change(self, host: Host, device: Device, position: int) -> Device:
        return attrs.evolve(device, usable=True)


class Scattered(Sim):
    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        pairs = zip(devices[::2], devices[1::2], strict=False)
        return [Link.between(a.id, b.id, LinkKind.DIRECT) for a, b in pairs]

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        yield Group(kind="even", name="even", members=tuple(d.id for d in devices[::2]))
