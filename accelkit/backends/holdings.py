"""Who holds what, as the kubelet tells it. Not here: processes, and what was just handed out.

Source:
    kubernetes/kubelet, pkg/apis/podresources/v1. Seen on 1.34 to 1.37: an entry appears about
    10 ms after Allocate, once per NUMA node of the device, and goes when its pod is over.
"""

import random
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import grpc
import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.serve import dial
from accelkit.backends.wire.services import Method, Q, R
from accelkit.core.clock import Clock, RealClock
from accelkit.core.errors import TransportError
from accelkit.core.model import Device, DeviceId, Holder, Holding
from accelkit.core.offers import resource_of
from accelkit.core.values import HolderKind
from accelkit.core.view import View

KUBELET = "kubelet"
"""Through whom: our own device plugin, since the device has the name that we gave it."""
DRA = "dra"
"""The same of a claim: our own driver, since the driver has the name that we gave it."""
FOREIGN = "foreign"
"""Another one's device plugin: it calls the device by an alias, such as its UUID."""

TRIES = 6
"""Of one question, when others have used up what the kubelet answers in a second."""
FIRST_PAUSE_S = 0.05
TIMEOUT_S = 5.0
ANSWER_BYTES = 16 * 2**20
"""Ten thousand ids are 0.8 MB."""

_REAL = RealClock()


async def read_holdings(
    socket: str | PathLike[str],
    view: View,
    clock: Clock = _REAL,
    drivers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Holding, ...]:
    """Ask the kubelet which containers hold devices of *view*, and what our drivers gave them.

    Args:
        socket: Of the kubelet's pod resources service.
        view: Its devices are looked for by name and by alias.
        clock: Waits between two tries.
        drivers: Vendors by the names of their DRA drivers.

    Returns:
        Each holding once, sorted; device plugins' holdings of devices that nobody here knows are
        left out. Those of claims name their claim, whether or not the device is there any more.

    Raises:
        TransportError: The kubelet does not answer.
    """
    answer = await _ask(socket, services.LIST, pr.ListPodResourcesRequest(), clock)
    names = _Names(view)
    found = {
        holding
        for pod in answer.pod_resources
        for holding in (*_of_pod(pod, names), *_of_claims(pod, drivers))
    }
    return tuple(sorted(found, key=_order))


async def read_allocatable(
    socket: str | PathLike[str], clock: Clock = _REAL
) -> Mapping[str, frozenset[str]]:
    """Ask the kubelet which healthy ids it has of each resource.

    Raises:
        TransportError: The kubelet does not answer.
    """
    answer = await _ask(socket, services.GET_ALLOCATABLE, pr.AllocatableResourcesRequest(), clock)
    ids: dict[str, set[str]] = {}
    for entry in answer.devices:
        ids.setdefault(entry.resource_name, set()).update(entry.device_ids)
    return {resource: frozenset(some) for resource, some in ids.items()}


class _Names:
    """Devices by the ids that a device plugin may call them."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_name: dict[str, list[Device]] = {}
        self._by_alias: dict[str, Device] = {}
        for device in view.snapshot.devices:
            self._by_name.setdefault(device.id.name, []).append(device)
            for alias in device.aliases:
                self._by_alias.setdefault(alias, device)

    def find(self, resource: str, ident: str) -> tuple[DeviceId, str | None, str] | None:
        """Device, share and through whom; None: nobody here knows it."""
        name, sign, share = ident.partition("::")
        part = share if sign else None
        if name in self._by_name:
            device = min(self._by_name[name], key=lambda d: (not self._offered(d, resource), d.id))
            return device.id, part, KUBELET
        alias = self._by_alias.get(ident) or self._by_alias.get(name)
        return None if alias is None else (alias.id, part, FOREIGN)

    def _offered(self, device: Device, resource: str) -> bool:
        """Whether *device* is offered as *resource*: vendors may have devices of one name."""
        assignment = self._view.assignments.get(device.id)
        if assignment is None or assignment.terms is None:
            return False
        domain = self._view.domains.get(device.id.vendor, "")
        return resource_of(assignment.terms, device, domain) == resource


def _of_pod(pod: pr.PodResources, names: _Names) -> Iterator[Holding]:
    for container in pod.containers:
        holder = Holder(
            kind=HolderKind.POD,
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
        )
        for entry in container.devices:
            for ident in entry.device_ids:
                found = names.find(entry.resource_name, ident)
                if found is not None:
                    device, share, through = found
                    yield Holding(
                        device=device,
                        share=share,
                        through=through,
                        holder=holder,
                        resource=entry.resource_name,
                    )


def _of_claims(pod: pr.PodResources, drivers: Mapping[str, str]) -> Iterator[Holding]:
    for container in pod.containers:
        for claim in container.dynamic_resources:
            holder = Holder(
                kind=HolderKind.CLAIM,
                namespace=claim.claim_namespace,
                pod=pod.name,
                container=container.name,
                claim=claim.claim_name,
            )
            for entry in claim.claim_resources:
                if entry.driver_name in drivers:
                    yield Holding(
                        device=DeviceId(vendor=drivers[entry.driver_name], name=entry.device_name),
                        share=entry.share_id if entry.HasField("share_id") else None,
                        through=DRA,
                        holder=holder,
                    )


def _order(holding: Holding) -> tuple[DeviceId, str, str, str, str, str, str]:
    holder = holding.holder
    who = (holder.namespace or "", holder.pod or "", holder.container or "", holder.claim or "")
    return (holding.device, holding.share or "", *who, holding.resource or "")


async def _ask(socket: str | PathLike[str], method: Method[Q, R], request: Q, clock: Clock) -> R:
    """Ask once, or again after a while: the kubelet answers 100 calls a second of all together."""
    path = Path(socket)
    pause = FIRST_PAUSE_S
    async with dial(path, receive_bytes=ANSWER_BYTES) as channel:
        for attempt in range(1, TRIES + 1):
            try:
                return await services.call(channel, method, request, timeout_s=TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                busy = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                if not busy or attempt == TRIES:
                    raise _unreachable(path, error) from None
            await clock.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads clients
            pause *= 2
    raise AssertionError("the last try returns or raises")  # pragma: no cover - for mypy


def _unreachable(path: Path, error: grpc.aio.AioRpcError) -> TransportError:
    if not path.exists():
        why = "there is no socket"
    elif error.code() is grpc.StatusCode.UNAVAILABLE:  # gRPC tells every address it tried
        why = "nobody answers"
    else:
        why = f"{error.code().name.lower().replace('_', '-')}: {error.details()}"
    return TransportError(
        f"the kubelet's pod resources at {path}: {why}",
        remedy="start the kubelet, and mount its pod-resources directory",
    )
