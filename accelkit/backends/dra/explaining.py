"""What explanations need of an API server, read once. Not here: the explanations."""

from http import HTTPStatus

from accelkit.backends.dra.claims_tree import text
from accelkit.backends.dra.explain import Cluster, Explanation, explain_claim
from accelkit.backends.dra.explain_pod import PodFacts, claim_names, explain_pod
from accelkit.core.errors import AllocationError, ApiError
from accelkit.core.kube import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    PODS,
    SLICES,
    Json,
    KubePort,
    Resource,
)


async def explain_claim_of(kube: KubePort, namespace: str, name: str) -> Explanation:
    """Why a claim has its devices, or what can be seen of why it has none.

    Raises:
        AllocationError: There is no such claim.
        BackendError: The API server cannot be asked, or refuses what is needed.
    """
    claim = await _get(kube, CLAIMS, namespace, name)
    return explain_claim(claim, await _cluster(kube, namespace))


async def explain_pod_of(kube: KubePort, namespace: str, name: str) -> Explanation:
    """The same of a pod.

    Raises:
        AllocationError: There is no such pod.
        BackendError: As above.
    """
    pod = await _get(kube, PODS, namespace, name)
    cluster = await _cluster(kube, namespace)
    claims = [await _maybe(kube, namespace, claim) for claim in claim_names(pod)]
    events = await _listed(kube, EVENTS, namespace=namespace, fields=f"regarding.name={name}")
    facts = PodFacts(
        pod=pod,
        claims=tuple(claim for claim in claims if claim is not None),
        nodes=await _nodes(kube, text(pod, "spec", "nodeName")),
        events=events or (),
    )
    return explain_pod(facts, cluster)


async def _get(kube: KubePort, resource: Resource, namespace: str, name: str) -> Json:
    try:
        return await kube.get(resource, name, namespace=namespace)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        what = f"{resource.kind} {namespace}/{name}"
        remedy = "name it with its namespace, as in default/train"
        raise AllocationError(f"there is no {what}", remedy=remedy) from error


async def _maybe(kube: KubePort, namespace: str, name: str) -> Json | None:
    try:
        return await _get(kube, CLAIMS, namespace, name)
    except AllocationError:
        return None


async def _cluster(kube: KubePort, namespace: str) -> Cluster:
    classes = (await kube.list(CLASSES, version="0")).items
    slices = (await kube.list(SLICES, version="0")).items
    claims = await _listed(kube, CLAIMS)
    everywhere = claims is not None
    if claims is None:
        claims = await _listed(kube, CLAIMS, namespace=namespace) or ()
    return Cluster.of(classes, slices, claims, all_claims=everywhere)


async def _nodes(kube: KubePort, name: str) -> tuple[Json, ...] | None:
    return await _listed(kube, NODES, fields=f"metadata.name={name}" if name else "")


async def _listed(
    kube: KubePort, resource: Resource, *, namespace: str = "", fields: str = ""
) -> tuple[Json, ...] | None:
    """All of them; None: we may not read them."""
    try:
        return (await kube.list(resource, namespace=namespace, fields=fields, version="0")).items
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return None
