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


def request(name: str = "gpu", count: int = 1, **fields: object) -> Document:
    """A request for so many devices of the class."""
    return {"name": name, "exactly": {"deviceClassName": CLASS, "count": count, **fields}}


def config(parameters: Mapping[str, object], driver: str = DRIVER) -> Document:
    """A block of configuration for all requests."""
    return {"opaque": {"driver": driver, "parameters": dict(parameters)}}


def claim(
    cluster: Cluster,
    name: str,
    *requests: Document,
    configs: Sequence[Document] = (),
    namespace: str = "default",
) -> None:
    """Make a claim that pods name; without a request, one for a device."""
    devices = {"requests": list(requests) or [request()], "config": list(configs)}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": devices},
        }
    )


def claiming(name: str, *claims: str, restart: str = "Never", grace_s: int = 1) -> Document:
    """A pod whose container has everything of these claims."""
    made = pod(name, command=MORTAL, restart=restart)
    made["spec"]["resourceClaims"] = [{"name": c, "resourceClaimName": c} for c in claims]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": c} for c in claims]}
    made["spec"]["terminationGracePeriodSeconds"] = grace_s
    return made


def allocated(cluster: Cluster, name: str) -> list[str]:
    """Names of the devices that a claim got."""
    found = cluster.api(f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}")
    results = found["status"].get("allocation", {}).get("devices", {}).get("results", [])
    return [result["device"] for result in results]


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
    listed = cluster.kubectl(
        "get", "events", f"--field-selector=involvedObject.name={name},reason={reason}", "-o=json"
    )
    items = json.loads(listed)["items"]
    message: str = items[-1]["message"] if items else ""
    return message


def described(cluster: Cluster) -> set[str]:
    """Files of claims in the CDI directory."""
    return {path.name for path in cluster.cdi.iterdir() if "-claim_" in path.name}
