"""Kubernetes objects as tests write and read them: manifests, quantities, a node's amounts."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from attrs import frozen

from tests.node.image import IMAGE

Document = dict[str, Any]  # type: ignore[explicit-any]  # whatever JSON the API server answers

SUFFIXES = {
    "m": Decimal("0.001"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
}


def quantity(text: str) -> Decimal:
    """Read an amount as the API server writes it: 5000 devices are ``5k``.

    Source:
        k8s.io/apimachinery/pkg/api/resource/quantity.go, the grammar above type Quantity.
    """
    for length in (2, 1):
        if factor := SUFFIXES.get(text[-length:]):
            return Decimal(text[:-length]) * factor
    return Decimal(text)


@frozen
class NodeStatus:
    """What a node says of itself."""

    ready: bool
    capacity: Mapping[str, Decimal]
    """Per resource name, as are the amounts below."""
    allocatable: Mapping[str, Decimal]
    """What pods may have; for devices: the healthy ones."""

    @classmethod
    def of(cls, node: Document) -> "NodeStatus":
        status = node["status"]
        conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
        return cls(
            ready=conditions.get("Ready") == "True",
            capacity={k: quantity(v) for k, v in status.get("capacity", {}).items()},
            allocatable={k: quantity(v) for k, v in status.get("allocatable", {}).items()},
        )


def pod(
    name: str,
    *,
    limits: Mapping[str, int] | None = None,
    command: Sequence[str] = ("sleep", "1000000"),
    node: str | None = None,
    restart: str = "Never",
) -> Document:
    """A pod with one container called ``main`` of the test image.

    Args:
        limits: Amount per resource name.
        node: Bypass the scheduler and put it there.
        restart: Its restartPolicy.
    """
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"limits": {k: str(v) for k, v in (limits or {}).items()}},
    }
    spec: Document = {
        "containers": [container],
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,  # busybox as process 1 does not heed SIGTERM
    }
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
