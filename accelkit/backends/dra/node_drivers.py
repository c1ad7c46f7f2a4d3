"""The drivers of a node, each with its socket. Not here: what one of them answers."""

import asyncio
from fnmatch import fnmatchcase

import attrs

from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.health_stream import HealthStreams
from accelkit.backends.dra.listing import BACKEND
from accelkit.backends.dra.node import NodeService
from accelkit.backends.dra.node_settings import Settings
from accelkit.backends.dra.registration import Registration
from accelkit.core.backend import BackendStatus, NodePort
from accelkit.core.policy import DraPolicy
from accelkit.core.view import View


def vendors_of(view: View) -> tuple[str, ...]:
    """Vendors that need a driver, before they have answered, too: claims may come at once."""
    globs = [offer.select.vendor for offer in view.offers if offer.through == BACKEND]
    selected = {
        vendor
        for vendor in view.domains
        if any(not some or any(fnmatchcase(vendor, glob) for glob in some) for some in globs)
    }
    held = {holding.device.vendor for holding in view.holdings if holding.through == BACKEND}
    return tuple(sorted(selected | held))


@attrs.frozen(eq=False)
class _Served:
    """A driver that is served until the process ends."""

    streams: HealthStreams
    registration: Registration


class Drivers:
    """Serves one driver for each vendor, as soon as it is needed and from then on.

    Args:
        node: The agent.
        policy: What drivers are called.
        settings: Where the kubelet looks, and what goes with claims.
    """

    def __init__(self, node: NodePort, policy: DraPolicy, settings: Settings) -> None:
        self._node = node
        self._policy = policy
        self._settings = settings
        self._served: dict[str, _Served] = {}

    async def run(self) -> None:
        """Serve until cancelled; then running calls end, and sockets go."""
        async with asyncio.TaskGroup() as group:
            async for view in self._node.views():
                for vendor in vendors_of(view):
                    if vendor not in self._served:
                        self._serve(vendor, group)
                for served in self._served.values():
                    served.streams.publish(view)
                self._report()

    def _serve(self, vendor: str, group: asyncio.TaskGroup) -> None:
        node, settings = self._node, self._settings
        driver = Driver(name=self._policy.driver_of(vendor), vendor=vendor, pool=node.node)
        streams = HealthStreams(driver, BACKEND, node, settings.patience)
        service = NodeService(driver, node, settings.patience)
        registration = Registration(
            driver.name, node, settings, service, streams, tell=self._report
        )
        self._served[vendor] = _Served(streams, registration)
        group.create_task(registration.run())

    def _report(self) -> None:
        registered = sum(served.registration.registered for served in self._served.values())
        self._node.report(
            BackendStatus(
                backend=BACKEND,
                registered=registered == len(self._served),
                published=True,
                detail=f"{registered} of {len(self._served)} drivers registered",
            )
        )
