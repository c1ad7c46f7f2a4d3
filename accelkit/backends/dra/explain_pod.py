"""Why a pod has devices, or waits for some: by its claims, and by its extended resources. Pure.

Not here: claims themselves, and whatever else keeps a pod waiting.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import attrs

from accelkit.backends.dra.claims import IMPLICIT
from accelkit.backends.dra.claims_tree import items, mapping, text
from accelkit.backends.dra.explain import LAST_WORD, Cluster, Explanation, chance_of, explain_claim
from accelkit.backends.dra.explain_devices import amount
from accelkit.core.kube import Json
from accelkit.core.values import freeze

_AGAIN = "it asks again within 60 to 90 s, and at once if the pod is labelled"
_KNOWN = {
    "no relationship found between node": "the kubelet asked for the claim before the API server "
    f"knew that its pod is on the node; {_AGAIN}",
    "is not registered": f"the driver did not run on the node when the kubelet asked; {_AGAIN}",
}
"""Texts of the kubelet's events, and what they mean (seen on 1.34 to 1.37)."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class PodFacts:
    """What is known of a pod."""

    pod: Json = attrs.field(hash=False)
    claims: tuple[Json, ...] = attrs.field(default=(), hash=False)
    """Those that it uses and that are there."""
    nodes: tuple[Json, ...] | None = attrs.field(default=None, hash=False)
    """Where it may run; None: they cannot be read."""
    events: tuple[Json, ...] = attrs.field(default=(), hash=False)


def explain_pod(facts: PodFacts, cluster: Cluster) -> Explanation:
    """Why the pod has its devices, or what can be seen of why it waits."""
    pod = facts.pod
    name = f"pod {text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
    claims = [explain_claim(claim, cluster) for claim in facts.claims]
    lines = [line for one in claims for line in (one.verdict, *one.lines) if line != LAST_WORD]
    lines += _missing(pod, facts.claims)
    wants = wanted(pod)
    by_claim = bool(text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName"))
    if not by_claim:
        for resource, count in wants.items():
            lines += _of_resource(resource, count, facts, cluster)
    lines += _told(facts.events)
    node = text(pod, "spec", "nodeName")
    if not (wants or [*items(pod, "spec", "resourceClaims")]):
        return Explanation(verdict=f"{name} asks for no devices", good=True)
    phase = text(pod, "status", "phase") or "Pending"
    if not node:
        why = _unscheduled(pod)
        verdict = f"{name} has no node" + (f": {why}" if why else "")
        return Explanation(verdict=verdict, good=False, lines=(*lines, LAST_WORD))
    return Explanation(
        verdict=f"{name} is on node {node}, {phase}", good=phase == "Running", lines=tuple(lines)
    )


def wanted(pod: Json) -> Counter[str]:
    """How much of which extended resource the containers ask for together."""
    found: Counter[str] = Counter()
    for container in items(pod, "spec", "containers"):
        limits = mapping(container, "resources", "limits")
        for name in limits:
            if "/" in name:
                found[name] += amount(str(limits[name])) or 0
    return found


def claim_names(pod: Json) -> tuple[str, ...]:
    """The claims that *pod* uses, as far as they are made."""
    made = {
        text(one, "name"): text(one, "resourceClaimName")
        for one in items(pod, "status", "resourceClaimStatuses")
    }
    named = (
        text(entry, "resourceClaimName") or made.get(text(entry, "name"), "")
        for entry in items(pod, "spec", "resourceClaims")
    )
    extended = text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName")
    return tuple(filter(None, (*named, extended)))


def _missing(pod: Json, claims: Iterable[Json]) -> Iterator[str]:
    there = {text(claim, "metadata", "name") for claim in claims}
    names = claim_names(pod)
    yield from (f"there is no claim {name}, which it uses" for name in names if name not in there)
    made = {text(one, "name") for one in items(pod, "status", "resourceClaimStatuses")}
    for entry in items(pod, "spec", "resourceClaims"):
        template = text(entry, "resourceClaimTemplateName")
        if template and text(entry, "name") not in made:
            yield f"no claim was made of template {template} yet: is it there?"


def _of_resource(resource: str, count: int, facts: PodFacts, cluster: Cluster) -> Iterator[str]:
    """What becomes of *count* of an extended resource."""
    plugins = {
        text(node, "metadata", "name"): number
        for node in facts.nodes or ()
        if (number := amount(text(node, "status", "allocatable", resource)) or 0)
    }
    mapped = _classes_of(resource, cluster)
    said = f"{resource}: {count} wanted"
    if not mapped:
        there = f"; device plugins have it on {', '.join(sorted(plugins))}" if plugins else ""
        yield f"{said}; no device class has the name {resource}{there}"
        return
    if len(mapped) > 1:
        yield f"{said}; {', '.join(mapped)} have that name, and the newest is taken: {mapped[0]}"
    for where, number in sorted(plugins.items()):
        yield (
            f"{said}; on node {where} a device plugin shows {number} of it: there the scheduler "
            f"takes those, never devices of class {mapped[0]}"
        )
    if facts.nodes is None:
        yield "nodes cannot be read: whether a device plugin has the name there is not known"
    yield from chance_of(said, {"deviceClassName": mapped[0], "count": count}, cluster).lines


def _classes_of(resource: str, cluster: Cluster) -> list[str]:
    """Classes that have the name, the newest first."""
    if resource.startswith(IMPLICIT):
        name = resource.removeprefix(IMPLICIT)
        return [name] if name in cluster.classes else []
    found = [
        (text(item, "metadata", "creationTimestamp"), name)
        for name, item in cluster.classes.items()
        if text(item, "spec", "extendedResourceName") == resource
    ]
    return [name for _, name in sorted(found, reverse=True)]


def _unscheduled(pod: Json) -> str:
    return next(
        (
            text(one, "message")
            for one in items(pod, "status", "conditions")
            if text(one, "type") == "PodScheduled" and text(one, "status") == "False"
        ),
        "",
    )


def _told(events: Iterable[Json]) -> Iterator[str]:
    """What the kubelet said of claims, and what is known of it."""
    for note in dict.fromkeys(text(event, "note") for event in events):
        if "dynamic resources" in note:
            yield f"event: {note}"
            yield from (f"  that is: {means}" for words, means in _KNOWN.items() if words in note)
