"""Two nodes of one cluster, each with an agent of its own."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs
import pytest

from tests.node.agents import Agents, NodeAgent
from tests.node.audited import Asked, Audited
from tests.node.claims import (
    DRA,
    claim,
    claiming,
    described,
    device_class,
    published,
    refusals,
)
from tests.node.cluster import Cluster
from tests.node.containers import life
from tests.node.measured import Measured
from tests.node.objects import Document
from tests.node.serving import forget, run
from tests.node.simulated import Gpus
from tests.node.traffic import Traffic

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
COUNT = 3
PERIODS = 5
READ = dict.fromkeys(("inventory", "health", "holdings", "reconcile"), "1s")
"""The periods of the agents' loops."""
AWAY_S = 8.0
ROUNDS = 2


@attrs.define
class Node:
    """A node with an agent that asks the API server as a user of its own."""

    cluster: Cluster
    agents: Agents
    gpus: Gpus
    user: Audited
    agent: NodeAgent = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.agent = self.start()

    @property
    def name(self) -> str:
        return self.cluster.name

    def start(self) -> NodeAgent:
        kube = {"config": str(self.user.kubeconfig)}
        return self.agents.start(self.gpus.folder, DRA, dra={}, kube=kube, read=READ)

    def offers(self) -> bool:
        return published(self.cluster) == set(self.gpus.whole)

    def slices(self) -> list[Document]:
        return [
            one for one in self.cluster.api(SLICES)["items"] if one["spec"]["nodeName"] == self.name
        ]

    def versions(self) -> set[str]:
        return {one["metadata"]["resourceVersion"] for one in self.slices()}


@pytest.fixture(scope="module")
def both(whole_run_cluster: Cluster, second_node: Cluster) -> Iterator[tuple[Node, Node]]:
    clusters = (whole_run_cluster, second_node)
    device_class(whole_run_cluster)
    agents = [Agents(one) for one in clusters]
    try:
        first, second = (
            Node(one, starts, Gpus(one, seed, COUNT), Audited(one, f"agent-of-{one.name}"))
            for seed, (one, starts) in enumerate(zip(clusters, agents, strict=True))
        )
        for node in (first, second):
            node.cluster.wait_for("slices", node.offers)
        yield first, second
    finally:
        forget(whole_run_cluster)
        for starts in agents:
            starts.end()
        whole_run_cluster.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, both: Sequence[Node]) -> Iterator[None]:
    yield
    for node in both:
        node.cluster.start_kubelet()
        if not node.agent.runs:  # it frees claims
            node.agent = node.start()
    forget(cluster)


def pod_on(node: Node, name: str) -> Document:
    """A pod with a GPU of this node."""
    claim(node.cluster, name)
    made = claiming(name, name)
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node.name}
    return made


def slices_asked(node: Node) -> list[Asked]:
    """What its agent has written of slices since it was last forgotten."""
    return [one for one in node.user.asked() if one.resource == "resourceslices" and one.writes]


def test_agents_write_their_own_slices_alone_and_nothing_while_nothing_changes(
    cluster: Cluster, both: Sequence[Node], measured: Measured
) -> None:
    for node in both:
        run(cluster, pod_on(node, f"on-{node.name}"))
    for node in both:
        written = slices_asked(node)
        assert {one.program for one in written} == {"accelkit"}
        assert [one.name for one in written if not one.name.endswith(f"-{node.name}")] == []
        node.user.forget()
    before = [node.versions() for node in both]

    time.sleep(PERIODS * 1.2)

    for node in both:
        asked = list(node.user.asked())
        counted = Counter(f"{one.verb} {one.resource}" for one in asked)
        measured.tell(f"{PERIODS} periods without a change, {node.name} asks: {dict(counted)}")
        assert [one for one in asked if one.writes] == []
        assert counted["get resourceclaims"] >= PERIODS - 1, "its loops do not turn"
    assert [node.versions() for node in both] == before


def test_slices_that_are_edited_or_wiped_are_put_right_by_their_own_agent(
    cluster: Cluster, both: Sequence[Node], measured: Measured
) -> None:
    """A kubelet wipes them when their driver is gone for so long; pods go on."""
    edited, left = both
    run(cluster, pod_on(left, "user"))
    before = life(cluster, "user")
    for node in both:
        node.user.forget()

    left.agent.end()
    (slice_,) = edited.slices()
    name = slice_["metadata"]["name"]
    cluster.kubectl(
        *("patch", "resourceslice", name, "--type=json"),
        *("-p", json.dumps([{"op": "remove", "path": "/spec/devices/0"}])),
    )
    begun = time.monotonic()
    assert not edited.offers()
    cluster.wait_for("the edited slice", edited.offers)
    measured.add("slice edited by somebody: until it is put right", time.monotonic() - begun)
    cluster.wait_for("no slices of the other", lambda: not left.slices())
    measured.add("agent gone: until the kubelet has wiped its slices", time.monotonic() - begun)
    begun = time.monotonic()
    left.agent = left.start()
    cluster.wait_for("slices of the other", left.offers)
    measured.add("agent back: until its wiped slices are there", time.monotonic() - begun)

    assert [(one.verb, one.name) for one in slices_asked(edited)] == [("update", name)]
    assert {one.verb for one in slices_asked(left)} == {"create"}
    assert life(cluster, "user") == before


def test_pods_and_slices_outlive_a_kubelet_that_is_away(
    cluster: Cluster, both: Sequence[Node], measured: Measured
) -> None:
    stays, node = both
    run(cluster, pod_on(node, "old"), pod_on(stays, "other"))
    before = life(cluster, "old")
    node.cluster.kill_kubelet()
    versions = node.versions()
    end = time.monotonic() + AWAY_S
    while time.monotonic() < end:
        assert node.versions() == versions
        time.sleep(0.2)

    begun = time.monotonic()
    node.cluster.start_kubelet()
    cluster.wait_for("other slices", lambda: node.offers() and not node.versions() & versions)
    measured.add("kubelet back: until slices that it wiped are there", time.monotonic() - begun)
    run(cluster, pod_on(node, "new"))

    assert life(cluster, "old") == before
    assert refusals(cluster) == []
    cluster.kubectl("delete", "pod", "old", "--wait", patience=90)
    assert len(described(node.cluster)) == 1


def test_no_pod_fails_while_agents_are_replaced_by_newer_ones(
    cluster: Cluster, both: Sequence[Node], measured: Measured
) -> None:
    """The newer one is ready before the older one ends, and slices stay as they are."""
    claim(cluster, "one", kind="ResourceClaimTemplate")
    traffic = Traffic(cluster, ["one"], most=COUNT * 2, force=0)
    versions = [node.versions() for node in both]

    for node in both:
        for _ in range(ROUNDS):
            older, node.agent = node.agent, node.start()
            while not node.agent.registered:
                traffic.step()
            older.tell(signal.SIGTERM)
            while older.runs:
                traffic.step()
            assert older.end() == 0
    traffic.settle()
    traffic.end()

    measured.tell(f"{2 * ROUNDS} agents replaced under {traffic.made} pods")
    measured.add("slowest pod while agents were replaced: until it ran", traffic.slowest_s)
    assert traffic.failed == {}
    assert refusals(cluster) == []
    assert len(traffic.ran) == traffic.made
    assert [node.versions() for node in both] == versions
