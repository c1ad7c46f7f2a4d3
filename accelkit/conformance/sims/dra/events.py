"""What happened between a simulated kubelet and DRA drivers, as values. Not here: why."""

from collections.abc import Mapping

from attrs import field, frozen

from accelkit.backends.wire.messages import dra
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.conformance.sims.events import Event
from accelkit.core.allocation import ClaimRef


@frozen
class PreparedDevice:
    """One device of an answer, as a driver sent it."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi: tuple[str, ...]
    share: str | None = None

    @classmethod
    def of(cls, message: dra.Device) -> "PreparedDevice":
        return cls(
            tuple(message.request_names),
            message.pool_name,
            message.device_name,
            tuple(message.cdi_device_ids),
            message.share_id if message.HasField("share_id") else None,
        )


@frozen
class DriverRegistered(Event):
    """A driver is known; claims can be prepared by it."""

    driver: str
    endpoint: str
    """The path of its socket."""
    version: str
    """Of its service that is called: ``v1`` or ``v1beta1``."""
    health: str
    """Of its health service that is called; empty: none is."""


@frozen
class DriverGone(Event):
    """A registration was taken back: its socket is gone, or it did not take notice of it."""

    driver: str
    endpoint: str


@frozen
class PrepareAsked(Event):
    """A driver is called for claims of a pod."""

    pod: str
    driver: str
    endpoint: str
    claims: tuple[ClaimRef, ...]


@frozen
class PrepareAnswered(Event):
    """The call is over."""

    pod: str
    driver: str
    endpoint: str
    devices: Mapping[str, tuple[PreparedDevice, ...]] = field(repr=False)
    """By the uid of each claim that was prepared."""
    error: str
    """What the pod's event says; empty: all were prepared."""


@frozen
class UnprepareAsked(Event):
    """A driver is called to give claims back."""

    driver: str
    endpoint: str
    claims: tuple[ClaimRef, ...]


@frozen
class UnprepareAnswered(Event):
    """The call is over."""

    driver: str
    endpoint: str
    claims: tuple[ClaimRef, ...]
    error: str
    """Nobody but the kubelet's log is told; empty: all were given back."""


@frozen
class PrepareFailed(Event):
    """A pod cannot start yet: what its event says."""

    pod: str
    message: str


@frozen
class ContainerGot(Event):
    """A container is made, with this injected."""

    pod: str
    container: str
    injected: Injected


@frozen
class HealthHeard(Event):
    """A driver told how its devices are."""

    driver: str
    endpoint: str
    devices: Mapping[str, tuple[str, str]] = field(repr=False)
    """Health and message by device."""
    sizes: tuple[int, ...] = field(repr=False, default=())
    """Bytes of the messages that are not empty."""


@frozen
class HealthEnded(Event):
    """A health stream is over; what it told of the driver is forgotten, whoever told it."""

    driver: str
    endpoint: str
    why: str


@frozen
class StatusFrozen(Event):
    """The status of a pod cannot be written: a message was cut inside a character."""

    pod: str


@frozen
class SlicesWiped(Event):
    """The kubelet removed slices of its node."""

    driver: str
    """Empty: of all drivers, at its start."""
    names: tuple[str, ...]
