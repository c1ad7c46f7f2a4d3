"""How the devices of one product can be cut, as tables for searching. Not here: the searching."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb
from typing import TypeAlias

import attrs

from accelkit.core.model import Device, Placement, Profile
from accelkit.core.values import FrozenMap, freeze

Counts: TypeAlias = tuple[int, ...]
"""How many partitions of each profile, in the order of the table."""
Weights: TypeAlias = tuple[tuple[int, int], ...]
"""Places as masks of slots, and what each is worth while it is free."""

MOST_STEPS = 20_000
"""Bounds the work on one question; tables of real products need less than a hundredth of it."""
PRODUCTS = 64
"""Tables that are remembered."""


class TooMuchError(Exception):
    """A question would take too long: its table is like that of no product that is known."""


@attrs.frozen(kw_only=True, field_transformer=freeze, slots=False)
class Table:
    """The slots of a device, what partitions compete for, and its profiles."""

    slots: int
    totals: FrozenMap[str, int]
    """Only these limit what partitions need."""
    profiles: tuple[Profile, ...]

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Positions of profiles by name."""
        return {p.name: n for n, p in enumerate(self.profiles)}

    @cached_property
    def masks(self) -> tuple[Mapping[int, int], ...]:
        """Of each profile the slots at each first slot."""
        return tuple({s: ((1 << p.size) - 1) << s for s in p.starts} for p in self.profiles)

    @cached_property
    def limits(self) -> Counts:
        """How many of each profile there can be at once, by its limit and starts alone."""
        return tuple(
            len(p.starts) if p.limit is None else min(p.limit, len(p.starts)) for p in self.profiles
        )

    @cached_property
    def needs(self) -> tuple[tuple[int, Counts], ...]:
        """Of each total how much there is, and what one partition of each profile needs."""
        return tuple(
            (total, tuple(p.counters.get(key, 0) for p in self.profiles))
            for key, total in self.totals.items()
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions of profiles as they are decided on: hardest to place first."""
        hardness = [(-p.size, len(p.starts), n) for n, p in enumerate(self.profiles)]
        return tuple(n for *_, n in sorted(hardness))

    @cached_property
    def shape_of(self) -> tuple[int, ...]:
        """Of each profile its shape: profiles of one size and the same starts have one."""
        shapes: dict[object, int] = {}
        return tuple(shapes.setdefault((p.size, p.starts), len(shapes)) for p in self.profiles)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Of each shape how many slots it takes."""
        sizes = {shape: p.size for shape, p in zip(self.shape_of, self.profiles, strict=True)}
        return tuple(sizes.values())

    @cached_property
    def reach(self) -> frozenset[Counts] | None:
        """How many of each shape fit on an empty device together, as far as slots go.

        None: too many to list.
        """
        starting: dict[int, list[tuple[int, int]]] = {}
        for shape, profile in dict(zip(self.shape_of, self.profiles, strict=True)).items():
            for start in profile.starts:
                starting.setdefault(start, []).append((shape, profile.size))
        end = max((s + p.size for p in self.profiles for s in p.starts), default=0)
        fitting: list[frozenset[Counts]] = [frozenset()] * end
        fitting.append(frozenset({(0,) * len(self.sizes)}))
        listed = 0
        for slot in reversed(range(end)):
            found = {*fitting[slot + 1]}
            for shape, size in starting.get(slot, ()):
                found |= {one_more(counts, shape) for counts in fitting[slot + size]}
            listed += len(found)
            if listed > MOST_STEPS:
                return None
            fitting[slot] = frozenset(found)
        return fitting[0]

    def counted(self, partitions: Iterable[Placement]) -> Counts:
        """How many of each profile there are."""
        counts = [0] * len(self.profiles)
        for place in partitions:
            counts[self.index[place.profile]] += 1
        return tuple(counts)

    def shaped(self, counts: Counts) -> Counts:
        """*counts* by shape."""
        by_shape = [0] * len(self.sizes)
        for shape, count in zip(self.shape_of, counts, strict=True):
            by_shape[shape] += count
        return tuple(by_shape)

    def limited(self, counts: Counts) -> bool:
        """Whether there are more than a profile's limit."""
        limits = ((p.limit, count) for p, count in zip(self.profiles, counts, strict=True))
        return any(limit is not None and count > limit for limit, count in limits)

    def exhausted(self, counts: Counts) -> bool:
        """Whether a total does not suffice."""
        return any(sum(map(int.__mul__, counts, each)) > total for total, each in self.needs)

    def mask(self, place: Placement) -> int:
        """The slots of *place*."""
        return ((1 << place.size) - 1) << place.start

    def place(self, position: int, start: int) -> Placement:
        """The placement of a profile by its position."""
        profile = self.profiles[position]
        return Placement(profile=profile.name, start=start, size=profile.size)

    def weights(self, counts: Counts, offered: Collection[str] | None) -> Weights:
        """Where one more partition could be beside *counts* others, and its size.

        Args:
            counts: What there is: limits and totals depend on it alone.
            offered: Names of the profiles that count; None: all.
        """
        worth: dict[int, int] = {}
        for n, profile in enumerate(self.profiles):
            more = one_more(counts, n)
            counts_here = offered is None or profile.name in offered
            if not counts_here or self.limited(more) or self.exhausted(more):
                continue
            for mask in self.masks[n].values():
                worth[mask] = worth.get(mask, 0) + profile.size
        return tuple(worth.items())

    def ways(self, position: int, occupied: int, amount: int) -> Iterator[tuple[Counts, int]]:
        """Sets of *amount* free starts of a profile in ascending order, each with its slots.

        Raises:
            TooMuchError: There are too many to look at.
        """
        masks = self.masks[position]
        free = [(start, mask) for start, mask in masks.items() if not mask & occupied]
        if comb(len(free), amount) > MOST_STEPS:
            raise TooMuchError
        slots = amount * self.profiles[position].size
        for chosen in combinations(free, amount):
            mask = sum(mask for _, mask in chosen)
            # Where two overlap the sum carries, and a carry costs a bit.
            if mask.bit_count() == slots:
                yield tuple(start for start, _ in chosen), mask


def one_more(counts: Counts, position: int) -> Counts:
    """*counts* with one more at *position*."""
    return (*counts[:position], counts[position] + 1, *counts[position + 1 :])


def free_worth(weights: Weights, occupied: int) -> int:
    """What is still free of *weights*, in all."""
    return sum(worth for mask, worth in weights if not mask & occupied)


def table_of(device: Device) -> Table:
    """The table of a whole device; the same object for equal ones."""
    return _table(device.slots, device.counters, device.profiles)


@lru_cache(maxsize=PRODUCTS)
def _table(slots: int, totals: FrozenMap[str, int], profiles: tuple[Profile, ...]) -> Table:
    return Table(slots=slots, totals=totals, profiles=profiles)
