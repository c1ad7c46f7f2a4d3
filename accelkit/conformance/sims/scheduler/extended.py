"""Claims that a scheduler makes for extended resources of pods. Not here: the search for devices.

Source:
    kubernetes v1.37.2,
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    and what was seen of 1.34 to 1.37.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from attrs import frozen

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.values import amounts, part, parts, text
from accelkit.conformance.sims.gates import EXTENDED, Dialect
from accelkit.conformance.sims.scheduler.claims import owner
from accelkit.conformance.sims.scheduler.pools import Json

IMPLICIT = "deviceclass.resource.kubernetes.io/"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


@frozen
class Container:
    """A container of a pod, with its place among all."""

    index: int
    name: str
    requests: Mapping[str, int]
    """Every resource that it asks for, cpu and memory as well."""
    borrows: bool
    """An init container that ends: it uses what others will have."""


@frozen
class Plan:
    """What a claim for extended resources asks for, and for whom."""

    requests: tuple[Object, ...]
    mappings: tuple[Object, ...]


def class_of(name: str, classes: Mapping[str, Json], dialect: Dialect) -> str | None:
    """The class behind a resource name; of two the newer one."""
    if not dialect.on(EXTENDED):
        return None
    if name.startswith(IMPLICIT):
        found = name.removeprefix(IMPLICIT)
        return found if found in classes and dialect.release != "1.34" else None
    named = [
        (text(item, "metadata", "creationTimestamp"), other)
        for other, item in classes.items()
        if text(item, "spec", "extendedResourceName") == name
    ]
    newest = max((made for made, _ in named), default="")
    return min((other for made, other in named if made == newest), default=None)


def by_devices(
    pod: Json, node: Json, classes: Mapping[str, Json], dialect: Dialect
) -> Mapping[str, str]:
    """Resources of the pod that this node serves by devices, with their classes.

    A node that has some of a resource by a device plugin serves it by that alone, even if all is
    used; 1.34 does so even where the plugin is gone and 0 is left.
    """
    allocatable = amounts(part(node, "status"), "allocatable")
    found = {}
    for name in wanted(pod):
        plugin = amount(allocatable.get(name, "0")) > 0
        gone = name in allocatable and dialect.release == "1.34"
        known = class_of(name, classes, dialect)
        if known is not None and not plugin and not gone:
            found[name] = known
    return found


def wanted(pod: Json) -> dict[str, int]:
    """Every extended resource that the pod needs at a time."""
    containers = list(_containers(pod))
    names = sorted({name for each in containers for name in each.requests if "/" in name})
    total = {}
    for name in names:
        together = sum(each.requests.get(name, 0) for each in containers if not each.borrows)
        most = max((each.requests.get(name, 0) for each in containers if each.borrows), default=0)
        total[name] = max(together, most)
    return {name: count for name, count in total.items() if count}


def amount_of(node: Json, name: str) -> int:
    """How much of a resource a node has by device plugins."""
    return _whole(amounts(part(node, "status"), "allocatable").get(name, "0"))


def used_by_plugin(pods: Sequence[Json], node: str, name: str) -> int:
    """How much of a resource pods on a node are charged with."""
    on_node = (pod for pod in pods if text(pod, "spec", "nodeName") == node)
    active = (p for p in on_node if text(p, "status", "phase") not in {"Succeeded", "Failed"})
    return sum(wanted(pod).get(name, 0) for pod in active)


def plan(pod: Json, resources: Mapping[str, str]) -> Plan:
    """Requests for the resources, and which containers they are for."""
    containers = list(_containers(pod))
    requests: list[Object] = []
    mappings: list[Object] = []
    for name in sorted(resources):
        made = _Requests(name, resources[name])
        for container in containers:
            if not container.borrows:
                made.add(container)
        for container in containers:
            if container.borrows:
                made.borrow(container)
        requests += made.all()
        mappings += made.mappings()
    return Plan(tuple(sorted(requests, key=lambda r: text(r, "name"))), tuple(mappings))


class _Requests:
    """The requests for one resource."""

    def __init__(self, resource: str, class_name: str) -> None:
        self.resource = resource
        self._class = class_name
        self._own: dict[int, tuple[str, str, int]] = {}
        """By the index of the container: its name, the request's, and how many."""
        self._extra: tuple[str, int] | None = None
        """What init containers need beside."""
        self._lent: list[tuple[str, str]] = []
        self._more: list[str] = []
        """Containers that use the extra request."""

    def add(self, container: Container) -> None:
        if count := container.requests.get(self.resource, 0):
            self._own[container.index] = container.name, self._name(container), count

    def borrow(self, container: Container) -> None:
        missing = container.requests.get(self.resource, 0)
        for index, (_, name, count) in self._own.items():
            if missing > 0 and index > container.index:
                missing -= count
                self._lent.append((container.name, name))
        if missing > 0:
            self._more.append(container.name)
            if self._extra is None or self._extra[1] < missing:
                self._extra = self._name(container), missing

    def _name(self, container: Container) -> str:
        position = sorted(container.requests).index(self.resource)
        return f"container-{container.index}-request-{position}"

    def all(self) -> Iterator[Object]:
        extra = [self._extra] if self._extra else []
        own = [(name, count) for _, name, count in self._own.values()]
        for name, count in (*extra, *own):
            exactly = {
                "deviceClassName": self._class,
                "allocationMode": "ExactCount",
                "count": count,
            }
            yield {"name": name, "exactly": exactly}

    def mappings(self) -> Iterator[Object]:
        users = [(container, name) for container, name, _ in self._own.values()]
        extra = [(each, self._extra[0]) for each in self._more] if self._extra else []
        for container, request in (*users, *self._lent, *extra):
            yield {
                "containerName": container,
                "resourceName": self.resource,
                "requestName": request,
            }


def claim(pod: Json, plan: Plan) -> Json:
    """The claim by which *pod* gets what is planned."""
    return {
        "metadata": {
            "generateName": f"{text(pod, 'metadata', 'name')}-extended-resources-",
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner(pod)],
        },
        "spec": {"devices": {"requests": list(plan.requests)}},
    }


def _containers(pod: Json) -> Iterator[Container]:
    spec = part(pod, "spec")
    init = parts(spec, "initContainers")
    for index, item in enumerate((*init, *parts(spec, "containers"))):
        requests = {
            name: _whole(value)
            for name, value in amounts(part(item, "resources"), "requests").items()
        }
        borrows = index < len(init) and text(item, "restartPolicy") != "Always"
        yield Container(index, text(item, "name"), requests, borrows)


def _whole(value: str) -> int:
    found: Fraction = amount(value)
    return -(-found.numerator // found.denominator)
