"""What claims made and gave back, until vendors and the kubelet have said so, too.

A vendor that was read before shows partitions that are gone by now, which would be somebody
else's, or are only half made; a kubelet that was asked before names claims that have nothing any
more. Not here: who asks them.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import attrs

from accelkit.agent.holders import Holders
from accelkit.agent.sources import Source
from accelkit.core.model import Device, DeviceId, Holding, VendorReport
from accelkit.core.view import View

Key = tuple[DeviceId, str | None, str | None]
"""Device, and namespace and name of the claim that had it."""


class GivenBack:
    """Compares what claims hold and have made with what it was a moment ago.

    Args:
        sources: The vendors, by name.
        holders: What the kubelet says.
    """

    def __init__(self, sources: Mapping[str, Source], holders: Holders) -> None:
        self._sources = sources
        self._holders = holders
        self._made: frozenset[DeviceId] = frozenset()
        self._changing: frozenset[DeviceId] = frozenset()
        self._held: frozenset[Key] = frozenset()
        self._gone: dict[DeviceId, int] = {}
        """Partitions that were unmade, each with the last read of its vendor before that."""
        self._given: dict[tuple[DeviceId, str], int] = {}
        """Partitions that were there for a claim, with the last read of their vendor before."""
        self._over: dict[Key, int] = {}
        """What claims had, each with the last question to the kubelet before that."""

    def compare(
        self,
        made: Iterable[DeviceId],
        claims: Iterable[Holding],
        changing: Iterable[DeviceId] = (),
        given: Mapping[DeviceId, str] = MappingProxyType({}),
    ) -> None:
        """Take note of what claims have made and hold now, and what of it is just changing.

        Args:
            made: Partitions that claims have made, or are making.
            claims: What claims hold.
            changing: Those that are being made or unmade.
            given: Those that are made, with the uid of their claim.
        """
        there, self._changing = frozenset(made), frozenset(changing)
        for device in self._made - there:
            if device.vendor in self._sources:
                self._gone[device] = self._sources[device.vendor].asked
        self._made = there
        for device, before in tuple(self._gone.items()):
            if device in there or self._sources[device.vendor].heard > before:
                del self._gone[device]
        self._given = {
            one: self._given.get(one, self._sources[one[0].vendor].asked)
            for one in given.items()
            if one[0].vendor in self._sources
        }
        held = frozenset(_key(holding) for holding in claims)
        self._over |= dict.fromkeys(self._held - held, self._holders.asked)
        self._held = held
        for key, question in tuple(self._over.items()):
            if key in held or self._holders.answered > question:
                del self._over[key]

    def unseen(self, view: View) -> tuple[Device, ...]:
        """Partitions that claims were given, and that were gone when their vendor was read next.

        *view* says what they were like: never seen, they are what could be made.
        """
        missed = {
            device
            for (device, _), before in self._given.items()
            if self._sources[device.vendor].heard > before and device not in view.devices
        }
        return tuple(device for device in view.potential if device.id in missed)

    def corrected(self, report: VendorReport) -> VendorReport:
        """*report* without partitions that were unmade after it, or are only half made yet.

        What was wrong with one while it was made or unmade is nothing to worry about.
        """
        gone = {device for device in self._gone if device.vendor == report.vendor}
        gone |= {d.id for d in report.devices if d.id in self._made and not d.usable}
        heard = self._sources[report.vendor].heard if report.vendor in self._sources else 0
        made_since = (device for (device, _), before in self._given.items() if heard <= before)
        changing = {i for i in (*self._changing, *made_since) if i.vendor == report.vendor}
        if not gone | changing:
            return report
        names = {device.name for device in gone | changing}
        return attrs.evolve(
            report,
            devices=tuple(
                attrs.evolve(d, conditions=()) if d.id in changing and d.conditions else d
                for d in report.devices
                if d.id not in gone
            ),
            links=tuple(link for link in report.links if gone.isdisjoint({link.a, link.b})),
            groups=tuple(group for group in report.groups if gone.isdisjoint(group.members)),
            problems=tuple(p for p in report.problems if p.subject not in names),
        )

    def without_over(self, told: Iterable[Holding]) -> Iterator[Holding]:
        """What the kubelet *told*, but of claims that gave it back after that."""
        return (holding for holding in told if _key(holding) not in self._over)


def _key(holding: Holding) -> Key:
    return holding.device, holding.holder.namespace, holding.holder.claim
