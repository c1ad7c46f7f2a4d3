"""What is offered where the API server drops most of what slices may say."""

from collections.abc import Iterator

import pytest

from tests.node.agents import NodeAgent
from tests.node.claims import DRA, DRIVER, claim, claiming, published, request
from tests.node.cluster import Cluster
from tests.node.containers import gpu_nodes, sight, why_unscheduled
from tests.node.objects import Document
from tests.node.releases import has
from tests.node.serving import forget, run, serving
from tests.node.simulated import Gpus

LACKING = ("DRAConsumableCapacity", "DRADeviceTaints", "DRAPartitionableDevices")
COUNT = 3
CUT, SHARED, PLAIN = range(COUNT)
"""Minor numbers."""

pytestmark = pytest.mark.skipif(
    any(has(feature) for feature in LACKING),
    reason=f"Kubernetes has by default one of {', '.join(LACKING)}",
)


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    """One GPU is in parts, two of them."""
    gpus = Gpus(whole_run_cluster, count=COUNT)
    gpus.let("mig", f"gpu-{CUT}", "on")
    gpus.let("create-mig", f"gpu-{CUT}", "3g.40gb", "0")
    gpus.let("create-mig", f"gpu-{CUT}", "3g.40gb", "4")
    return gpus


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    shared = {"name": "shared", "select": {"name": [machine.whole[SHARED]]}}
    with serving(
        whole_run_cluster,
        machine,
        {**DRA, **shared, "sharing": {"shares": 2}},
        DRA,
        partitioning=[{"select": {"name": list(machine.whole)}, "how": "dynamic"}],
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def of(offer: str) -> Document:
    """A request for a whole GPU of an offer."""
    attributes = f'device.attributes["{DRIVER}"]'
    return request(where=f'{attributes}.offer == "{offer}" && {attributes}.profile == "whole"')


def parts(machine: Gpus) -> set[str]:
    return {f"{machine.whole[CUT]}-3g40gb-{start}" for start in (0, 4)}


def test_what_overlaps_is_not_offered_at_once(
    cluster: Cluster, machine: Gpus, agent: NodeAgent
) -> None:
    """Nothing would keep the scheduler from giving away a GPU and a part of it."""
    expected = {machine.whole[SHARED], machine.whole[PLAIN], *parts(machine)}
    cluster.wait_for("slices", lambda: published(cluster) == expected)
    cluster.wait_for("the problem", lambda: "fields-dropped" in agent.problems())
    names = [f"pod-{number}" for number in range(len(expected))]
    for name in names:
        claim(cluster, name)
    run(cluster, *(claiming(name, name) for name in names))

    seen = [sight(cluster, name).nodes for name in names]

    caps = [node for nodes in seen for node in nodes if "cap" in node]
    assert len(caps) == len(set(caps)) == 4
    assert sorted(min(gpu_nodes(cluster, name)) for name in names) == [CUT, CUT, SHARED, PLAIN]


def test_gpu_that_pods_could_share_is_given_to_one(cluster: Cluster) -> None:
    for name in ("one", "two"):
        claim(cluster, name, of("shared"))
    run(cluster, claiming("one", "one"))
    cluster.apply(claiming("two", "two"))

    why = cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "two"))

    assert "cannot allocate all claims" in why
    assert gpu_nodes(cluster, "one") == {SHARED}


def test_bad_gpu_is_withdrawn_but_not_while_a_claim_has_it(cluster: Cluster, machine: Gpus) -> None:
    """It cannot be tainted."""
    claim(cluster, "held", of("all"))
    run(cluster, claiming("user", "held"))
    before = published(cluster)
    assert gpu_nodes(cluster, "user") == {PLAIN}

    for minor in (SHARED, PLAIN):
        machine.let("lose", f"gpu-{minor}")
    cluster.wait_for("one less", lambda: before - published(cluster) == {machine.whole[SHARED]})
    cluster.kubectl("delete", "pod", "user", "--wait")
    cluster.wait_for("parts alone", lambda: published(cluster) == parts(machine))
    for minor in (SHARED, PLAIN):
        machine.let("restore", f"gpu-{minor}")

    cluster.wait_for("all again", lambda: published(cluster) == before)
