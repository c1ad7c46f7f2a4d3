"""Claims and the pods that use them, as manifests and as Kubernetes sees them."""

import json
from collections.abc import Mapping, Sequence

from tests.node.cluster import Cluster
from tests.node.containers import MORTAL
from tests.node.objects import Document, pod

DRIVER = "nvidia.accelkit.dev"
CLASS = "gpu"
DRA: Mapping[str, object] = {"name": "all", "select": {}, "through": "dra"}


def device_class(cluster: Cluster, driver: str = DRIVER, name: str = CLASS) -> None:
    """Make a class of every device of a driver."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [selector]},
        }
    )


def request(
    name: str = "gpu",
    count: int = 1,
    *,
    of: str = CLASS,
    profile: str = "",
    where: str = "",
    **fields: object,
) -> Document:
    """A request for so many devices of the class.

    Args:
        name: Of the request.
        count: How many.
        of: Another class.
        profile: That they must have; ``whole`` for whole GPUs.
        where: An expression in CEL that must be true of each.
        fields: Further ones of the request.
    """
    if profile:
        where = f'device.attributes["{DRIVER}"].profile == "{profile}"'
    if where:
        fields["selectors"] = [{"cel": {"expression": where}}]
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, **fields}}


def config(parameters: Mapping[str, object], driver: str = DRIVER, *requests: str) -> Document:
    """A block of configuration for all requests, or for those that are named."""
    block: Document = {"opaque": {"driver": driver, "parameters": dict(parameters)}}
    return {**block, "requests": list(requests)} if requests else block


def claim_config(**keys: object) -> Mapping[str, object]:
    """What an agent reads from a block."""
    return {"apiVersion": "accelkit.dev/v1", "kind": "ClaimConfig", **keys}


def claim(
    cluster: Cluster,
    name: str,
    *requests: Document,
    configs: Sequence[Document] = (),
    namespace: str = "default",
    kind: str = "ResourceClaim",
    constraints: Sequence[Document] = (),
) -> None:
    """Make a claim that pods name; without a request, one for a device.

    Args:
        kind: ResourceClaimTemplate for one from which each pod gets a claim of its own.
    """
    devices = {
        "requests": list(requests) or [request()],
        "config": list(configs),
        "constraints": list(constraints),
    }
    spec: Document = {"devices": devices}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec if kind == "ResourceClaim" else {"spec": spec},
        }
    )


def claiming(name: str, *claims: str, restart: str = "Never", grace_s: int = 1) -> Document:
    """A pod whose container has everything of these claims."""
    made = pod(name, command=MORTAL, restart=restart)
    made["spec"]["resourceClaims"] = [{"name": c, "resourceClaimName": c} for c in claims]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": c} for c in claims]}
    made["spec"]["terminationGracePeriodSeconds"] = grace_s
    return made


def from_template(made: Document) -> Document:
    """*made*, a pod that names claims, with claims of its own from templates of these names."""
    for one in made["spec"]["resourceClaims"]:
        one["resourceClaimTemplateName"] = one.pop("resourceClaimName")
    return made


def in_containers(made: Document, **claims: Sequence[str]) -> Document:
    """*made*, a pod, with one container for each of *claims*: a claim, or a request of one.

    A request of a claim is named ``CLAIM/REQUEST``.
    """
    (first,) = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**first, "name": name, "resources": {"claims": [_reference(one) for one in several]}}
        for name, several in claims.items()
    ]
    return made


def _reference(text: str) -> Document:
    name, _, only = text.partition("/")
    return {"name": name, "request": only} if only else {"name": name}


def results(cluster: Cluster, name: str, namespace: str = "default") -> list[Document]:
    """What a claim got: device, request, share, amounts."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
    allocation = cluster.api(path).get("status", {}).get("allocation", {})
    found: list[Document] = allocation.get("devices", {}).get("results", [])
    return found


def allocated(cluster: Cluster, name: str) -> list[str]:
    """Names of the devices that a claim got."""
    return [result["device"] for result in results(cluster, name)]


def uid(cluster: Cluster, name: str) -> str:
    found = cluster.api(f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}")
    text: str = found["metadata"]["uid"]
    return text


def published(cluster: Cluster, driver: str = DRIVER) -> set[str]:
    """Names of the devices in a driver's slices on this node."""
    found = cluster.api("/apis/resource.k8s.io/v1/resourceslices")
    return {
        device["name"]
        for item in found["items"]
        if item["spec"]["driver"] == driver and item["spec"]["nodeName"] == cluster.name
        for device in item["spec"].get("devices", [])
    }


def said(cluster: Cluster, name: str, reason: str) -> str:
    """What the last event with *reason* about a pod or claim says; empty: there is none."""
    which = f"involvedObject.name={name},reason={reason}"
    items = cluster.api(f"/api/v1/namespaces/default/events?fieldSelector={which}")["items"]
    message: str = items[-1]["message"] if items else ""
    return message


def refusals(cluster: Cluster) -> list[str]:
    """What the kubelet's events say of claims that could not be prepared.

    Without those of calls that never came to a driver: the API server lets the kubelet read a
    claim only once it knows that a pod on its node has it.
    """
    listed = cluster.kubectl(
        "get", "events", "--field-selector=reason=FailedPrepareDynamicResources", "-o=json"
    )
    texts = [item["message"] for item in json.loads(listed)["items"]]
    return [text for text in texts if "no relationship found between node" not in text]


def described(cluster: Cluster) -> set[str]:
    """Files of claims in the CDI directory."""
    return {path.name for path in cluster.cdi.iterdir() if "-claim_" in path.name}
