# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins that cannot bear calls beside each other, or odd ones."""

import os
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    Condition,
    ContainerEdits,
    Device,
    DeviceId,
    DeviceNode,
    Edits,
    Evidence,
    FrozenMap,
    Grant,
    Host,
    Severity,
    SourceError,
    dns_label,
    pci_functions,
)
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_facts import Found


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
