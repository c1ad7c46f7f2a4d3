"""ResourceSlice objects as the server keeps them, read back. Pure. Not here: writing them."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import attrs

from accelkit.backends.dra.objects import Owner, content, owner_reference, slice_name
from accelkit.backends.dra.pool import (
    Capacity,
    Consumption,
    CounterSet,
    Effect,
    Pool,
    PoolDevice,
    RequestPolicy,
    Slice,
    Taint,
)
from accelkit.backends.dra.quantity import read
from accelkit.core.errors import ModelError
from accelkit.core.kube import Json
from accelkit.core.model import Binding
from accelkit.core.values import AttributeValue, FrozenMap, Version, freeze

MOST_SLICES = 256
"""More are none of ours: at most 2,048 devices of a vendor are believed."""
_ENVELOPE = frozenset({"driver", "nodeName", "pool"})


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Stored:
    """A slice, and what the server says of it."""

    name: str
    version: str = attrs.field(default="", eq=False)
    """Resource version."""
    driver: str
    node: str
    pool: str
    generation: int
    count: int
    """How many slices the pool has."""
    owners: tuple[Json, ...] = attrs.field(default=(), hash=False)
    slice: Slice | None
    """None: there is something in it that we never write."""

    def owned_by(self, owner: Owner) -> bool:
        """Whether it goes with the node."""
        return self.owners == (owner_reference(owner),)


def read_slice(item: Json) -> Stored:
    """What *item* is; whatever stands there, nothing breaks."""
    metadata, spec = _mapping(item, "metadata"), _mapping(item, "spec")
    pool = _mapping(spec, "pool")
    owners = metadata.get("ownerReferences")
    return Stored(
        name=_text(metadata, "name"),
        version=version_of(item),
        driver=_text(spec, "driver"),
        node=_text(spec, "nodeName"),
        pool=_text(pool, "name"),
        generation=_number(pool, "generation"),
        count=_number(pool, "resourceSliceCount"),
        owners=tuple(owners) if isinstance(owners, list) else (),
        # The server of 1.34 says null where it has no devices.
        slice=_read_content(
            {k: v for k, v in spec.items() if k not in _ENVELOPE and v is not None}
        ),
    )


def published_pool(driver: str, node: str, stored: Iterable[Stored]) -> Pool | None:
    """The pool that *stored* are, slice by slice; None: there is none.

    Where a slice is missing, or holds what we never write, an empty one stands for it.
    """
    found = {one.name: one.slice or Slice() for one in stored if one.pool == node}
    numbers = [n for n in range(MOST_SLICES) if slice_name(driver, node, n) in found]
    if not numbers:
        return None
    names = (slice_name(driver, node, n) for n in range(max(numbers) + 1))
    return Pool(driver=driver, name=node, slices=tuple(found.get(n, Slice()) for n in names))


def with_times(wanted: Slice, stored: Iterable[Stored]) -> Slice:
    """*wanted* with the times of taints that are there already: since when does not change."""
    times = {
        (device.name, taint): taint.added
        for one in stored
        if one.slice is not None
        for device in one.slice.devices
        for taint in device.taints
    }
    if not times:
        return wanted
    devices = (
        attrs.evolve(
            device,
            taints=tuple(
                attrs.evolve(taint, added=times.get((device.name, taint)))
                for taint in device.taints
            ),
        )
        if device.taints
        else device
        for device in wanted.devices
    )
    return attrs.evolve(wanted, devices=tuple(devices))


def version_of(item: Json) -> str:
    """The resource version of *item*."""
    return _text(_mapping(item, "metadata"), "resourceVersion")


def _mapping(tree: Json, key: str) -> Json:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(tree: Json, key: str) -> str:
    found = tree.get(key)
    return found if isinstance(found, str) else ""


def _number(tree: Json, key: str) -> int:
    found = tree.get(key)
    return found if isinstance(found, int) else 0


def _read_content(spec: Json) -> Slice | None:
    """The slice that is written as *spec*, to the letter; None: there is none."""
    try:
        found = Slice(
            counter_sets=tuple(map(_counter_set, _items(spec, "sharedCounters"))),
            devices=tuple(map(_device, _items(spec, "devices"))),
        )
        same = content(found) == spec
    except (AttributeError, LookupError, TypeError, ValueError, ModelError):
        return None
    return found if same else None


def _items(tree: Json, key: str) -> list[Json]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise TypeError(f"{key}: expected a list of objects, found {found!r}")
    return found


def _texts(tree: Json, key: str) -> tuple[str, ...]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise TypeError(f"{key}: expected a list of texts, found {found!r}")
    return tuple(found)


def _entries(tree: Json, key: str) -> Mapping[str, Json]:
    found = _mapping(tree, key)
    if not all(isinstance(entry, Mapping) for entry in found.values()):
        raise TypeError(f"{key}: expected objects, found {found!r}")
    return {name: _mapping(found, name) for name in found}


def _counter_set(tree: Json) -> CounterSet:
    return CounterSet(name=_text(tree, "name"), counters=_counters(tree))


def _counters(tree: Json) -> FrozenMap[str, int]:
    return FrozenMap((k, read(entry["value"])) for k, entry in _entries(tree, "counters").items())


def _device(tree: Json) -> PoolDevice:
    return PoolDevice(
        name=_text(tree, "name"),
        attributes=FrozenMap((k, _value(v)) for k, v in _entries(tree, "attributes").items()),
        capacity=FrozenMap((k, _capacity(c)) for k, c in _entries(tree, "capacity").items()),
        consumes=tuple(
            Consumption(counter_set=_text(taken, "counterSet"), counters=_counters(taken))
            for taken in _items(tree, "consumesCounters")
        ),
        taints=tuple(map(_taint, _items(tree, "taints"))),
        shareable=tree.get("allowMultipleAllocations") is True,
        binding=_binding(tree),
    )


def _binding(tree: Json) -> Binding | None:
    found = Binding(
        conditions=_texts(tree, "bindingConditions"),
        failures=_texts(tree, "bindingFailureConditions"),
        node=tree.get("bindsToNode") is True,
    )
    return None if found == Binding(conditions=(), failures=()) else found


def _value(tree: Json) -> AttributeValue:
    ((kind, value),) = tree.items()
    if isinstance(value, list):
        numbers = tuple(n for n in value if isinstance(n, int))
        texts = tuple(t for t in value if isinstance(t, str))
        return numbers if kind == "ints" else texts
    if isinstance(value, str):
        return Version.parse(value) if kind == "version" else value
    if isinstance(value, int):
        return value
    raise TypeError(f"{tree!r} is no attribute that we write")


def _capacity(tree: Json) -> Capacity:
    policy = _mapping(tree, "requestPolicy")
    return Capacity(value=read(tree["value"]), policy=_policy(policy) if policy else None)


def _policy(tree: Json) -> RequestPolicy:
    bounds = {key: read(bound) for key, bound in _mapping(tree, "validRange").items()}
    return RequestPolicy(
        default=read(tree["default"]),
        least=bounds.get("min"),
        most=bounds.get("max"),
        step=bounds.get("step"),
        values=tuple(map(read, _texts(tree, "validValues"))),
    )


def _taint(tree: Json) -> Taint:
    added = _text(tree, "timeAdded")
    return Taint(
        key=_text(tree, "key"),
        value=_text(tree, "value"),
        effect=Effect(_text(tree, "effect")),
        added=datetime.fromisoformat(added) if added else None,
    )
