"""Reading a claim from the API server, waiting for it while it is away."""

import asyncio
import logging

from accelkit.backends.dra.node_settings import Patience
from accelkit.core.allocation import ClaimRef
from accelkit.core.backend import NodePort
from accelkit.core.clock import Clock
from accelkit.core.errors import (
    ApiError,
    BackendError,
    ClaimMismatch,
    PrepareFailed,
    TransportError,
)
from accelkit.core.kube import CLAIMS, Json, KubePort

log = logging.getLogger(__name__)

PASSING = frozenset({401, 408, 429, *range(500, 600)})
"""Statuses that may be others soon: a token is renewed, a server starts."""
ASKED_AGAIN = "the kubelet asks again within 90 s, or at once when a label of the pod changes"


async def fetch(node: NodePort, claim: ClaimRef, patience: Patience) -> Json:
    """The claim as the API server has it.

    What can pass is waited for: a failed Prepare is asked again only after 60 to 90 s (seen on
    1.34 to 1.37).

    Raises:
        ClaimMismatch: There is none of that name.
        PrepareFailed: It could not be read.
    """
    kube = node.kube
    if kube is None:
        raise PrepareFailed(
            f"claim {claim.name} cannot be read: no access to an API server is configured",
            claim=claim.uid,
            remedy="set kube.config in the policy",
        )
    last: list[BackendError] = []
    try:
        async with asyncio.timeout(patience.claim_s):
            return await _until_there(kube, claim, node.clock, patience, last)
    except TimeoutError:
        why = str(last[-1]) if last else "the API server does not answer"
        raise PrepareFailed(
            f"claim {claim.name} could not be read for {patience.claim_s:g} s: {why}",
            claim=claim.uid,
            remedy=f"look after the API server; {ASKED_AGAIN}",
        ) from None


async def _until_there(
    kube: KubePort, claim: ClaimRef, clock: Clock, patience: Patience, last: list[BackendError]
) -> Json:
    pause, longest = patience.again_s
    while True:
        try:
            return await kube.get(CLAIMS, claim.name, namespace=claim.namespace)
        except (ApiError, TransportError) as error:
            if isinstance(error, ApiError) and error.status not in PASSING:
                raise _refusal(error, claim) from error
            if str(error) not in map(str, last):
                told = {"claim": claim.uid, "reason": str(error)}
                log.warning("claim cannot be read yet", extra=told)
            last[:] = [error]
        await clock.sleep(pause)
        pause = min(2 * pause, longest)


def _refusal(error: ApiError, claim: ClaimRef) -> ClaimMismatch | PrepareFailed:
    if error.status == 404:
        return ClaimMismatch(
            f"claim {claim.name} does not exist any more",
            claim=claim.uid,
            remedy="delete the pod and create it again",
        )
    return PrepareFailed(
        f"claim {claim.name} cannot be read: {error}",
        claim=claim.uid,
        remedy=error.remedy or "let the agent's service account get resourceclaims",
    )
