"""Devices by rules: nodes that exist, PCI functions, USB devices. Not here: the rules' syntax."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from hashlib import sha256

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
    Locality,
    MissingParts,
    Mount,
    NotThere,
    PciFunction,
    PciMatch,
    Severity,
    Signals,
    SupportsHealth,
    Unreadable,
    Vendor,
    dns_label,
    pci_functions,
)
from accelkit.vendors.generic.options import GenericOptions, MountRule, PciRule, Rule, UsbRule

USB_DEVICES = "/sys/bus/usb/devices"
"""Linux, Documentation/ABI/testing/sysfs-bus-usb."""
_NAME_LIMIT = 40


@attrs.frozen(kw_only=True)
class Found:
    """Something that matches a rule."""

    name: str
    place: str
    """Path, PCI address, or USB port as in 1-1.2."""
    node: str | None = None
    product: str | None = None
    locality: Locality = Locality()


class Generic(Vendor, SupportsHealth):
    """Offers what the operator's rules describe; a device is healthy while its nodes exist."""

    name = "generic"
    domain = "generic.accelkit.dev"
    options = GenericOptions
    machine = "accelkit.vendors.generic.machine:GenericMachine"

    def __init__(self, options: GenericOptions) -> None:
        super().__init__(options)
        self._rules = {rule.name: rule for rule in options.devices}

    @property
    def signals(self) -> Signals:  # type: ignore[override]  # the options decide
        """Nodes that the rules name, and the buses that they look at."""
        rules = self._rules.values()
        paths = {p for r in rules for p in (r.match.path, *r.nodes, *r.optional) if p}
        buses = {"pci" for r in rules if r.match.pci} | {"usb" for r in rules if r.match.usb}
        return Signals(
            uevents=tuple(sorted(buses)),
            files=tuple(sorted(path for path in paths if "{" not in path)),
        )

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        seen: dict[str, Device] = {}
        for rule in self._rules.values():
            for device in self._devices(host, rule):
                first = seen.setdefault(device.id.name, device)
                if first is device:
                    yield device
                elif first.aliases != device.aliases:
                    yield Unreadable(
                        subject=", ".join(sorted(device.aliases)),
                        code="name-taken",
                        reason=f"{first.id} is {', '.join(sorted(first.aliases))} already",
                        remedy="let one rule match one of them, or make them a group",
                    )

    def _devices(self, host: Host, rule: Rule) -> Iterator[Device]:
        found = tuple(_find(host, rule))
        if rule.group and found:
            yield self._device(host, rule, rule.name, found)
        elif not rule.group:
            for one in found:
                yield self._device(host, rule, one.name, (one,))

    def _device(self, host: Host, rule: Rule, name: str, found: tuple[Found, ...]) -> Device:
        places = [one.place for one in found]
        patterns = _patterns((*rule.nodes, *rule.optional), rule, places)
        paths = [one.node for one in found if one.node is not None]
        paths += [path for pattern in patterns for path in _expand(host, pattern)]
        return self.device(
            name,
            kind=rule.name,
            product=found[0].product,
            locality=found[0].locality if len(found) == 1 else Locality(),
            nodes=[_node(host, path, rule.permissions) for path in paths],
            aliases=places,
        )

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        del evidence
        if missing := self._missing(host, device):
            yield Condition(
                code="node-missing",
                severity=Severity.FATAL,
                message=f"{', '.join(missing)} is not there",
            )

    def edits(self, host: Host, grant: Grant) -> Edits:
        each: dict[DeviceId, ContainerEdits] = {}
        for device in (granted.device for granted in grant.granted):
            rule = self._rules.get(device.kind)
            missing = self._missing(host, device)
            mounts = () if rule is None else rule.mounts
            missing += [m.host_path for m in mounts if not host.exists(m.host_path)]
            if rule is None or missing:
                lack = f"{', '.join(missing)} is not there" if missing else "its rule is gone"
                raise MissingParts(f"{device.id}: {lack}")
            each[device.id] = ContainerEdits(
                nodes=device.nodes,
                env=rule.env,
                mounts=tuple(_mount(m) for m in mounts),
            )
        return Edits(each=FrozenMap(each))

    def _missing(self, host: Host, device: Device) -> list[str]:
        """Nodes that *device* needs and that are not there now."""
        rule = self._rules.get(device.kind)
        if rule is None:
            return []
        places = sorted(device.aliases)
        optional = _patterns(rule.optional, rule, places)
        own = [n.path for n in device.nodes if not any(fnmatchcase(n.path, o) for o in optional)]
        needed = dict.fromkeys((*own, *_patterns(rule.nodes, rule, places)))
        return [path for path in needed if not _expand(host, path)]


def _mount(rule: MountRule) -> Mount:
    return Mount(
        host_path=rule.host_path,
        container_path=rule.container_path or rule.host_path,
        options=("ro" if rule.read_only else "rw", "nosuid", "nodev", "bind"),
    )


def _find(host: Host, rule: Rule) -> Iterator[Found]:
    """What matches *rule* now, in the order of places."""
    if rule.match.path is not None:
        for path in _expand(host, rule.match.path):
            yield Found(name=_name(path), place=path, node=path)
    if rule.match.pci is not None:
        for function in pci_functions(host, [_pci_match(rule.match.pci)]):
            yield Found(
                name=_name(function.address),
                place=function.address,
                product=_pci_product(function),
                locality=function.locality,
            )
    if rule.match.usb is not None:
        yield from _usb_devices(host, rule.match.usb)


def _pci_match(rule: PciRule) -> PciMatch:
    return PciMatch(
        vendor=rule.vendor,
        devices=() if rule.device is None else (rule.device,),
        classes=() if rule.class_ is None else (rule.class_,),
    )


def _pci_product(function: PciFunction) -> str | None:
    try:
        return f"{int(function.read('vendor'), 16):04x}-{int(function.read('device'), 16):04x}"
    except (NotThere, ValueError):  # it has gone meanwhile
        return None


def _usb_devices(host: Host, rule: UsbRule) -> Iterator[Found]:
    found: list[tuple[str, Found]] = []
    for port in host.names(USB_DEVICES):
        try:
            one = _usb_device(host, port, rule)
        except (NotThere, ValueError):  # an interface, or a device that has gone meanwhile
            continue
        if one is not None:
            found.append(one)
    serials = [serial for serial, _ in found]
    for serial, device in found:
        # Cheap devices share a serial number; then only the port tells them apart.
        named = serial if serial and serials.count(serial) == 1 else device.place
        yield attrs.evolve(device, name=_name(named))


def _usb_device(host: Host, port: str, rule: UsbRule) -> tuple[str, Found] | None:
    folder = f"{USB_DEVICES}/{port}"
    vendor, product = host.read(f"{folder}/idVendor"), host.read(f"{folder}/idProduct")
    serial = host.read(f"{folder}/serial").strip() if host.exists(f"{folder}/serial") else ""
    if vendor != rule.vendor or product != (rule.product or product):
        return None
    if not fnmatchcase(serial, rule.serial):
        return None
    bus, number = int(host.read(f"{folder}/busnum")), int(host.read(f"{folder}/devnum"))
    node = f"/dev/bus/usb/{bus:03}/{number:03}"
    return serial, Found(name=port, place=port, node=node, product=f"{vendor}-{product}")


def _patterns(paths: Iterable[str], rule: Rule, places: Iterable[str]) -> tuple[str, ...]:
    """*paths* with the place of each device of a set filled in."""
    filled: dict[str, None] = {}
    for place in places:
        bus, _, port = place.partition("-")
        for path in paths:
            values = {"{address}": place, "{bus}": bus, "{port}": port}
            text = path
            for name in rule.match.placeholders:
                text = text.replace(name, values[name])
            filled[text] = None
    return tuple(filled)


def _expand(host: Host, pattern: str) -> tuple[str, ...]:
    """Device nodes that a path or glob names, ascending; a star stays within one folder."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if any(sign in part for sign in "*?["):
            found = [f"{f}/{name}" for f in found for name in _names(host, f or "/", part)]
        else:
            found = [f"{f}/{part}" for f in found]
    return tuple(path for path in found if _is_node(host, path))


def _names(host: Host, folder: str, part: str) -> Iterator[str]:
    for name in host.names(folder):
        if fnmatchcase(name, part) and (not name.startswith(".") or part.startswith(".")):
            yield name


def _is_node(host: Host, path: str) -> bool:
    found = host.stat(path)
    return found is not None and found.kind in {"c", "b"}


def _node(host: Host, path: str, permissions: str) -> DeviceNode:
    """A node for the container at the path of the rule, whatever link leads to it."""
    found = host.stat(path)
    try:
        real = host.resolve(path)
    except NotThere:
        real = path
    return DeviceNode(
        path=path,
        host_path=None if real == path else real,
        permissions=permissions,
        kind="c" if found is None else found.kind,
    )


def _name(text: str) -> str:
    """*text* as a device name; a long one keeps its end apart from others by a hash."""
    whole = dns_label(text, 253)
    if len(whole) <= _NAME_LIMIT:
        return whole
    return f"{whole[: _NAME_LIMIT - 9]}-{sha256(text.encode()).hexdigest()[:8]}"
