"""Keys of the policy whose function is not there yet: refused, never ignored."""

from collections.abc import Iterator, Mapping

import attrs

from accelkit.core.policy import Page, Policy
from accelkit.core.serde.keys import child, key_of
from accelkit.core.values import Enforcement

TEXT = "not available in this version"

NOT_YET: Mapping[str, frozenset[object]] = {
    "offers[].sharing.enforce": frozenset({Enforcement.LIBRARY, Enforcement.MPS}),
    "http.page": frozenset({Page.NONE}),
    "labels": frozenset(),
}
"""Field to the values beside its default that do work."""


def not_yet(policy: Policy) -> Iterator[tuple[str, str]]:
    """(path, text) of every such key that *policy* sets to anything but its default."""
    for field, works in NOT_YET.items():
        for path, value, default in _at(policy, field.split("."), "$"):
            if value not in works:
                for changed in _changed(value, default, path):
                    yield changed, TEXT


def _at(owner: object, parts: list[str], path: str) -> Iterator[tuple[str, object, object]]:
    """(path, value, default) of a field, once for each item of the lists on its way."""
    name = parts[0].removesuffix("[]")
    value = getattr(owner, name)
    here = child(path, key_of(name))
    if not parts[1:]:
        yield here, value, _default(owner, name)
    elif parts[0] != name:
        for index, item in enumerate(value):
            yield from _at(item, parts[1:], child(here, index))
    else:
        yield from _at(value, parts[1:], here)


def _changed(value: object, default: object, path: str) -> Iterator[str]:
    """Paths of the smallest parts of *value* that differ from *default*."""
    if value == default:
        return
    if attrs.has(type(value)) and type(value) is type(default):
        for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # attrs.has said so
            yield from _changed(
                getattr(value, field.name),
                getattr(default, field.name),
                child(path, key_of(field.name)),
            )
    else:
        yield path


def _default(owner: object, name: str) -> object:
    return attrs.fields_dict(type(owner))[name].default  # type: ignore[arg-type]  # an attrs class
