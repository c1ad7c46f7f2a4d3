"""What the scheduler sees of a node's devices, and who may take it away."""

import time
from collections.abc import Iterator

import pytest

from accelkit.testing.simulate import set_state
from tests.node.agents import Agents, NodeAgent
from tests.node.claims import DRA, DRIVER, claim, claiming, device_class, published
from tests.node.cluster import Cluster
from tests.node.containers import gpu_nodes
from tests.node.measured import Measured
from tests.node.objects import Document
from tests.node.releases import needs
from tests.node.simulated import GPUS, Gpus

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


@pytest.fixture(autouse=True)
def class_(cluster: Cluster, agents: Agents) -> Iterator[None]:  # noqa: ARG001 - ends before agents
    device_class(cluster)
    yield
    cluster.remove_pods()
    cluster.kubectl("delete", "resourceclaims", "--all", "--wait")
    cluster.kubectl("delete", "resourceslices,deviceclasses", "--all")


@pytest.fixture
def driver(cluster: Cluster, agents: Agents, gpus: Gpus) -> NodeAgent:
    agent = agents.start(gpus.folder, DRA, dra={})
    cluster.wait_for("slices", lambda: published(cluster) == gpus.ids(set(range(GPUS))))
    return agent


def slices(cluster: Cluster) -> list[Document]:
    """The driver's slices, by name."""
    found = cluster.api(SLICES)["items"]
    return sorted(
        (item for item in found if item["spec"]["driver"] == DRIVER),
        key=lambda item: str(item["metadata"]["name"]),
    )


def versions(cluster: Cluster) -> list[str]:
    return [item["metadata"]["resourceVersion"] for item in slices(cluster)]


def taints(cluster: Cluster) -> dict[str, list[str]]:
    """Keys of each tainted device."""
    return {
        device["name"]: [taint["key"] for taint in device["taints"]]
        for item in slices(cluster)
        for device in item["spec"]["devices"]
        if "taints" in device
    }


@pytest.mark.usefixtures("driver")
def test_slices_that_a_starting_kubelet_removes_are_back_soon(
    cluster: Cluster, gpus: Gpus, measured: Measured
) -> None:
    before = {item["metadata"]["uid"] for item in slices(cluster)}

    begun = time.monotonic()
    cluster.restart("kubelet")
    cluster.wait_for(
        "other slices",
        lambda: (new := slices(cluster)) and not before & {i["metadata"]["uid"] for i in new},
    )

    measured.add(
        "kubelet started again: until slices that it removed are back", time.monotonic() - begun
    )
    assert published(cluster) == gpus.ids(set(range(GPUS)))


def test_next_agent_finds_slices_as_they_should_be_and_writes_nothing(
    cluster: Cluster, agents: Agents, gpus: Gpus, driver: NodeAgent
) -> None:
    before = versions(cluster)
    driver.end()

    agent = agents.start(gpus.folder, DRA, dra={})
    agent.wait_until_ready()

    assert versions(cluster) == before


@needs("DRADeviceTaints")
@pytest.mark.usefixtures("driver")
def test_bad_device_stays_in_its_slice_and_is_tainted(
    cluster: Cluster, gpus: Gpus, measured: Measured
) -> None:
    (before,) = slices(cluster)
    (lost,) = gpus.ids({2})

    begun = time.monotonic()
    set_state(str(gpus.folder), ["xid", "gpu-2", "79"])
    cluster.wait_for("a taint", lambda: taints(cluster))

    measured.add("GPU fell off the bus: until its taint is there", time.monotonic() - begun)
    (after,) = slices(cluster)
    assert list(taints(cluster)) == [lost]
    assert after["spec"]["pool"] == before["spec"]["pool"]
    assert published(cluster) == gpus.ids(set(range(GPUS)))


@pytest.mark.usefixtures("driver")
def test_slice_that_somebody_removed_comes_back(cluster: Cluster, gpus: Gpus) -> None:
    cluster.kubectl("delete", "resourceslices", "--all")
    assert published(cluster) == set()

    cluster.wait_for(
        "slices", lambda: published(cluster) == gpus.ids(set(range(GPUS))), patience=60
    )


@needs("DRAConsumableCapacity")
def test_device_is_shared_as_often_as_its_offer_says(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    (only,) = gpus.ids({0})
    offer = {**DRA, "select": {"name": [only]}, "sharing": {"shares": 2}}
    agents.start(gpus.folder, offer, dra={})
    cluster.wait_for("slices", lambda: published(cluster) == {only})
    for name in ("one", "two", "three"):
        claim(cluster, name)
        cluster.apply(claiming(name, name))
    ran = cluster.wait_for(
        "two pods",
        lambda: [n for n in ("one", "two", "three") if cluster.phase(n) == "Running"][1:],
        patience=120,
    )

    assert [gpu_nodes(cluster, name) for name in ran] == [{0}]
    assert sorted(cluster.phase(n) for n in ("one", "two", "three")) == [
        "Pending",
        "Running",
        "Running",
    ]
