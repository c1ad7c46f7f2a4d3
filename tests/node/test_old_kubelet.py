"""A node with an older kubelet in a newer cluster, as in the middle of an upgrade."""

from collections.abc import Iterator

import pytest

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import (
    DRA,
    DRIVER,
    allocated,
    claim,
    claiming,
    device_class,
    published,
    request,
)
from tests.node.cluster import Cluster
from tests.node.conftest import SECOND
from tests.node.containers import MORTAL, gpu_nodes, sight, why_unscheduled
from tests.node.objects import pod
from tests.node.programs import NEWEST, RELEASE, programs_folder
from tests.node.serving import forget, run
from tests.node.simulated import Gpus

OLD = "1.34"
NAME = "nvidia.com/gpu"
OFFER = f'device.attributes["{DRIVER}"].offer'
COUNT = 3
BY_NAME, SHARED, CUT = range(COUNT)
"""Minor numbers of the GPUs in each offer."""

pytestmark = [
    pytest.mark.skipif(RELEASE != NEWEST, reason=f"the cluster is no {NEWEST}"),
    pytest.mark.skipif(
        not programs_folder(OLD).is_dir(),
        reason=f"no kubelet {OLD} is built: python -m tests.node build --release {OLD}",
    ),
]


@pytest.fixture(scope="module")
def node(whole_run_cluster: Cluster) -> Iterator[Cluster]:
    first = whole_run_cluster
    made = Cluster.up(first.root / SECOND, programs_folder(OLD), join=first)
    try:
        yield made
    finally:
        made.down(remove=True)
        first.kubectl("delete", "node", made.name)


@pytest.fixture(scope="module")
def gpus(node: Cluster) -> Gpus:
    return Gpus(node, count=COUNT)


@pytest.fixture(scope="module")
def agent(node: Cluster, gpus: Gpus) -> Iterator[NodeAgent]:
    """One GPU is offered by a resource name, one to several claims, one may be cut."""
    named, shared, cut = ({"name": [device]} for device in gpus.whole)
    device_class(node)
    by_name = {"expression": f'device.driver == "{DRIVER}" && {OFFER} == "named"'}
    node.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "by-name"},
            "spec": {"selectors": [{"cel": by_name}], "extendedResourceName": NAME},
        }
    )
    agents = Agents(node)
    try:
        yield agents.start(
            gpus.folder,
            {**DRA, "name": "named", "select": named, "extendedResource": NAME},
            {**DRA, "name": "shared", "select": shared, "sharing": {"shares": 2}},
            DRA,
            dra={},
            partitioning=[{"select": cut, "how": "dynamic"}],
        )
    finally:
        forget(node)
        agents.end()
        node.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def test_devices_with_a_resource_name_are_kept_from_a_kubelet_that_would_not_give_them(
    node: Cluster, gpus: Gpus, agent: NodeAgent
) -> None:
    """It would start the pod without any device."""
    node.wait_for("slices", lambda: gpus.whole[SHARED] in published(node))
    node.wait_for("the problem", lambda: "kubelet-too-old" in agent.problems())

    node.apply(pod("user", limits={NAME: 1}, command=MORTAL))

    why = node.wait_for("a reason", lambda: why_unscheduled(node, "user"))
    assert gpus.whole[BY_NAME] not in published(node)
    assert "cannot allocate all claims" in why
    assert node.phase("user") == "Pending"


def test_claims_are_served_for_an_older_kubelet(node: Cluster, gpus: Gpus) -> None:
    """It is told no ids of shares, and knows nothing of counters."""
    node.wait_for("slices", lambda: gpus.whole[SHARED] in published(node))
    device = 'device.attributes["nvidia.accelkit.dev"].offer == "shared"'
    for name in ("one", "two"):
        claim(node, name, request(where=device))
    claim(node, "part", request(profile="1g.10gb"))

    run(node, *(claiming(name, name) for name in ("one", "two", "part")))

    assert [gpu_nodes(node, name) for name in ("one", "two", "part")] == [{SHARED}, {SHARED}, {CUT}]
    assert len([name for name in sight(node, "part").nodes if "cap" in name]) == 2
    assert [profile for profile, _ in gpus.parts(CUT)] == ["1g.10gb"]
    assert allocated(node, "one") == allocated(node, "two") == [gpus.whole[SHARED]]
    forget(node)
    assert gpus.parts(CUT) == []
