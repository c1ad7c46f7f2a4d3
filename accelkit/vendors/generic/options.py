"""The operator's rules: which devices there are, and what containers get. Not here: looking."""

import re

import attrs

from accelkit import FrozenMap, ModelError, dns_label, is_host_path

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_USB_ID = re.compile(r"[0-9a-f]{4}", re.ASCII)
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
SIGNS = "*?["
"""What makes a path a glob."""


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


def _lower(digits: str) -> str:
    return digits.lower()


@attrs.frozen(kw_only=True)
class UsbRule:
    """USB devices, by four hexadecimal digits each; the serial number by a glob."""

    vendor: str = attrs.field(converter=_lower)
    product: str | None = attrs.field(default=None, converter=attrs.converters.optional(_lower))
    serial: str = "*"

    def __attrs_post_init__(self) -> None:
        for key, digits in (("vendor", self.vendor), ("product", self.product)):
            if digits is not None and not _USB_ID.fullmatch(digits):
                raise ValueError(
                    f'{key} must be four hexadecimal digits in quotes, as "0403", not {digits!r}'
                )


@attrs.frozen(kw_only=True)
class Match:
    """What makes a device: a device node, another file, a PCI function or a USB device.

    Exactly one of them.
    """

    path: str | None = None
    """Glob of device nodes; a star stays within one folder."""
    file: str | None = None
    """The same of other files: plain ones, folders, sockets. Containers have them mounted."""
    pci: PciRule | None = None
    usb: UsbRule | None = None
    container_path: str = ""
    """Where containers find what *path* or *file* matches; empty: as on the host. With a slash at
    its end it is a folder in which each keeps its name."""
    read_only: bool = True
    """Of *file*."""

    def __attrs_post_init__(self) -> None:
        if sum(way is not None for way in (self.path, self.file, self.pci, self.usb)) != 1:
            raise ValueError("must have exactly one of path, file, pci and usb")
        if self.container_path and self.glob is None:
            raise ValueError("containerPath goes with path or file")
        if not self.read_only and self.file is None:
            raise ValueError("readOnly goes with file: of a device node, name the permissions")
        if self.glob is not None:
            _check_path(self.glob, ())
            if not self.glob.strip("/"):
                raise ValueError(f"{self.way} must name something below /, not {self.glob!r}")
        _check_path(self.container_path or "/", ())

    @property
    def glob(self) -> str | None:
        """The paths that it looks at; None: it looks at a bus."""
        return self.file if self.path is None else self.path

    @property
    def way(self) -> str:
        """By which of its keys it finds devices."""
        return next(key for key in ("path", "file", "pci", "usb") if getattr(self, key) is not None)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What the paths of further files may name."""
        if self.pci is not None:
            return ("{address}",)
        return ("{bus}", "{port}") if self.usb is not None else ()


@attrs.frozen(kw_only=True)
class NodeRule:
    """A further device node that each device needs."""

    path: str
    """Path or glob."""
    container_path: str = ""
    """Empty: as on the host. With a slash at its end it is a folder."""
    permissions: str | None = None
    """None: those of the rule."""
    optional: bool = False
    """Left out where it is absent."""
    limit: int | None = None
    """Matches go to devices one by one, in order, and one serves at most so many. None: each
    device has all of them."""

    def __attrs_post_init__(self) -> None:
        _check_further(self)
        if self.permissions is not None:
            _check_permissions(self.permissions)


@attrs.frozen(kw_only=True)
class MountRule:
    """A file or folder of the host that each container gets."""

    host_path: str
    """Path or glob."""
    container_path: str = ""
    """Empty: as on the host. With a slash at its end it is a folder."""
    read_only: bool = True
    optional: bool = False
    """Left out where it is absent."""
    limit: int | None = None
    """As that of a node."""

    def __attrs_post_init__(self) -> None:
        _check_further(self)

    @property
    def path(self) -> str:
        return self.host_path


@attrs.frozen(kw_only=True)
class Rule:
    """One sort of device."""

    name: str = attrs.field()
    """DNS label; the devices' kind."""
    match: Match | tuple[Match, ...] = attrs.field()
    """What makes a device; of several, each."""
    nodes: tuple[str | NodeRule, ...] = attrs.field(default=(), converter=tuple)
    """Further nodes that each device needs: paths or globs."""
    permissions: str = attrs.field(default="rw")
    mounts: tuple[MountRule, ...] = attrs.field(default=(), converter=tuple)
    env: FrozenMap[str, str] = attrs.field(default=FrozenMap(), converter=FrozenMap)
    group: bool = False
    """Everything that matches is one device."""

    @name.validator
    def _check_name(self, _attribute: object, name: str) -> None:
        if not _is_label(name):
            raise ValueError(f"name must be a DNS label of at most 40 characters, not {name!r}")

    @match.validator
    def _check_match(self, _attribute: object, match: Match | tuple[Match, ...]) -> None:
        ways = {one.way for one in _listed(match)}
        if len(ways) != 1:
            found = ", ".join(sorted(ways)) or "by none"
            raise ValueError(f"match must be by one of path, file, pci and usb, not {found}")

    @permissions.validator
    def _check_permissions(self, _attribute: object, permissions: str) -> None:
        _check_permissions(permissions)

    @env.validator
    def _check_env(self, _attribute: object, env: FrozenMap[str, str]) -> None:
        for name in env:
            if not _ENV.fullmatch(name):
                raise ValueError(f"env: {name!r} is not the name of a variable")
            if "\0" in env[name]:
                raise ValueError(f"env: no variable can have a NUL, as {name} has")

    def __attrs_post_init__(self) -> None:
        known = self.matches[0].placeholders
        if self.group:
            for match in self.matches:
                _check_room(match.glob or "", match.container_path)
        for part in self.parts:
            _check_path(part.path, known)
            if part.limit is not None and (self.group or "{" in part.path):
                raise ValueError(
                    f"{part.path!r}: a limit shares out files that belong to no device yet; "
                    f"leave it out with {'group' if self.group else 'placeholders'}"
                )

    @property
    def matches(self) -> tuple[Match, ...]:
        return _listed(self.match)

    @property
    def further(self) -> tuple[NodeRule, ...]:
        """*nodes*, each as a rule."""
        return tuple(NodeRule(path=n) if isinstance(n, str) else n for n in self.nodes)

    @property
    def parts(self) -> tuple[NodeRule | MountRule, ...]:
        """All that a device needs beside what matches."""
        return (*self.further, *self.mounts)


@attrs.frozen(kw_only=True)
class GenericOptions:
    """The block of this vendor; without rules it offers nothing."""

    devices: tuple[Rule, ...] = attrs.field(default=())
    """A device that several rules match belongs to the first."""

    @devices.validator
    def _check_names(self, _attribute: object, rules: tuple[Rule, ...]) -> None:
        names = [rule.name for rule in rules]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules have the name {repeated[0]}")


def _listed(match: Match | tuple[Match, ...]) -> tuple[Match, ...]:
    return (match,) if isinstance(match, Match) else match


def _check_further(rule: NodeRule | MountRule) -> None:
    """Refuse where further files cannot go.

    Raises:
        ValueError: The place is none, or cannot hold all of them.
    """
    _check_path(rule.container_path or "/", ())
    if rule.limit is not None and rule.limit < 1:
        raise ValueError(f"limit must be at least 1, not {rule.limit}")
    if rule.limit is None:
        _check_room(rule.path, rule.container_path)
    if not (rule.path.strip("/") or rule.container_path.strip("/")):
        raise ValueError(f"{rule.path!r} cannot be / in a container: it has its own")


def _check_room(path: str, container_path: str) -> None:
    """Refuse one place in a container for all that a glob names.

    Raises:
        ValueError: It cannot hold all of them.
    """
    several = any(sign in path for sign in SIGNS)
    if several and container_path and not container_path.endswith("/"):
        raise ValueError(
            f"{path!r} may be several files, and {container_path!r} is a place for one; "
            "let it end in /"
        )


def _check_path(path: str, placeholders: tuple[str, ...]) -> None:
    """Refuse what cannot be a path.

    Raises:
        ValueError: It is not absolute, leaves its folder, cannot be printed, or has an unknown
            placeholder.
    """
    if not is_host_path(path):
        raise ValueError(f"{path!r} must be an absolute path without ..")
    if not path.isprintable():
        raise ValueError(f"{path!r} has signs that cannot be printed, such as the end of a line")
    unknown = sorted(set(_PLACEHOLDER.findall(path)) - set(placeholders))
    if unknown:
        known = f"has {' and '.join(placeholders)}" if placeholders else "has none here"
        raise ValueError(f"{path!r}: {unknown[0]} is not known; a path {known}")


def _check_permissions(permissions: str) -> None:
    if not permissions or set(permissions) - set("rwm") or len({*permissions}) < len(permissions):
        raise ValueError(f"permissions must be some of r, w and m, not {permissions!r}")


def _is_label(text: str) -> bool:
    try:
        return dns_label(text, 40) == text
    except ModelError:
        return False
