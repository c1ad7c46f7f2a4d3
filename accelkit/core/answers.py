"""What a plugin answered, if it can be believed. Not here: asking, and what answers say together.

Nobody checks the types of a plugin before it runs: whatever gets past here reaches every loop.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import attrs

from accelkit.core.allocation import Edits, Grant, Setting
from accelkit.core.attributes import check_attributes
from accelkit.core.errors import PluginContractError
from accelkit.core.model import (
    Condition,
    Device,
    DeviceNode,
    Event,
    Holding,
    Placement,
    Profile,
    Unreadable,
    contradictions,
)
from accelkit.core.pci import is_pci_address
from accelkit.core.shape import misfit
from accelkit.core.values import Enforcement, is_dns_label
from accelkit.core.vendor import Vendor

MOST_DEVICES = 2048
"""More devices of one vendor are taken for a fault of the plugin."""
MOST_ANSWERS = 2**17
"""The same of anything else that it yields: some yield for ever."""
MOST_SLOTS = 1024
"""The same of the slots of a device."""

T = TypeVar("T")


def checked(vendor: Vendor, kind: type[T], answer: Iterable[object]) -> tuple[T, ...]:
    """What *answer* yields, if all of it is *kind*, down to every field.

    Raises:
        PluginContractError: It is not.
    """
    kept: list[T] = []
    for one in islice(_each(vendor, kind, answer), MOST_ANSWERS + 1):
        if not isinstance(one, kind):
            raise _broken(vendor, f"a {type(one).__name__} is no {kind.__name__}")
        if fault := misfit(kind, one):
            raise _broken(vendor, f"{kind.__name__}: {fault}")
        kept.append(one)
    if len(kept) > MOST_ANSWERS:
        raise _broken(vendor, f"more than {MOST_ANSWERS} are reported, each a {kind.__name__}")
    return tuple(kept)


def _each(vendor: Vendor, kind: type, answer: object) -> Iterable[object]:
    """*answer*, if one can go through it: who forgets to yield anything answers None."""
    if isinstance(answer, Iterable):
        return answer
    name = kind.__name__
    raise _broken(
        vendor,
        f"{answer!r:.100} is answered, where each {name} is to be yielded, or a list returned",
    )


def checked_devices(
    vendor: Vendor, found: Iterable[object]
) -> tuple[tuple[Device, ...], tuple[Unreadable, ...]]:
    """What *discover* yields: devices by id, and what cannot be read.

    Raises:
        PluginContractError: Something of it is neither, or not one of *vendor*.
    """
    several = tuple(islice(_each(vendor, Device, found), MOST_DEVICES + 1))
    if len(several) > MOST_DEVICES:
        raise _broken(vendor, f"more than {MOST_DEVICES} devices are reported")
    for one in several:
        if not isinstance(one, (Device, Unreadable)):
            raise _broken(vendor, f"discover yields a {type(one).__name__}")
    devices = checked(vendor, Device, (one for one in several if isinstance(one, Device)))
    unreadable = checked(vendor, Unreadable, (u for u in several if isinstance(u, Unreadable)))
    for device in devices:
        _check_device(vendor, device)
    for missing in unreadable:
        if not is_dns_label(missing.code):
            raise _broken(vendor, f"{missing.subject}: {missing.code!r} is not a code")
    return tuple(sorted(devices, key=lambda d: d.id)), unreadable


def checked_conditions(
    vendor: Vendor, device: Device, told: Iterable[object]
) -> tuple[Condition, ...]:
    """What is told of *device*, each code once.

    Raises:
        PluginContractError: Something of it is no coded condition.
    """
    conditions: dict[str, Condition] = {}
    for condition in checked(vendor, Condition, told):
        if not is_dns_label(condition.code):
            raise _broken(vendor, f"{device.id}: {condition.code!r} is not a code")
        conditions.setdefault(condition.code, attrs.evolve(condition, since=None))
    return tuple(conditions.values())


def checked_events(vendor: Vendor, heard: Iterable[object]) -> tuple[Event, ...]:
    """What *listen* brought.

    Raises:
        PluginContractError: Something of it is no coded event.
    """
    events = checked(vendor, Event, heard)
    for event in events:
        if not is_dns_label(event.code):
            raise _broken(vendor, f"{event.subject}: {event.code!r} is not a code")
    return events


def checked_holdings(vendor: Vendor, seen: Iterable[object]) -> tuple[Holding, ...]:
    """Who uses devices of *vendor*.

    Raises:
        PluginContractError: Something of it is no holding, or is one of another vendor's device.
    """
    holdings = checked(vendor, Holding, seen)
    for holding in holdings:
        if holding.device.vendor != vendor.name:
            raise _broken(vendor, f"{holding.device} is another vendor's device")
    return holdings


def checked_software(vendor: Vendor, versions: object) -> Mapping[str, str]:
    """Versions by name.

    Raises:
        PluginContractError: They are something else.
    """
    if not isinstance(versions, Mapping):
        raise _broken(vendor, f"the software is a {type(versions).__name__}, not a mapping")
    told: dict[str, str] = {}
    for name, version in versions.items():
        if fault := misfit(str, name):
            raise _broken(vendor, f"the name of a piece of software: {fault}")
        if fault := misfit(str, version):
            raise _broken(vendor, f"the version of {name}: {fault}")
        told[name] = version
    return told


def checked_partition(vendor: Vendor, parent: Device, placement: Placement, made: object) -> Device:
    """The partition that *create* says it made, as *discover* would yield it.

    Raises:
        PluginContractError: It is another one, or none.
    """
    (device,) = checked(vendor, Device, (made,))
    _check_device(vendor, device)
    if (device.parent, device.placement) != (parent.id, placement):
        asked = f"{placement.profile} at slot {placement.start} of {parent.id}"
        raise _broken(vendor, f"create answers {device.id}, which is not {asked}")
    if wrong := contradictions((parent, device), (), ()):
        raise _broken(vendor, f"create: {'; '.join(wrong)}")
    return device


def checked_settings(vendor: Vendor, needed: Iterable[object]) -> tuple[Setting, ...]:
    """What must hold for a grant, each once, in the vendor's order.

    Raises:
        PluginContractError: Something of it is no setting, or one of another vendor's device.
    """
    settings = tuple(dict.fromkeys(checked(vendor, Setting, needed)))
    for setting in settings:
        if setting.device is not None and setting.device.vendor != vendor.name:
            raise _broken(vendor, f"{setting.key}: {setting.device} is another vendor's device")
        if not setting.key:
            raise _broken(vendor, f"a setting of {setting.device} has no key")
    return settings


def check_edits(vendor: Vendor, grant: Grant, edits: object) -> None:
    """Refuse *edits* that are not those of *grant*.

    Raises:
        PluginContractError: They are not.
    """
    asked = {g.device.id for g in grant.granted}
    if not isinstance(edits, Edits):
        wrong = f"they are a {type(edits).__name__}"
    elif fault := misfit(Edits, edits):
        wrong = fault
    elif edits.each.keys() != asked:
        odd = min(edits.each.keys() ^ asked)
        wrong = f"{odd} is {'missing' if odd in asked else 'not in the set'}"
    elif edits.whole and not (vendor.sets or grant.sharing.enforce is Enforcement.LIBRARY):
        wrong = "they describe the set, but the vendor does not say that it has sets"
    else:
        wrong = _unwritable(edits)
    if wrong:
        raise _broken(vendor, f"edits of {vendor.name} for {grant.owner}: {wrong}")


def _unwritable(edits: Edits) -> str:
    """What no container can be given: the kernel ends paths and variables at NUL."""
    for part in (*edits.each.values(), edits.whole):
        paths = [p for node in part.nodes for p in (node.path, node.on_host)]
        paths += [p for mount in part.mounts for p in (mount.host_path, mount.container_path)]
        paths += [hook.path for hook in part.hooks]
        for path in paths:
            if not path.startswith("/") or "\0" in path:
                return f"{path!r} is not an absolute path"
        for name, value in (*part.env.items(), *part.joined.items()):
            if not name or "=" in name or "\0" in name + value:
                return f"{name!r} cannot be a variable with this value"
    return ""


def _check_device(vendor: Vendor, device: Device) -> None:
    described: tuple[Device | Profile, ...] = (device, *device.profiles)
    wrong = [f"{device.id}: {said}" for one in described for said in check_attributes(vendor, one)]
    if wrong:
        raise _broken(vendor, "; ".join(wrong))
    faults = (*_device_faults(vendor, device), *map(_node_fault, device.nodes))
    if said := next(filter(None, faults), ""):
        raise _broken(vendor, f"{device.id}: {said}")


def _device_faults(vendor: Vendor, device: Device) -> Iterator[str]:
    if device.id.vendor != vendor.name:
        yield f"it is not a device of {vendor.name}"
    if not is_dns_label(device.kind):
        yield f"the kind {device.kind!r} is not a DNS label"
    sizes = [p.size for p in device.profiles]
    sizes += [device.placement.size] if device.placement else []
    if not all(0 <= size <= MOST_SLOTS for size in (device.slots, *sizes)):
        yield f"there are 0 to {MOST_SLOTS} slots"
    address = device.locality.pci_address
    if address is not None and not is_pci_address(address):
        yield f"{address!r} is no PCI address: write dddd:bb:dd.f in lower case"


def _node_fault(node: DeviceNode) -> str:
    """What no container can be given; empty: nothing."""
    for path in (node.on_host, node.path):
        if not path.startswith("/") or "\0" in path:
            return f"{path!r} is not an absolute path"
    if node.kind not in {"c", "b"}:
        return f"{node.path} is neither a c nor a b device"
    if not node.permissions or set(node.permissions) - set("rwm"):
        return f"the permissions of {node.path} are {node.permissions!r}, not some of rwm"
    return ""


def _broken(vendor: Vendor, text: str) -> PluginContractError:
    return PluginContractError(
        text,
        plugin=vendor.name,
        remedy=f"report it to the author of the plugin for {vendor.name}",
    )
