"""Calls of a DRA driver past the kubelet. Not here: whose claims."""

from collections.abc import Iterable
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.backends.wire.serve import dial
from accelkit.core.allocation import ClaimRef


async def called(
    path: Path,
    method: services.Method[services.Q, services.R],
    request: services.Q,
    timeout_s: float,
) -> services.R:
    """The answer of whoever serves at *path*.

    Raises:
        grpc.aio.AioRpcError: It refused, or did not answer in time.
    """
    async with dial(path) as channel:
        return await services.call(channel, method, request, timeout_s=timeout_s)


def prepare_request(refs: Iterable[ClaimRef]) -> dra.NodePrepareResourcesRequest:
    return dra.NodePrepareResourcesRequest(claims=_messages(refs))


def unprepare_request(refs: Iterable[ClaimRef]) -> dra.NodeUnprepareResourcesRequest:
    return dra.NodeUnprepareResourcesRequest(claims=_messages(refs))


def _messages(refs: Iterable[ClaimRef]) -> list[dra.Claim]:
    return [dra.Claim(namespace=r.namespace, name=r.name, uid=r.uid) for r in refs]
