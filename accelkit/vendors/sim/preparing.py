"""What simulated accelerators need before a container uses them, and what it is told."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from accelkit import (
    ContainerEdits,
    Device,
    DeviceId,
    Edits,
    Enforcement,
    FrozenMap,
    Grant,
    Granted,
    Host,
    MissingParts,
    NotThere,
    Setting,
    Timeslice,
    Unreadable,
    equal_share,
)


class Level(StrEnum):
    """How fast a device runs."""

    LOW = "low"
    HIGH = "high"


@attrs.frozen(kw_only=True)
class SimClaim:
    """A user's block in a claim."""

    level: Level | None = None
    """None: as it is."""


def edits_of(host: Host, grant: Grant) -> Edits:
    """Nodes and a variable for each device; limits of shares, numbered by their place in the set.

    Raises:
        MissingParts: A node is not there.
    """
    each: dict[DeviceId, ContainerEdits] = {}
    for device in (granted.device for granted in grant.granted):
        for node in device.nodes:
            if not host.exists(node.on_host):
                raise MissingParts(f"{device.id}: {node.on_host} is not there")
        each[device.id] = ContainerEdits(
            nodes=device.nodes, joined=FrozenMap({"SIM_DEVICES": device.id.name})
        )
    if grant.sharing.enforce is not Enforcement.LIBRARY:
        return Edits(each=FrozenMap(each))
    limits = {
        f"SIM_MEMORY_LIMIT_{place}": str(limit)
        for place, granted in enumerate(grant.granted)
        if (limit := _memory(grant, granted)) is not None
    }
    return Edits(each=FrozenMap(each), whole=ContainerEdits(env=FrozenMap(limits)))


def _memory(grant: Grant, granted: Granted) -> int | None:
    """The bytes of memory that a share may use; None: all."""
    amounts = granted.amounts or equal_share(granted.device.capacity, grant.sharing)
    return amounts.get("memory")


def needs_of(grant: Grant) -> Iterator[Setting]:
    """A time slice where the terms name one, a level where the claim does."""
    config = grant.config
    for device in dict.fromkeys(granted.device.id for granted in grant.granted):
        if grant.sharing.timeslice is not Timeslice.DEFAULT:
            yield Setting(device=device, key="timeslice", value=grant.sharing.timeslice)
        if isinstance(config, SimClaim) and config.level is not None:
            yield Setting(device=device, key="level", value=config.level)


def set_to(found: Iterable[Device | Unreadable], host: Host, setting: Setting, value: str) -> None:
    """Write *value* to the file of *setting*.

    Raises:
        NotThere: The device is gone.
    """
    device = next((d for d in found if isinstance(d, Device) and d.id == setting.device), None)
    if device is None:
        raise NotThere(f"{setting.device} is not there", operation=setting.key)
    host.write(f"/sys/bus/pci/devices/{device.locality.pci_address}/{setting.key}", value)
