"""The pods of a simulated node and what they hold. Not here: how they came to it."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import define, field, frozen

from accelkit.conformance.sims.events import Answer, ListedDevice


class Phase(StrEnum):
    """As in a pod's status."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@define
class Held:
    """What a container got of one resource: the devices and the cached answer."""

    devices: tuple[ListedDevice, ...]
    answer: Answer

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(device.id for device in self.devices)


@define
class Container:
    """A container of a pod."""

    name: str
    wants: Mapping[str, int]
    init: bool = False
    running: bool = False
    restarts: int = 0
    waiting: str = ""
    """Why it could not be started."""
    held: dict[str, Held] = field(factory=dict)
    """By resource; it stays for as long as the pod."""


@define(eq=False)
class Pod:
    """A pod, in the order in which they were admitted."""

    name: str
    namespace: str
    containers: tuple[Container, ...]
    phase: Phase = Phase.RUNNING
    reason: str = ""
    message: str = ""
    deleted: bool = False
    """By force: its devices are free, whatever still runs or is under way for it."""
    by_worker: bool = False
    """Of an API server: who prepares its claims starts its containers, too."""

    def container(self, name: str) -> Container:
        return next(container for container in self.containers if container.name == name)

    def ids(self, container: str = "main") -> tuple[str, ...]:
        """All devices of a container, sorted."""
        held = self.container(container).held.values()
        return tuple(sorted(ident for one in held for ident in one.ids))


@frozen
class Pods:
    """All pods, by name: names repeat only after a removal."""

    by_name: dict[str, Pod] = field(factory=dict)

    def active(self) -> Iterator[Pod]:
        """Those that are not over, oldest first."""
        pods = self.by_name.values()
        return (pod for pod in pods if pod.phase is Phase.RUNNING and not pod.deleted)

    def used(self, resource: str) -> set[str]:
        """Devices of *resource* that active pods hold."""
        return {
            ident
            for pod in self.active()
            for container in pod.containers
            if resource in container.held
            for ident in container.held[resource].ids
        }
