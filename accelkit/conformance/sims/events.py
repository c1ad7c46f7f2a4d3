"""What happened in a simulated kubelet, as values in order. Not here: why it happened."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import field, frozen

from accelkit.backends.wire.messages import deviceplugin as dp


@frozen
class ListedDevice:
    """One device of a list, as a plugin sent it."""

    id: str
    healthy: bool
    nodes: tuple[int, ...] = ()


@frozen
class Answer:
    """What a plugin wants a container to get."""

    envs: tuple[tuple[str, str], ...] = ()
    """(name, value), sorted."""
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """(container path, host path, read only)."""
    devices: tuple[tuple[str, str, str], ...] = ()
    """(container path, host path, permissions)."""
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_devices: tuple[str, ...] = ()

    @classmethod
    def of(cls, message: dp.ContainerAllocateResponse) -> "Answer":
        """Take the values out of a message."""
        return cls(
            tuple(sorted(message.envs.items())),
            tuple((m.container_path, m.host_path, m.read_only) for m in message.mounts),
            tuple((d.container_path, d.host_path, d.permissions) for d in message.devices),
            tuple(sorted(message.annotations.items())),
            tuple(device.name for device in message.cdi_devices),
        )


@frozen
class Options:
    """What a plugin says that it can do."""

    pre_start: bool = False
    preferred: bool = False


@frozen(kw_only=True)
class Event:
    """Anything that happened."""

    at: float = field(factory=time.monotonic, eq=False)
    """Seconds on the monotonic clock; two events are equal whenever they happened."""


@frozen
class Started(Event):
    """The kubelet serves: sockets are wiped, its own are there."""


@frozen
class Stopped(Event):
    """The kubelet is gone."""


@frozen
class Registered(Event):
    """A plugin is connected; its list is still to come."""

    resource: str
    endpoint: str
    """The path of its socket."""
    by: str
    """``socket`` for kubelet.sock, ``watcher`` for plugins_registry."""
    options: Options


@frozen
class NotServing(Event):
    """A plugin that registers could not be connected to at that moment."""

    resource: str
    endpoint: str


@frozen
class Refused(Event):
    """A registration failed."""

    resource: str
    endpoint: str
    text: str


@frozen
class Notified(Event):
    """A plugin in plugins_registry was told how its registration went."""

    endpoint: str
    registered: bool
    error: str


@frozen
class Listed(Event):
    """A whole list came."""

    resource: str
    endpoint: str
    devices: tuple[ListedDevice, ...]


@frozen
class StreamEnded(Event):
    """A ListAndWatch stream is over."""

    resource: str
    endpoint: str
    why: str


@frozen
class StatusChanged(Event):
    """A tick wrote another amount into the node's status."""

    resource: str
    capacity: str
    allocatable: str


@frozen
class PreferredAsked(Event):
    """A plugin was asked which devices go well together."""

    resource: str
    available: tuple[str, ...]
    must: tuple[str, ...]
    size: int
    answer: tuple[str, ...] | None
    """None: the call failed."""


@frozen
class Allocated(Event):
    """A plugin was asked for devices and answered."""

    pod: str
    container: str
    resource: str
    ids: tuple[str, ...]
    answer: Answer


@frozen
class ContainerStarted(Event):
    """A container runs, with these answers; after a restart they are the old ones."""

    pod: str
    container: str
    restarts: int
    answers: tuple[Answer, ...]


@frozen
class ContainerStopped(Event):
    """The processes of a container are gone."""

    pod: str
    container: str


@frozen
class ContainerWaiting(Event):
    """A container could not be started; the kubelet would try again."""

    pod: str
    container: str
    reason: str
    message: str


@frozen
class PodFailed(Event):
    """A pod is over for good."""

    pod: str
    reason: str
    message: str


@frozen
class PodRemoved(Event):
    """A pod is gone, and its devices are free."""

    pod: str
    forced: bool


AnyEvent = TypeVar("AnyEvent", bound=Event)


class Journal:
    """The events so far, oldest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def note(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[AnyEvent], **fields: object) -> list[AnyEvent]:
        """Find the events of *kind* whose fields have these values."""
        return [
            event
            for event in self.events
            if isinstance(event, kind)
            and all(getattr(event, name) == value for name, value in fields.items())
        ]


async def until(
    predicate: Callable[[], object], patience_s: float, told: Callable[[], Mapping[str, object]]
) -> None:
    """Wait until *predicate* holds.

    Args:
        predicate: Asked again every 5 ms.
        patience_s: How long at most.
        told: What to say if it never held.

    Raises:
        TimeoutError: It did not hold in time.
    """
    deadline = time.monotonic() + patience_s
    while not predicate():
        if time.monotonic() > deadline:
            said = ", ".join(f"{name}: {value}" for name, value in told().items())
            raise TimeoutError(f"not seen within {patience_s:g} s; {said}")
        await asyncio.sleep(0.005)
