"""A simulated kubelet's pod resources service. Not here: who got what and why."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import grpc
from attrs import define

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.services import Handler
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.devices import Devices
from accelkit.conformance.sims.events import ListedDevice
from accelkit.conformance.sims.plugins import unknown
from accelkit.conformance.sims.pods import Container, Pod, Pods

Q_ = TypeVar("Q_")
R_ = TypeVar("R_")


@define
class Bucket:
    """Lets calls through at a rate; one for all clients of the node.

    Source: kubernetes pkg/kubelet/apis/podresources/constants.go, 100 per second, burst 10.
    """

    rate: float = 100.0
    burst: float = 10.0
    level: float = 10.0
    at: float = 0.0

    def take(self, now: float) -> bool:
        """Whether one more call may pass at *now*, in seconds."""
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


Dynamic = Callable[[Pod, str], Iterable[pr.DynamicResource]]
"""What a container of a pod has by claims."""


def nothing(_pod: Pod, _container: str) -> Iterable[pr.DynamicResource]:
    return ()


def pod_resources(devices: Devices, pods: Pods, dynamic: Dynamic = nothing) -> tuple[Handler, ...]:
    """Answer List, GetAllocatableResources and Get, each as it stands when it is asked."""
    bucket = Bucket()

    def limited(answer: Callable[[Q_], R_]) -> Callable[[Q_], Awaitable[R_]]:
        async def run(request: Q_) -> R_:
            if not bucket.take(time.monotonic()):
                raise StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            return answer(request)

        return run

    def everything(_: pr.ListPodResourcesRequest) -> pr.ListPodResourcesResponse:
        return pr.ListPodResourcesResponse(
            pod_resources=[_pod(pod, dynamic) for pod in pods.active()]
        )

    def allocatable(_: pr.AllocatableResourcesRequest) -> pr.AllocatableResourcesResponse:
        entries = [
            entry
            for resource, listing in devices.listings.items()
            for ident in sorted(listing.healthy)
            for entry in _entries(resource, listing.known[ident])
        ]
        return pr.AllocatableResourcesResponse(devices=entries)

    def one(request: pr.GetPodResourcesRequest) -> pr.GetPodResourcesResponse:
        asked = (request.pod_name, request.pod_namespace)
        for pod in pods.active():
            if (pod.name, pod.namespace) == asked:
                return pr.GetPodResourcesResponse(pod_resources=_pod(pod, dynamic))
        raise unknown(f"pod {asked[0]} in namespace {asked[1]} not found")

    return (
        services.unary(services.LIST, limited(everything)),
        services.unary(services.GET_ALLOCATABLE, limited(allocatable)),
        services.unary(services.GET, limited(one)),
    )


def _pod(pod: Pod, dynamic: Dynamic) -> pr.PodResources:
    containers = [
        _container(container, dynamic(pod, container.name))
        for container in pod.containers
        if not container.init
    ]
    return pr.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)


def _container(
    container: Container, dynamic: Iterable[pr.DynamicResource]
) -> pr.ContainerResources:
    entries = [
        entry
        for resource, held in container.held.items()
        for device in held.devices
        for entry in _entries(resource, device)
    ]
    return pr.ContainerResources(name=container.name, devices=entries, dynamic_resources=dynamic)


def _entries(resource: str, device: ListedDevice) -> Iterator[pr.ContainerDevices]:
    """One entry for each NUMA node of a device: with two nodes it is there twice."""
    for node in device.nodes or (None,):
        topology = None if node is None else pr.TopologyInfo(nodes=[pr.NUMANode(ID=node)])
        yield pr.ContainerDevices(resource_name=resource, device_ids=[device.id], topology=topology)
