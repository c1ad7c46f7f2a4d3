"""The kubelet backend while this instance leads. Not here: one resource, and what it lists."""

import asyncio
import logging
from collections.abc import Mapping

import attrs

from accelkit.backends.holdings import read_allocatable
from accelkit.backends.kubelet.allocate import dropped
from accelkit.backends.kubelet.document import (
    BACKEND,
    Catalog,
    catalog_of,
    fit,
    is_former,
    overflow,
)
from accelkit.backends.kubelet.plugin import Plugin
from accelkit.backends.kubelet.preferred import preference_of
from accelkit.backends.kubelet.registrar import Registrar
from accelkit.backends.kubelet.rivals import Rival, difference
from accelkit.backends.kubelet.settings import Settings, Way
from accelkit.backends.kubelet.static import StaticFiles
from accelkit.backends.kubelet.writer import Writer
from accelkit.core.backend import BackendStatus, NodePort
from accelkit.core.errors import TransportError
from accelkit.core.model import DeviceId
from accelkit.core.view import View

log = logging.getLogger(__name__)

READY_LOOK_S = 0.02
CDI_FILE = "cdi-file"
DROPPED = "edits-dropped"
TOO_MANY = "too-many-ids"
RIVAL = "foreign-writer"


@attrs.define(eq=False)
class _Served:
    """A resource that is registered, until this term ends."""

    registrar: Registrar
    rival: Rival
    task: asyncio.Task[None]

    @property
    def plugin(self) -> Plugin:
        return self.registrar.plugin


class Term:
    """One time of leading: every resource is registered anew, whatever was there before.

    Args:
        node: The agent.
        settings: Where the kubelet is.
        way: How resources are registered.
        writer: Writes CDI files; a write of an earlier term may hang in it.
    """

    def __init__(
        self, node: NodePort, settings: Settings, way: Way, writer: Writer[Mapping[str, str]]
    ) -> None:
        self._node = node
        self._settings = settings
        self._way = way
        self._writer = writer
        self._files = StaticFiles(settings.cdi)
        self._served: dict[str, _Served] = {}
        self._turn = asyncio.Lock()
        self._view: View | None = None
        self._listed: tuple[View, frozenset[DeviceId]] | None = None
        """What the lists were made of; None: some could not be made yet."""
        self._allocatable: Mapping[str, frozenset[str]] | None = None
        self._problems: dict[str, Mapping[str, str]] = {}

    async def run(self) -> None:
        """Serve until cancelled; streams end and sockets go with it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(group))
            group.create_task(self._look_after_files(group))
            group.create_task(self._look_for_rivals(group))

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        clock = self._node.clock
        until = clock.monotonic() + self._settings.patience.first_view_s
        while not self._node.answered() and clock.monotonic() < until:
            await clock.sleep(READY_LOOK_S)
        async for view in self._node.views():
            self._view = view
            await self._publish(group)
            self._report()

    async def _look_after_files(self, group: asyncio.TaskGroup) -> None:
        """Make CDI files again that vanished or were changed, and take back what failed."""
        while True:
            await self._node.clock.sleep(self._settings.patience.look_s)
            await self._publish(group)

    async def _publish(self, group: asyncio.TaskGroup) -> None:
        """Bring files, then lists, in line with the newest view."""
        async with self._turn:
            view = self._view
            if view is None:
                return
            self._files.want(view)
            if self._files.needed:
                await self._write_files()
            undescribed = self._files.undescribed(view)
            if self._listed == (view, undescribed):
                return
            catalog = catalog_of(view, undescribed)
            self._tell(TOO_MANY, overflow(catalog))
            self._tell(DROPPED, dropped(view))
            catalog = fit(catalog, view)
            all_listed = self._list(catalog, group)
            await self._consider(catalog, view)
            self._listed = (view, undescribed) if all_listed else None

    async def _write_files(self) -> None:
        """Write CDI files; what hangs there holds up the devices that they describe, no others."""
        wrong = await self._writer.run(self._files.write, self._settings.patience.files_s)
        if wrong is None:
            text = f"{self._settings.cdi} does not answer"
            wrong = dict.fromkeys(self._files.vendors, text)
        self._tell(CDI_FILE, wrong)

    def _list(self, catalog: Catalog, group: asyncio.TaskGroup) -> bool:
        """Publish the list of every resource; False: of some it is not known whether to."""
        all_listed = True
        for resource in sorted({*catalog, *self._served}):
            entries = catalog.get(resource, ())
            served = self._served.get(resource)
            if served is None:
                if is_former(entries) and not self._unserved(resource):
                    all_listed = False
                    continue
                served = self._serve(resource, group)
            served.plugin.publish(entries)
        return all_listed

    async def _consider(self, catalog: Catalog, view: View) -> None:
        """Find out how to choose among what is listed.

        In a thread, after the lists: the work grows with the square of the devices.
        """
        for resource, served in self._served.items():
            plugin, entries = served.plugin, catalog.get(resource, ())
            try:
                preference = await asyncio.to_thread(
                    preference_of, view, entries, plugin.preference
                )
            except Exception:  # no preference is worth the devices
                log.exception("no topology made", extra={"resource": resource})
                preference = None
            plugin.prefer(preference)

    def _serve(self, resource: str, group: asyncio.TaskGroup) -> _Served:
        patience = self._settings.patience
        plugin = Plugin(resource, self._node, self._files.described, allocate_s=patience.allocate_s)
        registrar = Registrar(plugin, self._node, self._settings, self._way, self._report)
        rival = Rival(patience.rivals_for_s)
        served = _Served(registrar, rival, group.create_task(registrar.run()))
        self._served[resource] = served
        return served

    def _unserved(self, resource: str) -> bool:
        """Whether nobody serves *resource*, which only pods from earlier still know.

        It may be another maker's; ours is registered, since 300 s after a plugin is gone the
        containers of its pods can no longer restart.
        """
        return self._allocatable is not None and resource not in self._allocatable

    async def _look_for_rivals(self, group: asyncio.TaskGroup) -> None:
        while True:
            listed = {name: served.plugin.listed for name, served in self._served.items()}
            try:
                self._allocatable = await read_allocatable(
                    self._settings.pod_resources, self._node.clock
                )
            except TransportError:
                self._allocatable = None  # whoever reads holdings has a problem for it
            else:
                for resource, devices in listed.items():
                    if self._served[resource].plugin.listed == devices:
                        self._compare(resource, self._allocatable.get(resource, frozenset()))
            await self._publish(group)
            await self._node.clock.sleep(self._settings.patience.rivals_s)

    def _compare(self, resource: str, believed: frozenset[str]) -> None:
        served = self._served[resource]
        text = ""
        if served.registrar.connected:
            text = difference(served.plugin.listed, believed)
        now_s = self._node.clock.monotonic()
        there, anew = served.rival.seen(differs=bool(text), now_s=now_s)
        if there:
            self._node.problem(
                RIVAL,
                resource,
                f"the kubelet {text}: somebody else registers {resource}",
                "remove the other device plugin, or give the offer another resource",
            )
        elif not text:
            self._node.solved(RIVAL, resource)
        if anew:
            served.registrar.again()

    def _tell(self, code: str, wrong: Mapping[str, str]) -> None:
        """Note problems by subject, and take back those that are no more."""
        for subject in self._problems.get(code, {}):
            if subject not in wrong:
                self._node.solved(code, subject)
        for subject, text in wrong.items():
            self._node.problem(code, subject, text, _REMEDIES[code])
        self._problems[code] = wrong

    def _report(self) -> None:
        connected = sum(served.registrar.connected for served in self._served.values())
        ready = self._view is not None and connected == len(self._served)
        detail = f"{connected} of {len(self._served)} resources connected"
        self._node.report(
            BackendStatus(backend=BACKEND, registered=ready, published=ready, detail=detail)
        )


_REMEDIES = {
    CDI_FILE: "make paths.cdi writable, or offer the devices with inject: direct",
    DROPPED: "use inject: cdi",
    TOO_MANY: "use fewer shares, or split the offer into several resources",
}
