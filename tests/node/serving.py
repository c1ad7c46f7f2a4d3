"""An agent that serves claims for all tests of a module, on a machine of theirs.

Not here: what claims ask for, and the pods that have them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import DRA, DRIVER, device_class, published
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.processes import NodeError
from tests.node.simulated import Gpus

CLASSES, SLICES = (
    f"/apis/resource.k8s.io/v1/{kind}" for kind in ("deviceclasses", "resourceslices")
)


@contextmanager
def serving(
    cluster: Cluster, gpus: Gpus, *offers: Mapping[str, object], **terms: object
) -> Iterator[NodeAgent]:
    """An agent whose GPUs are in slices, and a class of all of them, until the end.

    Args:
        cluster: Left without pods, claims, classes and slices.
        gpus: The machine.
        offers: None: everything through claims.
        terms: Further keys of the policy.
    """
    device_class(cluster)
    with serving_from(cluster, gpus.folder, {DRIVER: len(gpus.whole)}, *offers, **terms) as agent:
        yield agent


@contextmanager
def serving_from(
    cluster: Cluster,
    folder: Path,
    listed: Mapping[str, int],
    *offers: Mapping[str, object],
    **terms: object,
) -> Iterator[NodeAgent]:
    """The same for any machine, without a class.

    Args:
        cluster: Left without pods, claims, classes and slices.
        folder: Of the machine.
        listed: How many devices of each driver must be published, at least.
        offers: None: everything through claims.
        terms: Further keys of the policy.
    """
    agents = Agents(cluster)
    try:
        agent = agents.start(
            folder,
            *(offers or (DRA,)),
            dra={},
            **terms,  # type: ignore[arg-type]  # none has the name of an argument
        )
        for driver, count in listed.items():
            wait_listed(cluster, driver, count)
        yield agent
    finally:
        forget(cluster)
        agents.end()
        cluster.clear(CLASSES, SLICES)


def wait_listed(cluster: Cluster, driver: str, count: int) -> None:
    """Wait until so many devices of a driver are published, at least."""
    cluster.wait_for(f"slices of {driver}", lambda: len(published(cluster, driver)) >= count)


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
        claims = f"/apis/resource.k8s.io/v1/namespaces/{name}/resourceclaim"
        cluster.clear(f"/api/v1/namespaces/{name}/pods", f"{claims}s", f"{claims}templates")


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
