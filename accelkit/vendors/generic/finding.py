"""What matches a rule: device nodes, other files, PCI functions, USB devices. Not here: rules."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from types import MappingProxyType

import attrs

from accelkit import (
    Host,
    Locality,
    ModelError,
    NotThere,
    PciFunction,
    PciMatch,
    SourceError,
    dns_label,
    pci_functions,
)
from accelkit.vendors.generic.files import Files
from accelkit.vendors.generic.options import Match, PciRule, Rule, UsbRule

USB_DEVICES = "/sys/bus/usb/devices"
"""Linux, Documentation/ABI/testing/sysfs-bus-usb."""
_NAME_LIMIT = 40
_TEXT_LIMIT = 64
"""Bytes; Kubernetes takes no longer attribute."""


@attrs.frozen(kw_only=True)
class Found:
    """Something that matches a rule."""

    name: str
    place: str
    """Path, PCI address, or USB port as in 1-1.2."""
    real: str
    """The end of the links at a path, of which several may lead there; else the place."""
    match: Match
    node: str | None = None
    product: str | None = None
    locality: Locality = Locality()
    attributes: Mapping[str, str] = MappingProxyType({})

    @property
    def serial(self) -> str:
        return self.attributes.get("serial", "")

    @property
    def plugged(self) -> tuple[str, str]:
        """What stays while it is not unplugged."""
        return self.place, self.serial


def find(
    files: Files, rule: Rule, known: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> tuple[Found, ...]:
    """What matches *rule* now, in the order of its matches and of places; each node once.

    Args:
        files: Of the host.
        rule: The rule.
        known: Names of what was there before, by what stays: another one that comes with the same
            serial number must not change them, for somebody may use the device.
    """
    found: dict[str, Found] = {}
    for match in rule.matches:
        for one in _matching(files, match):
            found.setdefault(one.real, one)
    serials = Counter(one.serial for one in found.values())
    return tuple(
        attrs.evolve(one, name=known.get(one.plugged) or _name(one, serials))
        for one in found.values()
    )


def _matching(files: Files, match: Match) -> Iterator[Found]:
    if match.glob is not None:
        there = files.nodes(match.glob) if match.path is not None else files.others(match.glob)
        for path in there:
            node = None if match.path is None else path
            told = _told(path=path)
            real = path if node is None else files.real(node)
            yield Found(name=path, place=path, real=real, match=match, node=node, attributes=told)
    if match.pci is not None:
        for function in pci_functions(files.host, [_pci_match(match.pci)]):
            yield Found(
                name=function.address,
                place=function.address,
                real=function.address,
                match=match,
                product=_pci_product(function, match.pci),
                locality=function.locality,
            )
    if match.usb is not None:
        yield from _usb_devices(files.host, match, match.usb)


def _name(one: Found, serials: Mapping[str, int]) -> str:
    """What *one* is called; cheap ones share a serial number, or have none that is a name."""
    if one.serial and serials[one.serial] == 1:
        with suppress(ModelError):
            return name_of(one.serial)
    with suppress(ModelError):
        return name_of(one.place)
    return f"nameless-{_digits(one.place)}"


def _told(**texts: str) -> dict[str, str]:
    """Those of *texts* that claims can ask for."""
    return {k: t for k, t in texts.items() if t.isprintable() and 0 < _size(t) <= _TEXT_LIMIT}


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _pci_match(rule: PciRule) -> PciMatch:
    return PciMatch(
        vendor=rule.vendor,
        devices=() if rule.device is None else (rule.device,),
        classes=() if rule.class_ is None else (rule.class_,),
    )


def _pci_product(function: PciFunction, rule: PciRule) -> str | None:
    try:
        device = function.id("device") if rule.device is None else rule.device
    except SourceError:  # it has gone meanwhile
        return None
    return f"{rule.vendor:04x}-{device:04x}"


def _usb_devices(host: Host, match: Match, rule: UsbRule) -> Iterator[Found]:
    for port in host.names(USB_DEVICES):
        try:
            one = _usb_device(host, port, match, rule)
        except (SourceError, ValueError):  # an interface, or a device that has gone meanwhile
            continue
        if one is not None:
            yield one


def _usb_device(host: Host, port: str, match: Match, rule: UsbRule) -> Found | None:
    folder = f"{USB_DEVICES}/{port}"
    vendor = host.read(f"{folder}/idVendor")
    if vendor != rule.vendor:
        return None
    product = host.read(f"{folder}/idProduct")
    serial = _serial(host, folder)
    if product != (rule.product or product) or not fnmatchcase(serial, rule.serial):
        return None
    bus, number = int(host.read(f"{folder}/busnum")), int(host.read(f"{folder}/devnum"))
    return Found(
        name=port,
        place=port,
        real=port,
        match=match,
        node=f"/dev/bus/usb/{bus:03}/{number:03}",
        product=f"{vendor}-{product}",
        attributes=_told(port=port, serial=serial),
    )


def _serial(host: Host, folder: str) -> str:
    try:
        return host.read(f"{folder}/serial").strip()
    except NotThere:  # many have none
        return ""


def name_of(text: str) -> str:
    """*text* as a device name; a long one keeps its end apart from others by a hash.

    Raises:
        ModelError: Nothing of it can be in a name.
    """
    whole = dns_label(text, 253)
    if len(whole) <= _NAME_LIMIT:
        return whole
    return f"{whole[: _NAME_LIMIT - 9]}-{_digits(text)}"


def _digits(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:8]
