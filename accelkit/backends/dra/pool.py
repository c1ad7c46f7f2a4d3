"""What a driver publishes, as plain values. Not here: how it comes about, and its JSON."""

from datetime import datetime
from enum import StrEnum

import attrs

from accelkit.core.model import Binding
from accelkit.core.values import AttributeValue, FrozenMap, freeze


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    NONE = "None"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Taint:
    """A reason not to use a device."""

    key: str
    effect: Effect
    value: str = ""
    added: datetime | None = attrs.field(default=None, eq=False)
    """In whole seconds, as the server keeps it."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class RequestPolicy:
    """What a claim may ask of a capacity: a range, or some values; whole numbers."""

    default: int
    least: int | None = None
    most: int | None = None
    step: int | None = None
    values: tuple[int, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Capacity:
    """An amount in base units."""

    value: int
    policy: RequestPolicy | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Consumption:
    """What a device takes of a counter set."""

    counter_set: str
    counters: FrozenMap[str, int]


@attrs.frozen(kw_only=True, field_transformer=freeze)
class PoolDevice:
    """A device in a slice."""

    name: str
    attributes: FrozenMap[str, AttributeValue] = FrozenMap()
    """Bare ids are the driver's own; others have their domain before a slash."""
    capacity: FrozenMap[str, Capacity] = FrozenMap()
    consumes: tuple[Consumption, ...] = ()
    taints: tuple[Taint, ...] = ()
    """Worst first."""
    shareable: bool = False
    binding: Binding | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class CounterSet:
    """What the devices of one parent compete for."""

    name: str
    counters: FrozenMap[str, int]


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Slice:
    """One ResourceSlice: counter sets or devices, never both."""

    counter_sets: tuple[CounterSet, ...] = ()
    devices: tuple[PoolDevice, ...] = ()
    """The scheduler takes the first that fits: the order is policy."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Pool:
    """Everything that one driver publishes for one node."""

    driver: str
    name: str
    """Of the pool and of the node."""
    slices: tuple[Slice, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Dialect:
    """What an API server keeps of a slice; what it does not keep is not sent."""

    taints: bool = True
    effect_none: bool = True
    most_taints: int = 16
    counters: bool = True
    """In slices of their own."""
    consumable: bool = True
    """Devices that several claims share by amounts."""
    bindings: bool = True
    list_attributes: bool = False
