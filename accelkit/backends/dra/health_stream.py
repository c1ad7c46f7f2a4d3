"""The kubelet's health streams of one driver. Not here: what is in a list."""

import asyncio
from collections.abc import AsyncGenerator

from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.health import DeviceHealth, health_of, message_of
from accelkit.backends.dra.node_settings import Patience
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import drahealth
from accelkit.backends.wire.services import Handler
from accelkit.core.backend import NodePort
from accelkit.core.view import View


class HealthStreams:
    """Sends the whole list on every change, and again and again: the kubelet forgets.

    Args:
        driver: Of the devices.
        backend: Through which they are offered.
    """

    def __init__(self, driver: Driver, backend: str, node: NodePort, patience: Patience) -> None:
        self._driver = driver
        self._backend = backend
        self._node = node
        self._patience = patience
        self._list: tuple[DeviceHealth, ...] = ()
        self._news = asyncio.Event()
        self.open = 0
        """How many streams the kubelet has open."""
        self.opened = 0
        """How many it opened ever."""

    def publish(self, view: View) -> None:
        """Let every stream send how devices are in *view*, unless that was sent last."""
        fresh = health_of(view, self._driver.vendor, self._backend)
        if fresh != self._list:
            self._list = fresh
            self.again()

    def again(self) -> None:
        """Let every stream send the list once more."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def handlers(self) -> tuple[Handler, ...]:
        """The stream, in both versions; up to 1.36 the kubelet knows only v1alpha1."""
        return (
            services.stream(services.WATCH_HEALTH, self._lists),
            services.stream(services.WATCH_HEALTH_ALPHA, self._lists),
        )

    async def _lists(
        self, _: drahealth.NodeWatchResourcesRequest
    ) -> AsyncGenerator[drahealth.NodeWatchResourcesResponse, None]:
        self._count(1)
        try:
            while True:
                news = self._news
                yield message_of(
                    self._list,
                    self._driver.pool,
                    now_s=int(self._node.clock.now().timestamp()),
                    expires_s=self._patience.health_expires_s,
                )
                await self._next(news)
        finally:
            self._count(-1)

    async def _next(self, news: asyncio.Event) -> None:
        """Return when there is news, or the list has to be sent again."""
        try:
            async with asyncio.timeout(self._patience.health_s):
                await news.wait()
        except TimeoutError:
            return

    def _count(self, by: int) -> None:
        self.open += by
        self.opened += max(by, 0)
        self._node.meter.set("accelkit_streams", self.open, (self._driver.name,))
