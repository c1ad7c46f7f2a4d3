"""Plugins that do not expect an end in the midst of things, another process, or another claim."""

import contextlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import attrs

from accelkit import (
    ConfigError,
    ContainerEdits,
    Device,
    Edits,
    FrozenMap,
    Grant,
    Host,
    PartitionError,
    Placement,
    Setting,
)
from accelkit.testing.simulate import set_state
from accelkit.vendors.sim.vendor import Sim
from tests.conformance.bad_calls import OtherEdits
from tests.conformance.bad_facts import Found
from tests.conformance.bad_preparation import file_of

NOTE = "/run/acme-made"


class Marking(Sim):
    """Marks a device while it cuts it, and cuts none that is marked."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        mark = file_of(self, host, parent.id, "level")
        if host.read(mark):
            raise PartitionError(f"{parent.id}: somebody cuts it")
        host.write(mark, "cutting")
        made = super().create(host, parent, placement)
        host.write(mark, "")
        return made


class Once(Sim):
    """Marks what it has begun to set back, and does not begin again."""

    def revert(self, host: Host, setting: Setting) -> None:
        mark = file_of(self, host, setting.device, "level")
        if host.read(mark):
            return
        host.write(mark, "going back")
        super().revert(host, setting)
        host.write(mark, "")


class Noting(Sim):
    """Writes into a file of its own what it has made."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        with _note(host).open("a", encoding="utf-8") as file:
            file.write(f"{placement.profile} {placement.start}\n")
        return made

    def destroy(self, host: Host, partition: Device) -> None:
        super().destroy(host, partition)
        _note(host).unlink(missing_ok=True)


class Trusting(Noting):
    """Believes what it has written rather than the hardware."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        if f"{placement.profile} {placement.start}" in _noted(host):
            profile = next(p for p in parent.profiles if p.name == placement.profile)
            return self.partition(parent, profile, placement.start, nodes=parent.nodes)
        return super().create(host, parent, placement)


class Tidying(Noting):
    """Unmakes what an earlier process has made, when it begins."""

    begun = False

    def discover(self, host: Host) -> Found:
        if not self.begun:
            self.begun = True
            for part in _noted(host):
                with contextlib.suppress(ConfigError):
                    set_state(host.outside("/"), ("uncarve", "accel-0", *part.split()))
        return super().discover(host)


class Barred(Sim):
    """Marks that it is at work, and does not come between others who are."""

    def discover(self, host: Host) -> Found:
        mark = Path(host.outside("/run/acme-busy"))
        if not mark.exists():
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
            yield from super().discover(host)
            mark.unlink()


def _note(host: Host) -> Path:
    return Path(host.outside(NOTE))


def _noted(host: Host) -> list[str]:
    return _note(host).read_text("utf-8").splitlines() if _note(host).exists() else []


class Muddled(Sim):
    """Keeps in itself what it works at, though calls overlap."""

    parallel = 4

    def edits(self, host: Host, grant: Grant) -> Edits:
        self.grant = grant
        time.sleep(0.002)
        made = super().edits(host, self.grant).each.values()
        ids = (granted.device.id for granted in grant.granted)
        return Edits(each=FrozenMap(zip(ids, made, strict=True)))


class Locking(Sim):
    """Says that calls may overlap, and lets none."""

    parallel = 4

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._lock = threading.Lock()

    def needs(self, host: Host, grant: Grant) -> list[Setting]:
        with self._lock:
            return list(super().needs(host, grant))


class Slotting(OtherEdits):
    """Numbers those who have a share in the order in which it sees them."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._owners: list[str] = []

    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        if grant.owner not in self._owners:
            self._owners.append(grant.owner)
        slot = self._owners.index(grant.owner)
        return attrs.evolve(edits, env=FrozenMap({"SLOT": str(slot)}))


class Lenient(Sim):
    """Takes any block of configuration."""

    claim_config = dict  # type: ignore[assignment]  # the contract says: any class


class Expecting(OtherEdits):
    """Every claim has a block for it."""

    def edit(self, grant: Grant, edits: ContainerEdits) -> ContainerEdits:
        block = grant.config
        assert isinstance(block, Mapping)
        return edits
