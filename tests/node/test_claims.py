"""What users ask for in claims, and what the containers of their pods find."""

from collections.abc import Iterator

import pytest

from accelkit.testing.simulate import simulate
from tests.node.agents import NodeAgent
from tests.node.claims import (
    DRIVER,
    allocated,
    claim,
    claim_config,
    claiming,
    config,
    described,
    device_class,
    from_template,
    in_containers,
    request,
    results,
    said,
)
from tests.node.cluster import Cluster
from tests.node.containers import Sight, sight, why_unscheduled
from tests.node.objects import Document
from tests.node.processes import NodeError
from tests.node.serving import forget, run, serving, wait_listed
from tests.node.simulated import VISIBLE, Gpus

COUNT, SET_COUNT = 4, 4
SET, SET_DRIVER = "sets", "simset.accelkit.dev"
ADMINS = "admins"
MEMORY = f'device.capacity["{DRIVER}"].memory'
PRODUCT = f'device.attributes["{DRIVER}"].product'
REFUSED = "FailedPrepareDynamicResources"


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    """Beside its GPUs, accelerators whose containers are told of their set."""
    gpus = Gpus(whole_run_cluster, count=COUNT)
    simulate("simset", "ring", SET_COUNT, str(gpus.folder), device_nodes=True)
    return gpus


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    device_class(whole_run_cluster, SET_DRIVER, SET)
    with serving(whole_run_cluster, machine) as found:
        wait_listed(whole_run_cluster, SET_DRIVER, SET_COUNT)
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def refusal(cluster: Cluster, pod: str) -> str:
    """What the kubelet tells of a pod whose claim was refused."""
    return cluster.wait_for("an event", lambda: said(cluster, pod, REFUSED))


def test_each_pod_has_a_claim_of_its_own_from_a_template(cluster: Cluster) -> None:
    claim(cluster, "own", kind="ResourceClaimTemplate")
    run(cluster, *(from_template(claiming(name, "own")) for name in ("one", "two")))

    one, two = (sight(cluster, name) for name in ("one", "two"))

    assert len(one.nodes) == len(two.nodes) == 1
    assert not one.nodes & two.nodes
    assert one.environment[VISIBLE] == two.environment[VISIBLE] == "void"
    cluster.remove_pods()
    claims = "/apis/resource.k8s.io/v1/resourceclaims"
    cluster.wait_for("claims gone", lambda: not cluster.api(claims)["items"])
    assert described(cluster) == set()


def test_admin_looks_at_gpus_that_somebody_uses(cluster: Cluster, machine: Gpus) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    namespace = {"name": ADMINS, "labels": labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    claim(cluster, "busy", request(count=COUNT))
    run(cluster, claiming("user", "busy"))
    every: Document = {"deviceClassName": "gpu", "adminAccess": True, "allocationMode": "All"}
    claim(cluster, "look", {"name": "all", "exactly": every}, namespace=ADMINS)
    watcher = claiming("watcher", "look")
    watcher["metadata"]["namespace"] = ADMINS

    run(cluster, watcher)

    assert sight(cluster, "watcher", namespace=ADMINS).nodes == sight(cluster, "user").nodes
    assert {r["device"] for r in results(cluster, "look", ADMINS)} == set(machine.whole)
    forget(cluster, ADMINS)


def test_containers_find_what_the_claims_got_that_they_name(
    cluster: Cluster, machine: Gpus
) -> None:
    claim(cluster, "one", request("a"), request("b"))
    claim(cluster, "two")
    names = {"first": ["one"], "second": ["two"], "both": ["one/a", "two"], "none": []}

    run(cluster, in_containers(claiming("user", "one", "two"), **names))

    seen = {name: sight(cluster, "user", name).nodes for name in names}
    a, b = (node_of(machine, device) for device in allocated(cluster, "one"))
    (c,) = (node_of(machine, device) for device in allocated(cluster, "two"))
    assert seen == {"first": {a, b}, "second": {c}, "both": {a, c}, "none": set()}


def node_of(machine: Gpus, device: str) -> str:
    return f"nvidia{machine.whole.index(device)}"


def test_devices_are_chosen_by_memory_and_product(cluster: Cluster) -> None:
    large = f'{MEMORY}.compareTo(quantity("70Gi")) >= 0 && {PRODUCT}.contains("H100")'
    huge = f'{MEMORY}.compareTo(quantity("90Gi")) >= 0 && {PRODUCT}.contains("H100")'
    claim(cluster, "large", request(where=large))
    claim(cluster, "huge", request(where=huge))
    cluster.apply(claiming("waits", "huge"))

    run(cluster, claiming("user", "large"))

    assert len(sight(cluster, "user").nodes) == 1
    text = cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "waits"))
    assert "cannot allocate all claims" in text


def sets(name: str, count: int) -> Document:
    return request(name, count, of=SET)


def test_container_is_told_of_its_set_once(cluster: Cluster) -> None:
    claim(cluster, "pair", sets("pair", 2))
    run(cluster, claiming("user", "pair"))

    found = told(sight(cluster, "user"))

    assert found == ("2", set(allocated(cluster, "pair")))


def told(seen: Sight) -> tuple[str, set[str]]:
    """Size and members of the set that a container is told of."""
    return seen.environment["SIM_SET_SIZE"], set(seen.environment["SIM_SET"].split(","))


def test_claim_of_several_requests_must_say_what_containers_name(cluster: Cluster) -> None:
    claim(cluster, "two", sets("a", 1), sets("b", 2))
    cluster.apply(claiming("user", "two"))

    text = refusal(cluster, "user")

    assert "simset can only describe a set as a whole" in text
    assert "say in the claim's ClaimConfig what containers name: set: request, or" in text


def test_container_is_told_of_the_set_of_the_request_that_it_names(cluster: Cluster) -> None:
    apart = config(claim_config(set="request"), SET_DRIVER)
    claim(cluster, "two", sets("a", 1), sets("b", 2), configs=[apart])

    run(cluster, in_containers(claiming("user", "two"), a=["two/a"], b=["two/b"]))

    a, *b = allocated(cluster, "two")
    assert told(sight(cluster, "user", "a")) == ("1", {a})
    assert told(sight(cluster, "user", "b")) == ("2", set(b))


def test_container_is_told_of_the_set_of_the_claim_that_it_names(cluster: Cluster) -> None:
    together = config(claim_config(set="claim"), SET_DRIVER)
    claim(cluster, "two", sets("a", 1), sets("b", 2), configs=[together])

    run(cluster, claiming("user", "two"))

    assert told(sight(cluster, "user")) == ("3", set(allocated(cluster, "two")))


def test_what_a_claim_may_not_say_is_told_in_an_event_of_its_pod(cluster: Cluster) -> None:
    """And whoever asks rightly is served meanwhile."""
    wrong = {
        "key": claim_config(sharring={}),
        "path": claim_config(sharing={"mounts": ["/etc"]}),
        "command": claim_config(vendor={"command": ["sh"]}),
    }
    for name, parameters in wrong.items():
        claim(cluster, name, configs=[config(parameters)])
        cluster.apply(claiming(name, name))
    others = config({"anything": "at all"}, "other.example.com")
    claim(cluster, "right", configs=[others, config(claim_config())])
    run(cluster, claiming("right", "right"))

    told_of = {name: refusal(cluster, name) for name in wrong}

    assert "$.sharring: unknown key, did you mean 'sharing'?" in told_of["key"]
    assert "$.sharing.mounts: unknown key" in told_of["path"]
    assert "$.vendor.command: unknown key" in told_of["command"]
    assert len(sight(cluster, "right").nodes) == 1


def test_block_that_is_too_long_does_not_get_past_the_api_server(cluster: Cluster) -> None:
    long = claim_config(vendor={"x": "y" * 10 * 1024})

    with pytest.raises(NodeError, match="parameters: Too long: may not be more than 10240 bytes"):
        claim(cluster, "long", configs=[config(long)])
