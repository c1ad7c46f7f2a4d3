"""What one resource answers to the kubelet. Not here: how the kubelet comes to ask."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError

from accelkit.backends.kubelet.allocate import Described, allocate
from accelkit.backends.kubelet.document import Entry, WireDevice
from accelkit.backends.kubelet.preferred import Preference, choose, lowest
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.services import Handler
from accelkit.backends.wire.status import StatusError
from accelkit.core.backend import NodePort
from accelkit.core.errors import AccelkitError, SourceTimeout

log = logging.getLogger(__name__)

R = TypeVar("R")

OPTIONS = dp.DevicePluginOptions(get_preferred_allocation_available=True)


@lru_cache(maxsize=8192)
def _encoded(device: WireDevice) -> bytes:
    """A list of one: lists that are joined byte by byte are one list."""
    topology = dp.TopologyInfo(nodes=[dp.NUMANode(ID=node) for node in device.numa_nodes])
    message = dp.Device(
        ID=device.id,
        health="Healthy" if device.healthy else "Unhealthy",
        topology=topology if device.numa_nodes else None,
    )
    return dp.ListAndWatchResponse(devices=[message]).SerializeToString()


class Streams:
    """The kubelet's streams at one socket."""

    def __init__(self, changed: Callable[[int], None] = lambda _by: None) -> None:
        self._changed = changed
        self._open = 0
        self.opened = asyncio.Event()
        """One was opened."""
        self.over = asyncio.Event()
        """One was opened, and none is left."""

    def begin(self) -> None:
        self._open += 1
        self._changed(1)
        self.over.clear()
        self.opened.set()

    def end(self) -> None:
        self._open -= 1
        self._changed(-1)
        if not self._open:
            self.over.set()


class Plugin:
    """One resource: its list, and the answers to the five calls.

    Args:
        resource: Its name.
        node: Whom to ask before devices are handed out.
        described: Whether a CDI name means what it should.
        allocate_s: How long handing out may take.
    """

    def __init__(
        self, resource: str, node: NodePort, described: Described, *, allocate_s: float
    ) -> None:
        self.resource = resource
        self._node = node
        self._described = described
        self._allocate_s = allocate_s
        self._entries: Mapping[str, Entry] = {}
        self._preference: Preference | None = None
        self._considered = asyncio.Event()
        """Whether the preference is that of the last list."""
        self._list = b""
        self._news = asyncio.Event()
        self._streams = 0

    @property
    def listed(self) -> tuple[WireDevice, ...]:
        """The list as it was published last."""
        return tuple(entry.wire for entry in self._entries.values())

    @property
    def preference(self) -> Preference | None:
        """How devices are chosen."""
        return self._preference

    def publish(self, entries: Sequence[Entry]) -> None:
        """Let every stream send *entries*, unless it did so last.

        Whoever asks which of them go well together waits for *prefer*, though not for long.
        """
        self._entries = {entry.wire.id: entry for entry in entries}
        self._considered.clear()
        self._list = b"".join(_encoded(entry.wire) for entry in entries)
        news, self._news = self._news, asyncio.Event()
        news.set()

    def prefer(self, preference: Preference | None) -> None:
        """Choose by *preference*, which is that of the last list."""
        self._preference = preference
        self._considered.set()

    def streams(self) -> Streams:
        """Count of the streams at one more socket."""
        return Streams(self._count_streams)

    def handlers(self, streams: Streams) -> tuple[Handler, ...]:
        """The five calls at one socket, whose streams are counted in *streams*."""

        async def watch(raw: bytes) -> AsyncGenerator[bytes, None]:
            _empty(raw)
            streams.begin()
            try:
                async for message in self._lists():
                    yield message
            finally:
                streams.end()

        return (
            services.unary(services.GET_OPTIONS, self._options),
            Handler(services.LIST_AND_WATCH.path, many=watch),
            services.unary(services.GET_PREFERRED, self._preferred),
            services.unary(services.ALLOCATE, self._allocate),
            services.unary(services.PRE_START, self._pre_start),
        )

    async def _lists(self) -> AsyncGenerator[bytes, None]:
        sent: bytes | None = None
        while True:
            news, current = self._news, self._list
            if current != sent:
                yield current
                sent = current
            await news.wait()

    async def _options(self, _: dp.Empty) -> dp.DevicePluginOptions:
        return OPTIONS

    async def _pre_start(self, _: dp.PreStartContainerRequest) -> dp.PreStartContainerResponse:
        return dp.PreStartContainerResponse()

    async def _preferred(
        self, request: dp.PreferredAllocationRequest
    ) -> dp.PreferredAllocationResponse:
        begun = self._node.clock.monotonic()
        outcome = "ok"
        answers = []
        # Not for ever: until this is answered, the kubelet does nothing else.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._allocate_s):
                await self._considered.wait()
        for one in request.container_requests:
            available, must = list(one.available_deviceIDs), list(one.must_include_deviceIDs)
            try:
                ids = choose(self._preference, available, must, one.allocation_size)
            except Exception:  # a bad choice is better than a pod that fails for good
                log.exception("no preference found", extra={"resource": self.resource})
                ids = lowest(available, must, one.allocation_size)
                outcome = "fallback"
            answers.append(dp.ContainerPreferredAllocationResponse(deviceIDs=ids))
        self._observe("accelkit_preferred_seconds", begun, outcome)
        return dp.PreferredAllocationResponse(container_responses=answers)

    async def _allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        asked = [list(one.devices_ids) for one in request.container_requests]
        answers = await self._timed(self._allocate_all(asked))
        # Soon, not now: the kubelet's whole sync loop waits for the answer.
        told = partial(log.info, extra={"resource": self.resource, "devices": asked})
        asyncio.get_running_loop().call_soon(told, "devices handed out")
        return dp.AllocateResponse(container_responses=answers)

    async def _allocate_all(
        self, asked: Sequence[Sequence[str]]
    ) -> list[dp.ContainerAllocateResponse]:
        try:
            async with asyncio.timeout(self._allocate_s):
                return [
                    await allocate(self.resource, ids, self._entries, self._node, self._described)
                    for ids in asked
                ]
        except TimeoutError:
            raise SourceTimeout(
                f"{self.resource}: devices could not be handed out in {self._allocate_s:g} s",
                operation="allocate",
                remedy="see what hangs in `accelkit problems`",
            ) from None

    async def _timed(self, work: Awaitable[R]) -> R:
        begun = self._node.clock.monotonic()
        outcome = "error"
        try:
            result = await work
            outcome = "ok"
        except AccelkitError as error:
            outcome = error.code
            log.warning("allocate refused", extra={"resource": self.resource, "reason": str(error)})
            raise
        finally:
            self._observe("accelkit_allocate_seconds", begun, outcome)
        return result

    def _observe(self, metric: str, begun: float, outcome: str) -> None:
        seconds = self._node.clock.monotonic() - begun
        self._node.meter.observe(metric, seconds, (self.resource, outcome))

    def _count_streams(self, by: int) -> None:
        self._streams += by
        self._node.meter.set("accelkit_streams", self._streams, (self.resource,))


def _empty(raw: bytes) -> None:
    try:
        dp.Empty.FromString(raw)
    except DecodeError:
        raise StatusError(
            grpc.StatusCode.INVALID_ARGUMENT, "ListAndWatch: the request is not an Empty"
        ) from None
