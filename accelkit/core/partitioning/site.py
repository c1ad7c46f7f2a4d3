"""One whole device with all that decides what may be done to it. Not here: what shall be done."""

from collections.abc import Iterator, Mapping

import attrs

from accelkit.core.model import Device, DeviceId, Holding, Mode, Placement
from accelkit.core.partitioning.rules import fixed_cut
from accelkit.core.policy import Foreign, Partitioning, PartitioningHow
from accelkit.core.values import HolderKind, Scope, freeze


@attrs.frozen(kw_only=True)
class Holders:
    """Who holds what on the node."""

    of: Mapping[DeviceId, tuple[Holding, ...]]

    def said(self, device: DeviceId) -> Iterator[str]:
        """A sentence for each holder of *device*."""
        for holding in self.of.get(device, ()):
            yield f"{device} is held by {_who(holding)}"

    def of_vendor(self, vendor: str) -> Iterator[str]:
        for device in sorted(self.of):
            if device.vendor == vendor:
                yield from self.said(device)


def _who(holding: Holding) -> str:
    holder = holding.holder
    if holder.kind is HolderKind.FOREIGN:
        return f"process {holder.uid or 'of the host'}"
    name = holder.pod or holder.claim or holder.uid or "somebody"
    return f"{holder.kind.lower()} {holder.namespace + '/' if holder.namespace else ''}{name}"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Site:
    """A whole device, its partitions, the rule that it falls under, and who is there."""

    device: Device
    parts: tuple[Device, ...]
    rule: Partitioning
    holders: Holders
    made: frozenset[DeviceId]
    """Partitions that accelkit made; all others are foreign."""
    claimed: frozenset[DeviceId] = frozenset()
    """Those of them that claims have made: they unmake them, too."""

    @property
    def carved(self) -> tuple[Device, ...]:
        """Partitions that are made and unmade one by one."""
        return tuple(p for p in self.parts if not fixed_cut(self.device, p.profile or ""))

    @property
    def there(self) -> frozenset[Placement]:
        """Places of all partitions."""
        return frozenset(p.placement for p in self.parts if p.placement is not None)

    def held(self, part: Device) -> bool:
        return part.id in self.holders.of

    def kept(self, part: Device) -> bool:
        """Whether it is foreign, and the rule does not let it be destroyed."""
        return part.id not in self.made and self.rule.foreign is Foreign.KEEP

    def stays(self, part: Device) -> bool:
        """Whether a carved partition must stay where it is."""
        return self.held(part) or self.kept(part)

    def unwanted(self, part: Device) -> bool:
        """Whether a partition goes once nobody holds it, where no layout wants it.

        Of what an earlier policy made, claims could have no other size, nor the whole device.
        """
        if part.id in self.made:
            return self.rule.how is PartitioningHow.DYNAMIC and part.id not in self.claimed
        return not self.kept(part)

    def staying(self) -> Iterator[str]:
        """Why carved partitions must stay, a sentence each."""
        for part in self.carved:
            if self.held(part):
                yield from self.holders.said(part.id)
            elif self.kept(part):
                yield f"{part.id} was made by somebody else, and foreign is keep"

    def lingering(self) -> Iterator[str]:
        """Why partitions are still there that the rule lets be destroyed, a sentence each."""
        if self.rule.how is PartitioningHow.LAYOUT:
            return  # one in a place of the layout may stay
        for part in self.carved:
            if self.unwanted(part):
                yield from self.holders.said(part.id)

    def in_the_way(self, mode: Mode) -> tuple[str, ...]:
        """What keeps the device from being set to *mode*, a sentence each."""
        if mode.disturbs is Scope.VENDOR:
            held = [*self.holders.of_vendor(self.device.id.vendor)]
        else:
            family = (self.device.id, *(part.id for part in self.parts))
            held = [said for member in family for said in self.holders.said(member)]
        return tuple(dict.fromkeys((*held, *self.staying())))
