"""What is wrong with a pool before anybody is asked to keep it. Not here: how it is made to fit.

Also what the server lets through: one dangling counter makes the scheduler refuse the whole
pool, and a device that consumes less than nothing is allocated (seen on 1.37.2).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from accelkit.backends.dra.pool import (
    Consumption,
    CounterSet,
    Effect,
    Pool,
    PoolDevice,
    Slice,
    Taint,
)
from accelkit.backends.dra.request_policy import policy_faults
from accelkit.core.attributes import is_attribute_id
from accelkit.core.limits import (
    AMOUNT_LIMIT,
    DRIVER_NAME_LIMIT,
    LATEST,
    SUBDOMAIN_LIMIT,
    TEXT_LIMIT,
    SliceLimits,
    is_dns_subdomain,
    is_label_value,
    is_qualified_name,
)
from accelkit.core.model import Binding
from accelkit.core.values import AttributeValue, is_dns_label


def check_pool(pool: Pool, limits: SliceLimits = LATEST) -> tuple[str, ...]:
    """Everything that is wrong with *pool*, one sentence each; empty if nothing is."""
    return tuple(_pool_faults(pool, limits))


def check_slice(one: Slice, limits: SliceLimits = LATEST) -> tuple[str, ...]:
    """Everything that is wrong with a slice by itself; counters may be another slice's."""
    return tuple(_slice_faults(one, limits))


def binding_faults(binding: Binding, limits: SliceLimits = LATEST) -> Iterator[str]:
    """What is wrong with what must be true before pods bind to a device."""
    yield from _over("binding conditions", len(binding.conditions), limits.conditions)
    yield from _over("binding failure conditions", len(binding.failures), limits.conditions)
    if bool(binding.conditions) != bool(binding.failures):
        yield "binding conditions and binding failure conditions need each other"
    every = (*binding.conditions, *binding.failures)
    yield from _repeated("binding condition", every)
    for condition in every:
        if not is_qualified_name(condition):
            yield f"{condition!r} is not the type of a condition"


def _pool_faults(pool: Pool, limits: SliceLimits) -> Iterator[str]:
    if not is_dns_subdomain(pool.driver, DRIVER_NAME_LIMIT):
        yield (
            f"driver {pool.driver!r} is not a DNS subdomain of at most "
            f"{DRIVER_NAME_LIMIT} characters"
        )
    whole = len(pool.name) <= SUBDOMAIN_LIMIT
    if not whole or not all(is_dns_subdomain(part) for part in pool.name.split("/")):
        yield f"pool {pool.name!r} is not made of DNS subdomains and slashes"
    if not pool.slices:
        yield "there is no slice: a pool without devices has an empty one"
    for number, one in enumerate(pool.slices):
        for fault in _slice_faults(one, limits):
            yield f"slice {number}: {fault}"
    sets = [s for one in pool.slices for s in one.counter_sets]
    devices = [d for one in pool.slices for d in one.devices]
    yield from _repeated("device", (d.name for d in devices))
    yield from _repeated("counter set", (s.name for s in sets))
    totals = {s.name: s.counters for s in sets}
    for device in devices:
        for taken in device.consumes:
            for fault in _unpayable(taken, totals):
                yield f"{device.name}: {fault}"
        for key in _twice(device, pool.driver):
            yield f"{device.name}: {key} is there with the driver's domain and without"


def _twice(device: PoolDevice, driver: str) -> Iterator[str]:
    """Ids that stand for the same thing: one without a domain has the driver's."""
    prefix = f"{driver}/"
    for entries in (device.attributes, device.capacity):
        for key in entries:
            if key.startswith(prefix) and key.removeprefix(prefix) in entries:
                yield key.removeprefix(prefix)


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name} is there {times} times"


def _unpayable(taken: Consumption, totals: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    there = totals.get(taken.counter_set)
    if there is None:
        yield f"it consumes of {taken.counter_set}, which is no counter set of the pool"
        return
    for name, amount in taken.counters.items():
        if name not in there:
            yield f"it consumes {name}, which {taken.counter_set} does not have"
        elif amount > there[name]:
            yield f"it consumes {amount} of {name}, {taken.counter_set} has {there[name]}"


def _slice_faults(one: Slice, limits: SliceLimits) -> Iterator[str]:
    if limits.apart and one.counter_sets and one.devices:
        yield "it has both counter sets and devices"
    yield from _over("counter sets", len(one.counter_sets), limits.counter_sets)
    counters = sum(len(s.counters) for s in one.counter_sets)
    if limits.counters_in_all is not None:
        yield from _over("counters in all", counters, limits.counters_in_all)
    for counter_set in one.counter_sets:
        for fault in _set_faults(counter_set, limits):
            yield f"counter set {counter_set.name}: {fault}"
    advanced = any(_advanced(device) for device in one.devices)
    most = limits.advanced_devices if advanced else limits.devices
    yield from _over("devices", len(one.devices), most)
    for device in one.devices:
        for fault in _device_faults(device, limits):
            yield f"{device.name}: {fault}"


def _advanced(device: PoolDevice) -> bool:
    lists = any(isinstance(value, tuple) for value in device.attributes.values())
    return bool(device.taints or device.consumes or lists)


def _over(what: str, there: int, most: int) -> Iterator[str]:
    if there > most:
        yield f"it has {there} {what}, at most {most} are allowed"


def _set_faults(one: CounterSet, limits: SliceLimits) -> Iterator[str]:
    yield from _label(one.name)
    yield from _over("counters", len(one.counters), limits.counters)
    if not one.counters:
        yield "it is empty"
    for name, total in one.counters.items():
        yield from _label(name)
        yield from _amount(f"counter {name}", total, least=1)


def _label(name: str) -> Iterator[str]:
    if not is_dns_label(name):
        yield f"{name!r} is not a DNS label"


def _amount(what: str, amount: object, least: int = 0) -> Iterator[str]:
    # Fractions are accepted, but no request fits them by default (seen on 1.35 to 1.37).
    if type(amount) is not int or not least <= amount <= AMOUNT_LIMIT:
        yield f"{what} must be a whole number from {least} to 2^63-1, found {amount!r}"


def _device_faults(device: PoolDevice, limits: SliceLimits) -> Iterator[str]:
    yield from _label(device.name)
    entries = len(device.attributes) + len(device.capacity)
    yield from _over("attributes and capacities", entries, limits.entries)
    values = sum(len(v) if isinstance(v, tuple) else 1 for v in device.attributes.values())
    yield from _over("values of attributes", values, limits.values)
    for key, value in device.attributes.items():
        if not _is_key(key):
            yield f"attribute {key!r} is not a name, nor a domain, a slash and a name"
        if fault := _value_fault(value):
            yield f"attribute {key}: {fault}"
    for key, capacity in device.capacity.items():
        if not _is_key(key):
            yield f"capacity {key!r} is not a name, nor a domain, a slash and a name"
        yield from _amount(f"capacity {key}", capacity.value)
        if capacity.policy is not None:
            if not device.shareable:
                yield f"capacity {key}: only shared devices have a request policy"
            for fault in policy_faults(capacity.policy, capacity.value, limits):
                yield f"capacity {key}: {fault}"
    yield from _consumption_faults(device.consumes, limits)
    yield from _taint_faults(device.taints, limits)
    if device.binding is not None:
        yield from binding_faults(device.binding, limits)


@lru_cache(maxsize=1024)
def _is_key(key: str) -> bool:
    domain, slash, name = key.rpartition("/")
    return is_attribute_id(name) and (not slash or is_dns_subdomain(domain, DRIVER_NAME_LIMIT))


def _value_fault(value: AttributeValue) -> str:
    if isinstance(value, tuple):
        return next(filter(None, map(_value_fault, value)), "") if value else "an empty list"
    if isinstance(value, int):
        fits = -AMOUNT_LIMIT - 1 <= value <= AMOUNT_LIMIT
        return "" if fits else f"{value} needs more than 64 bits"
    text = str(value)
    size = len(text) if text.isascii() else len(text.encode())
    return "" if size <= TEXT_LIMIT else f"{size} bytes, at most {TEXT_LIMIT} are allowed"


def _consumption_faults(consumes: tuple[Consumption, ...], limits: SliceLimits) -> Iterator[str]:
    yield from _over("counter sets", len(consumes), limits.sets_of_device)
    yield from _repeated("counter set", (taken.counter_set for taken in consumes))
    for taken in consumes:
        yield from _over(f"counters of {taken.counter_set}", len(taken.counters), limits.counters)
        if not taken.counters:
            yield f"it consumes nothing of {taken.counter_set}"
        for name, amount in taken.counters.items():
            yield from _amount(f"what it consumes of {name}", amount, least=1)


def _taint_faults(taints: tuple[Taint, ...], limits: SliceLimits) -> Iterator[str]:
    yield from _over("taints", len(taints), limits.taints)
    yield from _repeated("taint", (f"{taint.key} {taint.effect}" for taint in taints))
    for taint in taints:
        if not is_qualified_name(taint.key) or not is_label_value(taint.value):
            yield f"taint {taint.key!r} {taint.value!r} is not a key and a value of a label"
        if taint.effect is Effect.NONE and not limits.effect_none:
            yield f"taint {taint.key}: there is no effect None"
