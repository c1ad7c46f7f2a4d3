"""What vendors are asked, each by its name, so that another process can be told to ask it.

Not here: deadlines and threads, which are the lane's, and how processes talk to each other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Generic, Protocol, TypeVar

import attrs

from accelkit.core import reading, working
from accelkit.core.allocation import ContainerEdits, Edits, Finding, Grant, Sample, Setting
from accelkit.core.answers import MOST_ANSWERS, checked, checked_events, checked_holdings
from accelkit.core.host import Host, ReadOnly
from accelkit.core.model import (
    Device,
    DeviceId,
    Event,
    Evidence,
    Holding,
    Placement,
    VendorReport,
)
from accelkit.core.policy import Isolation, Offer, VendorPolicy
from accelkit.core.reading import HealthReading
from accelkit.core.values import freeze
from accelkit.core.vendor import (
    Signal,
    Signals,
    SupportsDiagnosis,
    SupportsEvents,
    SupportsHolders,
    SupportsSignals,
    SupportsTelemetry,
    Vendor,
)

MARGIN_S = 35.0
"""How much longer than its deadline a call may take that another process makes.

That has to start, and is dead soon after the deadline: nothing waits so long for a call that hangs.
"""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@attrs.frozen(kw_only=True)
class Call(Generic[T_co]):  # type: ignore[explicit-any]  # attrs' own methods take anything
    """One question to a vendor."""

    name: str
    """No other call has it."""
    work: Callable[..., T_co]  # type: ignore[explicit-any]  # of the types that *takes* says
    """Asks: of the vendor, the host, and what *takes* says."""
    takes: tuple[type[object], ...] = ()
    """Types of the arguments; values of the core."""
    gives: type[T_co] | None = None
    """Type of the answer; None: there is none."""
    writes: bool = False
    """May change the host."""
    lane: str = attrs.Factory(lambda self: self.name, takes_self=True)
    """Its name for lanes: that of its deadline, and in metrics."""


class Asked(Protocol):
    """One vendor, wherever its code runs. May be asked by several threads at once."""

    def ask(
        self,
        call: Call[T],
        args: tuple[object, ...],
        deadline_s: float,
        about: Collection[DeviceId] = (),
    ) -> T:
        """The answer to *call*, in the calling thread.

        Args:
            call: What is asked.
            args: What it takes.
            deadline_s: After it, whoever can end the call does.
            about: Whole devices that it changes.

        Raises:
            Exception: What the vendor raised; a SourceError where it could not be asked.
        """
        ...

    def check(self, call: str, about: Collection[DeviceId]) -> None:
        """Refuse *call* while an earlier one may still change the whole devices *about*.

        Raises:
            SourceTimeout: One may.
        """
        ...

    def close(self) -> None:
        """Drop whatever there is; may be called at any time."""
        ...

    @property
    def hanging(self) -> int:
        """How many calls overran, and go on without a lane."""
        ...

    @property
    def restarts(self) -> Mapping[str, int]:
        """How often what asks was started again, by the reason."""
        ...


class Here:
    """A vendor in this process: the calling thread asks it."""

    def __init__(self, vendor: Vendor, host: Host) -> None:
        self.vendor = vendor
        self._reading = ReadOnly(host)
        self._writing = host
        self.hanging = 0
        self.restarts: Mapping[str, int] = {}

    def ask(
        self,
        call: Call[T],
        args: tuple[object, ...],
        deadline_s: float = 0.0,  # noqa: ARG002 - nobody can end a thread
        about: Collection[DeviceId] = (),  # noqa: ARG002 - lanes keep such calls apart
    ) -> T:
        return call.work(self.vendor, self._writing if call.writes else self._reading, *args)

    def check(self, call: str, about: Collection[DeviceId]) -> None:
        """Nothing goes on here but what lanes know of."""

    def close(self) -> None:
        self.vendor.close()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Isolated:
    """A vendor that is asked in a process of its own, and is not even made in this one."""

    kind: type[Vendor]
    options: Mapping[str, object] = attrs.field(factory=dict, hash=False)
    """The operator's block, as it stands in the policy."""
    host: str
    """The path of its host: a root, or a simulated machine."""

    @property
    def name(self) -> str:
        return self.kind.name


def needs_process(kind: type[Vendor], block: VendorPolicy, host: Host) -> bool:
    """Whether vendors of *kind* are asked in a process of their own on *host*.

    Where the policy leaves it open: if their code calls C libraries that are those of the machine.
    """
    if block.isolation is Isolation.AUTO:
        return kind.native and host.live
    return block.isolation is Isolation.PROCESS


def _holders(vendor: Vendor, host: Host, devices: tuple[Device, ...]) -> tuple[Holding, ...]:
    assert isinstance(vendor, SupportsHolders)
    return checked_holdings(vendor, vendor.holders(host, devices))


def _listen(vendor: Vendor, host: Host, timeout_s: float) -> Iterable[Event]:
    """Each event as it comes: one that was heard before the call fails is known."""
    assert isinstance(vendor, SupportsEvents)
    for heard in islice(vendor.listen(host, timeout_s), MOST_ANSWERS):
        yield from checked_events(vendor, (heard,))


def _interpret(vendor: Vendor, _host: Host, signal: Signal) -> tuple[Event, ...]:
    assert isinstance(vendor, SupportsSignals)
    return checked_events(vendor, vendor.interpret(signal))


def _diagnose(vendor: Vendor, host: Host) -> tuple[Finding, ...]:
    assert isinstance(vendor, SupportsDiagnosis)
    return checked(vendor, Finding, vendor.diagnose(host))


def _samples(vendor: Vendor, host: Host, devices: tuple[Device, ...]) -> tuple[Sample, ...]:
    assert isinstance(vendor, SupportsTelemetry)
    return checked(vendor, Sample, vendor.samples(host, devices))


def _signals(vendor: Vendor, _host: Host) -> Signals:
    return vendor.signals


INVENTORY = Call(name="inventory", work=reading.read_inventory, gives=VendorReport)
CONDITIONS = Call(
    name="conditions",
    work=reading.read_conditions,
    takes=(tuple[Device, ...], tuple[Evidence, ...]),
    gives=HealthReading,
)
LONE_EDITS = Call(
    name="lone edits",
    work=reading.device_edits,
    takes=(Device, Offer),
    gives=ContainerEdits,
    lane="edits",
)
EDITS = Call(name="edits", work=reading.grant_edits, takes=(Grant,), gives=Edits)
SET_EDITS = Call(name="set edits", work=reading.grant_edits, takes=(Grant,), gives=Edits)
HOLDERS = Call(
    name="holders", work=_holders, takes=(tuple[Device, ...],), gives=tuple[Holding, ...]
)
LISTEN: Call[Iterable[Event]] = Call(
    name="listen", work=_listen, takes=(float,), gives=tuple[Event, ...]
)
SIGNALS = Call(name="signals", work=_signals, gives=Signals)
INTERPRET = Call(name="interpret", work=_interpret, takes=(Signal,), gives=tuple[Event, ...])
DIAGNOSE = Call(name="diagnose", work=_diagnose, gives=tuple[Finding, ...])
SAMPLES = Call(name="samples", work=_samples, takes=(tuple[Device, ...],), gives=tuple[Sample, ...])
FIND = Call(
    name="find",
    work=working.look_for,
    takes=(frozenset[DeviceId], frozenset[str]),
    gives=working.Sight,
    lane="inventory",
)
NEEDS = Call(name="needs", work=working.needed_settings, takes=(Grant,), gives=tuple[Setting, ...])
NEEDED = Call(
    name="needed", work=working.needed, takes=(Grant,), gives=working.Needed, lane="edits"
)
APPLY = Call(name="apply", work=working.apply_setting, takes=(Setting,), writes=True)
REVERT = Call(name="revert", work=working.revert_setting, takes=(Setting,), writes=True)
CREATE = Call(
    name="create",
    work=working.create_partition,
    takes=(Device, Placement),
    gives=Device,
    writes=True,
)
DESTROY = Call(name="destroy", work=working.destroy_partition, takes=(Device,), writes=True)
SET_MODE = Call(name="set mode", work=working.set_device_mode, takes=(Device, str), writes=True)

_ALL: tuple[Call[object], ...] = (
    *(INVENTORY, CONDITIONS, LONE_EDITS, EDITS, SET_EDITS, HOLDERS, LISTEN, SIGNALS, INTERPRET),
    *(DIAGNOSE, SAMPLES, FIND, NEEDS, NEEDED, APPLY, REVERT, CREATE, DESTROY, SET_MODE),
)
CALLS: Mapping[str, Call[object]] = {call.name: call for call in _ALL}
"""All of them, by name."""
