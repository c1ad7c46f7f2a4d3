"""Keeps one driver known to the kubelet, at one socket. Not here: what it answers there."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from accelkit.backends.dra.health_stream import HealthStreams
from accelkit.backends.dra.listing import BACKEND
from accelkit.backends.dra.node import NodeService
from accelkit.backends.dra.node_settings import Settings
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.wire import sockets
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.registration import registration
from accelkit.backends.wire.serve import Server, bind, fresh_path
from accelkit.core.backend import NodePort
from accelkit.core.errors import RegistrationRejected, TransportError

log = logging.getLogger(__name__)

VERSIONS = (
    "v1.DRAPlugin",
    "v1beta1.DRAPlugin",
    "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth",
)
"""In order of preference: the kubelet takes the first DRAPlugin that it knows."""
SILENT = "kubelet-silent"


class Registration:
    """One socket that answers everything, and another one when it is taken away.

    The kubelet comes by itself, also after it was started again.

    Args:
        driver: Its name.
        settings: Where the kubelet looks.
        service: Answers about claims.
        streams: Tell about health.
        registrations: Told when the kubelet accepts us.
        tell: Called when `registered` changes.
    """

    def __init__(
        self,
        driver: str,
        node: NodePort,
        settings: Settings,
        service: NodeService,
        streams: HealthStreams,
        *,
        registrations: Registrations,
        tell: Callable[[], None],
    ) -> None:
        self.bound = asyncio.Event()
        """It has, or had, a socket."""
        self.registered = False
        """The kubelet has accepted us, and has not left since as far as can be known."""
        self._driver = driver
        self._node = node
        self._settings = settings
        self._service = service
        self._streams = streams
        self._registrations = registrations
        self._tell = tell
        self._accepted: bool | None = None
        """What the kubelet said at this socket; None: nothing yet."""
        self._opened = 0
        """Streams that were opened before: when one is open since, its end is the kubelet's."""
        self._alone_since = 0.0
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until cancelled; then running calls end, and streams, and the socket goes."""
        try:
            while True:
                server = await self._bind()
                try:
                    await self._while_in_place(server)
                finally:
                    ending = asyncio.create_task(self._end(server))
                    self._ending.add(ending)
                    ending.add_done_callback(self._ending.discard)
        finally:
            await asyncio.gather(*self._ending)

    async def _bind(self) -> Server:
        """Bind a fresh socket, however often it takes."""
        info = reg.PluginInfo(type="DRAPlugin", name=self._driver, supported_versions=VERSIONS)
        handlers = (
            *registration(info, lambda: None, self._on_told),
            *self._service.handlers(),
            *self._streams.handlers(),
        )
        pause, longest = self._settings.patience.bind_again_s
        while True:
            self._accepted, self._alone_since = None, self._node.clock.monotonic()
            try:
                server = await bind(fresh_path(self._settings.registry, self._driver), handlers)
            except TransportError as error:
                self._count(error.code)
                self._node.problem(error.code, self._driver, str(error), error.remedy)
                await self._node.clock.sleep(pause)
                pause = min(2 * pause, longest)
            else:
                self._node.solved(TransportError.code, self._driver)
                self.bound.set()
                return server

    async def _while_in_place(self, server: Server) -> None:
        """Look after the socket until it is gone."""
        others: frozenset[str] = frozenset()
        led, repeats = self._node.leading.now, 0
        while server.in_place():
            leads = self._node.leading.now
            if leads:
                await sockets.remove_dead(server.path)
            found = frozenset(path.name for path in sockets.alike(server.path))
            # When another instance ends, the kubelet forgets what we told, too (seen on 1.37.2).
            if others - found or (leads and not led):
                repeats = self._settings.patience.repeats
            others, led = found, leads
            if repeats:
                repeats -= 1
                self._streams.again()
            self._look_for_kubelet()
            await self._node.clock.sleep(self._settings.patience.look_s)
        self._set(registered=False)

    def _look_for_kubelet(self) -> None:
        now = self._node.clock.monotonic()
        if self._accepted and (self._streams.open or self._streams.opened == self._opened):
            self._alone_since = now
            self._set(registered=True)
        elif (
            self._accepted is not False
            and now - self._alone_since > self._settings.patience.silent_s
        ):
            self._set(registered=False)
            self._node.problem(
                SILENT,
                self._driver,
                f"the kubelet does not come to our socket in {self._settings.registry}",
                "start the kubelet, or mount its plugins_registry there",
            )

    def _on_told(self, refusal: str) -> None:
        code = RegistrationRejected.code
        self._count(code if refusal else "registered")
        self._accepted, self._opened = not refusal, self._streams.opened
        if refusal:
            self._node.solved(SILENT, self._driver)
            text = f"the kubelet refuses {self._driver}: {refusal}"
            remedy = "give it another name in backends.dra.drivers"
            self._node.problem(code, self._driver, text, remedy)
        else:
            self._node.solved(code, self._driver)
            self._registrations.note(self._driver, self._node.clock.monotonic())
            log.info("driver registered", extra={"driver": self._driver})
        self._set(registered=not refusal)

    def _set(self, *, registered: bool) -> None:
        if registered:
            self._node.solved(SILENT, self._driver)
        if registered != self.registered:
            self.registered = registered
            self._tell()

    async def _end(self, server: Server) -> None:
        """Close *server* once no call runs: one that is cut is not moved to another instance."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.patience.drain_s):
                    await self._service.calls.idle()
        finally:
            await server.close(grace_s=1.0)

    def _count(self, outcome: str) -> None:
        self._node.meter.count("accelkit_registrations_total", (BACKEND, outcome))
