"""What the partitions of a device compete for, in few numbers. Not here: how it is published.

Partitions can be there together if and only if no counter runs out. Keys mean the same on every
node: ``slot-3`` is the fourth slot, ``ofa`` an engine as its vendor calls it.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import attrs

from accelkit.core.model import Device, Profile
from accelkit.core.partition.rules import Rule, all_rules, binding
from accelkit.core.partition.table import PRODUCTS, Table, TooMuchError, table_of
from accelkit.core.values import FrozenMap, freeze

Part: TypeAlias = tuple[str, int]
"""Profile and first slot."""
Groups: TypeAlias = Sequence[int]
"""Masks of slots that are counted together."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Counters:
    """How much there is of each counter, and how much each partition takes; nothing takes 0."""

    totals: FrozenMap[str, int] = FrozenMap()
    """The whole device takes it all."""
    takes: FrozenMap[Part, FrozenMap[str, int]] = FrozenMap()

    def of(self, device: Device) -> FrozenMap[str, int]:
        """What *device* takes: the whole one or a partition, whether it exists or not."""
        if device.placement is None:
            return self.totals
        return self.takes[device.placement.profile, device.placement.start]


def counters(device: Device) -> Counters:
    """What *device*, a whole one, and its partitions compete for; nothing if it has no profiles.

    Slots that others do not imply, then the totals and limits that still bind; neighbouring slots
    are one counter where no clash is lost by it. Partitions of different fixed cuts exclude each
    other. The same for equal profiles, modes and totals, whatever the policy offers.
    """
    cuts = FrozenMap((mode.cut, mode.count) for mode in device.modes if mode.cut is not None)
    return _of_cuts(device.profiles, cuts) if cuts else _of_table(table_of(device))


@lru_cache(maxsize=PRODUCTS)
def _of_table(table: Table) -> Counters:
    try:
        rules = binding(table)
    except TooMuchError:  # they all say the same in more words
        rules = all_rules(table)
    parts = [(n, s, mask) for n, masks in enumerate(table.masks) for s, mask in masks.items()]
    groups = {_key(group): group for group in _groups(parts, rules)}
    totals = {key: group.bit_count() for key, group in groups.items()}
    totals |= {rule.key: rule.total for rule in rules}
    takes = {}
    for n, start, mask in parts:
        taken = {key: (mask & group).bit_count() for key, group in groups.items()}
        taken |= {rule.key: rule.needs[n] for rule in rules}
        used = FrozenMap((key, amount) for key, amount in taken.items() if amount)
        takes[table.profiles[n].name, start] = used
    return Counters(totals=FrozenMap(totals), takes=FrozenMap(takes))


def _key(group: int) -> str:
    return f"slot-{(group & -group).bit_length() - 1}"


def _groups(parts: Sequence[tuple[int, int, int]], rules: Sequence[Rule]) -> list[int]:
    """The slots that are counted, those together that may be, in ascending order."""
    slots = _columns([mask for *_, mask in parts])
    clashing = [
        (one & other, one, other)
        for (n, _, one), (m, _, other) in combinations(parts, 2)
        if one & other and not any(rule.needs[n] + rule.needs[m] > rule.total for rule in rules)
    ]
    groups: list[int] = []
    for position, slot in enumerate(slots):
        merged = [*groups[:-1], groups[-1] | slot] if groups else [slot]
        later = slots[position + 1 :]
        if not groups or not _all_clash(clashing, (*merged, *later), merged[-1]):
            merged = [*groups, slot]
        groups = merged
    return groups


def _columns(masks: Sequence[int]) -> list[int]:
    """The slots whose users do not all use another slot as well; of equal ones the first."""
    end = max(masks, default=0).bit_length()
    users = [
        frozenset(n for n, mask in enumerate(masks) if mask >> slot & 1) for slot in range(end)
    ]
    return [
        1 << slot
        for slot, mine in enumerate(users)
        if mine
        and not any(mine < other or (mine == other and n < slot) for n, other in enumerate(users))
    ]


def _all_clash(clashing: Sequence[tuple[int, int, int]], groups: Groups, new: int) -> bool:
    """Whether pairs that share a slot of the *new* group still need more than some group has."""
    return all(
        any(
            (one & group).bit_count() + (other & group).bit_count() > group.bit_count()
            for group in groups
        )
        for shared, one, other in clashing
        if shared & new
    )


# Modes that are a fixed cut.


@lru_cache(maxsize=PRODUCTS)
def _of_cuts(profiles: tuple[Profile, ...], cuts: FrozenMap[str, int]) -> Counters:
    """Counters of partitions that are there in one mode only: slots would mix modes.

    As many counters as the second largest cut has partitions, the whole device being one of 1. On
    each counter one partition of every cut is heavy; the others are just not light enough to go
    with a heavy one of a smaller cut. Profiles that no mode cuts take everything.
    """
    ordered = [("", 1), *sorted(cuts.items(), key=lambda cut: (cut[1], cut[0]))]
    light, need = {}, 1
    for name, count in ordered[:-1]:
        light[name] = need
        need = (count - 1) * need + 1
    total = need * ordered[-1][1]
    keys = [f"mode-{n}" for n in range(ordered[-2][1])]
    totals = FrozenMap(dict.fromkeys(keys, total))
    takes = {(p.name, start): totals for p in profiles for start in p.starts}
    for profile in profiles:
        count = cuts.get(profile.name, 0)
        for position, start in enumerate(profile.starts[:count]):
            least = light.get(profile.name, need)
            heavy = total - (count - 1) * least
            takes[profile.name, start] = FrozenMap(
                (key, heavy if n % count == position else least) for n, key in enumerate(keys)
            )
    return Counters(totals=totals, takes=FrozenMap(takes))
