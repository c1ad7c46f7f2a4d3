"""What allocated claims take, and why a device cannot be had beside it. Pure.

Not here: selectors, and what the scheduler prefers.
"""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.claims_tree import at, items, mapping, text
from accelkit.backends.dra.explain_devices import Key, Pools, Published, amount
from accelkit.core.kube import Json
from accelkit.core.units import Bytes, format_quantity

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


@attrs.frozen
class Use:
    """Who has what."""

    holders: Mapping[Key, tuple[str, ...]]
    """Claims by device."""
    amounts: Mapping[Key, Mapping[str, int]]
    """What shares of a device take of its capacities."""
    counters: Mapping[tuple[str, str, str, str], tuple[int, str]]
    """How much is taken by driver, pool, set and counter, and a claim that takes some."""


def use_of(claims: Iterable[Json], pools: Pools) -> Use:
    """What *claims* have; admin access takes nothing."""
    holders: dict[Key, tuple[str, ...]] = {}
    amounts: dict[Key, dict[str, int]] = {}
    for claim in claims:
        name = f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
        for result in items(claim, "status", "allocation", "devices", "results"):
            if at(result, "adminAccess") is True:
                continue
            key = text(result, "driver"), text(result, "pool"), text(result, "device")
            holders[key] = (*holders.get(key, ()), name)
            taken = amounts.setdefault(key, {})
            for capacity, value in mapping(result, "consumedCapacity").items():
                taken[capacity] = taken.get(capacity, 0) + (amount(str(value)) or 0)
    counters: dict[tuple[str, str, str, str], tuple[int, str]] = {}
    for device in pools.devices:
        if device.key in holders:  # once, however many shares are out
            for (of, counter), number in device.counters.items():
                place = (device.driver, device.pool, of, counter)
                before, _ = counters.get(place, (0, ""))
                counters[place] = before + number, holders[device.key][0]
    return Use(holders, amounts, counters)


def obstacles(device: Published, request: Json, pools: Pools, use: Use) -> Iterator[str]:
    """Why *device* cannot be had for *request* now, whatever its selectors say."""
    if device.fault:
        yield device.fault
    tolerations = [*items(request, "tolerations")]
    for taint in items(device.item, "taints"):
        effect = text(taint, "effect")
        if effect in _KEEPS_AWAY and not any(_tolerates(one, taint) for one in tolerations):
            yield f"tainted {text(taint, 'key')} ({effect})"
    if at(request, "adminAccess") is True:
        return
    holders = use.holders.get(device.key, ())
    if holders and not device.shareable:
        yield f"held by {', '.join(holders)}"
    elif not holders:
        yield from _short_of_counters(device, pools, use)
    yield from _short_of_capacity(device, request, use)


def _short_of_counters(device: Published, pools: Pools, use: Use) -> Iterator[str]:
    for (of, counter), wanted in device.counters.items():
        place = (device.driver, device.pool, of, counter)
        taken, holder = use.counters.get(place, (0, ""))
        if holder and taken + wanted > pools.counters.get(place, 0):
            yield f"what it is cut out of is used by {holder}"
            return


def _short_of_capacity(device: Published, request: Json, use: Use) -> Iterator[str]:
    asked = mapping(request, "capacity", "requests")
    there, taken = device.capacity, use.amounts.get(device.key, {})
    for key in asked:
        if key not in there:
            yield f"it has no capacity {key}"
    for key, total in there.items():
        policy = mapping(device.item, "capacity", key, "requestPolicy")
        default = text(policy, "default") or str(total)
        wanted = amount(str(asked.get(key, default))) or 0
        left = total - (taken.get(key, 0) if device.shareable else 0)
        if (device.shareable or key in asked) and wanted > left:
            yield f"{_said(left)} of {key} are left, {_said(wanted)} wanted"


def _said(amount: int) -> str:
    return format_quantity(Bytes(max(0, amount)))


def _tolerates(toleration: object, taint: object) -> bool:
    key, effect = text(toleration, "key"), text(toleration, "effect")
    if key not in {"", text(taint, "key")} or effect not in {"", text(taint, "effect")}:
        return False
    exists = text(toleration, "operator") == "Exists"
    return exists or text(toleration, "value") == text(taint, "value")
