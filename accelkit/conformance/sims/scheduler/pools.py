"""Devices as published slices offer them to a node. Not here: who has them.

Source:
    k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating/pools_incubating.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from attrs import field, frozen

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.values import amounts, entries, number, part, parts, text, texts

Json = Mapping[str, object]
DeviceId = tuple[str, str, str]
"""Driver, pool and name."""
Counters = dict[tuple[str, str], Fraction]
"""Amounts by counter set and counter."""


@frozen(eq=False)
class Device:
    """A device in a slice."""

    item: Json = field(repr=False)
    slice: Json = field(repr=False)
    taints: tuple[Json, ...] = field(repr=False)
    """Its own, and those of rules."""

    @cached_property
    def driver(self) -> str:
        return text(self.slice, "spec", "driver")

    @cached_property
    def id(self) -> DeviceId:
        return self.driver, text(self.slice, "spec", "pool", "name"), text(self.item, "name")

    @property
    def shareable(self) -> bool:
        return self.item.get("allowMultipleAllocations") is True

    @cached_property
    def counters(self) -> Counters:
        """What it takes from its pool."""
        return {
            (text(consumed, "counterSet"), name): amount(text(counter, "value"))
            for consumed in parts(self.item, "consumesCounters")
            for name, counter in entries(consumed, "counters")
        }

    def attribute(self, domain: str, name: str) -> str | int | bool | None:
        """A value by its full name; a bare key is in the driver's domain."""
        attributes = part(self.item, "attributes")
        keys = [f"{domain}/{name}", *([name] if domain == self.driver else [])]
        for key in keys:
            if key in attributes:
                values = part(attributes, key).values()
                return next((v for v in values if isinstance(v, str | int)), None)
        return None

    @property
    def placed(self) -> Json:
        """What says which nodes reach it: itself, or its slice."""
        spec = part(self.slice, "spec")
        return self.item if spec.get("perDeviceNodeSelection") else spec


@frozen
class Pool:
    """The devices of a pool for a node, of its latest generation."""

    driver: str
    name: str
    devices: tuple[Device, ...] = field(repr=False)
    """Those that the node reaches, in the order in which they are tried."""
    elsewhere: tuple[Device, ...] = field(repr=False)
    """Those of other nodes; they take counters, too."""
    counters: Mapping[tuple[str, str], Fraction] = field(repr=False)
    incomplete: bool = False
    """Not all of its slices are there."""
    invalid: str = ""
    """Why nothing of it can be used."""

    @property
    def usable(self) -> bool:
        return not (self.incomplete or self.invalid)


def gather(slices: Sequence[Json], node: Json, rules: Sequence[Json]) -> list[Pool]:
    """The pools that have something for *node*, in the order in which they are tried.

    Args:
        slices: All that are published.
        node: The node.
        rules: Taint rules.
    """
    by_pool: dict[tuple[str, str], list[Json]] = {}
    for item in slices:
        spec = part(item, "spec")
        by_pool.setdefault((text(spec, "driver"), text(spec, "pool", "name")), []).append(item)
    found = [
        pool
        for (driver, name), items in by_pool.items()
        if (pool := _pool(driver, name, items, node, rules)) is not None
    ]
    return sorted(found, key=lambda pool: (_binds(pool), pool.driver, pool.name))


def _binds(pool: Pool) -> bool:
    return any("bindingConditions" in device.item for device in pool.devices)


def _pool(
    driver: str, name: str, items: Sequence[Json], node: Json, rules: Sequence[Json]
) -> Pool | None:
    newest = max(_generation(item) for item in items)
    current = sorted(
        (item for item in items if _generation(item) == newest),
        key=lambda item: text(item, "metadata", "name"),
    )
    mine = [item for item in current if _reached(item, node)]
    if not mine:
        return None
    if len(current) != number(current[0], "spec", "pool", "resourceSliceCount"):
        return Pool(driver, name, (), (), {}, incomplete=True)
    devices = tuple(_devices(mine, rules))
    elsewhere = tuple(_devices([item for item in current if item not in mine], rules))
    sets = [found for item in current for found in parts(item, "spec", "sharedCounters")]
    counters = {
        (text(one, "name"), counter): amount(text(value, "value"))
        for one in sets
        for counter, value in entries(one, "counters")
    }
    invalid = _fault(devices, elsewhere, [text(one, "name") for one in sets], counters)
    if invalid:
        return Pool(driver, name, (), (), {}, invalid=invalid)
    near = tuple(device for device in devices if _device_reached(device, node))
    return Pool(driver, name, near, (*elsewhere, *(d for d in devices if d not in near)), counters)


def _generation(item: Json) -> int:
    return number(item, "spec", "pool", "generation")


def _devices(items: Iterable[Json], rules: Sequence[Json]) -> Iterator[Device]:
    for item in items:
        for device in parts(item, "spec", "devices"):
            bare = Device(device, item, ())
            taints = (*parts(device, "taints"), *(_rule_taints(bare, rules)))
            yield Device(device, item, taints)


def _rule_taints(device: Device, rules: Sequence[Json]) -> Iterator[Object]:
    named = dict(zip(("driver", "pool", "device"), device.id, strict=True))
    for rule in rules:
        spec = part(rule, "spec")
        # Without a selector a rule is for no device; an empty one is for all.
        if "deviceSelector" in spec:
            wanted = part(spec, "deviceSelector")
            if all(named[key] == value for key, value in wanted.items()):
                yield part(spec, "taint")


def _fault(
    devices: Sequence[Device],
    elsewhere: Sequence[Device],
    sets: Sequence[str],
    counters: Mapping[tuple[str, str], Fraction],
) -> str:
    names = [device.id[2] for device in devices]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        return f"duplicate device name {twice}"
    if twice := next((name for name in sets if sets.count(name) > 1), ""):
        return f"duplicate counter set name {twice}"
    for device in (*devices, *elsewhere):
        for set_name, counter in device.counters:
            if set_name not in sets:
                return f"counter set {set_name} not found"
            if (set_name, counter) not in counters:
                return f"counter {counter} not found in counter set {set_name}"
    return ""


def _reached(item: Json, node: Json) -> bool:
    spec = part(item, "spec")
    if not spec.get("perDeviceNodeSelection"):
        return reaches(spec, node)
    # A slice that has counters alone is of every node that has devices of the pool.
    devices = parts(spec, "devices")
    return not devices or any(reaches(device, node) for device in devices)


def _device_reached(device: Device, node: Json) -> bool:
    return reaches(device.placed, node)


def reaches(placed: Json, node: Json) -> bool:
    """Whether *node* is one of those that a slice or a device is for."""
    name = text(node, "metadata", "name")
    if "nodeName" in placed:
        return text(placed, "nodeName") == name
    if "nodeSelector" in placed:
        terms = parts(placed, "nodeSelector", "nodeSelectorTerms")
        return any(_term_holds(term, node) for term in terms)
    return placed.get("allNodes") is True


def _term_holds(term: Json, node: Json) -> bool:
    labels = {key: str(value) for key, value in part(node, "metadata", "labels").items()}
    fields = {"metadata.name": text(node, "metadata", "name")}
    wanted = [(r, labels) for r in parts(term, "matchExpressions")]
    wanted += [(r, fields) for r in parts(term, "matchFields")]
    return bool(wanted) and all(_requirement_holds(r, values) for r, values in wanted)


def _requirement_holds(requirement: Json, values: Mapping[str, str]) -> bool:
    found, listed = values.get(text(requirement, "key")), texts(requirement, "values")
    match text(requirement, "operator"):
        case "In":
            return found in listed
        case "NotIn":
            return found not in listed
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case operator:
            raise ValueError(f"node selectors with {operator} are not simulated")


def capacities(device: Device) -> Mapping[str, Json]:
    """The capacities of a device, by key as it is written."""
    return dict(entries(device.item, "capacity"))


def asked_capacities(wanted: Json) -> dict[str, str]:
    """What a request asks of capacities, by key as it is written."""
    return amounts(part(wanted, "capacity"), "requests")
