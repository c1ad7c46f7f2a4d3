"""How cards are cut in halves, and made whole again."""

from collections.abc import Iterator

import attrs

from accelkit import (
    Device,
    DeviceNode,
    FrozenMap,
    Host,
    NotThere,
    PartitionError,
    PartitionInUse,
    Placement,
    Profile,
    SourceError,
    SupportsPartitioning,
    Vendor,
)
from acme_accelkit.files import file_of

STARTS = (0, 1)


class Halves(Vendor, SupportsPartitioning):
    """A half is made by writing ``+0`` or ``+1`` to the file ``halves``, and unmade by ``-0``."""

    def cut(self, host: Host, card: Device) -> Iterator[Device]:
        """*card* with what can be made of it, then the halves that are there."""
        there = host.read(file_of(card, "halves")).split()
        if not {*there} <= {str(start) for start in STARTS}:
            raise ValueError(f"halves says {' '.join(there)[:40]!r}")
        memory = FrozenMap({"memory": card.capacity["memory"] // 2})
        half = Profile(name="half", slug="half", size=1, starts=STARTS, capacity=memory)
        card = attrs.evolve(card, slots=2, profiles=(half,), usable=not there)
        yield card
        for start in there:
            yield self._half(card, int(start))

    def _half(self, card: Device, start: int) -> Device:
        node = DeviceNode(path=f"{card.nodes[0].path}p{start}")
        return self.partition(card, card.profiles[0], start, nodes=[node])

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        if placement not in {Placement(profile="half", start=n, size=1) for n in STARTS}:
            raise PartitionError(f"{parent.id} has no {placement.profile} at {placement.start}")
        file, start = file_of(parent, "halves"), str(placement.start)
        if start not in host.read(file).split():
            host.write(file, f"+{start}")
        try:
            made = start in host.read(file).split()
        except SourceError:  # nobody would ask for it again
            host.write(file, f"-{start}")
            raise
        if not made:
            raise PartitionError(f"{parent.id}: half {start} is not there after it was made")
        return self._half(parent, placement.start)

    def destroy(self, host: Host, partition: Device) -> None:
        assert partition.placement is not None
        file, start = file_of(partition, "halves"), str(partition.placement.start)
        try:
            if start in host.read(file).split():
                host.write(file, f"-{start}")
        except NotThere:
            return  # the card is gone, and its halves with it
        except SourceError as error:
            raise PartitionInUse(f"{partition.id}: {error}", device=str(partition.id)) from error

    def set_mode(self, host: Host, device: Device, mode: str) -> None:  # noqa: ARG002 - there are none
        raise PartitionError(f"{device.id} has no mode {mode}", device=str(device.id))
