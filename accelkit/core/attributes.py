"""What an attribute may be called and hold. Not here: which attributes a vendor has."""

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from accelkit.core.values import AttributeValue, Version

PUBLISHED = frozenset({"kind", "offer", "parent", "product", "profile", "vendor"})
"""Attributes that core makes of a device itself; no vendor may use their names."""
VALUE_LIMIT = 64
"""Characters of a text or version (Kubernetes: DeviceAttributeMaxValueLength)."""
INT_LIMIT = 2**63
"""Numbers are signed 64-bit integers in Kubernetes."""

# k8s.io/api/resource/v1: a C identifier of at most 32 characters (DeviceMaxIDLength).
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_NAMES: Mapping[object, str] = {
    bool: "bool",
    int: "int",
    str: "str",
    Version: "Version",
    tuple[int, ...]: "tuple[int, ...]",
    tuple[str, ...]: "tuple[str, ...]",
}
_ITEMS: Mapping[object, type] = {tuple[int, ...]: int, tuple[str, ...]: str}


class Declaring(Protocol):
    """A vendor, as far as it is needed here."""

    @property
    def attributes(self) -> Mapping[str, type]: ...


class Describing(Protocol):
    """A device or a profile, as far as it is needed here."""

    @property
    def attributes(self) -> Mapping[str, AttributeValue]: ...

    @property
    def capacity(self) -> Mapping[str, int]: ...


def check_attributes(vendor: Declaring, device: Describing) -> tuple[str, ...]:
    """What is wrong with what *device* says of itself, one sentence each (D12, D13).

    Args:
        vendor: The class or the object; declares names and types.
        device: One of its devices, or a profile.
    """
    return (
        *value_problems(vendor.attributes, device.attributes),
        *amount_problems(device.capacity),
    )


def is_attribute_id(text: str) -> bool:
    """Whether *text* may name an attribute or a capacity."""
    return _ID.fullmatch(text) is not None


def declaration_problems(declared: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the attributes that a vendor says it has: ids and types."""
    for name, kind in declared.items():
        if not is_attribute_id(name):
            yield f"attribute {name!r}: a name is a letter or _, then up to 31 letters, digits, _"
        elif name in PUBLISHED:
            yield f"attribute {name!r}: core publishes this one itself"
        if kind not in _NAMES:
            yield f"attribute {name!r}: its type must be one of {', '.join(_NAMES.values())}"


def value_problems(
    declared: Mapping[str, object], values: Mapping[str, AttributeValue]
) -> Iterator[str]:
    """What is wrong with the attributes of one device, held against what its vendor declared."""
    for name, value in values.items():
        if name not in declared:
            yield f"attribute {name!r} is not declared"
        elif not _is_of(value, declared[name]):
            kind = _NAMES.get(declared[name], str(declared[name]))
            yield f"attribute {name!r} is declared {kind}, found {value!r}"
        elif fault := next(filter(None, map(_fault, _parts(value))), None):
            yield f"attribute {name!r}: {fault}"


def amount_problems(amounts: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with the capacity of one device."""
    for name, amount in amounts.items():
        if not is_attribute_id(name):
            yield f"capacity {name!r}: a name is a letter or _, then up to 31 letters, digits, _"
        if type(amount) is not int or not 0 <= amount < INT_LIMIT:
            yield f"capacity {name!r} must be a whole number from 0 to 2^63-1, found {amount!r}"


def as_text(value: AttributeValue) -> tuple[str, ...]:
    """The texts that a selection may match: of a list each item's."""
    return tuple(str(v).lower() if isinstance(v, bool) else str(v) for v in _parts(value))


def _parts(value: AttributeValue) -> tuple[bool | int | str | Version, ...]:
    return value if isinstance(value, tuple) else (value,)


def _is_of(value: AttributeValue, kind: object) -> bool:
    """Exactly: True is no number."""
    if isinstance(value, tuple):
        item = _ITEMS.get(kind)
        return item is not None and all(type(v) is item for v in value)
    return type(value) is kind


def _fault(value: object) -> str | None:
    if isinstance(value, int):
        return None if -INT_LIMIT <= value < INT_LIMIT else f"{value} needs more than 64 bits"
    text = str(value)
    if len(text) > VALUE_LIMIT:
        return f"{text[:20]!r}... is longer than {VALUE_LIMIT} characters"
    return None if text else "it is empty; leave out what is not known"
