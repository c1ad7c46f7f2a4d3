"""A snapshot judged by policy: the value that backends render. Not here: how it is made."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

import attrs

from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Condition, Device, DeviceId, Holding, Snapshot, worst_first
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, Health, freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Past:
    """What is remembered of a device so that its health can be damped.

    Times are monotonic seconds of this boot: they outlast the process.
    """

    ill: bool = False
    """Whether a FATAL condition that is damped reached it at the last look."""
    turned_s: float = 0.0
    """When that became so."""
    faults: tuple[Condition, ...] = ()
    """Those of the last look that had any; none once they are gone for long enough."""
    changes: tuple[float, ...] = ()
    """When it fell ill or recovered lately; not of the time before it was held for flapping."""
    flapping_s: float | None = None
    """Since when it is held for flapping; None: it is not."""
    health: Health = Health.UNKNOWN
    """The last that was known; UNKNOWN: none was."""
    since_s: float = 0.0
    since: datetime | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Verdict:
    """A device's health after damping."""

    health: Health
    reasons: tuple[Condition, ...] = attrs.field(default=(), converter=worst_first)
    overdue: bool = False
    """UNKNOWN for longer than ``health.graceForUnknown``."""
    since: datetime | None = attrs.field(default=None, eq=False)
    until: datetime | None = attrs.field(default=None, eq=False)
    """When a hold-down ends."""
    since_s: float = attrs.field(default=0.0, eq=False)
    """Monotonic seconds of the last change: what durations are taken from."""
    past: Past | None = attrs.field(default=None, eq=False)
    """What damping has to know of the time before; None: nothing."""

    @property
    def good(self) -> bool:
        """To be had, as far as health goes: healthy, or unknown and not for too long."""
        return self.health is Health.HEALTHY or (self.health is Health.UNKNOWN and not self.overdue)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Assignment:
    """How a device is offered."""

    terms: Offer | None
    """The offer as it was when the device was taken; None: offered nowhere."""
    leaving: bool = False
    """Policy says otherwise by now, but somebody holds it."""
    why: str = attrs.field(default="", eq=False)


@attrs.frozen(kw_only=True, field_transformer=freeze, slots=False)
class View:
    """Everything a backend may know of the node."""

    snapshot: Snapshot = Snapshot()
    verdicts: FrozenMap[DeviceId, Verdict] = FrozenMap()
    away: FrozenMap[DeviceId, Verdict] = attrs.field(default=FrozenMap(), eq=False)
    """Of devices that left lately: what those who come back are judged by."""
    assignments: FrozenMap[DeviceId, Assignment] = FrozenMap()
    holdings: tuple[Holding, ...] = ()
    offers: tuple[Offer, ...] = ()
    domains: FrozenMap[str, str] = FrozenMap()
    """Vendor to resource prefix: nvidia to nvidia.com."""
    sets: frozenset[str] = frozenset()
    """Vendors whose edits may describe a set: only they are asked inside Allocate."""
    revision: str = ""
    """Of the policy."""
    boot: str = ""
    edits: FrozenMap[DeviceId, ContainerEdits] = FrozenMap()
    """For every offered device whose edits could be made; absent: listed Unhealthy."""
    potential: tuple[Device, ...] = ()
    """Partitions that do not exist but are made when a claim gets them, by id. They have
    assignments like devices, but no verdict of their own: their parent's counts."""
    made: frozenset[DeviceId] = frozenset()
    """Partitions that were made for a claim; all others that exist are somebody else's."""
    stuck: frozenset[DeviceId] = frozenset()
    """Devices that a claim left behind and that could not be undone."""
    renamed: frozenset[DeviceId] = frozenset()
    """Devices that claims have from a driver of another name than now: to the driver of now, and
    to whoever reads what it publishes, these claims are unknown."""
    evict: frozenset[str] = frozenset()
    """Condition codes that may take pods off a device, where the backend can."""
    dra_waits: FrozenMap[str, str] = FrozenMap()
    """Extended-resource names whose devices may not be in a slice yet, and why."""
    kubelet_waits: FrozenMap[str, str] = FrozenMap()
    """Resource names whose devices the kubelet must see as Unhealthy, and why: a claim of an
    extended resource of that name is left on the node."""

    @cached_property
    def devices(self) -> FrozenMap[DeviceId, Device]:
        """Devices by id; only what exists."""
        return self.snapshot.by_id

    @cached_property
    def judged(self) -> Mapping[DeviceId, Verdict]:
        """All verdicts that the next ones build on."""
        return {**self.away, **self.verdicts}

    @cached_property
    def offered(self) -> FrozenMap[DeviceId, Device]:
        """Everything that an offer has, potential partitions too, by id."""
        return FrozenMap(
            (device.id, device)
            for device in (*self.snapshot.devices, *self.potential)
            if (given := self.assignments.get(device.id)) is not None and given.terms is not None
        )

    @cached_property
    def held(self) -> frozenset[DeviceId]:
        """Devices that somebody holds."""
        return frozenset(h.device for h in self.holdings)
