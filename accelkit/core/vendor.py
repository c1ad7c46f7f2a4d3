"""What a plugin is: one class that knows a maker's hardware, and the abilities it may add."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs

from accelkit.core.allocation import ContainerEdits, Edits, Finding, Grant, Sample, Setting
from accelkit.core.host import Host
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Event,
    Evidence,
    Group,
    Holding,
    Link,
    Locality,
    Placement,
    Profile,
    Unreadable,
    part_of,
)
from accelkit.core.values import FrozenMap, freeze

API = 1
"""The plugin API that this accelkit serves; it serves the one before, too."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class PciMatch:
    """PCI functions by vendor id, and by device id or class where given.

    Classes match by their first byte pair (0x0302 matches 0x030200).
    """

    vendor: int
    devices: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Signals:
    """What is worth watching: uevent subsystems, kernel-log patterns, globs of files."""

    uevents: tuple[str, ...] = ()
    kernel_log: tuple[str, ...] = ()
    """Regular expressions, of which one is found anywhere in a line."""
    files: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Signal:
    """A raw kernel or file notice."""

    source: str
    subject: str | None = None
    text: str = ""
    fields: FrozenMap[str, str] = FrozenMap()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Access:
    """What a vendor needs of the node; becomes its manifests."""

    capabilities: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    host_pid: bool = False


@attrs.frozen(kw_only=True)
class NoOptions:
    """A vendor without options."""


@attrs.frozen(kw_only=True)
class NoClaimConfig:
    """A vendor without a block in claims."""


class Vendor(ABC):
    """Knows one maker's hardware. The agent builds one object per lane set and keeps it for life.

    Threads: two read calls (discover, conditions, links, groups, holders, diagnose, samples) never
    overlap, two work calls (edits) only if *parallel* allows it; a read and a work call may, and
    *listen* overlaps with both. Errors: raise the SourceError family for "could not know";
    anything else is taken as a bug of the plugin, for that call only.
    """

    api: ClassVar[int] = API
    """The plugin API that it was written for."""
    name: ClassVar[str]
    """DNS label of at most 20 characters."""
    domain: ClassVar[str]
    """DNS subdomain that begins with a letter: the resource prefix."""
    hardware: ClassVar[tuple[PciMatch, ...]] = ()
    """PCI ids and classes; empty: always asked. No match: never instantiated."""
    platforms: ClassVar[tuple[str, ...]] = ()
    """Files that tell of its hardware where that is not on the PCI bus."""
    native: ClassVar[bool] = False
    """Calls a C library."""
    parallel: ClassVar[int] = 1
    """How many work calls may overlap."""
    sets: ClassVar[bool] = False
    """*edits* may fill ``whole``; only then does Allocate call the vendor."""
    machine: ClassVar[str | None] = None
    """``module:Class`` of its simulated machine."""
    signals: Signals = Signals()
    """May be a property of the object, where options decide."""
    attributes: ClassVar[Mapping[str, type]] = {}
    """Every attribute that it ever publishes, with its one type."""
    options: ClassVar[type] = NoOptions
    """attrs class: the operator's block."""
    claim_config: ClassVar[type] = NoClaimConfig
    """attrs class: the user's block in a claim."""
    access: ClassVar[Access] = Access()

    def __init__(self, options: Any) -> None:  # type: ignore[explicit-any]  # of the options class
        self.chosen = options

    def device(self, name: str, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
        """A whole device of this vendor; *fields* are those of Device."""
        return Device(id=DeviceId(vendor=self.name, name=name), **fields)

    def partition(  # type: ignore[explicit-any]  # of Device
        self, parent: Device, profile: Profile, start: int, **fields: Any
    ) -> Device:
        """The partition that is *profile* at *start* of *parent*: named by its place.

        Kind, product, locality, capacity and attributes are the parent's or the profile's where
        *fields* do not say otherwise. They should not: what a claim may have before it is made is
        offered as the profile says, and must be the same when it is there.
        """
        return attrs.evolve(part_of(parent, profile, start), **fields)

    @abstractmethod
    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        """Everything that is there now: what is not yielded is not there. Deadline 10 s.

        Yields devices and unreadables in any order; raising means "I know nothing". Changes
        nothing on the host. No hardware: yields nothing, logs nothing. Hardware without its
        driver: ``Unreadable(code="driver-not-ready")`` (D01-D06, I01-I05).
        """

    def edits(self, host: Host, grant: Grant) -> Edits:  # noqa: ARG002 - vendors use it
        """What containers need for the set *grant*. A function of grant and host facts; 5 s.

        ``each``: of a union of sets it is the union. ``whole``: only for what describes the set
        and the device nodes alone do not say, and only with *sets*. Paths are host paths, each
        exists now.

        Raises:
            MissingParts: A node or file is not there.
        """
        return Edits(
            each=FrozenMap(
                {g.device.id: ContainerEdits(nodes=g.device.nodes) for g in grant.granted}
            )
        )

    def close(self) -> None:  # noqa: B027 - most vendors have nothing to close
        """Drop sessions and handles; may be called at any time, more than once."""

    def software(self, host: Host) -> Mapping[str, str]:  # noqa: ARG002 - vendors use it
        """Versions of driver and libraries, by name; asked after *discover*. Deadline 10 s."""
        return {}


class SupportsHealth(ABC):
    """Tells what is wrong with a device."""

    @abstractmethod
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        """Today's truth: what is not yielded has ended. 2 s a device, 10 s for all.

        May be called for stale devices. *evidence*: of the device, its parent and the vendor as a
        whole, of this boot. No damping here. (H01-H07)

        Raises:
            SourceError: Could not know; the device becomes UNKNOWN.
        """


class SupportsEvents(ABC):
    """Hears events from a library."""

    @abstractmethod
    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        """Block up to *timeout_s* in a thread of its own, then return what came.

        Registers itself on the first call and again after errors. Events may be lost between two
        agents: *conditions* must also look.
        """


class SupportsSignals(ABC):
    """Understands kernel notices."""

    @abstractmethod
    def interpret(self, signal: Signal) -> Iterable[Event]:
        """What a uevent or kernel-log line means; pure. Unknown: nothing. Deadline 0.1 s."""


class SupportsLinks(ABC):
    """Knows what connects devices."""

    @abstractmethod
    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        """Links between *devices*; either direction suffices. Deadline 10 s (T01-T08).

        Where both directions are known and differ, the lower count.
        """


class SupportsGroups(ABC):
    """Knows which devices belong together."""

    @abstractmethod
    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        """Groups of *devices*; pure. Deadline 1 s (T12).

        ``LAW``: a container's set must be exactly one such group of that size; ``HINT``: better so.
        """


class SupportsHolders(ABC):
    """Sees the processes that use a device."""

    @abstractmethod
    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        """Processes that use a device, kind FOREIGN. Never opens the device. Deadline 5 s."""


class SupportsDiagnosis(ABC):
    """Explains what is wrong with a host."""

    @abstractmethod
    def diagnose(self, host: Host) -> Iterable[Finding]:
        """Symptom, suspect, proof, remedy. Reads only. Deadline 10 s."""


class SupportsTelemetry(ABC):
    """Measures."""

    @abstractmethod
    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        """Standard metrics; absent is not zero. Deadline 5 s (AG04)."""


class SupportsPartitioning(ABC):
    """Makes and unmakes partitions."""

    @abstractmethod
    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        """Make the partition, then read it back from the hardware. Deadline 30 s (P05-P10)."""

    @abstractmethod
    def destroy(self, host: Host, partition: Device) -> None:
        """Return when it is gone (re-read). Not there: fine. Deadline 30 s."""

    @abstractmethod
    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        """Reached when a re-read says so. Deadline 60 s."""


class SupportsPreparation(ABC):
    """Sets up hardware for a grant, and back."""

    @abstractmethod
    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        """What must hold while this grant lives; reads only, repeatable. Deadline 5 s."""

    @abstractmethod
    def apply(self, host: Host, setting: Setting) -> None:
        """Make it true. Idempotent. Deadline 20 s."""

    @abstractmethod
    def revert(self, host: Host, setting: Setting) -> None:
        """Back to the maker's default. Idempotent; fine when the device is gone. 20 s (L05)."""


ABILITIES: Mapping[str, type] = {
    "health": SupportsHealth,
    "events": SupportsEvents,
    "signals": SupportsSignals,
    "links": SupportsLinks,
    "groups": SupportsGroups,
    "holders": SupportsHolders,
    "diagnosis": SupportsDiagnosis,
    "telemetry": SupportsTelemetry,
    "partitioning": SupportsPartitioning,
    "preparation": SupportsPreparation,
}


def abilities(vendor: type[Vendor]) -> tuple[str, ...]:
    """Names of the abilities that *vendor* declares, sorted."""
    return tuple(sorted(n for n, ability in ABILITIES.items() if issubclass(vendor, ability)))


__all__ = [
    "ABILITIES",
    "API",
    "Access",
    "Locality",
    "NoClaimConfig",
    "NoOptions",
    "PciMatch",
    "Signal",
    "Signals",
    "SupportsDiagnosis",
    "SupportsEvents",
    "SupportsGroups",
    "SupportsHealth",
    "SupportsHolders",
    "SupportsLinks",
    "SupportsPartitioning",
    "SupportsPreparation",
    "SupportsSignals",
    "SupportsTelemetry",
    "Vendor",
    "abilities",
]
