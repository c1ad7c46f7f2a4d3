"""Who holds what, as a simulated kubelet tells it."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import grpc
import pytest

from accelkit.backends.holdings import TRIES, read_allocatable, read_holdings
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.serve import bind
from accelkit.backends.wire.status import StatusError
from accelkit.core.clock import RealClock
from accelkit.core.errors import TransportError
from accelkit.core.model import Device, DeviceId, Holder, Holding, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, HolderKind
from accelkit.core.view import Assignment, View

RESOURCE = "acme.test/gpu"


class Impatient(RealClock):
    """Counts pauses and makes none."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def ident(name: str, vendor: str = "acme") -> DeviceId:
    return DeviceId(vendor=vendor, name=name)


def view_of(*devices: Device) -> View:
    return View(
        snapshot=Snapshot(devices=devices),
        domains=FrozenMap({"acme": "acme.test", "other": "other.test"}),
    )


A = Device(id=ident("a"), kind="gpu", aliases=frozenset({"GPU-1", "0000:01:00.0"}))
B = Device(id=ident("b"), kind="gpu")


def entry(*ids: str, resource: str = RESOURCE, node: int | None = None) -> pr.ContainerDevices:
    topology = None if node is None else pr.TopologyInfo(nodes=[pr.NUMANode(ID=node)])
    return pr.ContainerDevices(resource_name=resource, device_ids=ids, topology=topology)


def pod(name: str, *entries: pr.ContainerDevices) -> pr.PodResources:
    container = pr.ContainerResources(name="main", devices=entries)
    return pr.PodResources(name=name, namespace="default", containers=[container])


def held(
    device: DeviceId,
    *,
    share: str | None = None,
    through: str = "kubelet",
    resource: str = RESOURCE,
    by: str = "p",
) -> Holding:
    holder = Holder(kind=HolderKind.POD, namespace="default", pod=by, container="main")
    return Holding(device=device, share=share, through=through, holder=holder, resource=resource)


@asynccontextmanager
async def kubelet(
    directory: Path, *pods: pr.PodResources, refusals: int = 0
) -> AsyncGenerator[Path, None]:
    """Answers List, after refusing so many calls."""
    left = refusals

    async def answer(_: pr.ListPodResourcesRequest) -> pr.ListPodResourcesResponse:
        nonlocal left
        if left:
            left -= 1
            raise StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        return pr.ListPodResourcesResponse(pod_resources=pods)

    async def allocatable(_: pr.AllocatableResourcesRequest) -> pr.AllocatableResourcesResponse:
        devices = [one for p in pods for container in p.containers for one in container.devices]
        return pr.AllocatableResourcesResponse(devices=devices)

    path = directory / "kubelet.sock"
    handlers = [
        services.unary(services.LIST, answer),
        services.unary(services.GET_ALLOCATABLE, allocatable),
    ]
    async with await bind(path, handlers):
        yield path


async def test_devices_are_found_by_name_share_and_alias(tmp_path: Path) -> None:
    pods = (
        pod("p", entry("a")),
        pod("q", entry("b::3", "unknown")),
        pod("r", entry("GPU-1", "GPU-1::2", resource="other.test/gpu")),
        pod("s"),
    )
    async with kubelet(tmp_path, *pods) as socket:
        found = await read_holdings(socket, view_of(A, B))

    foreign = {"through": "foreign", "resource": "other.test/gpu", "by": "r"}
    assert found == (
        held(ident("a")),
        held(ident("a"), **foreign),
        held(ident("a"), share="2", **foreign),
        held(ident("b"), share="3", by="q"),
    )


async def test_every_container_that_the_kubelet_lists_is_a_holder(tmp_path: Path) -> None:
    """Seen elsewhere: containers beside the main one were left out."""
    both = pod("p", entry("a"))
    both.containers.append(pr.ContainerResources(name="beside", devices=[entry("b")]))
    async with kubelet(tmp_path, both) as socket:
        found = await read_holdings(socket, view_of(A, B))

    assert [(h.device, h.holder.container) for h in found] == [
        (ident("a"), "main"),
        (ident("b"), "beside"),
    ]


async def test_device_on_several_numa_nodes_is_held_once(tmp_path: Path) -> None:
    async with kubelet(tmp_path, pod("p", entry("a", node=0), entry("a", node=1))) as socket:
        assert await read_holdings(socket, view_of(A)) == (held(ident("a")),)


async def test_of_two_vendors_devices_of_one_name_the_offered_one_is_held(tmp_path: Path) -> None:
    twin = attrs.evolve(A, id=ident("a", "other"), aliases=frozenset())
    view = view_of(A, twin)
    offers = {d.id: Assignment(terms=Offer(name="all")) for d in (A, twin)}
    view = attrs.evolve(view, assignments=FrozenMap(offers))
    resource = "other.test/gpu"
    async with kubelet(tmp_path, pod("p", entry("a", resource=resource))) as socket:
        assert await read_holdings(socket, view) == (held(twin.id, resource=resource),)


async def test_name_under_a_resource_of_nobody_is_the_first_vendors(tmp_path: Path) -> None:
    twin = attrs.evolve(A, id=ident("a", "other"), aliases=frozenset())
    resource = "former.test/gpu"
    async with kubelet(tmp_path, pod("p", entry("a", resource=resource))) as socket:
        assert await read_holdings(socket, view_of(A, twin)) == (held(A.id, resource=resource),)


async def test_kubelet_that_is_asked_too_often_is_asked_again_later(tmp_path: Path) -> None:
    clock = Impatient()
    async with kubelet(tmp_path, pod("p", entry("a")), refusals=3) as socket:
        assert await read_holdings(socket, view_of(A), clock) == (held(ident("a")),)

    assert len(clock.pauses) == 3
    assert clock.pauses[2] > clock.pauses[0]


async def test_kubelet_that_refuses_for_too_long_is_unreachable(tmp_path: Path) -> None:
    async with kubelet(tmp_path, refusals=TRIES) as socket:
        with pytest.raises(TransportError, match="resource-exhausted: rejected by rate limit"):
            await read_holdings(socket, view_of(A), Impatient())


async def test_kubelet_that_is_not_there_is_unreachable_at_once(tmp_path: Path) -> None:
    clock = Impatient()
    with pytest.raises(TransportError, match=r"pod resources at .*: there is no socket$") as caught:
        await read_holdings(tmp_path / "kubelet.sock", view_of(A), clock)

    assert caught.value.remedy
    assert clock.pauses == []


async def test_allocatable_ids_are_read_by_resource(tmp_path: Path) -> None:
    pods = pod("p", entry("a", node=0), entry("a", node=1), entry("b"), entry("x", resource="o/x"))
    async with kubelet(tmp_path, pods) as socket:
        assert await read_allocatable(socket) == {
            RESOURCE: frozenset({"a", "b"}),
            "o/x": frozenset({"x"}),
        }


async def test_socket_that_nobody_answers_is_said_in_few_words(tmp_path: Path) -> None:
    left = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))

    with pytest.raises(TransportError, match=r"pod resources at .*: nobody answers$"):
        await read_holdings(left, view_of())


def claims(name: str, *resources: pr.ClaimResource) -> pr.PodResources:
    """A pod whose container has a claim with *resources*."""
    claim = pr.DynamicResource(claim_name="c", claim_namespace="default", claim_resources=resources)
    container = pr.ContainerResources(name="main", dynamic_resources=[claim])
    return pr.PodResources(name=name, namespace="default", containers=[container])


async def test_claims_of_our_drivers_are_found_with_their_pods(tmp_path: Path) -> None:
    """Whether or not the device is there: who holds one that is lost must be known."""
    driver = "acme.accelkit.dev"
    both = (
        pr.ClaimResource(driver_name=driver, pool_name="n1", device_name="a"),
        pr.ClaimResource(driver_name=driver, pool_name="n1", device_name="gone", share_id="s-1"),
        pr.ClaimResource(driver_name="gpu.acme.test", pool_name="n1", device_name="a"),
    )
    async with kubelet(tmp_path, claims("p", *both), pod("q", entry("a"))) as socket:
        found = await read_holdings(socket, view_of(A), drivers={driver: "acme"})
        without = await read_holdings(socket, view_of(A))

    holder = Holder(
        kind=HolderKind.CLAIM, namespace="default", pod="p", container="main", claim="c"
    )
    assert found == (
        Holding(device=ident("a"), through="dra", holder=holder),
        held(ident("a"), by="q"),
        Holding(device=ident("gone"), share="s-1", through="dra", holder=holder),
    )
    assert without == (held(ident("a"), by="q"),)
