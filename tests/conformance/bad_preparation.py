"""Plugins that set hardware up for claims wrongly, or do not undo what they did."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from itertools import count
from typing import ClassVar

import attrs

from accelkit import (
    Device,
    DeviceId,
    Grant,
    Host,
    NotThere,
    Placement,
    Setting,
    SourceError,
    SourceTimeout,
)
from accelkit.vendors.sim.vendor import Sim


def file_of(vendor: Sim, host: Host, device: DeviceId | None, name: str) -> str:
    """The file of a device that is called *name*."""
    for one in Sim.discover(vendor, host):
        if isinstance(one, Device) and one.id == device:
            return f"/sys/bus/pci/devices/{one.locality.pci_address}/{name}"
    raise NotThere(f"{device} is not there")


class Adding(Sim):
    """Adds to what is set."""

    def apply(self, host: Host, setting: Setting) -> None:
        there = host.read(file_of(self, host, setting.device, setting.key))
        super().apply(host, attrs.evolve(setting, value=f"{there}+{setting.value}"))


class Littering(Sim):
    """Sets something else, too, and does not think of it later."""

    def apply(self, host: Host, setting: Setting) -> None:
        host.write(file_of(self, host, setting.device, "level"), "low")
        super().apply(host, setting)


class Remembering(Sim):
    """Unmakes only what it remembers that it made."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._made: set[DeviceId] = set()

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made = super().create(host, parent, placement)
        self._made.add(made.id)
        return made

    def destroy(self, host: Host, partition: Device) -> None:
        if partition.id in self._made:
            super().destroy(host, partition)


class Forgetful(Sim):
    """Sets back only what it remembers that it set."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._set: set[Setting] = set()

    def apply(self, host: Host, setting: Setting) -> None:
        self._set.add(setting)
        super().apply(host, setting)

    def revert(self, host: Host, setting: Setting) -> None:
        if setting in self._set:
            super().revert(host, setting)


class Clinging(Sim):
    """Cannot set back what is gone."""

    def revert(self, host: Host, setting: Setting) -> None:
        file_of(self, host, setting.device, setting.key)
        super().revert(host, setting)


class Closing(Sim):
    """Breaks where it is closed in the midst of something."""

    closed = False

    def _obey(self, host: Host, call: str) -> None:
        self.closed = False
        super()._obey(host, call)
        if self.closed:
            raise ValueError("I/O operation on closed session")

    def close(self) -> None:
        self.closed = True


class Raw(Sim):
    """Lets errors out as they come."""

    def apply(self, host: Host, setting: Setting) -> None:
        try:
            super().apply(host, setting)
        except SourceError as error:
            raise OSError(5, "Input/output error") from error


class Owning(Sim):
    """Needs another value for each claim."""

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        for setting in super().needs(host, grant):
            yield attrs.evolve(setting, value=f"{setting.value} for {grant.owner}")


class Resetting(Sim):
    """Sets back whatever there is."""

    def revert(self, host: Host, setting: Setting) -> None:
        for one in self.discover(host):
            if isinstance(one, Device):
                super().revert(host, attrs.evolve(setting, device=one.id))


class Counting(Sim):
    """Needs something else each time."""

    numbers: ClassVar[Iterator[int]] = count()

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        for setting in super().needs(host, grant):
            yield attrs.evolve(setting, value=f"{setting.value}-{next(self.numbers)}")


class Hasty(Sim):
    """Applies what it is only asked for."""

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        for setting in super().needs(host, grant):
            host.write(file_of(self, host, setting.device, setting.key), setting.value)
            yield setting


class Idle(Sim):
    """Does nothing, and does not say so."""

    def apply(self, host: Host, setting: Setting) -> None:
        pass


class Half(Sim):
    """Does not set back to what was there."""

    def revert(self, host: Host, setting: Setting) -> None:
        super().apply(host, attrs.evolve(setting, value="default"))


class Background(Sim):
    """Lets a thread make partitions, and does not wait for it long."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        made: list[Device] = []
        create = super().create

        def work() -> None:
            with contextlib.suppress(BaseException):
                made.append(create(host, parent, placement))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(0.2)
        if not made:
            raise SourceTimeout(f"{parent.id}: the driver takes its time")
        return made[0]


class Sweeping(Sim):
    """Unmakes what is there before it makes another one: it can only be left over."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        for one in list(self.discover(host)):
            if isinstance(one, Device) and one.parent is not None and one.placement != placement:
                super().destroy(host, one)
        return super().create(host, parent, placement)
