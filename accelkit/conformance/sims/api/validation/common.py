"""Checks that several kinds share: lists, metadata, node selectors, conditions. Not here: kinds."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.documents import RawJson
from accelkit.conformance.sims.api.refusals import (
    Cause,
    denied,
    repeated,
    required,
    too_long,
    too_many_items,
    unsupported,
    wrong,
)
from accelkit.conformance.sims.api.validation import names
from accelkit.conformance.sims.api.values import entries, part, parts, text, texts

T = TypeVar("T")
RAW_BYTES = 10240
"""Of opaque parameters, of a device's data, of a CEL expression."""
_OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}
_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}


def each(
    items: Sequence[T], limit: int | None, path: str, check: Callable[[str, T], Iterator[Cause]]
) -> Iterator[Cause]:
    """A list: too long, or its items one by one."""
    if limit is not None and len(items) > limit:
        yield too_many_items(path, len(items), limit)
        return
    for index, item in enumerate(items):
        yield from check(f"{path}[{index}]", item)


def unique(
    items: Sequence[T], limit: int | None, path: str, key: Callable[[T], Hashable]
) -> Iterator[Cause]:
    """What comes twice in a list that is not too long; shown whole where it has only one form."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items if limit is None or len(items) <= limit else ()):
        if key(item) in seen:
            yield repeated(f"{path}[{index}]", item)
        seen.add(key(item))


def by_name(item: Object) -> str:
    return text(item, "name")


def metadata(item: Object, *, units: str = "characters") -> Iterator[Cause]:
    """Names, labels, annotations, owners and finalizers."""
    meta, path = part(item, "metadata"), "metadata"
    prefix, name = text(meta, "generateName"), text(meta, "name")
    # Something is put behind it, so that it may end in a dash.
    masked = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
    for fault in names.subdomain_faults(masked) if prefix else ():
        yield wrong(f"{path}.generateName", prefix, fault)
    if not name:
        yield required(f"{path}.name", "name or generateName is required")
    else:
        yield from names.subdomain(f"{path}.name", name, units=units)
    yield from labels(meta, path)
    yield from owners(meta, path)
    for index, finalizer in enumerate(texts(meta, "finalizers")):
        at = f"{path}.finalizers[{index}]"
        yield from names.label_key(at, finalizer)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            what = "name is neither a standard finalizer name nor is it fully qualified"
            yield wrong(at, finalizer, what)


def labels(meta: Mapping[str, object], path: str) -> Iterator[Cause]:
    for key, value in part(meta, "labels").items():
        yield from names.label_key(f"{path}.labels", key)
        yield from names.label_value(f"{path}.labels", str(value))
    for key in part(meta, "annotations"):
        yield from names.label_key(f"{path}.annotations", key.lower())


def owners(meta: Object, path: str) -> Iterator[Cause]:
    found = parts(meta, "ownerReferences")
    for index, owner in enumerate(found):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, name):
                at = f"{path}.ownerReferences[{index}].{name}"
                yield required(at, "must not be empty")
    controllers = [owner for owner in found if owner.get("controller") is True]
    if len(controllers) > 1:
        first, second = (f"{text(o, 'kind')}/{text(o, 'name')}" for o in controllers[:2])
        what = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {first} and {second}'
        )
        yield wrong(f"{path}.ownerReferences", found, what)


def metadata_update(new: Object, old: Object) -> Iterator[Cause]:
    """What may not change, and finalizers of an object that is being deleted."""
    fresh, stored = part(new, "metadata"), part(old, "metadata")
    for name in ("name", "namespace", "uid"):
        if text(fresh, name) and text(fresh, name) != text(stored, name):
            yield wrong(f"metadata.{name}", text(fresh, name), "field is immutable")
    added = [f for f in texts(fresh, "finalizers") if f not in texts(stored, "finalizers")]
    if added and text(stored, "deletionTimestamp"):
        shown = ", ".join(f'"{finalizer}"' for finalizer in added)
        what = (
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{shown}}}"
        )
        yield denied("metadata.finalizers", what)


def node_selector(path: str, selector: Object) -> Iterator[Cause]:
    terms = parts(selector, "nodeSelectorTerms")
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        for kind in ("matchExpressions", "matchFields"):
            for at, requirement in enumerate(parts(term, kind)):
                where = f"{path}.nodeSelectorTerms[{index}].{kind}[{at}]"
                yield from _requirement(where, requirement)


def _requirement(path: str, requirement: Object) -> Iterator[Cause]:
    operator, values = text(requirement, "operator"), texts(requirement, "values")
    if operator in {"In", "NotIn"} and not values:
        what = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{path}.values", what)
    if operator in {"Exists", "DoesNotExist"} and values:
        what = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield denied(f"{path}.values", what)
    if operator not in _OPERATORS:
        yield wrong(f"{path}.operator", operator, "not a valid selector operator")


def raw(path: str, found: object) -> Iterator[Cause]:
    """JSON of somebody else: an object of limited size."""
    if not isinstance(found, RawJson):
        yield required(path)
    elif len(found.text.encode()) > RAW_BYTES:
        yield too_long(path, RAW_BYTES)
    elif not isinstance(found.value, dict):
        yield wrong(path, "<value omitted>", "must be a valid JSON object")


def conditions(path: str, found: Sequence[Object]) -> Iterator[Cause]:
    """Conditions as every kind has them."""
    seen: set[str] = set()
    for index, condition in enumerate(found):
        at, kind = f"{path}[{index}]", text(condition, "type")
        if not kind:
            yield required(f"{at}.type")
        else:
            yield from names.label_key(f"{at}.type", kind)
        if kind in seen:
            yield repeated(at, kind)
        seen.add(kind)
        yield from _condition(at, condition)


def _condition(path: str, condition: Object) -> Iterator[Cause]:
    status, reason = text(condition, "status"), text(condition, "reason")
    if not status:
        yield required(f"{path}.status")
    elif status not in {"True", "False", "Unknown"}:
        yield unsupported(f"{path}.status", status, ("False", "True", "Unknown"))
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    if not reason:
        yield required(f"{path}.reason")
    else:
        yield from names.condition_reason(f"{path}.reason", reason)


def taint(path: str, found: Object, effects: Sequence[str]) -> Iterator[Cause]:
    """A taint of a device or of a rule."""
    yield from names.label_key(f"{path}.key", text(found, "key"))
    yield from names.label_value(f"{path}.value", text(found, "value"))
    if not text(found, "effect"):
        yield required(f"{path}.effect")
    elif text(found, "effect") not in effects:
        yield unsupported(f"{path}.effect", text(found, "effect"), effects)


def binding(path: str, found: Object) -> Iterator[Cause]:
    """Conditions and failure conditions of a binding: neither without the other."""
    wanted, failing = texts(found, "bindingConditions"), texts(found, "bindingFailureConditions")
    both = {"bindingConditions": wanted, "bindingFailureConditions": failing}
    for name, listed in both.items():
        at = f"{path}.{name}"
        yield from each(listed, 4, at, names.label_key)
        yield from unique(listed, None, at, str)
    for index, condition in enumerate(failing):
        if condition in wanted:
            what = "bindingFailureConditions must not overlap with bindingConditions"
            yield wrong(f"{path}.bindingFailureConditions[{index}]", condition, what)
    for name, other in (tuple(both), tuple(both)[::-1]):
        if both[other] and not both[name]:
            yield wrong(f"{path}.{name}", None, f"{name} are required to use {other}")


def keyed(
    path: str,
    item: Object,
    name: str,
    key: names.Check,
    check: Callable[[str, Object], Iterator[Cause]],
) -> Iterator[Cause]:
    """A map: its keys, all of them reported at the map itself, and its values."""
    for text_of_key, value in entries(item, name):
        yield from key(f"{path}.{name}", text_of_key)
        yield from check(f"{path}.{name}[{text_of_key}]", value)
