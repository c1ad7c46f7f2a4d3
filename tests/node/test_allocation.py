"""Pods get devices that go well together, and everything that belongs to them."""

import pytest

from tests.node.agents import Agents, offer
from tests.node.cluster import Cluster
from tests.node.containers import (
    environment,
    gpu_nodes,
    held,
    run_pod,
    why_unscheduled,
)
from tests.node.objects import pod
from tests.node.simulated import GPUS, VISIBLE, Gpus

GPU = "nvidia.com/gpu"
CONTROL = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def visible(cluster: Cluster, name: str) -> set[str]:
    return set(environment(cluster, name)[VISIBLE].split(","))


@pytest.mark.parametrize("inject", ["direct", "cdi"])
def test_pods_share_out_eight_gpus_by_their_topology(
    cluster: Cluster, agents: Agents, gpus: Gpus, inject: str
) -> None:
    agents.start(gpus.folder, offer(inject=inject)).wait_offered(GPU, GPUS)

    run_pod(cluster, "pair", {GPU: 2})
    run_pod(cluster, "half", {GPU: 4})
    run_pod(cluster, "rest", {GPU: 2})
    cluster.apply(pod("ninth", limits={GPU: 1}))
    why = cluster.wait_for("word of the scheduler", lambda: why_unscheduled(cluster, "ninth"))

    got = {name: frozenset(gpu_nodes(cluster, name)) for name in ("pair", "half", "rest")}
    assert got["half"] in gpus.halves
    assert got["pair"] in gpus.pairs
    assert got["rest"] in gpus.pairs
    assert sorted(minor for minors in got.values() for minor in minors) == list(range(GPUS))
    for name, minors in got.items():
        assert held(cluster, name) == dict.fromkeys(gpus.ids(minors), "Healthy")
        uuids = {gpus.uuids[minor] for minor in minors}
        assert visible(cluster, name) == (uuids if inject == "direct" else {"void"})
    assert f"Insufficient {GPU}" in why
    assert cluster.phase("ninth") == "Pending"

    cluster.kubectl("delete", "pod", "pair")

    cluster.wait_for_phase("ninth", "Running")
    assert gpu_nodes(cluster, "ninth") < set(got["pair"])


@pytest.mark.parametrize("inject", ["direct", "cdi"])
def test_container_gets_device_files_and_driver_of_its_gpus_and_no_others(
    cluster: Cluster, agents: Agents, gpus: Gpus, inject: str
) -> None:
    agents.start(gpus.folder, offer(inject=inject)).wait_offered(GPU, GPUS)
    run_pod(cluster, "user", {GPU: 2})
    run_pod(cluster, "stranger", {})

    minors = gpu_nodes(cluster, "user")
    wanted = {f"nvidia{minor}" for minor in minors} | CONTROL
    seen = {name for name in cluster.exec_in_pod("user", "ls", "/dev").split() if "nvidia" in name}

    assert len(minors) == 2
    assert seen == wanted
    kinds = cluster.exec_in_pod("user", "stat", "-c", "%F", *(f"/dev/{name}" for name in wanted))
    assert set(kinds.splitlines()) == {"character special file"}
    assert cluster.exec_in_pod("user", "cat", LIBRARY) == "libcuda\n"
    assert gpu_nodes(cluster, "stranger") == set()
    assert VISIBLE not in environment(cluster, "stranger")


def test_several_pods_share_a_gpu_and_each_has_its_own_share(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    agent = agents.start(gpus.folder, offer(sharing={"shares": 4, "place": "packed"}))
    agent.wait_offered(GPU, 4 * GPUS)
    names = ("one", "two", "three")
    for name in names:
        run_pod(cluster, name, {GPU: 1})
    run_pod(cluster, "whole", {GPU: 4})

    nodes = {name: gpu_nodes(cluster, name) for name in (*names, "whole")}
    shares = {share for name in names for share in held(cluster, name)}

    (first,) = nodes["one"]
    assert nodes["two"] == nodes["three"] == {first}
    (ident,) = gpus.ids({first})
    assert len(shares) == len(names)
    assert shares < {f"{ident}::{number}" for number in range(4)}
    (other,) = nodes["whole"]
    assert other != first
    (ident,) = gpus.ids({other})
    assert set(held(cluster, "whole")) == {f"{ident}::{number}" for number in range(4)}
    assert visible(cluster, "whole") == {gpus.uuids[other]}
