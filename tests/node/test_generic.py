"""Devices of this host without any simulation: what was given can be opened, nothing else."""

import os
import stat
from pathlib import Path

from tests.node.agents import Agents, offer
from tests.node.cluster import Cluster
from tests.node.containers import held, run_pod, wait_allocatable
from tests.node.measured import Measured
from tests.node.simulated import machine_folder

FUSE = Path("/dev/fuse")
NULL = os.makedev(1, 3)
HOST = Path("/")


def rule(name: str, path: str) -> dict[str, object]:
    devices = [{"name": name, "match": {"path": path}}]
    return {"name": "generic", "options": {"devices": devices}}


def test_pod_opens_a_real_device_that_it_was_given_and_no_other_pod_does(
    cluster: Cluster, agents: Agents
) -> None:
    number = FUSE.stat().st_rdev
    resource = "generic.accelkit.dev/fuse"
    agents.start(HOST, offer(sharing={"shares": 3}), vendors=[rule("fuse", str(FUSE))])
    wait_allocatable(cluster, resource, 3)
    run_pod(cluster, "given", {resource: 1})
    run_pod(cluster, "stranger", {})

    def opens(name: str, path: str) -> str:
        script = f"test -c {path} && (exec 3<>{path}) && echo opened || echo refused"
        return cluster.exec_in_pod(name, "sh", "-c", script).strip()

    def makes(name: str) -> None:
        """Make the device node by hand, as anybody in a container may."""
        numbers = (str(os.major(number)), str(os.minor(number)))
        cluster.exec_in_pod(name, "busybox", "mknod", "/tmp/fuse", "c", *numbers)

    makes("given")
    makes("stranger")
    assert opens("given", str(FUSE)) == "opened"
    assert opens("given", "/tmp/fuse") == "opened"
    assert opens("stranger", str(FUSE)) == "refused"
    assert opens("stranger", "/tmp/fuse") == "refused"
    assert set(held(cluster, "given")) <= {f"dev-fuse::{share}" for share in range(3)}


def test_device_node_that_comes_and_goes_is_followed(
    cluster: Cluster, agents: Agents, measured: Measured
) -> None:
    folder = machine_folder(cluster)
    resource = "hot.test/node"
    agent = agents.start(HOST, offer(resource=resource), vendors=[rule("hot", f"{folder}/hot-*")])
    agent.wait_until_ready()
    wait_allocatable(cluster, resource, 0)
    nodes = [folder / "hot-0", folder / "hot-1"]

    for count, node in enumerate(nodes, start=1):
        os.mknod(node, stat.S_IFCHR | 0o666, NULL)
        measured.add(
            "device node made: until allocatable", wait_allocatable(cluster, resource, count)
        )
    run_pod(cluster, "user", {resource: 1})
    (ident,) = held(cluster, "user")
    (used,) = cluster.exec_in_pod("user", "ls", str(folder)).split()
    for node in nodes:
        node.unlink()

    # the one that is held stays in the list, or its pod would be told that it is well
    seconds = wait_allocatable(cluster, resource, 0, capacity=1)
    measured.add("device nodes removed: until not allocatable", seconds)
    assert ident.endswith(used)
    cluster.wait_for("Unhealthy", lambda: held(cluster, "user") == {ident: "Unhealthy"})

    cluster.kubectl("delete", "pod", "user", "--grace-period=1")
    wait_allocatable(cluster, resource, 0)
