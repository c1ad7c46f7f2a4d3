"""The methods of the kubelet's interfaces, to answer and to call. Not here: sockets."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

import grpc
import grpc.aio
from attrs import frozen
from google.protobuf.message import DecodeError, Message

from accelkit.backends.wire.messages import (
    deviceplugin as dp,
    dra,
    drahealth,
    podresources as pr,
    registration as reg,
)
from accelkit.backends.wire.status import StatusError

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


@frozen
class Method(Generic[Q, R]):
    """One method as it stands on the wire."""

    path: str
    request: type[Q]
    answer: type[R]


# Served by the kubelet on kubelet.sock.
REGISTER = Method("/v1beta1.Registration/Register", dp.RegisterRequest, dp.Empty)
# Served by a device plugin.
GET_OPTIONS = Method(
    "/v1beta1.DevicePlugin/GetDevicePluginOptions", dp.Empty, dp.DevicePluginOptions
)
LIST_AND_WATCH = Method("/v1beta1.DevicePlugin/ListAndWatch", dp.Empty, dp.ListAndWatchResponse)
GET_PREFERRED = Method(
    "/v1beta1.DevicePlugin/GetPreferredAllocation",
    dp.PreferredAllocationRequest,
    dp.PreferredAllocationResponse,
)
ALLOCATE = Method("/v1beta1.DevicePlugin/Allocate", dp.AllocateRequest, dp.AllocateResponse)
PRE_START = Method(
    "/v1beta1.DevicePlugin/PreStartContainer",
    dp.PreStartContainerRequest,
    dp.PreStartContainerResponse,
)
# Served by a plugin on its socket in plugins_registry.
GET_INFO = Method("/pluginregistration.Registration/GetInfo", reg.InfoRequest, reg.PluginInfo)
NOTIFY = Method(
    "/pluginregistration.Registration/NotifyRegistrationStatus",
    reg.RegistrationStatus,
    reg.RegistrationStatusResponse,
)
# Served by a DRA driver on the same socket; an answer of v1beta1 must leave share_id unset.
PREPARE, PREPARE_BETA = (
    Method(
        f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/NodePrepareResources",
        dra.NodePrepareResourcesRequest,
        dra.NodePrepareResourcesResponse,
    )
    for version in ("v1", "v1beta1")
)
UNPREPARE, UNPREPARE_BETA = (
    Method(
        f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/NodeUnprepareResources",
        dra.NodeUnprepareResourcesRequest,
        dra.NodeUnprepareResourcesResponse,
    )
    for version in ("v1", "v1beta1")
)
WATCH_HEALTH, WATCH_HEALTH_ALPHA = (
    Method(
        f"/{version}.DRAResourceHealth/NodeWatchResources",
        drahealth.NodeWatchResourcesRequest,
        drahealth.NodeWatchResourcesResponse,
    )
    for version in ("v1", "v1alpha1")
)
# Served by the kubelet on pod-resources/kubelet.sock.
LIST = Method(
    "/v1.PodResourcesLister/List", pr.ListPodResourcesRequest, pr.ListPodResourcesResponse
)
GET_ALLOCATABLE = Method(
    "/v1.PodResourcesLister/GetAllocatableResources",
    pr.AllocatableResourcesRequest,
    pr.AllocatableResourcesResponse,
)
GET = Method("/v1.PodResourcesLister/Get", pr.GetPodResourcesRequest, pr.GetPodResourcesResponse)


@frozen
class Handler:
    """What answers one method, on bytes; made by `unary` or `stream`."""

    path: str
    one: Callable[[bytes], Awaitable[bytes]] | None = None
    many: Callable[[bytes], AsyncGenerator[bytes, None]] | None = None


def unary(method: Method[Q, R], answer: Callable[[Q], Awaitable[R]]) -> Handler:
    """Answer *method* with one message per call."""

    async def run(raw: bytes) -> bytes:
        return (await answer(_parsed(method, raw))).SerializeToString()

    return Handler(method.path, one=run)


def stream(method: Method[Q, R], answers: Callable[[Q], AsyncGenerator[R, None]]) -> Handler:
    """Answer *method* with messages for as long as *answers* yields them.

    The generator is closed when the peer leaves or the server closes.
    """

    async def run(raw: bytes) -> AsyncGenerator[bytes, None]:
        messages = answers(_parsed(method, raw))
        try:
            async for message in messages:
                yield message.SerializeToString()
        finally:
            await messages.aclose()

    return Handler(method.path, many=run)


def _parsed(method: Method[Q, R], raw: bytes) -> Q:
    # Not by grpc's own deserialiser: what that raises reaches the peer as text.
    try:
        return method.request.FromString(raw)
    except DecodeError:
        raise StatusError(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{method.path}: the request is not a {method.request.DESCRIPTOR.name}",
        ) from None


async def call(
    channel: grpc.aio.Channel, method: Method[Q, R], request: Q, *, timeout_s: float | None = None
) -> R:
    """Call *method* once.

    Raises:
        grpc.aio.AioRpcError: The peer refused, went away, did not answer in time, or answered
            something else.
    """
    ask = channel.unary_unary(method.path, request_serializer=_raw, response_deserializer=bytes)
    return _understood(method, await ask(request, timeout=timeout_s))


async def watch(
    channel: grpc.aio.Channel, method: Method[Q, R], request: Q
) -> AsyncGenerator[R, None]:
    """Open the stream of *method* and yield its messages; it ends when the peer ends it.

    Raises:
        grpc.aio.AioRpcError: The peer refused, went away, or sent something else.
    """
    ask = channel.unary_stream(method.path, request_serializer=_raw, response_deserializer=bytes)
    opened = ask(request)
    try:
        async for raw in opened:
            yield _understood(method, raw)
    finally:
        opened.cancel()


def _raw(message: Message) -> bytes:
    return message.SerializeToString()


def _understood(method: Method[Q, R], raw: bytes) -> R:
    # Not by grpc's own deserialiser: that makes None of what it cannot read.
    try:
        return method.answer.FromString(raw)
    except DecodeError:
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.INTERNAL,
            grpc.aio.Metadata(),
            grpc.aio.Metadata(),
            f"{method.path}: the answer is not a {method.answer.DESCRIPTOR.name}",
        ) from None
