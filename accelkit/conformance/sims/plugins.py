"""A simulated kubelet's connections to device plugins. Not here: what their lists mean."""

import asyncio
import re
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import grpc
import grpc.aio
from attrs import define

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.backends.wire.services import Method, Q, R
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.devices import AlreadyConnected, Devices, Endpoint
from accelkit.conformance.sims.events import (
    Answer,
    Journal,
    Listed,
    ListedDevice,
    NotServing,
    Options,
    PreferredAsked,
    Registered,
    StreamEnded,
)
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing

API_VERSION = "v1beta1"

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_extended(resource: str) -> bool:
    """Whether a kubelet takes *resource* as the name of an extended resource.

    Source: kubernetes pkg/apis/core/v1/helper, IsExtendedResourceName.
    """
    prefix, slash, name = resource.partition("/")
    return bool(
        slash
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
        and len(f"requests.{prefix}") <= 253
        and _PREFIX.fullmatch(prefix)
        and _NAME.fullmatch(name)
    )


def invalid_name(resource: str) -> str:
    return f'the ResourceName "{resource}" is invalid'


def said(error: grpc.aio.AioRpcError) -> str:
    """Spell an error as a Go client does, which is how it shows in a pod's status."""
    code = "".join(part.capitalize() for part in error.code().name.split("_"))
    return f"rpc error: code = {code} desc = {error.details()}"


class PluginFault(Exception):
    """A call failed; the text is what a kubelet would write."""


@define(eq=False)
class _Connection:
    endpoint: Endpoint
    channel: grpc.aio.Channel
    following: "asyncio.Task[None] | None" = None


class Plugins:
    """All connections of one kubelet's life."""

    def __init__(self, devices: Devices, journal: Journal, timing: Timing) -> None:
        self._devices = devices
        self._journal = journal
        self._timing = timing
        self._open: dict[Endpoint, _Connection] = {}

    async def connect(self, resource: str, path: Path, *, by: str) -> None:
        """Dial a plugin, ask for its options, and follow its list.

        Raises:
            StatusError: As a kubelet refuses.
        """
        if not is_extended(resource):
            raise unknown(invalid_name(resource))
        if not accepts(path):
            self._journal.note(NotServing(resource, str(path)))
        channel = dial(path)
        try:
            async with asyncio.timeout(self._timing.dial_s):
                await channel.channel_ready()
            # No deadline here either: a plugin that does not answer is waited for.
            answer = await services.call(channel, services.GET_OPTIONS, dp.Empty())
            endpoint = Endpoint(resource, str(path), _options(answer))
            self._devices.connect(endpoint)
        except BaseException as error:
            await channel.close()
            if isinstance(error, TimeoutError):
                raise unknown("failed to dial device plugin: context deadline exceeded") from None
            if isinstance(error, AlreadyConnected):
                raise unknown(f"device plugin already connected: {path}") from None
            if isinstance(error, grpc.aio.AioRpcError):
                raise unknown(f"failed to get device plugin options: {said(error)}") from None
            raise
        connection = _Connection(endpoint, channel)
        self._open[endpoint] = connection
        self._journal.note(Registered(resource, str(path), by, endpoint.options))
        connection.following = asyncio.create_task(self._follow(connection))

    async def disconnect(self, resource: str, path: str) -> None:
        """Take a registration back, as the watcher does when its socket is gone."""
        for endpoint in self._devices.end(resource, path, time.monotonic()):
            await self._cut(endpoint, "disconnected by the kubelet")

    async def preferred(
        self, resource: str, available: Iterable[str], must: Iterable[str], size: int
    ) -> tuple[str, ...]:
        """Ask which devices go well together; () if the plugin does not offer it.

        Raises:
            PluginFault: The call failed.
        """
        connection = self._serving(resource)
        if not connection.endpoint.options.preferred:
            return ()
        asked = tuple(available), tuple(must)
        request = dp.ContainerPreferredAllocationRequest(
            available_deviceIDs=asked[0], must_include_deviceIDs=asked[1], allocation_size=size
        )
        try:
            answer = await self._call(
                connection,
                services.GET_PREFERRED,
                dp.PreferredAllocationRequest(container_requests=[request]),
            )
        except PluginFault as error:
            self._journal.note(PreferredAsked(resource, *asked, size, None))
            text = f"device plugin GetPreferredAllocation rpc failed with err: {error}"
            raise PluginFault(text) from error
        responses = answer.container_responses
        ids = tuple(responses[0].deviceIDs) if responses else ()
        self._journal.note(PreferredAsked(resource, *asked, size, ids))
        return ids

    async def allocate(self, resource: str, ids: Iterable[str]) -> Answer:
        """Ask for devices, with one container in the request and no deadline.

        Raises:
            PluginFault: The call failed, or the answer was empty.
        """
        connection = self._serving(resource)
        request = dp.AllocateRequest(
            container_requests=[dp.ContainerAllocateRequest(devices_ids=ids)]
        )
        answer = await self._call(connection, services.ALLOCATE, request)
        if not answer.container_responses:
            raise PluginFault(f"no containers return in allocation response {answer}".strip())
        return Answer.of(answer.container_responses[0])

    async def pre_start(self, resource: str, ids: Iterable[str]) -> None:
        """Tell the plugin that a container starts, if it wants to know.

        Raises:
            PluginFault: The call failed or took too long, or the plugin is gone for longer
                than the grace, whether it wanted to know or not.
        """
        if not self._devices.has_endpoint(resource, time.monotonic()):
            text = f"endpoint not found in cache for a registered resource: {resource}"
            raise PluginFault(text)
        if not self._devices.options(resource).pre_start:
            return
        connection = self._serving(resource)
        try:
            await self._call(
                connection,
                services.PRE_START,
                dp.PreStartContainerRequest(devices_ids=ids),
                timeout_s=self._timing.pre_start_s,
            )
        except PluginFault as error:
            text = f"device plugin PreStartContainer rpc failed with err: {error}"
            raise PluginFault(text) from error

    async def close(self) -> None:
        """End every connection at once."""
        for endpoint in list(self._open):
            await self._cut(endpoint, "the kubelet stopped")

    def _serving(self, resource: str) -> _Connection:
        endpoint = self._devices.serving(resource)
        if endpoint is None or endpoint not in self._open:
            raise PluginFault(f"endpoint &{{{resource}}} has been stopped")
        return self._open[endpoint]

    async def _call(
        self,
        connection: _Connection,
        method: Method[Q, R],
        request: Q,
        *,
        timeout_s: float | None = None,
    ) -> R:
        try:
            return await services.call(connection.channel, method, request, timeout_s=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise PluginFault(said(error)) from error
        except asyncio.CancelledError:
            # A channel that is closed cancels its calls, which looks as if we were cancelled.
            if connection.endpoint in self._open:
                raise
            raise PluginFault("the connection was closed") from None

    async def _follow(self, connection: _Connection) -> None:
        endpoint = connection.endpoint
        try:
            async for message in services.watch(
                connection.channel, services.LIST_AND_WATCH, dp.Empty()
            ):
                devices = tuple(_device(device) for device in message.devices)
                self._devices.listed(endpoint.resource, devices)
                self._journal.note(Listed(endpoint.resource, endpoint.path, devices))
            why = "ended by the plugin"
        except grpc.aio.AioRpcError as error:
            why = said(error)
        connection.following = None
        self._journal.note(StreamEnded(endpoint.resource, endpoint.path, why))
        for cut in self._devices.end(endpoint.resource, endpoint.path, time.monotonic()):
            await self._cut(cut, "cut off by the end of another")

    async def _cut(self, endpoint: Endpoint, why: str) -> None:
        connection = self._open.pop(endpoint)
        if connection.following is not None:
            await cancel(connection.following)
            self._journal.note(StreamEnded(endpoint.resource, endpoint.path, why))
        await connection.channel.close()


def accepts(path: Path) -> bool:
    """Whether somebody listens at *path* now; dialling would wait for it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:  # it listens, and many connect
            return True
        except OSError:
            return False
    return True


def unknown(text: str) -> StatusError:
    """Refuse as a Go server does that returns a plain error."""
    return StatusError(grpc.StatusCode.UNKNOWN, text)


def _options(message: dp.DevicePluginOptions) -> Options:
    return Options(message.pre_start_required, message.get_preferred_allocation_available)


def _device(message: dp.Device) -> ListedDevice:
    nodes = tuple(node.ID for node in message.topology.nodes)
    return ListedDevice(message.ID, message.health == "Healthy", nodes)
