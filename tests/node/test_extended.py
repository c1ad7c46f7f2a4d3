"""Pods ask for devices by a resource's name, and get them from the driver all the same."""

from collections.abc import Iterator

import pytest

from tests.node.agents import NodeAgent
from tests.node.claims import DRA
from tests.node.cluster import Cluster
from tests.node.commands import accelkit
from tests.node.containers import MORTAL, sight, why_unscheduled
from tests.node.objects import pod
from tests.node.releases import needs
from tests.node.serving import forget, run, serving
from tests.node.simulated import VISIBLE, Gpus

pytestmark = needs("DRAExtendedResource")

GPU, PART = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
OFFERS = (
    {**DRA, "name": "gpu", "select": {"partition": False}, "extendedResource": GPU},
    {**DRA, "name": "mig", "extendedResource": "nvidia.com/mig-{profile}"},
)
CLASSES = {"gpu": GPU, "mig-1g.10gb": PART, "mig-3g.40gb": "nvidia.com/mig-3g.40gb"}


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    return Gpus(whole_run_cluster, count=3)


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    """The first GPU may be cut, too; the classes are those that accelkit prints."""
    cut = {"name": [machine.whole[0]]}
    dynamic = {"select": cut, "how": "dynamic", "profiles": ["1g.10gb", "3g.40gb"]}
    with serving(whole_run_cluster, machine, *OFFERS, partitioning=[dynamic]) as found:
        apply_classes(whole_run_cluster, machine, found)
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def apply_classes(cluster: Cluster, machine: Gpus, agent: NodeAgent) -> None:
    """What an administrator does with what accelkit prints."""
    host, policy = f"--host={machine.folder}", f"--policy={agent.policy}"
    printed = accelkit(cluster, "render", "extended", host, policy)
    assert printed.status == 0, printed.errors
    cluster.kubectl("apply", "-f", "-", stdin=printed.out)


def classes(cluster: Cluster) -> dict[str, str]:
    """Resource names of the classes that have one."""
    items = cluster.api("/apis/resource.k8s.io/v1/deviceclasses")["items"]
    named = {item["metadata"]["name"]: item["spec"].get("extendedResourceName") for item in items}
    return {name: resource for name, resource in named.items() if resource}


def test_pods_get_whole_gpus_by_the_name_that_they_always_had(
    cluster: Cluster, agent: NodeAgent
) -> None:
    run(cluster, pod("user", limits={GPU: 2}, command=MORTAL))

    seen = sight(cluster, "user")
    assert classes(cluster) == CLASSES
    assert len(seen.nodes) == 2
    assert seen.environment[VISIBLE] == "void"
    assert not cluster.node().allocatable.get(GPU)  # 0: a plugin had the name once
    (claim,) = cluster.api("/apis/resource.k8s.io/v1/resourceclaims")["items"]
    assert claim["metadata"]["name"].startswith("user-extended-resources-")
    assert not agent.problems() & {"class-missing", "class-differs", "name-taken", "shadowed"}


def test_each_profile_has_a_name_of_its_own(cluster: Cluster, machine: Gpus) -> None:
    small = {PART: 2}
    run(cluster, pod("user", limits=small, command=MORTAL))

    seen = sight(cluster, "user").nodes
    assert [profile for profile, _ in machine.parts()] == ["1g.10gb"] * 2
    assert {name for name in seen if "cap" not in name} == {"nvidia0"}
    assert len(seen) == 1 + 2 * 2
    run(cluster, pod("others", limits={GPU: 2}, command=MORTAL))
    assert sight(cluster, "others").nodes == {"nvidia1", "nvidia2"}


def test_name_that_nobody_offers_is_told(cluster: Cluster) -> None:
    cluster.apply(pod("wrong", limits={"nvidia.com/mig-9g.90gb": 1}, command=MORTAL))
    text = cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "wrong"))
    assert "Insufficient nvidia.com/mig-9g.90gb" in text

    said = accelkit(cluster, "explain", "pod", "default/wrong")

    assert said.status == 1
    assert "1 wanted; no device class has the name nvidia.com/mig-9g.90gb" in said.out


def test_more_than_there_are_is_told(cluster: Cluster) -> None:
    cluster.apply(pod("greedy", limits={GPU: 4}, command=MORTAL))
    text = cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "greedy"))
    assert "cannot allocate all claims" in text

    said = accelkit(cluster, "explain", "pod", "default/greedy")

    assert said.status == 1
    assert f"{GPU}: 4 wanted of class gpu: 3 of 12 published devices can be had" in said.out


def test_what_is_wrong_with_classes_is_a_problem_until_it_is_put_right(
    cluster: Cluster, machine: Gpus, agent: NodeAgent
) -> None:
    cluster.kubectl("delete", "deviceclass", "gpu")
    cluster.wait_for("missing", lambda: "class-missing" in agent.problems())
    cluster.apply(pod("user", limits={GPU: 1}, command=MORTAL))
    text = cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "user"))
    assert f"Insufficient {GPU}" in text

    apply_classes(cluster, machine, agent)

    cluster.wait_for_phase("user", "Running")
    cluster.wait_for("not missing", lambda: "class-missing" not in agent.problems())


def test_two_classes_of_one_name_are_a_problem_until_one_is_gone(
    cluster: Cluster, agent: NodeAgent
) -> None:
    spec = {"selectors": [{"cel": {"expression": "false"}}], "extendedResourceName": GPU}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    cluster.apply({**kind, "metadata": {"name": "rival"}, "spec": spec})
    cluster.wait_for("taken", lambda: "name-taken" in agent.problems())

    cluster.kubectl("delete", "deviceclass", "rival")
    cluster.kubectl("label", "deviceclass", "gpu", "seen=again")  # as the problem's remedy says

    cluster.wait_for("not taken", lambda: "name-taken" not in agent.problems())
    run(cluster, pod("user", limits={GPU: 1}, command=MORTAL))
