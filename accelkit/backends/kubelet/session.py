"""One attempt to register a resource, at one fresh socket. Not here: what follows from its end."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

import attrs

from accelkit.backends.kubelet import kubelet_socket
from accelkit.backends.kubelet.plugin import Plugin, Streams
from accelkit.backends.kubelet.settings import Settings
from accelkit.backends.wire import sockets
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.registration import registration
from accelkit.backends.wire.serve import Server, bind, fresh_path
from accelkit.backends.wire.services import Handler
from accelkit.core.errors import RegistrationRejected
from accelkit.core.values import dns_label

RENAME = "give its offer another resource"


class End(Enum):
    """How an attempt ended, if no error ended it."""

    OVER = auto()
    """The kubelet was connected, and is no more."""
    SILENT = auto()
    """It did not open a stream."""
    UNNOTICED = auto()
    """It is there, but did not find our socket in its plugin registry."""


class Asked:
    """What the kubelet's plugin watcher did at one socket."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self.found = asyncio.Event()
        """It asked who we are."""
        self.refused = asyncio.Event()
        self.text = ""

    def handlers(self) -> tuple[Handler, ...]:
        # No endpoint: the socket that was asked serves the devices, too.
        info = reg.PluginInfo(
            type="DevicePlugin",
            name=self._resource,
            supported_versions=[kubelet_socket.API_VERSION],
        )
        return registration(info, self.found.set, self._told)

    def _told(self, refusal: str) -> None:
        if refusal:
            self.text = refusal
            self.refused.set()


@attrs.frozen(kw_only=True, eq=False)
class Attempt:
    """What an attempt is about.

    Each one binds a name that nobody had before: a kubelet that sees one path registered twice
    forgets the first client and never notices its end (seen on 1.37.2).
    """

    plugin: Plugin
    settings: Settings
    connected: Callable[[], None]
    """Called when the kubelet has opened a stream."""
    anew: asyncio.Event
    """Set: end this connection."""

    async def at_registry(self) -> End:
        """Wait for the kubelet's plugin watcher at a socket in its registry.

        Raises:
            TransportError: The socket cannot be bound.
            RegistrationRejected: The kubelet told that it refuses us.
        """
        asked, streams = Asked(self.plugin.resource), self.plugin.streams()
        handlers = (*asked.handlers(), *self.plugin.handlers(streams))
        path = await self._fresh(self.settings.registry)
        async with await bind(path, handlers) as server:
            patience = self.settings.patience
            if not await self._found(asked):
                return End.UNNOTICED
            if not await any_of(patience.stream_s, streams.opened, asked.refused):
                return End.SILENT
            if asked.refused.is_set():
                raise RegistrationRejected(
                    f"the kubelet refuses {self.plugin.resource}: {asked.text}", remedy=RENAME
                )
            return await self._while_connected(server, streams)

    async def at_kubelet(self) -> End:
        """Register at kubelet.sock, with a socket beside it.

        Raises:
            TransportError: The socket cannot be bound, or the kubelet does not answer.
            RegistrationRejected: The kubelet refuses us.
        """
        kubelet, patience = self.settings.kubelet, self.settings.patience
        before = kubelet_socket.identity(kubelet)
        streams = self.plugin.streams()
        path = await self._fresh(self.settings.plugins)
        async with await bind(path, self.plugin.handlers(streams)) as server:
            resource = self.plugin.resource
            await kubelet_socket.register(kubelet, path, resource, patience.register_s)
            if not await any_of(patience.stream_s, streams.opened):
                return End.SILENT
            return await self._while_connected(server, streams, kubelet=before)

    async def _found(self, asked: Asked) -> bool:
        """Wait until the kubelet asked; False: it was there for long enough and did not."""
        kubelet = self.settings.kubelet
        while True:
            there = None
            if await sockets.listens(kubelet):
                there = kubelet_socket.identity(kubelet)
            if await any_of(self.settings.patience.info_s, asked.found):
                return True
            if there is not None and kubelet_socket.identity(kubelet) == there:
                return False

    async def _while_connected(
        self, server: Server, streams: Streams, kubelet: kubelet_socket.Identity | None = None
    ) -> End:
        """Wait for the end: of the streams, of our socket, or of the kubelet *kubelet*."""
        self.connected()
        while not await any_of(self.settings.patience.look_s, streams.over, self.anew):
            if not server.in_place():
                break
            if kubelet is not None and self._replaced(kubelet):
                break
        return End.OVER

    def _replaced(self, kubelet: kubelet_socket.Identity) -> bool:
        return kubelet_socket.identity(self.settings.kubelet) not in {None, kubelet}

    async def _fresh(self, directory: Path) -> Path:
        """Name a new socket, and remove those that a killed process left for this resource."""
        path = fresh_path(directory, dns_label(self.plugin.resource))
        await sockets.remove_dead(path)
        return path


async def any_of(seconds: float, *events: asyncio.Event) -> bool:
    """Wait until one of *events* is set; False: none was within *seconds*."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return any(event.is_set() for event in events)
