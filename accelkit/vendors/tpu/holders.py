"""Processes that have chips open. Not here: which pod a process is of."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from accelkit import Condition, Device, DeviceId, Holding, Host, Severity, SourceError, holders_of
from accelkit.vendors.tpu.facts import CONTAINER
from accelkit.vendors.tpu.health import condition

_FRESH_S = 1.0
"""For so long one look at all processes serves: health asks for each chip in turn."""
_PODS = ("kubepods", "kata_overhead")
"""In the cgroup of every process of a pod, and of a sandbox of one.

Source: Kubernetes, pkg/kubelet/cm/node_container_manager_linux.go; Kata Containers, "Host cgroup
management".
"""


def own_nodes(device: Device) -> tuple[str, ...]:
    """Device files that no other chip has."""
    return tuple(node.on_host for node in device.nodes if node.path != CONTAINER)


def read_holders(host: Host, devices: Iterable[Device]) -> Iterator[Holding]:
    return holders_of(host, {device.id: own_nodes(device) for device in devices})


@attrs.define
class Users:
    """Remembers for a moment who has chips open, for all chips that it was asked about."""

    _clock: Callable[[], float] = time.monotonic
    _known: dict[DeviceId, Device] = attrs.field(factory=dict, init=False)
    _host: Host | None = attrs.field(default=None, init=False)
    _looked: float = attrs.field(default=0.0, init=False)
    _strangers: Mapping[DeviceId, str] = attrs.field(factory=dict, init=False)

    def conditions(self, host: Host, device: Device) -> Iterator[Condition]:
        """Whether a process that is in no pod has *device* open.

        Raises:
            SourceError: Could not be known.
        """
        fresh = self._clock() - self._looked < _FRESH_S and self._host is host
        if not fresh or self._known.get(device.id) != device:
            if self._host is not host:
                self._known.clear()
            self._known[device.id] = device
            self._strangers = _strangers(host, self._known.values())
            self._host, self._looked = host, self._clock()
        if (who := self._strangers.get(device.id)) is not None:
            yield condition(
                "busy-elsewhere", Severity.FATAL, f"{who} has it open and is in no pod: end it"
            )


def _strangers(host: Host, devices: Iterable[Device]) -> Mapping[DeviceId, str]:
    """The first process that is in no pod of each device that has one."""
    found: dict[DeviceId, str] = {}
    for holding in read_holders(host, devices):
        pid = holding.holder.uid or ""
        if holding.device not in found and (name := _stranger(host, pid)) is not None:
            found[holding.device] = name
    return found


def _stranger(host: Host, pid: str) -> str | None:
    """What a process is called; None: it is in a pod, or nobody knows."""
    try:
        if any(mark in host.read(f"/proc/{pid}/cgroup") for mark in _PODS):
            return None
        name = host.read(f"/proc/{pid}/comm").strip()
    except SourceError:
        return None
    return f"process {pid} ({name[:16] if name.isprintable() else '?'})"
