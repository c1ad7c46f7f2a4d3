"""What API servers keep of slices, and what they dropped. Pure. Not here: asking them."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.pool import Dialect, Pool, PoolDevice, Slice
from accelkit.core.errors import ConfigError
from accelkit.core.values import AttributeValue

PLAIN = Dialect(
    taints=False, effect_none=False, most_taints=4, counters=False, consumable=False, bindings=False
)
"""What every server keeps."""
RELEASES: Mapping[str, Dialect] = {
    "1.34": PLAIN,
    "1.35": PLAIN,
    "1.36": Dialect(),
    "1.37": Dialect(),
}
"""By release, with the gates that are on by default (seen on 1.34.4, 1.35.4, 1.36.3, 1.37.2)."""

OTHER = "other"
"""A difference that no dialect explains."""
_NARROWER: Mapping[str, Mapping[str, bool]] = {
    "taints": {"taints": False, "effect_none": False},
    "consumesCounters": {"counters": False},
    "sharedCounters": {"counters": False},
    "allowMultipleAllocations": {"consumable": False},
    "requestPolicy": {"consumable": False},
    "bindsToNode": {"bindings": False},
    "bindingConditions": {"bindings": False},
    "attributes": {"list_attributes": False},
}


def of_release(release: str) -> Dialect:
    """The dialect of *release*, written 1.37 or v1.37.2.

    Raises:
        ConfigError: It is not known.
    """
    numbers = release.removeprefix("v").split(".")
    found = RELEASES.get(".".join(numbers[:2]))
    if found is None:
        known = ", ".join(RELEASES)
        raise ConfigError(
            [("--kubernetes", f"{release!r} is none of {known}")], remedy=f"name one of {known}"
        )
    return found


def dropped(sent: Slice, kept: Slice | None) -> frozenset[str]:
    """Fields of *sent* that are not in *kept*; empty if nothing is missing.

    Args:
        sent: What the server was asked to keep.
        kept: What it keeps; None: something that was never asked.
    """
    if kept is None:
        return frozenset({OTHER})
    return frozenset(_dropped(sent, kept)) if sent != kept else frozenset()


def narrowed(dialect: Dialect, fields: Iterable[str]) -> Dialect:
    """*dialect* without what needs *fields*."""
    less = {name: value for field in fields for name, value in _NARROWER.get(field, {}).items()}
    return attrs.evolve(dialect, **less)


def lacking(pool: Pool, dialect: Dialect) -> frozenset[str]:
    """Fields that *pool*, made for a server that keeps everything, has, and *dialect* has not."""
    devices = [device for one in pool.slices for device in one.devices]
    found = {
        "taints": not dialect.taints and any(d.taints for d in devices),
        "consumesCounters": not dialect.counters and any(d.consumes for d in devices),
        "allowMultipleAllocations": not dialect.consumable and any(d.shareable for d in devices),
        "bindingConditions": not dialect.bindings and any(d.binding for d in devices),
    }
    return frozenset(name for name, lacks in found.items() if lacks)


def _dropped(sent: Slice, kept: Slice) -> Iterator[str]:
    if sent.counter_sets != kept.counter_sets:
        yield OTHER if kept.counter_sets else "sharedCounters"
    devices = {device.name: device for device in kept.devices}
    if [d.name for d in sent.devices] != list(devices):
        yield OTHER
    for device in sent.devices:
        if (there := devices.get(device.name)) is not None and device != there:
            yield from _of_device(device, there)


def _of_device(sent: PoolDevice, kept: PoolDevice) -> Iterator[str]:
    if sent.taints != kept.taints:
        yield OTHER if kept.taints else "taints"
    if sent.consumes != kept.consumes:
        yield OTHER if kept.consumes else "consumesCounters"
    if sent.shareable != kept.shareable:
        yield "allowMultipleAllocations"
    if sent.binding != kept.binding:
        yield "bindingConditions" if sent.binding and sent.binding.conditions else "bindsToNode"
    if sent.capacity != kept.capacity:
        same = {k: c.value for k, c in sent.capacity.items()}
        yield "requestPolicy" if same == {k: c.value for k, c in kept.capacity.items()} else OTHER
    if sent.attributes != kept.attributes:
        yield "attributes" if _lists(sent.attributes) - _lists(kept.attributes) else OTHER


def _lists(values: Mapping[str, AttributeValue]) -> set[str]:
    return {name for name, value in values.items() if isinstance(value, tuple)}
