"""What a simulated kubelet tells of who holds what."""

from collections.abc import AsyncGenerator

import grpc
import grpc.aio
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.podresources import Bucket
from tests.conformance.sims.conftest import Join
from tests.conformance.sims.plugin import RESOURCE, device, devices


@pytest.fixture
async def channel(sim: KubeletSim) -> AsyncGenerator[grpc.aio.Channel, None]:
    async with dial(sim.resources_socket) as opened:
        yield opened


def entry(ident: str, node: int | None = None) -> pr.ContainerDevices:
    topology = None if node is None else pr.TopologyInfo(nodes=[pr.NUMANode(ID=node)])
    return pr.ContainerDevices(resource_name=RESOURCE, device_ids=[ident], topology=topology)


async def pods(channel: grpc.aio.Channel) -> list[pr.PodResources]:
    answer = await services.call(channel, services.LIST, pr.ListPodResourcesRequest())
    return list(answer.pod_resources)


async def test_device_on_two_nodes_is_listed_twice(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    await join([device("d0"), device("d1", nodes=(0, 1))])
    await sim.admit("p", {RESOURCE: 2}, namespace="ns")

    main = pr.ContainerResources(name="main", devices=[entry("d0"), entry("d1", 0), entry("d1", 1)])
    assert await pods(channel) == [pr.PodResources(name="p", namespace="ns", containers=[main])]


async def test_finished_init_container_is_not_listed(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    await join(devices(2))
    await sim.admit("p", {RESOURCE: 1}, init={RESOURCE: 2})

    (pod,) = await pods(channel)
    assert [container.name for container in pod.containers] == ["main"]


async def test_entry_survives_the_list_and_the_plugin(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    plugin = await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})
    await plugin.send([])
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (0, 0)})

    (pod,) = await pods(channel)
    assert list(pod.containers[0].devices) == [entry("d0")]


async def test_pods_that_are_over_are_not_listed(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    await join(devices(2))
    for name in ("done", "gone", "too-big"):
        await sim.admit(name, {RESOURCE: 3 if name == "too-big" else 1})
    await sim.complete("done")
    await sim.remove("gone", force=True)

    assert await pods(channel) == []


async def test_allocatable_devices_are_the_healthy_ones_held_or_not(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    plugin = await join([device("d0", nodes=(0,)), device("d1"), device("d2", "Unhealthy")])
    await sim.admit("p", {RESOURCE: 2})
    request = pr.AllocatableResourcesRequest()

    answer = await services.call(channel, services.GET_ALLOCATABLE, request)
    assert list(answer.devices) == [entry("d0", 0), entry("d1")]
    await plugin.end_stream()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (3, 0)})
    answer = await services.call(channel, services.GET_ALLOCATABLE, request)
    assert list(answer.devices) == []


async def test_one_pod_is_answered_like_in_the_list(
    sim: KubeletSim, join: Join, channel: grpc.aio.Channel
) -> None:
    await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})
    request = pr.GetPodResourcesRequest(pod_name="p", pod_namespace="default")

    answer = await services.call(channel, services.GET, request)

    assert [answer.pod_resources] == await pods(channel)


@pytest.mark.usefixtures("sim")
async def test_unknown_pod_is_an_unknown_error(channel: grpc.aio.Channel) -> None:
    request = pr.GetPodResourcesRequest(pod_name="nope", pod_namespace="default")

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await services.call(channel, services.GET, request)

    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert caught.value.details() == "pod nope in namespace default not found"


async def ask_often(channel: grpc.aio.Channel) -> None:
    for _ in range(200):
        await pods(channel)


async def test_too_many_calls_are_rejected(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask_often(channel)

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.details() == "rejected by rate limit"


def test_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = Bucket()

    assert [bucket.take(5.0) for _ in range(11)] == [True] * 10 + [False]
    assert bucket.take(5.011)
    assert not bucket.take(5.012)
