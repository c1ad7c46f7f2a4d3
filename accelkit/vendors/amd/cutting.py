"""How a GPU is cut by its modes: compute partitions times memory partitions. Not here: setting."""

from collections.abc import Iterable, Iterator

import attrs

from accelkit import FrozenMap, Mode, Profile, Scope
from accelkit.vendors.amd import facts

_SIZES = (1, 2, 4, 6, 8, 16)


@attrs.frozen(kw_only=True, order=True)
class Cut:
    """One compute mode in one memory mode."""

    compute: str
    """SPX: not cut."""
    memory: str
    """As in NPS1; empty: this GPU does not say."""

    @property
    def mode(self) -> str:
        """As in cpx-nps4."""
        return "-".join(self.words)

    @property
    def profile(self) -> str:
        """As in cpx_nps4: what AMD's own device plugin calls such partitions."""
        return "_".join(self.words)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.lower() for word in (self.compute, self.memory) if word)


@attrs.frozen(kw_only=True)
class Grid:
    """What a GPU can be cut to, and what it is now."""

    now: Cut
    complexes: int
    """Slots: accelerator complexes."""
    cuts: tuple[Cut, ...]
    """All that it can be, with what it is now."""
    settable: bool
    """Whether the driver takes other modes from here."""

    def count(self, cut: Cut) -> int:
        return facts.count_of(cut.compute, self.complexes)

    def size(self, cut: Cut) -> int:
        """Complexes of one partition."""
        return self.complexes // self.count(cut)

    def modes(self) -> tuple[Mode, ...]:
        return tuple(
            Mode(
                name=cut.mode,
                cut=cut.profile if self.count(cut) > 1 else None,
                count=self.count(cut) if self.count(cut) > 1 else 0,
                # Memory modes come with a driver that is loaded anew, and that is all GPUs'.
                disturbs=Scope.DEVICE if cut.memory == self.now.memory else Scope.VENDOR,
            )
            for cut in self.cuts
        )

    def profiles(self, memory: int | None, compute_units: int) -> tuple[Profile, ...]:
        """One for each cut; amounts are those of the whole GPU, *memory* in bytes."""
        return tuple(
            self._profile(cut, memory, compute_units) for cut in self.cuts if self.count(cut) > 1
        )

    def _profile(self, cut: Cut, memory: int | None, compute_units: int) -> Profile:
        count, size = self.count(cut), self.size(cut)
        whole = {"memory": memory or 0, "computeUnits": compute_units}
        return Profile(
            name=cut.profile,
            slug=cut.mode,
            size=size,
            starts=tuple(n * size for n in range(count)),
            limit=count,
            mode=cut.mode,
            capacity=FrozenMap({key: total // count for key, total in whole.items() if total}),
            attributes=FrozenMap(attributes_of(cut)),
        )


def attributes_of(cut: Cut) -> Iterator[tuple[str, str]]:
    """What a device says of the cut that it is in."""
    yield "computePartition", cut.compute
    if cut.memory:
        yield "memoryPartition", cut.memory
    yield "partitionProfile", cut.profile


def complexes_of(device: int, told: Iterable[int], parts: int) -> int:
    """How many accelerator complexes a GPU has.

    Args:
        device: PCI device id.
        told: What KFD says of each partition (num_xcc); of one that is missing nothing.
        parts: How many partitions KFD shows.

    Raises:
        ValueError: More than there can be.
    """
    if device in facts.COMPLEXES:
        return facts.COMPLEXES[device]
    found = max(sum(told), parts)
    try:
        return next(size for size in _SIZES if size >= found)
    except StopIteration:
        raise ValueError(f"{found} accelerator complexes") from None


def possible(
    compute: Iterable[str], memory: Iterable[str], gfx: int, *, virtual: bool
) -> Iterator[Cut]:
    """Every pair that the driver takes."""
    for ranges in memory:
        for mode in compute:
            if facts.go_together(mode, ranges, gfx, virtual=virtual):
                yield Cut(compute=mode, memory=ranges)
