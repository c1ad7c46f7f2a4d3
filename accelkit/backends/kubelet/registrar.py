"""Keeps one resource registered, whatever the kubelet does. Not here: a single attempt."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from accelkit.backends.kubelet import kubelet_socket
from accelkit.backends.kubelet.document import BACKEND
from accelkit.backends.kubelet.plugin import Plugin
from accelkit.backends.kubelet.session import Attempt, End
from accelkit.backends.kubelet.settings import Settings, Way
from accelkit.backends.wire import sockets
from accelkit.core.backend import NodePort
from accelkit.core.errors import BackendError, RegistrationRejected, TransportError

log = logging.getLogger(__name__)

FAILURES = (RegistrationRejected.code, TransportError.code)


class Registrar:
    """Registers a resource, and again whenever its connection ends.

    Args:
        plugin: What answers.
        way: How; shared by all resources.
        tell: Called when `connected` changes.
    """

    def __init__(
        self,
        plugin: Plugin,
        node: NodePort,
        settings: Settings,
        way: Way,
        tell: Callable[[], None],
    ) -> None:
        self.plugin = plugin
        self.connected = False
        """The kubelet has a stream open."""
        self._node = node
        self._settings = settings
        self._way = way
        self._tell = tell
        self._anew = asyncio.Event()
        self._connected_at = 0.0
        self._cut_off = 0
        self._failed = 0

    def again(self) -> None:
        """End the connection and register anew."""
        self._anew.set()

    async def run(self) -> None:
        """Keep the resource registered until cancelled."""
        while True:
            before = kubelet_socket.identity(self._settings.kubelet)
            end = await self._attempt()
            pause = self._pause(end, before)
            if pause:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._kubelet_changed(before)

    async def _attempt(self) -> End | None:
        """Try once; None: it failed, and a problem says how."""
        self._anew.clear()
        attempt = Attempt(
            plugin=self.plugin,
            settings=self._settings,
            connected=self._on_connected,
            anew=self._anew,
        )
        try:
            at_kubelet = self._way.at_kubelet
            end = await (attempt.at_kubelet() if at_kubelet else attempt.at_registry())
        except (TransportError, RegistrationRejected) as error:
            await self._on_failure(error)
            return None
        finally:
            if self.connected:
                self.connected = False
                self._tell()
        if end is not End.OVER:
            self._count(end.name.lower())
        if end is End.UNNOTICED and self._way.give_up_watcher():
            log.warning("plugin watcher does not come, registering at kubelet.sock")
        return end

    def _on_connected(self) -> None:
        self.connected = True
        self._connected_at = self._node.clock.monotonic()
        self._failed = 0
        self._count("registered")
        for code in FAILURES:
            self._node.solved(code, self.plugin.resource)
        log.info("resource registered", extra={"resource": self.plugin.resource})
        self._tell()

    async def _on_failure(self, error: BackendError) -> None:
        self._count(error.code)
        self._node.problem(error.code, self.plugin.resource, str(error), error.remedy)
        # The registry may not be mounted where the kubelet's own directory is.
        unreachable = isinstance(error, TransportError) and not self._way.at_kubelet
        if unreachable and await sockets.listens(self._settings.kubelet):
            self._way.give_up_watcher()

    def _pause(self, end: End | None, before: kubelet_socket.Identity | None) -> float:
        """How long to wait for another kubelet.sock before the next attempt, in seconds."""
        patience = self._settings.patience
        if kubelet_socket.identity(self._settings.kubelet) != before:
            self._cut_off = 0
            return 0.0
        if end is None:
            self._failed += 1
            return _doubled(patience.again_s, self._failed)
        if end is not End.OVER:
            return 0.0
        lived = self._node.clock.monotonic() - self._connected_at
        # Somebody else's end has cut us off; were it ours, somebody else would be cut off again.
        self._cut_off = 0 if lived > patience.lived_s else self._cut_off + 1
        return _doubled(patience.cut_off_s, self._cut_off - 1)

    async def _kubelet_changed(self, since: kubelet_socket.Identity | None) -> None:
        await kubelet_socket.changed(
            self._settings.kubelet, since, self._node.clock, self._settings.patience
        )

    def _count(self, outcome: str) -> None:
        self._node.meter.count("accelkit_registrations_total", (BACKEND, outcome))


def _doubled(bounds: tuple[float, float], times: int) -> float:
    """The pause after so many failures; none before the first."""
    shortest, longest = bounds
    return 0.0 if times < 1 else min(longest, shortest * 2 ** min(times - 1, 30))
