"""What a server refuses in a ResourceSlice. Not here: what it lets through and drops.

It does not look at what schedulers choke on: counters that are in no set, consumption of less than
nothing or of more than there is, taints that come twice.

Source:
    kubernetes v1.37.2 and v1.34.4, pkg/apis/resource/validation/validation.go, and answers seen.
"""

from collections.abc import Iterator, Mapping, Sequence

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import (
    Cause,
    required,
    too_long,
    too_many_items,
    wrong,
)
from accelkit.conformance.sims.api.validation import common, names, policies
from accelkit.conformance.sims.api.values import entries, number, part, parts, text
from accelkit.conformance.sims.gates import Dialect

NAMED = 32
"""Attributes and capacities of a device together; counters of a set and of a consumption."""
STRING_BYTES = 64
_SETS = 8
_CONSUMPTIONS = 2
_NODES = ("nodeName", "nodeSelector", "allNodes")
_LISTS = ("ints", "bools", "strings", "versions")
_OF_DEVICES = "is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"


def validate(item: Object, old: Object | None, dialect: Dialect) -> Iterator[Cause]:
    """A slice that is made, or written over *old*."""
    spec = part(item, "spec")
    yield from common.metadata(item)
    yield from _head(spec, part(old, "spec") if old else None)
    yield from _where(spec)
    if dialect.limits.counters_apart:
        if "sharedCounters" in spec and "devices" in spec:
            yield wrong("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    else:
        yield from _counters_together(spec)
    yield from _devices(spec, part(old, "spec") if old else {}, dialect)
    yield from _counter_sets(spec, dialect)


def _head(spec: Object, old: Object | None) -> Iterator[Cause]:
    yield from names.driver("spec.driver", text(spec, "driver"))
    yield from names.pool("spec.pool.name", text(spec, "pool", "name"))
    if number(spec, "pool", "resourceSliceCount") <= 0:
        count = number(spec, "pool", "resourceSliceCount")
        yield wrong("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if (generation := number(spec, "pool", "generation")) < 0:
        yield wrong("spec.pool.generation", generation, "must be greater than or equal to zero")
    if old is None:
        return
    fixed = {"pool.name": (part(spec, "pool"), part(old, "pool"), "name")}
    fixed |= {name: (spec, old, name) for name in ("driver", "nodeName")}
    for path, (new, stored, name) in fixed.items():
        if new.get(name) != stored.get(name):
            yield wrong(f"spec.{path}", new.get(name), "field is immutable")


def _where(spec: Object) -> Iterator[Cause]:
    """Exactly one way to say which nodes reach the devices."""
    ways = (*_NODES, "perDeviceNodeSelection")
    said = [way for way in ways if spec.get(way)]
    if name := text(spec, "nodeName"):
        yield from names.subdomain("spec.nodeName", name)
    elif "nodeName" in spec:
        yield wrong("spec.nodeName", "", "must be either unset or set to a non-empty string")
    if "nodeSelector" in spec:
        said = [way for way in ways if way in {*said, "nodeSelector"}]
        selector = part(spec, "nodeSelector")
        yield from common.node_selector("spec.nodeSelector", selector)
        if len(parts(selector, "nodeSelectorTerms")) != 1:
            at = "spec.nodeSelector.nodeSelectorTerms"
            yield wrong(at, _as_go(selector), "must have exactly one node selector term")
    for way in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(way) is False:
            yield wrong(f"spec.{way}", False, "must be either unset or set to true")
    one = f"exactly one of {', '.join(f'`{way}`' for way in ways)} is required"
    if not said:
        yield required("spec", one)
    elif len(said) > 1:
        yield wrong("spec", _braces(said), f"{one}, but multiple fields are set")


def _braces(said: Sequence[str]) -> str:
    return f"{{{', '.join(f'`{way}`' for way in said)}}}"


def _as_go(selector: Object) -> object:
    """Terms as they are shown: with the names of Go's fields."""

    def shown(term: Object, name: str) -> object:
        found = [
            {"Key": text(r, "key"), "Operator": text(r, "operator"), "Values": r.get("values")}
            for r in parts(term, name)
        ]
        return found or None

    return [
        {
            "MatchExpressions": shown(term, "matchExpressions"),
            "MatchFields": shown(term, "matchFields"),
        }
        for term in parts(selector, "nodeSelectorTerms")
    ] or None


def _devices(spec: Object, old: Object, dialect: Dialect) -> Iterator[Cause]:
    devices, limits = parts(spec, "devices"), dialect.limits
    advanced = any(_advanced(device) for device in devices)
    limit = limits.advanced_devices if advanced else limits.devices
    before = {text(device, "name"): device for device in parts(old, "devices")}

    def check(path: str, device: Object) -> Iterator[Cause]:
        stored = before.get(text(device, "name"), {})
        yield from _device(path, device, stored, dialect)
        yield from _nodes_of_device(
            path, device, per_device=bool(spec.get("perDeviceNodeSelection"))
        )

    yield from common.each(devices, limit, "spec.devices", check)
    keys = [text(device, "name") for device in devices]
    yield from common.unique(keys, limit, "spec.devices", str)


def _advanced(device: Object) -> bool:
    lists = any(name in value for _, value in entries(device, "attributes") for name in _LISTS)
    return bool(device.get("taints") or device.get("consumesCounters") or lists)


def _device(path: str, device: Object, old: Object, dialect: Dialect) -> Iterator[Cause]:
    yield from names.dns_label(f"{path}.name", text(device, "name"))
    yield from _counts(path, device, dialect)
    yield from common.keyed(
        path, device, "attributes", names.qualified, lambda at, a: _attribute(at, a, dialect)
    )
    shareable = device.get("allowMultipleAllocations") is True
    if not old or old.get("capacity") != device.get("capacity"):
        yield from common.keyed(
            path,
            device,
            "capacity",
            names.qualified,
            lambda at, c: policies.capacity(at, c, dialect, shareable=shareable),
        )
    if not old or old.get("taints") != device.get("taints"):
        yield from common.each(
            parts(device, "taints"),
            dialect.limits.taints,
            f"{path}.taints",
            lambda at, taint: common.taint(at, taint, dialect.limits.effects),
        )
    yield from _consumptions(path, device, dialect)
    yield from common.binding(path, device)


def _counts(path: str, device: Object, dialect: Dialect) -> Iterator[Cause]:
    attributes = part(device, "attributes")
    together = len(attributes) + len(part(device, "capacity"))
    if together > NAMED:
        what = f"the total number of attributes and capacities must not exceed {NAMED}"
        yield wrong(path, together, what)
    values = sum(_values(value) for _, value in entries(device, "attributes"))
    if dialect.limits.values is not None and values > dialect.limits.values:
        what = f"the total number of attribute values must not exceed {dialect.limits.values}"
        yield wrong(path, values, what)


def _values(attribute: Object) -> int:
    lists = (attribute.get(name) for name in _LISTS)
    return sum(len(found) for found in lists if isinstance(found, list)) or 1


def _attribute(path: str, attribute: Object, dialect: Dialect) -> Iterator[Cause]:
    for name, check in (("string", _string), ("version", _version)):
        if name in attribute:
            yield from check(f"{path}.{name}", str(attribute[name]))
    for name, check in (("strings", _string), ("versions", _version)):
        found = attribute.get(name)
        for index, value in enumerate(found if isinstance(found, list) else ()):
            yield from check(f"{path}.{name}[{index}]", str(value))
    for name in _LISTS:
        if attribute.get(name) == []:
            yield wrong(f"{path}.{name}", [], "must not be empty if specified")
    said = [name for name in dialect.one_of if name in attribute]
    known = ", ".join(f"`{name}`" for name in dialect.one_of)
    if not said:
        yield wrong(path, "", f"must specify one of: {known}")
    elif len(said) > 1:
        yield wrong(path, f"{{{', '.join(said)}}}", f"must specify exactly one of: {known}")


def _string(path: str, value: str) -> Iterator[Cause]:
    if len(value.encode()) > STRING_BYTES:
        yield too_long(path, STRING_BYTES)


def _version(path: str, value: str) -> Iterator[Cause]:
    yield from names.version(path, value)
    yield from _string(path, value)


def _consumptions(path: str, device: Object, dialect: Dialect) -> Iterator[Cause]:
    found = parts(device, "consumesCounters")
    limit = _CONSUMPTIONS if dialect.limits.counters_apart else None
    at = f"{path}.consumesCounters"
    yield from common.each(found, limit, at, lambda p, c: _counters(p, c, "counterSet", dialect))
    yield from common.unique(found, limit, at, lambda c: text(c, "counterSet"))


def _counter_sets(spec: Object, dialect: Dialect) -> Iterator[Cause]:
    found = parts(spec, "sharedCounters")
    limit = _SETS if dialect.limits.counters_apart else None
    at = "spec.sharedCounters"
    yield from common.each(found, limit, at, lambda p, c: _counters(p, c, "name", dialect))
    yield from common.unique(found, limit, at, common.by_name)


def _counters(path: str, found: Object, name: str, dialect: Dialect) -> Iterator[Cause]:
    if not text(found, name):
        yield required(f"{path}.{name}")
    else:
        yield from names.dns_label(f"{path}.{name}", text(found, name))
    counters = part(found, "counters")
    if not counters:
        yield required(f"{path}.counters")
    elif len(counters) > NAMED and dialect.limits.counters_apart:
        yield too_many_items(f"{path}.counters", len(counters), NAMED)
    else:
        yield from common.keyed(path, found, "counters", names.dns_label, lambda _p, _c: iter(()))


def _counters_together(spec: Object) -> Iterator[Cause]:
    """1.34: at most 32 counters in a slice, and devices consume what stands beside them."""
    sets: Mapping[str, Object] = {
        text(found, "name"): part(found, "counters") for found in parts(spec, "sharedCounters")
    }
    if (count := sum(map(len, sets.values()))) > NAMED:
        what = f"the total number of shared counters must not exceed {NAMED}"
        yield wrong("spec.sharedCounters", count, what)
    for index, device in enumerate(parts(spec, "devices")):
        for at, consumed in enumerate(parts(device, "consumesCounters")):
            path = f"spec.devices[{index}].consumesCounters[{at}]"
            name = text(consumed, "counterSet")
            if name not in sets:
                what = "must reference a counterSet defined in the ResourceSlice sharedCounters"
                yield wrong(f"{path}.counterSet", name, what)
                continue
            for counter in part(consumed, "counters").keys() - sets[name].keys():
                what = "must reference a counter defined in the ResourceSlice sharedCounters"
                yield wrong(f"{path}.counters", counter, what)


def _nodes_of_device(path: str, device: Object, *, per_device: bool) -> Iterator[Cause]:
    if not per_device:
        if any(way in device for way in _NODES):
            listed = "`nodeName`, `nodeSelector` and `allNodes`"
            what = (
                f"{listed} can only be set if `perDeviceNodeSelection` is set to true in the "
                "ResourceSlice spec"
            )
            yield wrong(path, None, what)
        return
    if name := text(device, "nodeName"):
        yield from names.subdomain(f"{path}.nodeName", name)
    elif "nodeName" in device:
        yield wrong(f"{path}.nodeName", "", "must not be empty")
    if "nodeSelector" in device:
        yield from common.node_selector(f"{path}.nodeSelector", part(device, "nodeSelector"))
    if device.get("allNodes") is False:
        yield wrong(f"{path}.allNodes", False, "must be either unset or set to true")
    said = [way for way in _NODES if device.get(way)]
    what = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` {_OF_DEVICES}"
    if not said:
        yield required(path, what)
    elif len(said) > 1:
        yield wrong(path, _braces(said), what)
