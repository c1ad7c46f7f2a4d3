"""Objects for tests of the simulated API server."""

from tests.conformance.sims.api.asking import Document


def slice_named(name: str, node: str = "n1", **metadata: object) -> Document:
    """A slice without devices."""
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "driver": "d.test",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        },
    }


def claim_named(name: str, **devices: object) -> Document:
    """A claim of one device of class ``c``."""
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request], **devices}}}


def node_named(name: str) -> Document:
    return {"metadata": {"name": name}}


def pod_named(name: str, node: str = "", **spec: object) -> Document:
    """A pod with one container."""
    where = {"nodeName": node} if node else {}
    containers = [{"name": "main", "image": "x"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **where, **spec}}
