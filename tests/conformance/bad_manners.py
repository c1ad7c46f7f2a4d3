# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""Plugins whose answers are right, and that do to others what nobody asked them to."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import ClassVar

import attrs

from accelkit import (
    Condition,
    ContainerEdits,
    Device,
    Edits,
    Evidence,
    Grant,
    Holding,
    Host,
    Severity,
    SourceError,
)
from accelkit.core.allocation import Finding
from accelkit.core.model import DeviceId, Holder
from accelkit.core.values import HolderKind
from accelkit.core.vendor import SupportsDiagnosis
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_calls import OtherEdits
from tests.conformance.bad_facts import Found


class Loud(Sim):
    """Tells a library by a variable what it should do, and so everybody else's, too."""

    def discover(self, host: Host) -> Found:
        os.environ["ACME_DEBUG"] = "1"
        return super().discover(host)


class Importing(Sim):
    """Looks for its binding in a folder of its maker's."""

    def discover(self, host: Host) -> Found:
        sys.path.append("/opt/acme/python")
        return super().discover(host)


class Parental(Sim):
    """Starts a helper, and never asks what became of it."""

    started: ClassVar[list[int]] = []

    def discover(self, host: Host) -> Found:
        if not self.started:
            self.started.append(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "0.5"))
        return super().discover(host)


class Final(Sim):
    """Cannot begin again."""

    closed = False

    def discover(self, host: Host) -> Found:
        if self.closed:
            raise SourceError("the session is closed")
        return super().discover(host)

    def close(self) -> None:
        self.closed = True
        super().close()


class Numbering(Sim):
    """Each time it says the same in another word."""

    numbers: ClassVar[Iterator[int]] = count()

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        yield from super().conditions(host, device, evidence)
        yield Condition(code=f"note-{next(self.numbers)}", severity=Severity.INFO)


class Curious(Sim):
    """Fails where it looks for processes."""

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        raise ValueError("no /proc")


class Accusing(Sim):
    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        theirs = DeviceId(vendor="other", name="a")
        yield Holding(device=theirs, through="other", holder=Holder(kind=HolderKind.FOREIGN))


class Helpless(Sim, SupportsDiagnosis):
    def diagnose(self, host: Host) -> Iterable[Finding]:
        raise KeyError("driver")


class Generous(OtherEdits):
    """Gives each container the nodes of all devices."""

    def edits(self, host: Host, grant: Grant) -> Edits:
        self.nodes = tuple(
            node for one in self.discover(host) if isinstance(one, Device) for node in one.nodes
        )
        return super().edits(host, grant)

    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        return attrs.evolve(edits, nodes=self.nodes)


class Noting(Sim):
    """Leaves a note on the host about what it handed out, past the door that refuses it."""

    def edits(self, host: Host, grant: Grant) -> Edits:
        Path(host.outside("/sys/acme-note")).write_text("handed out")
        return super().edits(host, grant)
