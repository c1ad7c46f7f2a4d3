"""Pods get devices by claims, from a driver that the kubelet found by itself."""

import json
import signal
import time
from collections.abc import Iterator

import pytest

from accelkit.testing.simulate import set_state, simulate
from tests.node.agents import REGISTRY, Agents, NodeAgent
from tests.node.claims import (
    DRA,
    DRIVER,
    allocated,
    claim,
    claiming,
    config,
    described,
    device_class,
    published,
    request,
    said,
    uid,
)
from tests.node.cluster import Cluster
from tests.node.containers import environment, gpu_nodes, held, life
from tests.node.measured import Measured
from tests.node.processes import NodeError
from tests.node.simulated import GPUS, VISIBLE, Gpus

SIM_DRIVER = "simset.accelkit.dev"


@pytest.fixture(autouse=True)
def class_(cluster: Cluster, agents: Agents) -> Iterator[None]:  # noqa: ARG001 - ends before agents
    """A class of all GPUs; pods end before agents do, since nobody else frees their claims."""
    device_class(cluster)
    yield
    cluster.remove_pods()
    cluster.kubectl("delete", "resourceclaims", "--all", "--wait")
    cluster.kubectl("delete", "resourceslices,deviceclasses", "--all")


def start(cluster: Cluster, agents: Agents, gpus: Gpus, **dra: object) -> NodeAgent:
    """Start an agent and wait until its devices are published."""
    agent = agents.start(gpus.folder, DRA, dra=dra)
    cluster.wait_for("slices", lambda: published(cluster) == gpus.ids(set(range(GPUS))))
    return agent


@pytest.fixture
def driver(cluster: Cluster, agents: Agents, gpus: Gpus) -> NodeAgent:
    return start(cluster, agents, gpus)


def run(cluster: Cluster, name: str, *claims: str) -> None:
    """Make a pod with these claims and wait until it runs."""
    cluster.apply(claiming(name, *claims))
    cluster.wait_for_phase(name, "Running", patience=120)


def sockets_of(cluster: Cluster, driver: str) -> list[str]:
    """Names of the driver's sockets."""
    folder = cluster.kubelet_root / REGISTRY
    return [path.name for path in folder.iterdir() if path.name.startswith(driver)]


def gone(cluster: Cluster, name: str) -> None:
    cluster.kubectl("delete", "pod", name, "--wait", patience=120)


@pytest.mark.usefixtures("driver")
def test_pod_has_what_its_claim_got_and_nothing_is_left_when_it_goes(
    cluster: Cluster, gpus: Gpus, measured: Measured
) -> None:
    claim(cluster, "two", request(count=2))

    begun = time.monotonic()
    run(cluster, "user", "two")
    measured.add("a pod with a claim for two GPUs: until it runs", time.monotonic() - begun)

    got = gpu_nodes(cluster, "user")
    assert gpus.ids(got) == set(allocated(cluster, "two"))
    assert len(got) == 2
    visible = set(environment(cluster, "user")[VISIBLE].split(","))
    assert visible == {"void"}
    assert described(cluster) == {f"{DRIVER}-claim_{uid(cluster, 'two')}.json"}

    gone(cluster, "user")

    assert described(cluster) == set()


@pytest.mark.usefixtures("driver")
def test_health_of_a_claimed_device_is_in_the_status_of_its_pod(
    cluster: Cluster, gpus: Gpus, measured: Measured
) -> None:
    claim(cluster, "all", request(count=GPUS))
    run(cluster, "user", "all")
    before = life(cluster, "user")
    cluster.wait_for("health", lambda: set(held(cluster, "user").values()) == {"Healthy"})

    begun = time.monotonic()
    set_state(str(gpus.folder), ["lose", "gpu-2"])
    (lost,) = gpus.ids({2})

    def unhealthy() -> set[str]:
        return {name for name, health in held(cluster, "user").items() if health == "Unhealthy"}

    cluster.wait_for("Unhealthy", unhealthy)
    measured.add(
        "claimed GPU lost, read.health 2s: until the pod's status says so",
        time.monotonic() - begun,
    )
    assert [lost in name for name in unhealthy()] == [True]

    set_state(str(gpus.folder), ["restore", "gpu-2"])

    cluster.wait_for("Healthy", lambda: not unhealthy())
    assert life(cluster, "user") == before


@pytest.mark.usefixtures("driver")
def test_wrong_configuration_is_told_in_an_event_of_the_pod(cluster: Cluster) -> None:
    wrong = {"apiVersion": "accelkit.dev/v1", "kind": "ClaimConfig", "sharring": {}}
    claim(cluster, "wrong", configs=[config(wrong)])
    cluster.apply(claiming("user", "wrong"))

    text = cluster.wait_for(
        "an event", lambda: said(cluster, "user", "FailedPrepareDynamicResources")
    )

    assert "$.sharring: unknown key, did you mean 'sharing'?" in text
    assert cluster.phase("user") == "Pending"


@pytest.mark.usefixtures("driver")
def test_pods_share_a_claim_and_the_last_one_frees_it(cluster: Cluster) -> None:
    claim(cluster, "shared")
    run(cluster, "one", "shared")
    run(cluster, "two", "shared")
    assert gpu_nodes(cluster, "one") == gpu_nodes(cluster, "two")

    gone(cluster, "one")
    assert len(described(cluster)) == 1
    gone(cluster, "two")

    assert described(cluster) == set()


@pytest.mark.usefixtures("driver")
def test_subrequests_and_claims_of_several_requests_are_served(
    cluster: Cluster, gpus: Gpus
) -> None:
    either = {
        "name": "either",
        "firstAvailable": [
            {"name": "many", "deviceClassName": "gpu", "count": GPUS + 1},
            {"name": "few", "deviceClassName": "gpu", "count": 2},
        ],
    }
    claim(cluster, "mixed", either, request("more"))
    run(cluster, "user", "mixed")

    assert gpus.ids(gpu_nodes(cluster, "user")) == set(allocated(cluster, "mixed"))
    assert len(gpu_nodes(cluster, "user")) == 3


def test_claim_may_have_devices_of_two_drivers(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    simulate("simset", "ring", 4, str(gpus.folder), device_nodes=True)
    device_class(cluster, SIM_DRIVER, "sim")
    start(cluster, agents, gpus)
    cluster.wait_for("slices", lambda: len(published(cluster, SIM_DRIVER)) == 4)
    claim(cluster, "both", request("gpus", 2), request("cards", 2, deviceClassName="sim"))
    run(cluster, "user", "both")

    nodes = cluster.exec_in_pod("user", "ls", "/dev").split()
    assert len([name for name in nodes if name.startswith("simset")]) == 2
    assert len(gpu_nodes(cluster, "user")) == 2
    assert gpus.ids(gpu_nodes(cluster, "user")) < set(allocated(cluster, "both"))
    assert len(described(cluster)) == 1

    gone(cluster, "user")

    assert described(cluster) == set()


def test_pod_that_is_deleted_by_force_gives_its_devices_to_the_next_one(
    cluster: Cluster, driver: NodeAgent, measured: Measured
) -> None:
    """The next one's claim comes before the kubelet has given the old one back: it waits."""
    claim(cluster, "first", request(count=GPUS))
    claim(cluster, "second", request(count=GPUS))
    first, second = uid(cluster, "first"), uid(cluster, "second")
    cluster.apply(claiming("first", "first", grace_s=30))
    cluster.wait_for_phase("first", "Running")
    cluster.apply(claiming("second", "second"))

    begun = time.monotonic()
    cluster.kubectl("delete", "pod", "first", "--grace-period=0", "--force")
    cluster.wait_for_phase("second", "Running", patience=30)

    measured.add(
        "all GPUs of a pod that was deleted by force: until the next pod runs",
        time.monotonic() - begun,
    )
    assert len(gpu_nodes(cluster, "second")) == GPUS
    lines = [line for line in driver.log.read_text().splitlines() if " claim " in line]
    told = [
        (word, name)
        for line in lines
        for word in ("not prepared", "prepared", "released")
        for name in (first, second)
        if f"claim {word} claim={name} driver=" in line
    ]
    assert told == [("prepared", first), ("released", first), ("prepared", second)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_pods_go_on_and_are_freed_by_the_next_agent(
    cluster: Cluster, agents: Agents, gpus: Gpus, driver: NodeAgent, number: signal.Signals
) -> None:
    claim(cluster, "kept")
    claim(cluster, "new")
    run(cluster, "old", "kept")
    before = (life(cluster, "old"), described(cluster), published(cluster))
    driver.end(number)

    agents.start(gpus.folder, DRA, dra={})
    run(cluster, "new", "new")

    assert (life(cluster, "old"), published(cluster)) == (before[0], before[2])
    assert described(cluster) > before[1]
    assert len(sockets_of(cluster, DRIVER)) == 1

    gone(cluster, "old")
    gone(cluster, "new")

    assert described(cluster) == set()


@pytest.mark.usefixtures("driver")
def test_pods_go_on_when_the_kubelet_is_started_again(cluster: Cluster, measured: Measured) -> None:
    claim(cluster, "kept")
    claim(cluster, "new")
    run(cluster, "old", "kept")
    before = life(cluster, "old")

    begun = time.monotonic()
    cluster.restart("kubelet")
    run(cluster, "new", "new")

    measured.add(
        "kubelet started again: until the next pod with a claim runs", time.monotonic() - begun
    )
    assert life(cluster, "old") == before
    gone(cluster, "old")
    assert len(described(cluster)) == 1


def test_second_instance_takes_over_claims_of_the_first(
    cluster: Cluster, agents: Agents, gpus: Gpus, driver: NodeAgent
) -> None:
    claim(cluster, "one")
    claim(cluster, "two")
    run(cluster, "first", "one")
    second = agents.start(gpus.folder, DRA, dra={})
    cluster.wait_for("registered", lambda: "driver registered" in second.log.read_text())
    slices = published(cluster)

    driver.end()
    run(cluster, "second", "two")
    gone(cluster, "first")

    assert published(cluster) == slices
    assert described(cluster) == {f"{DRIVER}-claim_{uid(cluster, 'two')}.json"}
    assert len(sockets_of(cluster, DRIVER)) == 1


def test_metadata_and_status_are_written_where_the_policy_says_so(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    start(cluster, agents, gpus, metadata=True, statusDevices=True)
    claim(cluster, "told")
    run(cluster, "user", "told")

    folder = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/told/gpu"
    text = cluster.exec_in_pod("user", "cat", f"{folder}/{DRIVER}-metadata.json")
    (device,) = json.loads(text)["requests"][0]["devices"]
    assert [device["name"]] == allocated(cluster, "told")
    assert device["attributes"]["vendor"] == {"string": "nvidia"}
    cluster.wait_for("status", lambda: ready_devices(cluster) == [device["name"]])

    gone(cluster, "user")
    assert list(cluster.cdi.iterdir()) == []


def ready_devices(cluster: Cluster) -> list[str]:
    """Devices of the claim whose status says that they are ready."""
    found = cluster.api("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/told")
    entries = found["status"].get("devices")
    if not entries:
        raise NodeError("no devices in the status")
    return [e["device"] for e in entries if e["conditions"][0]["type"] == "Ready"]


def test_agent_that_is_told_to_end_prepares_first_what_it_has_begun(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    """A call that is cut is made again only after a minute."""
    simulate("simset", "ring", 4, str(gpus.folder), device_nodes=True)
    device_class(cluster, SIM_DRIVER)
    agent = start(cluster, agents, gpus)
    cluster.wait_for("slices", lambda: len(published(cluster, SIM_DRIVER)) == 4)
    set_state(str(gpus.folder), ["hang", "simset", "edits", "4s"])
    claim(cluster, "slow")
    cluster.apply(claiming("user", "slow"))
    cluster.wait_for("work that has begun", lambda: list(agent.run.rglob("claims/*.json")))

    status = agent.end()

    assert status == 0
    cluster.wait_for_phase("user", "Running", patience=20)
    agents.start(gpus.folder, DRA, dra={})  # frees the claim
