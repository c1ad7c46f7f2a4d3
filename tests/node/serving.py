"""An agent that serves claims for all tests of a module, on a machine of theirs.

Not here: what claims ask for, and the pods that have them.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import DRA, DRIVER, device_class, published
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.processes import NodeError
from tests.node.simulated import Gpus


@contextmanager
def serving(
    cluster: Cluster,
    gpus: Gpus,
    *offers: Mapping[str, object],
    listed: Collection[str] | None = None,
    **terms: object,
) -> Iterator[NodeAgent]:
    """An agent whose devices are in slices, and a class of all GPUs, until the end.

    Args:
        cluster: Left without pods, claims, classes and slices.
        gpus: The machine.
        offers: None: everything through claims.
        listed: Names that must be published; None: those of all GPUs.
        terms: Further keys of the policy.
    """
    device_class(cluster)
    agents = Agents(cluster)
    try:
        agent = agents.start(
            gpus.folder,
            *(offers or (DRA,)),
            dra={},
            **terms,  # type: ignore[arg-type]  # none has the name of an argument
        )
        wanted = set(gpus.whole if listed is None else listed)
        cluster.wait_for("slices", lambda: published(cluster) >= wanted)
        yield agent
    finally:
        forget(cluster)
        agents.end()
        cluster.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")


def run(cluster: Cluster, *pods: Document) -> None:
    """Make pods and wait until they run."""
    for made in pods:
        cluster.apply(made)
    for made in pods:
        name, namespace = made["metadata"]["name"], made["metadata"].get("namespace", "default")

        def runs(name: str = name, namespace: str = namespace) -> bool:
            phase: str = cluster.pod(name, namespace)["status"].get("phase", "")
            return phase == "Running"

        try:
            cluster.wait_for(f"pod {name} running", runs, patience=40)
        except NodeError as error:
            raise NodeError(f"{error}; {cluster.pod(name, namespace)['status']}") from error


def forget(cluster: Cluster, *namespaces: str) -> None:
    """End all pods and claims, and wait until nothing of them is prepared any more."""
    for name in ("default", *namespaces):
        there = f"--namespace={name}"
        cluster.kubectl(
            "delete", "pods", "--all", "--grace-period=1", "--wait", there, patience=120
        )
        cluster.kubectl("delete", "resourceclaims,resourceclaimtemplates", "--all", "--wait", there)


def slices(cluster: Cluster, driver: str = DRIVER) -> list[Document]:
    """A driver's slices."""
    found = cluster.api("/apis/resource.k8s.io/v1/resourceslices")["items"]
    return [item for item in found if item["spec"]["driver"] == driver]


def taints(cluster: Cluster, driver: str = DRIVER) -> dict[str, dict[str, str]]:
    """Of each tainted device in a driver's slices the effect of each taint, by key."""
    return {
        device["name"]: {
            taint["key"].removeprefix("accelkit.dev/"): taint["effect"]
            for taint in device["taints"]
        }
        for item in slices(cluster, driver)
        for device in item["spec"].get("devices", [])
        if device.get("taints")
    }
