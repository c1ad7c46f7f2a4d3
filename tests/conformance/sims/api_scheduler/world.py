"""A cluster with one node as stories see it, and the words that stories are told with."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from accelkit.core.kube import CLAIMS, CLASSES, PODS, SLICES, Resource

Document = dict[str, Any]  # type: ignore[explicit-any]  # JSON

NODE = "sched-1"
DRIVER = "s.test"
OF_DRIVER = f'device.driver == "{DRIVER}"'
TOLERATE = [{"operator": "Exists"}]
"""Of the pod, since nobody looks after its node."""


class World(Protocol):
    """A cluster with one node; everything is in the default namespace."""

    def put(self, resource: Resource, item: Document) -> None:
        """Make an object, or write it over the one of its name."""
        ...

    def remove(self, resource: Resource, name: str) -> None:
        """Delete an object at once, and wait until it is gone with what it held."""
        ...

    def decided(self, pod: str) -> Document:
        """The pod once it is scheduled, or known not to be."""
        ...

    def scheduled(self, pod: str) -> Document:
        """The pod once it is scheduled."""
        ...

    def ended(self, pod: str) -> Document:
        """The pod once it is marked for deletion."""
        ...

    def claim(self, name: str) -> Document:
        """A claim as it is now."""
        ...

    def allocated(self, claim: str) -> Document:
        """The claim once it has devices."""
        ...

    def pod(self, name: str) -> Document:
        """A pod as it is now."""
        ...

    def report(self, claim: str, devices: list[Document]) -> None:
        """Write a claim's ``status.devices``."""
        ...

    def label(self, resource: Resource, name: str, labels: Mapping[str, str]) -> None:
        """Give an object labels."""
        ...

    def pass_second(self) -> None:
        """Let a second begin: times of objects are whole seconds."""
        ...

    def allocatable(self, amounts: Mapping[str, str]) -> None:
        """Let the node have these resources by device plugins."""
        ...


# Objects.


def device(name: str, **fields: object) -> Document:
    return {"name": name, **fields}


def consuming(name: str, amounts: Mapping[str, int], **fields: object) -> Document:
    """A device that takes counters of the set ``gpu``."""
    counters = {counter: {"value": str(amount)} for counter, amount in amounts.items()}
    return device(name, consumesCounters=[{"counterSet": "gpu", "counters": counters}], **fields)


def counters(**amounts: int) -> list[Document]:
    """The set ``gpu``."""
    values = {name: {"value": str(amount)} for name, amount in amounts.items()}
    return [{"name": "gpu", "counters": values}]


def publish(
    world: World,
    devices: Sequence[Document],
    sets: Sequence[Document] = (),
    *,
    pool: str = "p",
    generation: int = 1,
    count: int | None = None,
    name: str = "",
    **where: object,
) -> None:
    """Write the slices of a pool: its devices in one, its counters in another."""
    parts: list[Document] = [{"devices": list(devices)}]
    parts += [{"sharedCounters": list(sets)}] if sets else []
    for index, part in enumerate(parts):
        spec = {
            "driver": DRIVER,
            "pool": {
                "name": pool,
                "generation": generation,
                "resourceSliceCount": count or len(parts),
            },
            **(where or {"nodeName": NODE}),
            **part,
        }
        meta = {"name": f"{name or pool}-{index}"}
        world.put(SLICES, {"metadata": meta, "spec": spec})


def offer(world: World, name: str, expression: str = OF_DRIVER, **spec: object) -> None:
    """Write a class."""
    selectors = [{"cel": {"expression": expression}}]
    world.put(CLASSES, {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}})


def asked(name: str = "r", of: str = "any", **fields: object) -> Document:
    """A request."""
    return {"name": name, "exactly": {"deviceClassName": of, **fields}}


def ask(world: World, pod: str, *requests: Document, **devices: object) -> None:
    """Make a claim and a pod of one name."""
    spec = {"devices": {"requests": list(requests) or [asked()], **devices}}
    world.put(CLAIMS, {"metadata": {"name": pod}, "spec": spec})
    start(world, pod, claims=[pod])


def start(
    world: World,
    pod: str,
    *,
    claims: Sequence[str] = (),
    limits: Mapping[str, str] | None = None,
    init: Mapping[str, str] | None = None,
    more: Sequence[Mapping[str, str]] = (),
) -> None:
    """Make a pod: containers ``main`` and ``more-N``, and ``init`` before them if asked for."""
    names = [f"c{index}" for index in range(len(claims))]
    containers = [_container("main", limits, names)]
    containers += [_container(f"more-{i}", each, []) for i, each in enumerate(more)]
    spec = {
        "containers": containers,
        **({"initContainers": [_container("init", init, [])]} if init else {}),
        "resourceClaims": [
            {"name": name, "resourceClaimName": claim}
            for name, claim in zip(names, claims, strict=True)
        ],
        "tolerations": TOLERATE,
    }
    world.put(PODS, {"metadata": {"name": pod}, "spec": spec})


def _container(name: str, limits: Mapping[str, str] | None, claims: Sequence[str]) -> Document:
    resources = {"limits": dict(limits or {}), "claims": [{"name": claim} for claim in claims]}
    return {"name": name, "image": "local.test/none:1", "resources": resources}


# What came of it.


def results(claim: Document) -> list[Document]:
    found: list[Document] = claim["status"]["allocation"]["devices"]["results"]
    return found


def names(claim: Document) -> list[str]:
    """Of the devices that a claim has."""
    return [result["device"] for result in results(claim)]


def got(world: World, pod: str) -> list[str] | str:
    """The devices of the pod's claim; a text: why it waits."""
    found = world.decided(pod)
    if not found["spec"].get("nodeName"):
        return waiting(found)
    return names(world.claim(pod))


def waiting(pod: Document) -> str:
    """Why a pod waits, in the scheduler's words, without those about preemption."""
    conditions = pod["status"]["conditions"]
    message: str = next(c["message"] for c in conditions if c["type"] == "PodScheduled")
    return message.partition(" preemption:")[0]
