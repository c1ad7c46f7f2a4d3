"""Small values that all else is made of: maps, versions, enumerations. Not here: the model."""

import re
from collections.abc import (
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from enum import IntEnum, StrEnum
from functools import total_ordering
from operator import itemgetter
from typing import Protocol, Self, TypeAlias, TypeVar, get_origin, overload

import attrs

from accelkit.core.errors import ModelError

V = TypeVar("V")
D = TypeVar("D")


class Ordered(Hashable, Protocol):
    """A value with an order."""

    def __lt__(self, other: Self, /) -> bool: ...


K = TypeVar("K", bound=Ordered)


class FrozenMap(Mapping[K, V]):
    """An immutable mapping in ascending order of its keys; equal maps have equal hashes."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        self._items: dict[K, V] = dict(sorted(dict(pairs).items(), key=itemgetter(0)))
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # Those of Mapping look up each key by itself: three times slower, and there are thousands.

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...

    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        return self._items.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V]:
        return self._items.values()

    def items(self) -> ItemsView[K, V]:
        return self._items.items()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self._items == other._items
        return NotImplemented if not isinstance(other, Mapping) else self._items == dict(other)

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


def frozen_map(items: Mapping[K, V] | Iterable[tuple[K, V]]) -> FrozenMap[K, V]:
    """Freeze *items*, unless they are frozen already."""
    return items if isinstance(items, FrozenMap) else FrozenMap(items)


def freeze(_cls: type, fields: list[attrs.Attribute]) -> list[attrs.Attribute]:  # type: ignore[type-arg]  # of any type
    """Let fields of tuples, frozen maps and frozen sets take any iterable or mapping.

    Used as ``field_transformer`` of every value, so that whoever hands in a list or a dict
    still gets an immutable, hashable value. One text is refused where several are meant.
    """
    return [
        field.evolve(converter=_FREEZERS[origin])
        if field.converter is None and (origin := get_origin(field.type)) in _FREEZERS
        else field
        for field in fields
    ]


def _tuple(items: Iterable[K]) -> tuple[K, ...]:
    return tuple(_several(items))


def _frozenset(items: Iterable[K]) -> frozenset[K]:
    return frozenset(_several(items))


def _several(items: Iterable[K]) -> Iterable[K]:
    """*items*, which must not be one text: its letters are hardly what is meant.

    Raises:
        TypeError: They are.
    """
    if isinstance(items, (str, bytes)):
        raise TypeError(f"expected a list, found {items!r}: put it in [ ]")
    return items


# Made once: attrs would look up the signature of a constructor anew for each field, a third of what
# a class costs at the start.
_FREEZERS = {
    tuple: attrs.Converter(_tuple),
    frozenset: attrs.Converter(_frozenset),
    FrozenMap: attrs.Converter(frozen_map),
}

_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\.\d+)*(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_DIGITS = 20
"""Of one number; Python reads none that has thousands."""


@total_ordering
@attrs.frozen(order=False)
class Version:
    """A strict semantic version: three numbers without leading zeros.

    Source:
        https://semver.org/spec/v2.0.0.html, section 2.
    """

    major: int
    minor: int = 0
    patch: int = 0
    pre: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what makers print: ``580.65.06`` is 580.65.6; a fourth number is dropped.

        Raises:
            ModelError: *text* does not begin with a number.
        """
        found = _VERSION.fullmatch(text.strip().removeprefix("v"))
        if found is None or any(len(digits or "") > _DIGITS for digits in found.groups()[:3]):
            raise ModelError(
                f"{text[:64]!r} is not a version", remedy="give numbers and dots, as 1.2.3"
            )
        major, minor, patch, pre = found.groups()
        return cls(int(major), int(minor or 0), int(patch or 0), pre or "")

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{self.pre}" if self.pre else "")

    def __lt__(self, other: Self) -> bool:
        # A pre-release comes before its release: "" sorts last (semver section 11).
        def key(v: Version) -> tuple[int, int, int, bool, str]:
            return (v.major, v.minor, v.patch, v.pre == "", v.pre)

        return key(self) < key(other)


AttributeValue: TypeAlias = bool | int | str | Version | tuple[int, ...] | tuple[str, ...]


class Severity(StrEnum):
    """How bad a condition is for whoever uses the device."""

    INFO = "INFO"
    DEGRADED = "DEGRADED"
    FATAL = "FATAL"


class Scope(StrEnum):
    """How far a condition or a mode change reaches."""

    DEVICE = "DEVICE"
    """This device alone."""
    TREE = "TREE"
    """The device and its partitions, or the parent and the siblings."""
    VENDOR = "VENDOR"
    """Every device of the vendor on this node."""


class Standing(StrEnum):
    """Whether a device was seen at the last read."""

    PRESENT = "PRESENT"
    STALE = "STALE"
    """Carried over, because a problem kept it from being read."""
    LOST = "LOST"
    """Carried over, because somebody holds it though it is gone."""


class Health(StrEnum):
    """The judgement on a device."""

    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    UNKNOWN = "UNKNOWN"


class LinkKind(StrEnum):
    """What connects two devices, closest first."""

    ONDIE = "ONDIE"
    """The same package."""
    FABRIC = "FABRIC"
    """Through the vendor's switches."""
    DIRECT = "DIRECT"
    """The vendor's links between the two."""
    SWITCH = "SWITCH"
    """One PCIe switch."""
    BRIDGE = "BRIDGE"
    """Several PCIe switches, below one host bridge port."""
    HOST = "HOST"
    """One PCIe host bridge."""
    SOCKET = "SOCKET"
    """One NUMA node."""


PCIE_KINDS = frozenset({LinkKind.SWITCH, LinkKind.BRIDGE, LinkKind.HOST, LinkKind.SOCKET})


class GroupRule(StrEnum):
    """What membership of a group means for a set of devices."""

    HINT = "HINT"
    """Better together."""
    LAW = "LAW"
    """The vendor cannot run another set of this size."""


class Enforcement(StrEnum):
    """Who makes sure that a share keeps to its amount."""

    NONE = "none"
    LIBRARY = "library"
    MPS = "mps"
    CGROUP = "cgroup"


class HolderKind(StrEnum):
    """Who uses a device."""

    CLAIM = "CLAIM"
    POD = "POD"
    FOREIGN = "FOREIGN"
    """A process that no pod or claim explains."""


class Source(IntEnum):
    """Where a configuration block comes from; later wins."""

    FROM_CLASS = 0
    FROM_CLAIM = 1


_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def is_dns_label(text: str, limit: int = 63) -> bool:
    """Whether *text* is a DNS label of at most *limit* characters (RFC 1123)."""
    return len(text) <= limit and _LABEL.fullmatch(text) is not None


def is_host_path(text: str) -> bool:
    """Whether *text* is an absolute path that leaves no folder it names."""
    return text.startswith("/") and ".." not in text.split("/") and "\0" not in text


def dns_label(text: str, limit: int = 63) -> str:
    """*text* as a DNS label: lower case, anything else folded to dashes, *limit* long.

    Raises:
        ModelError: Nothing of *text* can be kept.
    """
    folded = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")
    if not folded:
        raise ModelError(f"{text!r} has no letter or digit to make a name of")
    return folded
