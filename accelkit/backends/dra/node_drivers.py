"""The drivers of a node, each with its socket. Not here: what one of them answers."""

import asyncio
from collections.abc import Iterator

import attrs

from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.document import offered_vendors, vendors_of
from accelkit.backends.dra.health_stream import HealthStreams
from accelkit.backends.dra.listing import BACKEND
from accelkit.backends.dra.metadata import PublishedAttributes
from accelkit.backends.dra.metadata_files import MetadataFiles
from accelkit.backends.dra.node import Companion, NodeService
from accelkit.backends.dra.node_settings import Settings
from accelkit.backends.dra.registration import Registration
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices import publish
from accelkit.backends.dra.status import StatusDevices
from accelkit.core.backend import BackendStatus, NodePort
from accelkit.core.policy import DraPolicy
from accelkit.core.values import FrozenMap
from accelkit.core.view import View


@attrs.frozen(eq=False)
class _Served:
    """A driver that is served until the process ends."""

    streams: HealthStreams
    registration: Registration


class Drivers:
    """Serves one driver for each vendor, as soon as it is needed and from then on.

    One that was called otherwise when claims were prepared is served by that name, too: the
    kubelet asks nobody else to give them back, and their pods end only then.

    Args:
        node: The agent.
        policy: What drivers are called.
        settings: Where the kubelet looks, and what goes with claims.
    """

    def __init__(self, node: NodePort, policy: DraPolicy, settings: Settings) -> None:
        self._node = node
        self._policy = policy
        self._settings = settings
        self._registrations = Registrations()
        self._served: dict[str, _Served] = {}
        self._published: dict[str, str] = {}
        """Why slices are not as they should be, by driver; empty: they are."""
        self._nowhere = ""
        """Why nothing can be published."""

    async def run(self) -> None:
        """Serve until cancelled; then running calls end, and sockets go."""
        publishing: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            async for view in self._node.views():
                for vendor, name in sorted(self._wanted(view)):
                    if name not in self._served:
                        self._serve(self._driver(vendor, name, view), group)
                for served in self._served.values():
                    served.streams.publish(view)
                publishing = publishing or group.create_task(self._publish())
                self._report()

    async def _publish(self) -> None:
        """Keep the slices of all drivers, once they have sockets.

        The first use of the API loads what holds up the loop, and a pod that starts before its
        driver is registered waits for a minute.
        """
        for served in tuple(self._served.values()):
            await served.registration.bound.wait()
        if self._node.kube is None:
            self._nowhere = "there is no API server to publish at"
            self._report()
        else:
            await publish(self._node, self._policy, self._registrations, self._on_published)

    def _wanted(self, view: View) -> Iterator[tuple[str, str]]:
        """Vendor and name of each driver; also names of before, by which claims are given back."""
        for vendor in offered_vendors(view):
            yield vendor, self._policy.driver_of(vendor)
        for entry in self._node.claims().values():
            yield from entry.called.items()

    def _driver(self, vendor: str, name: str, view: View) -> Driver:
        others = {self._policy.driver_of(other): other for other in view.domains if other != vendor}
        return Driver(name=name, vendor=vendor, pool=self._node.node, siblings=FrozenMap(others))

    def _serve(self, driver: Driver, group: asyncio.TaskGroup) -> None:
        node, patience = self._node, self._settings.patience
        streams = HealthStreams(driver, BACKEND, node, patience)
        service = NodeService(driver, node, patience, self._companions(driver, group))
        registration = Registration(
            driver.name,
            node,
            self._settings,
            service,
            streams,
            registrations=self._registrations,
            tell=self._report,
        )
        self._served[driver.name] = _Served(streams, registration)
        group.create_task(registration.run())

    def _companions(self, driver: Driver, group: asyncio.TaskGroup) -> list[Companion]:
        """What goes with every claim of *driver*."""
        node, patience = self._node, self._settings.patience
        found: list[MetadataFiles | StatusDevices] = []
        if self._settings.metadata:
            attributes = PublishedAttributes(driver.name, node.view, self._policy)
            found.append(MetadataFiles(driver, node, attributes, patience))
        if self._settings.status_devices:
            found.append(StatusDevices(driver, node, patience))
        for one in found:
            group.create_task(one.run())
        return [*found]

    def _on_published(self, driver: str, *, published: bool, detail: str) -> None:
        self._published[driver] = "" if published else detail or "its slices are not written yet"
        self._report()

    def _report(self) -> None:
        """Say how drivers are; while another instance leads, it has to publish."""
        registered = sum(served.registration.registered for served in self._served.values())
        unpublished = self._unpublished() if self._node.leading.now else ""
        detail = f"{registered} of {len(self._served)} drivers registered"
        self._node.report(
            BackendStatus(
                backend=BACKEND,
                registered=registered == len(self._served),
                published=not unpublished,
                detail=f"{detail}; {unpublished}" if unpublished else detail,
            )
        )

    def _unpublished(self) -> str:
        """Whose slices are not as they should be, and why; empty: nobody's."""
        if self._nowhere:
            return self._nowhere
        for vendor in vendors_of(self._node.view()):
            driver = self._policy.driver_of(vendor)
            if why := self._published.get(driver, "its slices are not written yet"):
                return f"{driver}: {why}"
        return ""
