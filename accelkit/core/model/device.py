"""One device and what it is made of. Not here: what a node has, and who uses it."""

from collections.abc import Iterable
from datetime import datetime
from functools import total_ordering
from typing import Self

import attrs

from accelkit.core.errors import ModelError
from accelkit.core.values import (
    AttributeValue,
    Enforcement,
    FrozenMap,
    Scope,
    Severity,
    Standing,
    freeze,
    is_dns_label,
)

WHOLE_NAME_LIMIT = 40
"""Longest name of a whole device: a partition's suffix and ``::127`` still fit 63 characters."""
PART_NAME_LIMIT = 58
"""Longest name of a partition: ``::127`` still fits 63 characters."""
VENDOR_NAME_LIMIT = 20
SLOTS_LIMIT = 128
"""Most slots of a device."""


@total_ordering
@attrs.frozen(kw_only=True, field_transformer=freeze, cache_hash=True)
class DeviceId:
    """Which device: unique on the node, the same after every reboot. Written ``vendor/name``."""

    vendor: str
    """DNS label."""
    name: str
    """DNS label, unique among the vendor's devices; a place or a serial number, never an index."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``vendor/name``.

        Raises:
            ModelError: *text* has no slash.
        """
        vendor, slash, name = text.partition("/")
        if not (vendor and slash and name):
            raise ModelError(f"{text!r} is not a device id", remedy="write vendor/name")
        return cls(vendor=vendor, name=name)

    def __str__(self) -> str:
        return f"{self.vendor}/{self.name}"

    def __lt__(self, other: Self) -> bool:
        # Ids are sorted more than all else together; that of attrs makes tuples field by field.
        return (self.vendor, self.name) < (other.vendor, other.name)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class DeviceNode:
    """A device file that a container needs."""

    path: str
    """Where the container finds it."""
    host_path: str | None = None
    """Where the host has it; None: at *path*."""
    permissions: str = "rw"
    """Some of r, w, m, as in the OCI runtime specification."""
    kind: str = "c"
    """c: character, b: block."""
    major: int | None = None
    minor: int | None = None

    @property
    def on_host(self) -> str:
        """Where the host has it."""
        return self.host_path or self.path


def sorted_nodes(nodes: Iterable[DeviceNode]) -> tuple[DeviceNode, ...]:
    """*nodes* by path, once each; what is no node is left for whoever checks answers."""
    found = tuple(nodes)
    if not all(isinstance(node, DeviceNode) for node in found):
        return found
    return tuple(sorted(set(found), key=_every_field))


def _every_field(node: DeviceNode) -> tuple[str | int | bool, ...]:
    # All of them: a set has no order, and nodes that differ anywhere must not change places.
    return (
        *(node.path, node.on_host, node.permissions, node.kind),
        *(node.host_path is not None, node.host_path or ""),
        *(node.major is not None, node.major or 0),
        *(node.minor is not None, node.minor or 0),
    )


def _sorted_numbers(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(numbers))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Locality:
    """Where a device hangs."""

    pci_address: str | None = None
    """dddd:bb:dd.f in lower case."""
    pcie_root: str | None = None
    """As in pci0000:40."""
    numa_node: int | None = attrs.field(default=None)
    """Never negative; only a node that has CPUs."""
    near_nodes: tuple[int, ...] = ()
    """numa_node first, then equally near ones."""

    @numa_node.validator
    def _check_numa_node(self, _attribute: object, value: int | None) -> None:
        if value is not None and value < 0:
            raise ModelError(
                f"NUMA node {value}: a node that the firmware does not name must be None"
            )


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Mode:
    """A state of a whole device that decides how it is cut."""

    name: str
    live: bool = False
    """Can be set while neighbours work, without a reset."""
    disturbs: Scope = Scope.DEVICE
    """DEVICE or VENDOR: whose devices must be free first."""
    cut: str | None = None
    """Profile of the fixed cut: this mode *is* count partitions of it."""
    count: int = 0


def _sorted_modes(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    return tuple(sorted(modes, key=lambda m: m.name))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Profile:
    """A size that a device can be cut to."""

    name: str
    """The maker's name: 1g.10gb+me."""
    slug: str
    """The same in a device name: 1g10gb-me; at most 14 characters."""
    size: int
    """Slots."""
    starts: tuple[int, ...] = attrs.field(converter=_sorted_numbers)
    """Legal first slots."""
    limit: int | None = None
    """At most so many at once."""
    mode: str | None = None
    """The mode that the parent must be in."""
    kind: str | None = None
    """Of the partitions; None: that of the parent."""
    capacity: FrozenMap[str, int] = FrozenMap()
    counters: FrozenMap[str, int] = FrozenMap()
    attributes: FrozenMap[str, AttributeValue] = FrozenMap()


@attrs.frozen(kw_only=True, field_transformer=freeze, order=True)
class Placement:
    """A profile at a first slot: what a partition *is*."""

    profile: str
    start: int
    size: int

    @property
    def slots(self) -> range:
        return range(self.start, self.start + self.size)


_WORST_FIRST = {Severity.FATAL: 0, Severity.DEGRADED: 1, Severity.INFO: 2}


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Condition:
    """A coded observation about a device."""

    code: str
    """DNS label, documented by the vendor."""
    severity: Severity
    scope: Scope = Scope.DEVICE
    message: str = attrs.field(default="", eq=False)
    since: datetime | None = attrs.field(default=None, eq=False)
    """Set by the core, never by a vendor."""

    @property
    def said(self) -> str:
        """The code, and the message if there is one."""
        return f"{self.code}: {self.message}" if self.message else self.code


def worst_first(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """*conditions* by severity, then code: the order in which people should read them."""
    return tuple(sorted(conditions, key=lambda c: (_WORST_FIRST[c.severity], c.code, c.scope)))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Binding:
    """What must be true before a pod binds to a device; at most four of each."""

    conditions: tuple[str, ...]
    failures: tuple[str, ...]
    node: bool = False


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Device:
    """One thing that can be allocated: a whole accelerator or a partition."""

    id: DeviceId
    kind: str
    """What sort of thing: gpu, npu, tpu, channel."""
    product: str | None = None
    """What the maker calls it."""
    parent: DeviceId | None = None
    placement: Placement | None = None
    """A partition has both parent and placement, a whole device neither."""
    usable: bool = True
    """May be handed out as it stands; False for a parent that is cut."""
    locality: Locality = Locality()
    nodes: tuple[DeviceNode, ...] = attrs.field(default=(), converter=sorted_nodes)
    attributes: FrozenMap[str, AttributeValue] = FrozenMap()
    own: frozenset[str] = frozenset()
    """Attributes that tell it from its like: its partitions do not have them."""
    capacity: FrozenMap[str, int] = FrozenMap()
    """Base units: memory in bytes."""
    slots: int = 0
    counters: FrozenMap[str, int] = FrozenMap()
    """Totals that partitions compete for."""
    profiles: tuple[Profile, ...] = ()
    """In the maker's order."""
    modes: tuple[Mode, ...] = attrs.field(default=(), converter=_sorted_modes)
    mode: str | None = None
    sharing: frozenset[Enforcement] = frozenset({Enforcement.NONE})
    """What can enforce a share here."""
    aliases: frozenset[str] = frozenset()
    """Other ids that the device is known by."""
    handle: str | None = None
    """The maker's id of the live thing; may change."""
    conditions: tuple[Condition, ...] = attrs.field(default=(), converter=worst_first)
    """Set by the core from the vendor's answers."""
    standing: Standing = Standing.PRESENT
    """Set by the core."""
    binding: Binding | None = None

    def __attrs_post_init__(self) -> None:
        limit = WHOLE_NAME_LIMIT if self.parent is None else PART_NAME_LIMIT
        if not is_dns_label(self.id.name, limit):
            raise ModelError(
                f"{self.id}: the name must be a DNS label of at most {limit} characters",
                remedy="make it with dns_label() from a serial number or a place",
            )
        if (self.parent is None) != (self.placement is None):
            raise ModelError(
                f"{self.id}: a partition has a parent and a placement, a whole neither"
            )

    @property
    def profile(self) -> str | None:
        """The partition's profile; None for a whole device."""
        return None if self.placement is None else self.placement.profile

    @property
    def root(self) -> DeviceId:
        """The whole device that this is, or is a part of."""
        return self.parent or self.id
