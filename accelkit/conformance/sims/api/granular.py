"""Who may write which part of a claim's status. Not here: rights to the object as a whole.

Source:
    kubernetes v1.37.2, pkg/registry/resource/utils.go, and answers seen; since 1.36.
"""

from collections.abc import Iterator

from accelkit.conformance.sims.api.access import Act, User, allows, denial
from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import Cause, denied
from accelkit.conformance.sims.api.values import part, parts, text, texts
from accelkit.conformance.sims.gates import GRANULAR, Dialect

_GROUP = "resource.k8s.io"


def faults(new: Object, old: Object, user: User, verb: str, dialect: Dialect) -> Iterator[Cause]:
    """What *user* may not write of the change from *old* to *new*."""
    if not dialect.on(GRANULAR):
        return
    status, before = part(new, "status"), part(old, "status")
    binding = Act(verb=verb, group=_GROUP, plural="resourceclaims/binding")
    bound = any(status.get(n) != before.get(n) for n in ("allocation", "reservedFor"))
    if bound and not allows(user, binding):
        yield denied(
            "status.allocation",
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{verb}" permission: '
            f"resourceclaims.{_GROUP} is forbidden: {denial(user, binding)}",
        )
    if "allocation" in status:
        yield from _driver_faults(new, old, user, verb)


def _driver_faults(new: Object, old: Object, user: User, verb: str) -> Iterator[Cause]:
    verbs = [f"associated-node:{verb}"] if user.node and _node(new) == user.node else []
    verbs.append(f"arbitrary-node:{verb}")
    for driver in sorted(_changed_drivers(new, old)):
        acts = [
            Act(
                verb=each,
                group=_GROUP,
                plural="resourceclaims/driver",
                name=driver,
                namespace=text(new, "metadata", "namespace"),
            )
            for each in verbs
        ]
        if not any(allows(user, act) for act in acts):
            yield denied(
                "status.devices",
                f'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(verbs)}]" permission: resourceclaims.{_GROUP} "{driver}" '
                f"is forbidden: {denial(user, acts[0])}",
            )


def _changed_drivers(new: Object, old: Object) -> set[str]:
    def entries(item: Object) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for device in parts(item, "status", "devices"):
            found.setdefault(text(device, "driver"), []).append(device)
        return found

    now, before = entries(new), entries(old)
    return {name for name in now.keys() | before if now.get(name) != before.get(name)}


def _node(item: Object) -> str:
    """The one node that the claim is allocated on; empty if it is not bound to one by name."""
    terms = parts(item, "status", "allocation", "nodeSelector", "nodeSelectorTerms")
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    match parts(terms[0], "matchFields"):
        case [only] if text(only, "key") == "metadata.name" and text(only, "operator") == "In":
            values = texts(only, "values")
            return values[0] if len(values) == 1 else ""
    return ""
