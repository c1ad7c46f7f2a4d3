"""A resource's name moves from the device plugin to claims and back, with pods running."""

import time
from collections.abc import Iterator

import pytest

from tests.node.agents import Agents, NodeAgent, offer, rival
from tests.node.claims import DRA, published
from tests.node.cluster import Cluster
from tests.node.commands import accelkit
from tests.node.containers import MORTAL, crash, gpu_nodes, life, run_pod, wait_allocatable
from tests.node.measured import Measured
from tests.node.objects import pod
from tests.node.releases import needs
from tests.node.serving import forget, run, taints
from tests.node.simulated import Gpus

pytestmark = needs("DRAExtendedResource")
NAME = "moving.test/gpu"
COUNT = 4
BY_KUBELET = offer(name="kept", resource=NAME)
BY_CLAIM = {**DRA, "name": "moved", "extendedResource": NAME}


@pytest.fixture
def machine(cluster: Cluster) -> Gpus:
    return Gpus(cluster, count=COUNT)


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agents: Agents) -> Iterator[None]:  # noqa: ARG001 - they free claims
    yield
    forget(cluster)
    cluster.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")


@pytest.fixture
def agent(agents: Agents, machine: Gpus) -> NodeAgent:
    """Offers through the kubelet; a class for the name is there."""
    started = agents.start(machine.folder, BY_KUBELET, dra={})
    started.wait_offered(NAME, COUNT)
    return started


def render_classes(cluster: Cluster, machine: Gpus, agent: NodeAgent) -> None:
    host, policy = f"--host={machine.folder}", f"--policy={agent.policy}"
    printed = accelkit(cluster, "render", "extended", host, policy)
    assert printed.status == 0, printed.errors
    cluster.kubectl("apply", "-f", "-", stdin=printed.out)


def test_name_moves_to_claims_and_back_while_pods_go_on(
    cluster: Cluster, machine: Gpus, agent: NodeAgent, measured: Measured
) -> None:
    run(cluster, pod("old", limits={NAME: 1}, command=MORTAL, restart="Always"))
    (had,) = gpu_nodes(cluster, "old")
    before = life(cluster, "old")

    begun = time.monotonic()
    agent.adopt(offers=[BY_CLAIM])
    render_classes(cluster, machine, agent)
    wait_allocatable(cluster, NAME, 0, capacity=1)  # the one that is held
    free = machine.ids(set(range(COUNT)) - {had})
    cluster.wait_for("free ones in slices", lambda: published(cluster) == free)
    measured.add(
        "a name moves to claims: until its free devices are in slices", time.monotonic() - begun
    )

    run(cluster, pod("new", limits={NAME: COUNT - 1}, command=MORTAL))
    assert gpu_nodes(cluster, "new") == set(range(COUNT)) - {had}
    assert life(cluster, "old") == before
    crash(cluster, "old")  # the next container gets what the kubelet remembers
    assert gpu_nodes(cluster, "old") == {had}
    cluster.kubectl("delete", "pod", "old", "--wait")
    cluster.wait_for("all in slices", lambda: published(cluster) == set(machine.whole))

    agent.adopt(offers=[BY_KUBELET])
    held = machine.ids(gpu_nodes(cluster, "new"))
    leaving = {device: {"leaving": "NoSchedule"} for device in held}
    cluster.wait_for("leaving", lambda: taints(cluster) == leaving)
    assert published(cluster) == held
    cluster.wait_for("told", lambda: "claims-left" in agent.problems())
    wait_allocatable(cluster, NAME, 0, capacity=1)  # the one that is free
    before = life(cluster, "new")
    cluster.restart("kubelet")
    wait_allocatable(cluster, NAME, 0, capacity=1)  # the one that is free
    assert life(cluster, "new") == before

    begun = time.monotonic()
    cluster.kubectl("delete", "pod", "new", "--wait")
    wait_allocatable(cluster, NAME, COUNT)
    measured.add(
        "the last claim of a name ends: until the kubelet has it again", time.monotonic() - begun
    )
    run_pod(cluster, "after", {NAME: COUNT})
    assert gpu_nodes(cluster, "after") == set(range(COUNT))
    assert published(cluster) == set()


def test_name_that_somebody_elses_plugin_has_waits_until_that_is_gone(
    cluster: Cluster, agents: Agents, machine: Gpus
) -> None:
    """As long as the node shows some from it, pods would get those, whatever is in slices."""
    with rival(cluster, NAME, "r0", "r1"):
        wait_allocatable(cluster, NAME, 2)
        agent = agents.start(machine.folder, BY_CLAIM, dra={})
        cluster.wait_for("told", lambda: "shadowed" in agent.problems())
        assert published(cluster) == set()

    cluster.wait_for("slices", lambda: published(cluster) == set(machine.whole))
    assert "shadowed" not in agent.problems()
    render_classes(cluster, machine, agent)
    run(cluster, pod("user", limits={NAME: 1}, command=MORTAL))
