"""Devices that fall ill while claims have them, as slices, pods and the scheduler show it."""

import os
import stat
import time
from collections.abc import Iterator

import pytest

from tests.node.agents import UNDAMPED, NodeAgent
from tests.node.claims import (
    DRIVER,
    allocated,
    claim,
    claiming,
    device_class,
    from_template,
    published,
    request,
)
from tests.node.cluster import Cluster
from tests.node.containers import container, gpu_nodes, life, why_unscheduled
from tests.node.measured import Measured
from tests.node.objects import Document
from tests.node.releases import needs
from tests.node.serving import forget, run, serving, slices, taints
from tests.node.simulated import Gpus

COUNT = 2
GENERIC, GENERIC_DRIVER = "generic", "generic.accelkit.dev"
FURTHER = {"even": f"aa/{'/'.join(['ä' * 120] * 5)}", "odd": f"a/{'/'.join(['ä' * 120] * 5)}"}
"""Paths of more than 1200 bytes, most of them halves of a character; by the device's name."""
RULES = [
    {"name": name, "match": {"path": f"/dev/{name}"}, "nodes": [f"/dev/{path}"]}
    for name, path in FURTHER.items()
]
DYNAMIC = [{"select": {"vendor": "nvidia"}, "how": "dynamic"}]


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    """Beside its GPUs two devices of files."""
    gpus = Gpus(whole_run_cluster, count=COUNT)
    for name, path in FURTHER.items():
        further = gpus.folder / "dev" / path
        further.parent.mkdir(parents=True)
        for node in (gpus.folder / "dev" / name, further):
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return gpus


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    device_class(whole_run_cluster, GENERIC_DRIVER, GENERIC)
    vendors = [{"name": "nvidia"}, {"name": "generic", "options": {"devices": RULES}}]
    health = {**UNDAMPED, "evict": ["gpu-lost"]}
    with serving(
        whole_run_cluster, machine, partitioning=DYNAMIC, health=health, vendors=vendors
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent, machine: Gpus) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    for minor in range(COUNT):
        machine.let("restore", f"gpu-{minor}")
    forget(cluster)
    cluster.wait_for("well again", lambda: not taints(cluster))


def counters(cluster: Cluster, device: str) -> object:
    """What a device in a slice consumes."""
    for item in slices(cluster, DRIVER):
        for one in item["spec"].get("devices", []):
            if one["name"] == device:
                return one["consumesCounters"]
    return None


@needs("DRADeviceTaints", "messages of devices' health in the status of pods")
def test_gpu_that_fails_stays_where_it_is_and_is_given_to_who_tolerates_that_alone(
    cluster: Cluster, machine: Gpus, measured: Measured
) -> None:
    claim(cluster, "had", request(profile="whole"))
    run(cluster, claiming("user", "had"))
    (device,) = allocated(cluster, "had")
    minor = machine.whole.index(device)
    before = (published(cluster), counters(cluster, device), life(cluster, "user"))

    begun = time.monotonic()
    machine.let("remap", f"gpu-{minor}", "2")
    cluster.wait_for("a taint", lambda: taints(cluster).get(device))
    measured.add(
        "claimed GPU fails, read.health 2s: until its taint is there", time.monotonic() - begun
    )

    (why,) = cluster.wait_for("told", lambda: reasons(cluster, "user", "Unhealthy"))
    assert why.startswith("delete the pod to get another device")
    assert taints(cluster)[device] == {"row-remap-failed": "NoSchedule"}
    assert (published(cluster), counters(cluster, device), life(cluster, "user")) == before
    claim(cluster, "next", request(count=COUNT, profile="whole"))
    cluster.apply(claiming("next", "next"))
    cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "next"))
    cluster.kubectl("delete", "pod", "user", "--wait")
    claim(cluster, "one", request(profile="whole"))
    run(cluster, claiming("one", "one"))
    assert allocated(cluster, "one") != [device]
    cluster.kubectl("delete", "pod", "one", "--wait")
    tolerates = [{"key": "accelkit.dev/row-remap-failed", "operator": "Exists"}]
    claim(cluster, "brave", request(count=COUNT, profile="whole", tolerations=tolerates))
    run(cluster, claiming("brave", "brave"))
    assert device in allocated(cluster, "brave")
    cluster.kubectl("delete", "pod", "brave", "--wait")

    machine.let("restore", f"gpu-{minor}")

    cluster.wait_for_phase("next", "Running")
    assert taints(cluster) == {}


@needs("DRADeviceTaints")
def test_pod_is_moved_off_a_gpu_where_the_policy_says_so(
    cluster: Cluster, machine: Gpus, measured: Measured
) -> None:
    """Somebody must make it anew: a set of one pod does."""
    claim(cluster, "own", request(profile="whole"), kind="ResourceClaimTemplate")
    made = from_template(claiming("user", "own", restart="Always"))
    labels = {"app": "moved"}
    kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "moved"}}
    template = {"metadata": {"labels": labels}, "spec": made["spec"]}
    selector = {"matchLabels": labels}
    cluster.apply({**kind, "spec": {"replicas": 1, "selector": selector, "template": template}})
    try:
        first = cluster.wait_for("a pod", lambda: running(cluster, but=""))
        (minor,) = gpu_nodes(cluster, first)

        begun = time.monotonic()
        machine.let("lose", f"gpu-{minor}")
        second = cluster.wait_for("another pod", lambda: running(cluster, but=first))

        measured.add(
            "GPU lost, evict, read.health 2s: until another pod runs", time.monotonic() - begun
        )
        assert gpu_nodes(cluster, second) == {1 - minor}
        assert taints(cluster)[machine.whole[minor]] == {"gpu-lost": "NoExecute"}
    finally:
        cluster.kubectl("delete", "replicaset", "moved", "--wait")


def running(cluster: Cluster, but: str) -> str:
    """Name of a pod that runs, is not about to end, and is not *but*."""
    for item in cluster.api("/api/v1/namespaces/default/pods")["items"]:
        meta: Document = item["metadata"]
        if item["status"]["phase"] == "Running" and "deletionTimestamp" not in meta:
            name: str = meta["name"]
            if name != but:
                return name
    return ""


@needs("messages of devices' health in the status of pods")
@pytest.mark.parametrize("name", FURTHER)
def test_status_of_a_pod_takes_a_reason_that_is_cut_between_characters(
    cluster: Cluster, machine: Gpus, name: str
) -> None:
    """What is cut inside a character freezes it, as 1.37.2 does with reasons of over 1021 bytes."""
    claim(cluster, name, {"name": "any", "exactly": {"deviceClassName": GENERIC, "count": 2}})
    run(cluster, claiming("user", name))
    further = machine.folder / "dev" / FURTHER[name]

    further.rename(further.with_name("away"))

    unhealthy = cluster.wait_for("told", lambda: reasons(cluster, "user", "Unhealthy"))
    assert len(unhealthy) == 1
    assert 990 < len(unhealthy[0].encode()) <= 1000
    assert "\ufffd" not in unhealthy[0]

    further.with_name("away").rename(further)
    cluster.wait_for("well again", lambda: not reasons(cluster, "user", "Unhealthy"))


def reasons(cluster: Cluster, pod: str, health: str) -> list[str]:
    """Why devices of a pod have that health."""
    entries = container(cluster, pod).get("allocatedResourcesStatus", ())
    every = [one for entry in entries for one in entry["resources"]]
    return [one.get("message", "") for one in every if one["health"] == health]
