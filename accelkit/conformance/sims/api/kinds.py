"""The kinds of objects that are served, and what differs between them. Not here: requests."""

from collections.abc import Mapping

from attrs import field, frozen

from accelkit.conformance.sims.gates import Dialect
from accelkit.core.kube import CLAIMS, CLASSES, EVENTS, NODES, PODS, SLICES, Resource

TEMPLATES = Resource(
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
    namespaced=True,
)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace")
CORE_EVENTS = Resource(group="", version="v1", plural="events", kind="Event", namespaced=True)
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_META = {"metadata.name": "metadata.name"}


def taint_rules(version: str) -> Resource:
    """Taint rules, which were served in several versions."""
    return Resource(
        group="resource.k8s.io",
        version=version,
        plural="devicetaintrules",
        kind="DeviceTaintRule",
    )


TAINT_RULES = taint_rules("v1")


@frozen(kw_only=True)
class Kind:
    """A kind of objects."""

    resource: Resource
    status: bool = False
    """Whether its status is a subresource."""
    generations: bool = False
    """Whether changes of its spec are counted."""
    unconditional: bool = True
    """Whether it may be written without its version."""
    shows_deleted: bool = True
    """Whether the answer to a deletion is the object."""
    selectable: Mapping[str, str] = field(factory=dict)
    """Field selectors, and where the field stands; beside the name and the namespace."""
    short: str = ""
    stored_as: str = ""
    """The plural under which it is stored, if another kind shows the same objects."""

    @property
    def struct(self) -> str:
        return self.resource.kind

    @property
    def collection(self) -> str:
        """What tells its objects from others in the store."""
        return self.stored_as or f"{self.resource.group}/{self.resource.plural}"

    @property
    def fields(self) -> Mapping[str, str]:
        """Every field selector."""
        space = {"metadata.namespace": "metadata.namespace"} if self.resource.namespaced else {}
        return {**_META, **space, **self.selectable}


def _involved(name: str) -> dict[str, str]:
    fields = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    known = {f"{name}.{each}": f"regarding.{each}" for each in fields}
    return {
        **known,
        "reason": "reason",
        "type": "type",
        "reportingComponent": "reportingController",
    }


_PODS = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName", "hostNetwork")
_SLICES = {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"}
_EVENTS_STORED = "events.k8s.io/events"


def kinds(dialect: Dialect) -> tuple[Kind, ...]:
    """Every kind that a server of that dialect has."""
    pools = {"spec.pool.name": "spec.pool.name"} if dialect.release == "1.37" else {}
    rules = dialect.rules_version
    return (
        Kind(resource=SLICES, generations=True, selectable={**_SLICES, **pools}),
        Kind(resource=CLAIMS, status=True),
        Kind(resource=TEMPLATES),
        Kind(resource=CLASSES, generations=True),
        *(
            (
                Kind(
                    resource=taint_rules(rules),
                    status=True,
                    generations=True,
                    unconditional=False,
                    shows_deleted=False,
                ),
            )
            if rules
            else ()
        ),
        Kind(resource=NAMESPACES, status=True, short="ns"),
        Kind(
            resource=NODES,
            status=True,
            shows_deleted=False,
            short="no",
            selectable={"spec.unschedulable": "spec.unschedulable"},
        ),
        Kind(
            resource=PODS,
            status=True,
            generations=True,
            short="po",
            selectable={
                **{f"spec.{name}": f"spec.{name}" for name in _PODS},
                **{
                    f"status.{name}": f"status.{name}"
                    for name in ("phase", "podIP", "nominatedNodeName")
                },
            },
        ),
        Kind(
            resource=EVENTS,
            shows_deleted=False,
            short="ev",
            selectable=_involved("regarding"),
        ),
        Kind(
            resource=CORE_EVENTS,
            shows_deleted=False,
            short="ev",
            selectable=_involved("involvedObject"),
            stored_as=_EVENTS_STORED,
        ),
    )
