"""The operator's rules: which devices there are, and what containers get. Not here: looking."""

import re
from collections.abc import Iterable

import attrs

from accelkit import FrozenMap, ModelError, dns_label, is_host_path

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_USB_ID = re.compile(r"[0-9a-f]{4}", re.ASCII)
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@attrs.frozen(kw_only=True)
class PciRule:
    """PCI functions, by the numbers that the kernel shows."""

    vendor: int
    device: int | None = None
    class_: int | None = None
    """Class and subclass, as 0x0302."""

    def __attrs_post_init__(self) -> None:
        for key, number in (
            ("vendor", self.vendor),
            ("device", self.device),
            ("class", self.class_),
        ):
            if number is not None and not 0 <= number <= 0xFFFF:
                raise ValueError(f"{key} must be from 0x0000 to 0xffff, not {number:#x}")


@attrs.frozen(kw_only=True)
class UsbRule:
    """USB devices, by four hexadecimal digits each; the serial number by a glob."""

    vendor: str
    product: str | None = None
    serial: str = "*"

    def __attrs_post_init__(self) -> None:
        for key, digits in (("vendor", self.vendor), ("product", self.product)):
            if digits is not None and not _USB_ID.fullmatch(digits):
                raise ValueError(
                    f'{key} must be four lower-case hexadecimal digits in quotes, as "0403", '
                    f"not {digits!r}"
                )


@attrs.frozen(kw_only=True)
class Match:
    """What makes a device: a device node, a PCI function or a USB device; exactly one of them."""

    path: str | None = None
    """Glob of device nodes; a star stays within one folder."""
    pci: PciRule | None = None
    usb: UsbRule | None = None

    def __attrs_post_init__(self) -> None:
        if sum(way is not None for way in (self.path, self.pci, self.usb)) != 1:
            raise ValueError("must have exactly one of path, pci and usb")
        if self.path is not None:
            check_path(self.path, ())

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What the paths of further nodes may name."""
        if self.pci is not None:
            return ("{address}",)
        return ("{bus}", "{port}") if self.usb is not None else ()


@attrs.frozen(kw_only=True)
class MountRule:
    """A file or folder of the host that each container gets."""

    host_path: str
    container_path: str = ""
    """Empty: as on the host."""
    read_only: bool = True

    def __attrs_post_init__(self) -> None:
        check_path(self.host_path, ())
        check_path(self.container_path or "/", ())


@attrs.frozen(kw_only=True)
class Rule:
    """One sort of device."""

    name: str = attrs.field()
    """DNS label; the devices' kind."""
    match: Match
    nodes: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Further nodes that each device needs: paths or globs."""
    optional: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """The same, left out where absent."""
    permissions: str = attrs.field(default="rw")
    mounts: tuple[MountRule, ...] = attrs.field(default=(), converter=tuple)
    env: FrozenMap[str, str] = attrs.field(default=FrozenMap(), converter=FrozenMap)
    group: bool = False
    """Everything that matches is one device."""

    @name.validator
    def _check_name(self, _attribute: object, name: str) -> None:
        if not _is_label(name):
            raise ValueError(f"name must be a DNS label of at most 40 characters, not {name!r}")

    @permissions.validator
    def _check_permissions(self, _attribute: object, permissions: str) -> None:
        if not permissions or set(permissions) - set("rwm"):
            raise ValueError(f"permissions must be some of r, w and m, not {permissions!r}")

    @env.validator
    def _check_env(self, _attribute: object, env: FrozenMap[str, str]) -> None:
        for name in env:
            if not _ENV.fullmatch(name):
                raise ValueError(f"env: {name!r} is not the name of a variable")

    def __attrs_post_init__(self) -> None:
        for path in (*self.nodes, *self.optional):
            check_path(path, self.match.placeholders)


def _check_names(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    kept = tuple(rules)
    names = [rule.name for rule in kept]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two rules have the name {repeated[0]}")
    return kept


@attrs.frozen(kw_only=True)
class GenericOptions:
    """The block of this vendor; without rules it offers nothing."""

    devices: tuple[Rule, ...] = attrs.field(default=(), converter=_check_names)
    """A device that several rules match belongs to the first."""


def check_path(path: str, placeholders: tuple[str, ...]) -> None:
    """Refuse what cannot be a path on the host.

    Raises:
        ValueError: It is not absolute, leaves its folder, or has an unknown placeholder.
    """
    if not is_host_path(path):
        raise ValueError(f"{path!r} must be an absolute path without ..")
    unknown = sorted(set(_PLACEHOLDER.findall(path)) - set(placeholders))
    if unknown:
        known = f"has {' and '.join(placeholders)}" if placeholders else "has none here"
        raise ValueError(f"{path!r}: {unknown[0]} is not known; a path {known}")


def _is_label(text: str) -> bool:
    try:
        return dns_label(text, 40) == text
    except ModelError:
        return False
