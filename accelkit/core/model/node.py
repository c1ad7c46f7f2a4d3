"""What a node has, as values: links, groups, reports, the snapshot, who holds what."""

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Self

import attrs

from accelkit.core.errors import ModelError
from accelkit.core.model.device import Device, DeviceId
from accelkit.core.model.invariants import contradictions
from accelkit.core.values import (
    FrozenMap,
    GroupRule,
    HolderKind,
    LinkKind,
    freeze,
)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Unreadable:
    """A vendor's word for one device that it sees but cannot read."""

    subject: str
    """A device name or a PCI address."""
    code: str
    """DNS label."""
    reason: str
    remedy: str = ""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Problem:
    """What kept accelkit from knowing or doing something."""

    vendor: str | None = None
    subject: str | None = None
    code: str
    reason: str = attrs.field(default="", eq=False)
    remedy: str = attrs.field(default="", eq=False)
    since: datetime | None = attrs.field(default=None, eq=False)


def _sorted_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda p: (p.vendor or "", p.subject or "", p.code)))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Link:
    """A connection between two devices, the same in both directions."""

    a: DeviceId
    b: DeviceId
    kind: LinkKind
    count: int = 1
    """How many lanes or cables; of FABRIC the smaller number of the two devices."""
    bandwidth: int | None = None
    """Bytes a second, each direction, all lanes together."""
    up: bool = True

    @classmethod
    def between(
        cls,
        one: DeviceId,
        other: DeviceId,
        kind: LinkKind,
        *,
        count: int = 1,
        bandwidth: int | None = None,
        up: bool = True,
    ) -> Self:
        """The link of *one* and *other*, in whichever order they are named."""
        a, b = sorted((one, other))
        return cls(a=a, b=b, kind=kind, count=count, bandwidth=bandwidth, up=up)

    def __attrs_post_init__(self) -> None:
        if not self.a < self.b:
            raise ModelError(
                f"link of {self.a} and {self.b}: a must sort before b", remedy="use Link.between()"
            )


def _sorted_links(links: Iterable[Link]) -> tuple[Link, ...]:
    return tuple(sorted(links, key=lambda link: (link.a, link.b, link.kind)))


def _sorted_ids(ids: Iterable[DeviceId]) -> tuple[DeviceId, ...]:
    return tuple(sorted(set(ids)))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Group:
    """Devices that may or must be used together."""

    kind: str
    name: str
    members: tuple[DeviceId, ...] = attrs.field(converter=_sorted_ids)
    rule: GroupRule = GroupRule.HINT


def _sorted_groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda g: (g.kind, g.name, g.members)))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Evidence:
    """Events of one kind about one subject, written down: the set of a boot, not a log."""

    vendor: str
    subject: str
    """A device name, a PCI address or an alias; empty for the vendor as a whole."""
    code: str
    source: str
    count: int
    first: datetime
    last: datetime
    data: FrozenMap[str, str] = FrozenMap()
    """Of the last event."""
    last_s: float | None = attrs.field(default=None, eq=False)
    """Monotonic seconds of this boot at the last event, for durations; None: not known."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Event:
    """What a vendor heard from its library, or made of a kernel notice."""

    subject: str | None
    """A device name, a PCI address or an alias; None: the vendor as a whole."""
    code: str
    source: str
    data: FrozenMap[str, str] = FrozenMap()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class VendorReport:
    """What one vendor said at one read."""

    vendor: str
    answered: bool
    """False: the read failed, and nothing is known about any of its devices."""
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = attrs.field(default=(), converter=_sorted_links)
    groups: tuple[Group, ...] = attrs.field(default=(), converter=_sorted_groups)
    problems: tuple[Problem, ...] = attrs.field(default=(), converter=_sorted_problems)
    software: FrozenMap[str, str] = FrozenMap()
    """Driver and library versions."""
    took_s: float = attrs.field(default=0.0, eq=False)


def _sorted_devices(devices: Iterable[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda d: d.id))


@attrs.frozen(kw_only=True, field_transformer=freeze, slots=False)
class Snapshot:
    """What the node believes: one immutable value.

    Raises:
        ModelError: Facts contradict each other; every contradiction is named.
    """

    node: str = ""
    devices: tuple[Device, ...] = attrs.field(default=(), converter=_sorted_devices)
    links: tuple[Link, ...] = attrs.field(default=(), converter=_sorted_links)
    groups: tuple[Group, ...] = attrs.field(default=(), converter=_sorted_groups)
    problems: tuple[Problem, ...] = attrs.field(default=(), converter=_sorted_problems)
    software: FrozenMap[str, str] = FrozenMap()
    """``vendor/component`` to version."""
    answered: frozenset[str] = frozenset()
    """Vendors that have answered at least once."""
    taken_at: datetime | None = attrs.field(default=None, eq=False)

    def __attrs_post_init__(self) -> None:
        if wrong := contradictions(self.devices, self.links, self.groups):
            raise ModelError("; ".join(wrong))

    @cached_property
    def by_id(self) -> FrozenMap[DeviceId, Device]:
        """Devices by id."""
        return FrozenMap((d.id, d) for d in self.devices)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Holder:
    """A pod, a claim or a foreign process."""

    kind: HolderKind
    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    claim: str | None = None
    uid: str | None = None
    """Of a foreign process: its pid."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Holding:
    """One device, or one share of it, and who uses it."""

    device: DeviceId
    share: str | None = None
    through: str
    """Backend name, or ``process``."""
    holder: Holder
    resource: str | None = None
