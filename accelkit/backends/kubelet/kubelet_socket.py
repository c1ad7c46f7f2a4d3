"""The kubelet's own socket: whether it is another one, and Register."""

from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio

from accelkit.backends.kubelet.settings import Patience
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.core.clock import Clock
from accelkit.core.errors import RegistrationRejected, TransportError

API_VERSION = "v1beta1"

Identity: TypeAlias = tuple[int, int]
"""Inode number, which repeats, and time of change in nanoseconds."""


def identity(path: Path) -> Identity | None:
    """What tells the socket at *path* from its predecessors; None: there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


async def changed(path: Path, since: Identity | None, clock: Clock, patience: Patience) -> None:
    """Return when there is a socket at *path* that is not *since*.

    No watch of the directory: their number is limited on a node, and the end of a stream has
    said already that a new socket may be near.
    """
    begun = clock.monotonic()
    while (now := identity(path)) is None or now == since:
        quick = clock.monotonic() - begun < patience.quick_for_s
        await clock.sleep(patience.quick_s if quick else patience.slow_s)


async def register(kubelet: Path, endpoint: Path, resource: str, timeout_s: float) -> None:
    """Make *resource*, served at *endpoint* in the same directory, known to the kubelet.

    Raises:
        TransportError: The kubelet did not answer.
        RegistrationRejected: It refused.
    """
    request = dp.RegisterRequest(
        version=API_VERSION,
        endpoint=endpoint.name,
        resource_name=resource,
        options=dp.DevicePluginOptions(get_preferred_allocation_available=True),
    )
    async with dial(kubelet) as channel:
        try:
            await services.call(channel, services.REGISTER, request, timeout_s=timeout_s)
        except grpc.aio.AioRpcError as error:
            if error.code() in {
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.CANCELLED,
            }:
                raise TransportError(
                    f"the kubelet does not answer at {kubelet}: {error.details()}",
                    remedy="start the kubelet",
                ) from None
            raise RegistrationRejected(
                f"the kubelet refuses {resource}: {error.details()}",
                remedy="give its offer another resource",
            ) from None
