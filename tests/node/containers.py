"""What a pod's container has, as Kubernetes says or as the container sees it."""

import time
from collections.abc import Mapping
from contextlib import suppress

from attrs import frozen

from tests.node.cluster import Cluster
from tests.node.objects import Document, pod
from tests.node.processes import NodeError

MORTAL = ("sh", "-c", "trap 'exit 1' TERM; sleep 1000000 & wait")
"""A command that ends when it is told to, by `crash` or with its pod."""


def container(cluster: Cluster, name: str) -> Document:
    """The status of the pod's container."""
    statuses = cluster.pod(name)["status"].get("containerStatuses")
    if not statuses:
        raise NodeError(f"pod {name} has no container yet")
    found: Document = statuses[0]
    return found


def run_pod(cluster: Cluster, name: str, limits: Mapping[str, int]) -> None:
    """Make a pod and wait until it runs."""
    cluster.apply(pod(name, limits=limits, command=MORTAL))
    cluster.wait_for_phase(name, "Running")


def life(cluster: Cluster, name: str) -> tuple[str, int]:
    """What is another one once the container was started again: its id and its restarts."""
    found = container(cluster, name)
    return found["containerID"], found["restartCount"]


def restarts(cluster: Cluster, name: str) -> int:
    count: int = container(cluster, name)["restartCount"]
    return count


def crash(cluster: Cluster, name: str) -> None:
    """End the container of a pod whose command is `MORTAL`, and wait for the next one."""
    before = restarts(cluster, name)
    with suppress(NodeError):  # the container may end before the command in it has
        cluster.exec_in_pod(name, "kill", "1")

    def again() -> bool:
        found = container(cluster, name)
        return found["restartCount"] > before and "running" in found["state"]

    cluster.wait_for(f"container of {name} runs again", again)


def held(cluster: Cluster, name: str) -> dict[str, str]:
    """Health by id of the devices that the pod holds, as its status says."""
    resources = container(cluster, name).get("allocatedResourcesStatus", ())
    return {one["resourceID"]: one["health"] for entry in resources for one in entry["resources"]}


def environment(cluster: Cluster, name: str) -> dict[str, str]:
    lines = cluster.exec_in_pod(name, "env").splitlines()
    return dict(line.partition("=")[::2] for line in lines)


@frozen
class Sight:
    """What a container finds of devices."""

    nodes: frozenset[str]
    """Device nodes of GPUs and of their partitions: ``nvidia0``, ``nvidia-caps/nvidia-cap3``."""
    environment: Mapping[str, str]


def sight(cluster: Cluster, pod: str, name: str = "main", namespace: str = "default") -> Sight:
    """What the container *name* of a pod finds."""
    look = "cd /dev; for f in nvidia[0-9]* nvidia-caps/*; do test -e $f && echo $f; done; true"
    argv = ("exec", f"--namespace={namespace}", pod, f"--container={name}", "--")
    said = cluster.kubectl(*argv, "sh", "-c", f"{look}; echo; env")
    nodes, _, rest = said.partition("\n\n") if not said.startswith("\n") else ("", "", said)
    lines = rest.strip().splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    return Sight(frozenset(nodes.split()), found)


def gpu_nodes(cluster: Cluster, name: str) -> set[int]:
    """Minor numbers in the names of the GPUs' device nodes in the container."""
    names = cluster.exec_in_pod(name, "ls", "/dev").split()
    stems = (entry.removeprefix("nvidia") for entry in names if entry.startswith("nvidia"))
    return {int(stem) for stem in stems if stem.isdecimal()}


def wait_allocatable(
    cluster: Cluster, resource: str, amount: int, capacity: int | None = None
) -> float:
    """Wait until the node has so much of *resource*; returns how long that took, in seconds.

    Args:
        capacity: None: as much as is allocatable.
    """
    begun = time.monotonic()
    wanted = [amount if capacity is None else capacity, amount]

    def there() -> bool:
        node = cluster.node()
        seen = [
            -1 if a is None else int(a)
            for a in (node.capacity.get(resource), node.allocatable.get(resource))
        ]
        if seen != wanted:
            raise NodeError(f"capacity and allocatable are {seen}")
        return True

    cluster.wait_for(f"{wanted} of {resource}", there)
    return time.monotonic() - begun


def why_unscheduled(cluster: Cluster, name: str) -> str:
    """What the scheduler says of a pod that it finds no place for; empty: nothing yet."""
    for condition in cluster.pod(name)["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message: str = condition.get("message", "")
            return message
    return ""
