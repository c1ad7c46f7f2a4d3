# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""For each check of a plugin one that breaks its rule, and is otherwise the simulated one."""

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    AccelkitError,
    Condition,
    ContainerEdits,
    Device,
    DeviceId,
    DeviceNode,
    Edits,
    Event,
    Evidence,
    FrozenMap,
    Grant,
    Group,
    Host,
    Link,
    LinkKind,
    Locality,
    Severity,
    SourceError,
    Unreadable,
    dns_label,
    pci_functions,
)
from accelkit.conformance.subjects import Cut, PluginSubject
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


# D: discovery.


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


# I: identity.


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


# H: health.


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


# T: topology.


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


# L, C: side by side, and after each other.


class Leaky(Sim):
    kept: ClassVar[list[int]] = []

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self.kept.append(os.open(os.devnull, os.O_RDONLY))

    @classmethod
    def drain(cls) -> None:
        while cls.kept:
            os.close(cls.kept.pop())


class OtherEdits(Sim):
    """Each device's edits as *edit* makes them of the real ones."""

    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        return edits

    def edits(self, host: Host, grant: Grant) -> Edits:
        each = super().edits(host, grant).each
        return Edits(each=FrozenMap((i, self.edit(grant, e)) for i, e in each.items()))


class SetWise(OtherEdits):
    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        return attrs.evolve(edits, env=FrozenMap({"COUNT": str(len(grant.granted))}))


class Torn(Sim):
    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._known: set[DeviceId] = set()

    def discover(self, host: Host) -> Found:
        self._known.clear()
        for one in super().discover(host):
            if isinstance(one, Device):
                self._known.add(one.id)
            yield one

    def edits(self, host: Host, grant: Grant) -> Edits:
        if not self._known.issuperset(g.device.id for g in grant.granted):
            raise SourceError("discovery has not got so far yet")
        return super().edits(host, grant)


# B: bad input.


class Generous(Sim):
    """Hands out what it was asked for, whatever is there."""

    def edits(self, host: Host, grant: Grant) -> Edits:
        ids = [g.device.id for g in grant.granted]
        return Edits(
            each=FrozenMap((i, ContainerEdits(env=FrozenMap({"SIM": i.name}))) for i in ids)
        )


class FirstOnly(Sim):
    def edits(self, host: Host, grant: Grant) -> Edits:
        assert grant.granted[0].device.id.name
        return super().edits(host, grant)


class Dividing(OtherEdits):
    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        parts = [100 // a for g in grant.granted for a in g.amounts.values()]
        return attrs.evolve(edits, env=FrozenMap({"PARTS": str(sum(parts))}))


class Ascii(OtherEdits):
    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        return attrs.evolve(edits, env=FrozenMap({"OWNER": grant.owner.encode("ascii").decode()}))


class Trusting(Sim):
    """Makes a path of what a file says."""

    def discover(self, host: Host) -> Found:
        for function in pci_functions(host, self.hardware):
            path = f"/dev/sim/{function.read('product')}"
            device = self.device(dns_label(function.address), kind="accel", product="accel")
            yield attrs.evolve(device, nodes=[DeviceNode(path=path)])


class Crashing(Sim):
    def software(self, host: Host) -> dict[str, str]:
        return {str(int(f.read("minor"))): "1" for f in pci_functions(host, self.hardware)}


class Closed(Sim):
    """Knows all codes that there will ever be."""

    KNOWN: ClassVar[Mapping[str, Severity]] = {"told": Severity.INFO}

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        yield from super().conditions(host, device, ())
        for told in evidence:
            yield Condition(code=told.code, severity=self.KNOWN[told.code])


SPLIT = Cut(product="split")
BAD: Mapping[str, type[Sim]] = {
    "B01": Generous,
    "B02": FirstOnly,
    "B05": Dividing,
    "B06": Ascii,
    "B07": Trusting,
    "B08": Crashing,
    "B09": Closed,
    "C03": Torn,
    "C04": Locked,
    "C05": Locked,
    "D01": Fickle,
    "D02": Listed,
    "D03": Writing,
    "D04": AllOrNothing,
    "D05": Silent,
    "D06": Nodeless,
    "D07": Remembering,
    "D08": Remembering,
    "D09": Counting,
    "D10": SixtyFour,
    "D11": Bracketed,
    "D12": Undeclared,
    "D13": Reserved,
    "D14": Nameless,
    "H01": Hopeful,
    "H02": EdgeTriggered,
    "H03": OneWay,
    "H05": Contagious,
    "H06": Alarmed,
    "H07": Strict,
    "H10": Dropping,
    "H11": Repeating,
    "H12": Ringing,
    "I01": Twins,
    "I02": Underscored,
    "I03": Hashed,
    "I04": BootBound,
    "I05": ByPlace,
    "I06": FreelyNamed,
    "L06": Leaky,
    "L11": SetWise,
    "T01": BothWays,
    "T02": Selfish,
    "T03": Ghostly,
    "T04": FarAway,
    "T05": Misspelt,
    "T06": Homeless,
    "T07": Laneless,
    "T08": Forgetful,
    "T09": TwiceUsable,
    "T12": Scattered,
    "T13": Guessing,
}
"""Who breaks the rule of each check."""


def subject(vendor: type[Sim], product: str = "fabric") -> PluginSubject:
    return PluginSubject(vendor=vendor, product=product, cut=SPLIT)
