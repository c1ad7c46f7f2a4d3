"""Processes that have chips open. Not here: which pod a process is of."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from accelkit import Condition, Device, DeviceId, Holding, Host, Severity, SourceError, holders_of
from accelkit.vendors.tpu.facts import CONTAINER
from accelkit.vendors.tpu.health import condition

_FRESH_S = 15.0
"""For so long one look at all processes serves: it takes long where there are thousands."""
_POD = re.compile(r"kubepods|kata_overhead|/pod[0-9a-f]{8}[0-9a-f-]{24,28}(?:/|$)", re.MULTILINE)
"""In the cgroup of every process of a pod, and of a sandbox of one.

An agent in a cgroup namespace of its own sees the way from there, without what both ways have in
common: where the kubelet has the driver cgroupfs, that may be ``/../../podUID/ID``.

Source: Kubernetes, pkg/kubelet/cm/node_container_manager_linux.go and
pod_container_manager_linux.go (the UID is a UUID, or 32 digits for a static pod);
cgroup_namespaces(7); Kata Containers, "Host cgroup management".
"""


def own_nodes(device: Device) -> tuple[str, ...]:
    """Device files that no other chip has."""
    return tuple(node.on_host for node in device.nodes if node.path != CONTAINER)


def read_holders(host: Host, devices: Iterable[Device]) -> Iterator[Holding]:
    return holders_of(host, {device.id: own_nodes(device) for device in devices})


def strangers(host: Host, nodes: Mapping[DeviceId, Iterable[str]]) -> Mapping[DeviceId, str]:
    """Of each device that a process in no pod has open, the first such process.

    Args:
        host: The door.
        nodes: Device files of each device that are its own.
    """
    found: dict[DeviceId, str] = {}
    for holding in holders_of(host, nodes, among=lambda pid: _is_in_no_pod(host, pid)):
        found.setdefault(holding.device, _called(host, holding.holder.uid or ""))
    return found


def _is_in_no_pod(host: Host, pid: str) -> bool:
    try:
        cgroup = host.read(f"/proc/{pid}/cgroup")
    except SourceError:  # it has ended, or may not be looked at
        return False
    return _POD.search(cgroup) is None


def _called(host: Host, pid: str) -> str:
    try:
        name = host.read(f"/proc/{pid}/comm").strip()[:16]
    except SourceError:
        name = ""
    return f"process {pid}" + (f" ({name})" if name and name.isprintable() else "")


class Users:
    """Remembers for a while which strangers have chips open, of all chips that it was told of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._nodes: dict[DeviceId, tuple[str, ...]] = {}
        self._looked: tuple[Host, float] | None = None
        self._strangers: Mapping[DeviceId, str] = {}

    def know(self, device: Device) -> None:
        """Look after *device* from the next look on."""
        self._nodes[device.id] = own_nodes(device)

    def conditions(self, host: Host, device: Device) -> Iterator[Condition]:
        """Whether a process that is in no pod has *device* open.

        Raises:
            SourceError: Could not be known.
        """
        looked = self._looked
        fresh = looked is not None and looked[0] is host and self._clock() - looked[1] < _FRESH_S
        if not fresh or self._nodes.get(device.id) != own_nodes(device):
            self.know(device)
            self._strangers = strangers(host, self._nodes)
            self._looked = (host, self._clock())
        if (who := self._strangers.get(device.id)) is not None:
            yield condition(
                "busy-elsewhere", Severity.FATAL, f"{who} has it open and is in no pod: end it"
            )
