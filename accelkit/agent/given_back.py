"""What claims made and gave back, until vendors and the kubelet have said so, too.

A vendor that was read before shows partitions that are gone by now, which would be somebody
else's, or are only half made; a kubelet that was asked before names claims that have nothing any
more. Not here: who asks them.
"""

from collections.abc import Iterable, Iterator, Mapping

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
        self._unmade: frozenset[DeviceId] = frozenset()
        self._held: frozenset[Key] = frozenset()
        self._gone: dict[DeviceId, int] = {}
        """Partitions that were unmade, each with the last read of its vendor before that."""
        self._given: dict[DeviceId, int] = {}
        """Partitions that were there, each with the last read of its vendor before that."""
        self._over: dict[Key, int] = {}
        """What claims had, each with the last question to the kubelet before that."""

    def compare(
        self,
        made: Iterable[DeviceId],
        claims: Iterable[Holding],
        unmade: Iterable[DeviceId] = (),
        given: Iterable[DeviceId] = (),
    ) -> None:
        """Take note of what claims have made and hold now, and what of it is being unmade.

        Args:
            made: Partitions that claims have made, or are making.
            claims: What claims hold.
            unmade: Those that are being unmade.
            given: Those that are made.
        """
        there, self._unmade = frozenset(made), frozenset(unmade)
        for device in self._made - there:
            if device.vendor in self._sources:
                self._gone[device] = self._sources[device.vendor].asked
        self._made = there
        for device, before in tuple(self._gone.items()):
            if device in there or self._sources[device.vendor].heard > before:
                del self._gone[device]
        self._given = {
            device: self._given.get(device, self._sources[device.vendor].asked)
            for device in given
            if device.vendor in self._sources
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
            for device, before in self._given.items()
            if self._sources[device.vendor].heard > before and device not in view.devices
        }
        return tuple(device for device in view.potential if device.id in missed)

    def corrected(self, report: VendorReport) -> VendorReport:
        """*report* without partitions that were unmade after it, or are only half made yet.

        One that cannot be read while it is unmade is nothing to worry about.
        """
        gone = {device for device in self._gone if device.vendor == report.vendor}
        gone |= {d.id for d in report.devices if d.id in self._made and not d.usable}
        unread = {device for device in self._unmade if device.vendor == report.vendor}
        if not gone | unread:
            return report
        names = {device.name for device in gone | unread}
        return attrs.evolve(
            report,
            devices=tuple(d for d in report.devices if d.id not in gone),
            links=tuple(link for link in report.links if gone.isdisjoint({link.a, link.b})),
            groups=tuple(group for group in report.groups if gone.isdisjoint(group.members)),
            problems=tuple(p for p in report.problems if p.subject not in names),
        )

    def without_over(self, told: Iterable[Holding]) -> Iterator[Holding]:
        """What the kubelet *told*, but of claims that gave it back after that."""
        return (holding for holding in told if _key(holding) not in self._over)


def _key(holding: Holding) -> Key:
    return holding.device, holding.holder.namespace, holding.holder.claim
