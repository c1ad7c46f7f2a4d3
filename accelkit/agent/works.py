"""The vendors' work calls, each in a lane of its vendor. Not here: who asks for them, and why."""

import logging
from collections.abc import Callable, Mapping

from accelkit.agent import calls
from accelkit.agent.looks import Looks
from accelkit.agent.sources import Source, roots_of
from accelkit.core import working
from accelkit.core.allocation import Edits, Grant, Setting
from accelkit.core.errors import ConfigRefused, DriverNotReady, LibraryMissing, SourceError
from accelkit.core.evidence import names_of
from accelkit.core.model import Device, DeviceId, Placement
from accelkit.core.values import Scope
from accelkit.core.vendor import SupportsPreparation
from accelkit.core.view import View
from accelkit.core.working import Needed

log = logging.getLogger(__name__)

GONE = (DriverNotReady, LibraryMissing)
"""Without its driver nothing that was made or set is there any more."""


class Works:
    """What the keeper asks of vendors, answered by them.

    Args:
        sources: By vendor.
        view: The newest; knows the names of devices that cannot be read.
    """

    def __init__(self, sources: Mapping[str, Source], view: Callable[[], View]) -> None:
        self._sources = sources
        self._looks: dict[str, Looks] = {}
        self._view = view

    async def edits(self, vendor: str, grant: Grant) -> Edits:
        return await self._source(vendor).work(calls.EDITS, (grant,), roots_of(grant))

    async def needs(self, vendor: str, grant: Grant) -> tuple[Setting, ...]:
        source = self._source(vendor)
        if not issubclass(source.kind, SupportsPreparation):
            return ()  # known without a turn in its lane
        return await source.work(calls.NEEDS, (grant,), roots_of(grant))

    async def needed(self, vendor: str, grant: Grant) -> Needed:
        return await self._source(vendor).work(calls.NEEDED, (grant,), roots_of(grant))

    async def apply(self, vendor: str, setting: Setting) -> None:
        reach = self._reach(vendor, setting.device)
        await self._source(vendor).work(calls.APPLY, (setting,), reach)

    async def revert(self, vendor: str, setting: Setting) -> None:
        reach = self._reach(vendor, setting.device)
        try:
            await self._source(vendor).work(calls.REVERT, (setting,), reach)
        except GONE as error:
            self._say_gone("setting", setting.device, error)

    async def create(self, parent: Device, placement: Placement) -> Device:
        source = self._source(parent.id.vendor)
        try:
            return await source.work(calls.CREATE, (parent, placement), {parent.id})
        finally:
            source.inventory.ring(urgent=True)

    async def destroy(self, partition: Device) -> None:
        source = self._source(partition.id.vendor)
        try:
            await source.work(calls.DESTROY, (partition,), {partition.root})
        except GONE as error:
            self._say_gone("partition", partition.id, error)
        finally:
            source.inventory.ring(urgent=True)

    async def set_mode(self, device: Device, mode: str) -> None:
        source = self._source(device.id.vendor)
        alone = all(m.disturbs is not Scope.VENDOR for m in device.modes if m.name == mode)
        reach = {device.root} if alone else self._reach(device.id.vendor, None)
        try:
            await source.work(calls.SET_MODE, (device, mode), reach)
        finally:
            source.inventory.ring(urgent=True)

    async def find(self, device: DeviceId) -> Device | None:
        names = self._names(device)
        # What is not there yet may be when a call that overran has come to its end.
        source = self._source(device.vendor)
        source.check(calls.FIND, self._reach(device.vendor, device))
        looks = self._looks.setdefault(device.vendor, Looks(source))
        sight = await looks.join(device, names)
        return sight.find(device, names)

    def config(self, vendor: str, block: Mapping[str, object]) -> object:
        if vendor not in self._sources:
            raise ConfigRefused(f"there is no vendor {vendor} on this node")
        return working.claim_config(self._sources[vendor].kind, block)

    def _source(self, vendor: str) -> Source:
        if vendor not in self._sources:
            raise SourceError(
                f"vendor {vendor} is not asked on this node",
                vendor=vendor,
                remedy="install its plugin, and do not disable it while claims have its devices",
            )
        return self._sources[vendor]

    def _reach(self, vendor: str, device: DeviceId | None) -> frozenset[DeviceId]:
        """Whole devices that work at *device* may touch; None: all of the vendor's."""
        known = self._view().devices
        if device is not None:
            parts = {part.id: part.root for part in self._view().potential}
            root = known[device].root if device in known else parts.get(device, device)
            return frozenset({root})
        return frozenset(d.root for d in known.values() if d.id.vendor == vendor)

    def _names(self, device: DeviceId) -> frozenset[str]:
        view = self._view()
        known = {**view.devices, **{d.id: d for d in view.potential}}
        family = [known[i] for i in (device,) if i in known]
        family += [known[d.root] for d in family if d.root in known]
        return frozenset().union(*(names_of(one) for one in family))

    @staticmethod
    def _say_gone(what: str, device: DeviceId | None, error: SourceError) -> None:
        log.info(
            "undone by the end of the driver",
            extra={"what": what, "device": str(device or ""), "error": str(error)},
        )
