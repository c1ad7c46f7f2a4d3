"""Slices as ResourceSlice objects. Pure. Not here: what is in them, and reading them back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import attrs

from accelkit.backends.dra.pool import (
    Capacity,
    Pool,
    PoolDevice,
    RequestPolicy,
    Slice,
    Taint,
)
from accelkit.backends.dra.quantity import written
from accelkit.core.kube import SLICES, Json
from accelkit.core.limits import SUBDOMAIN_LIMIT
from accelkit.core.values import AttributeValue, Version

_DIGITS = 5
_HASH = 8


@attrs.frozen(kw_only=True)
class Owner:
    """The node: slices go with it."""

    name: str
    uid: str


def slice_name(driver: str, node: str, number: int) -> str:
    """The name of the object that is slice *number*.

    Slices are tried in the order of their names. The same slice has the same name for whoever
    writes it, so that it is never there twice.
    """
    name = f"{number:0{_DIGITS}x}-{driver}-{node}"
    if len(name) <= SUBDOMAIN_LIMIT:
        return name
    digest = sha256(name.encode()).hexdigest()[:_HASH]
    return f"{name[: SUBDOMAIN_LIMIT - _HASH - 1].rstrip('-.')}-{digest}"


def slice_object(
    pool: Pool, number: int, *, generation: int = 1, owner: Owner | None = None, version: str = ""
) -> Json:
    """Slice *number* of *pool*.

    Args:
        pool: Named like its node.
        number: Its place in the pool.
        generation: Of the pool.
        owner: None: the object is only shown.
        version: Of the object that it replaces; empty: it is new.
    """
    metadata: dict[str, object] = {"name": slice_name(pool.driver, pool.name, number)}
    if owner is not None:
        metadata["ownerReferences"] = [owner_reference(owner)]
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": metadata,
        "spec": {
            "driver": pool.driver,
            "nodeName": pool.name,
            "pool": {
                "name": pool.name,
                "generation": generation,
                "resourceSliceCount": len(pool.slices),
            },
            **content(pool.slices[number]),
        },
    }


def pool_objects(pool: Pool) -> tuple[Json, ...]:
    """All slices of *pool*, as they are shown to people: without an owner."""
    return tuple(slice_object(pool, number) for number in range(len(pool.slices)))


def owner_reference(owner: Owner) -> Json:
    """How an object says that it goes with its node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def content(one: Slice) -> dict[str, object]:
    """What of a slice's spec is its own: devices or counter sets, or neither."""
    found: dict[str, object] = {}
    if one.counter_sets:
        found["sharedCounters"] = [
            {"name": s.name, "counters": _counters(s.counters)} for s in one.counter_sets
        ]
    if one.devices:
        found["devices"] = [_device(device) for device in one.devices]
    return found


def _device(device: PoolDevice) -> Json:
    found: dict[str, object] = {"name": device.name}
    if device.attributes:
        found["attributes"] = {key: _value(v) for key, v in device.attributes.items()}
    if device.capacity:
        found["capacity"] = {key: _capacity(c) for key, c in device.capacity.items()}
    if device.consumes:
        found["consumesCounters"] = [
            {"counterSet": taken.counter_set, "counters": _counters(taken.counters)}
            for taken in device.consumes
        ]
    if device.taints:
        found["taints"] = [_taint(taint) for taint in device.taints]
    if device.shareable:
        found["allowMultipleAllocations"] = True
    if device.binding is not None:
        if device.binding.node:
            found["bindsToNode"] = True
        if device.binding.conditions:
            found["bindingConditions"] = list(device.binding.conditions)
        if device.binding.failures:
            found["bindingFailureConditions"] = list(device.binding.failures)
    return found


def _counters(counters: Mapping[str, int]) -> Json:
    return {name: {"value": written(amount)} for name, amount in counters.items()}


def _value(value: AttributeValue) -> Json:
    if isinstance(value, tuple):
        return {"ints" if isinstance(value[0], int) else "strings": list(value)}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version": str(value)} if isinstance(value, Version) else {"string": value}


def _capacity(capacity: Capacity) -> Json:
    found: dict[str, object] = {"value": written(capacity.value)}
    if capacity.policy is not None:
        found["requestPolicy"] = _policy(capacity.policy)
    return found


def _policy(policy: RequestPolicy) -> Json:
    found: dict[str, object] = {"default": written(policy.default)}
    if policy.values:
        found["validValues"] = [written(value) for value in policy.values]
    bounds = {"min": policy.least, "max": policy.most, "step": policy.step}
    if ranged := {name: written(bound) for name, bound in bounds.items() if bound is not None}:
        found["validRange"] = ranged
    return found


def _taint(taint: Taint) -> Json:
    found: dict[str, object] = {"key": taint.key, "effect": str(taint.effect)}
    if taint.value:
        found["value"] = taint.value
    if taint.added is not None:
        found["timeAdded"] = time_written(taint.added)
    return found


def time_written(moment: datetime) -> str:
    """*moment* in whole seconds, as the server keeps times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
