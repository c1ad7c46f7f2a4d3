"""The totals and limits of a table that its slots do not imply. Not here: the slots."""

from collections.abc import Sequence

import attrs

from accelkit.core.partition.table import MOST_STEPS, Counts, Table, TooMuchError
from accelkit.core.values import dns_label, freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Rule:
    """All partitions together may not need more than a total."""

    key: str
    """DNS label, as counters are called."""
    total: int
    needs: Counts
    """Of one partition of each profile."""


def all_rules(table: Table) -> tuple[Rule, ...]:
    """Every total and every limit; tightest first, totals before limits, short names first."""
    engines = [
        Rule(key=dns_label(key), total=total, needs=needs)
        for key, (total, needs) in zip(table.totals, table.needs, strict=True)
    ]
    limits = [
        Rule(key=f"limit-{p.slug}", total=p.limit, needs=tuple(int(p is q) for q in table.profiles))
        for p in table.profiles
        if p.limit is not None
    ]
    # Sorting is stable: the last key decides first.
    rules = sorted(engines, key=lambda rule: (len(rule.key), rule.key)) + limits
    return tuple(sorted(rules, key=lambda rule: rule.total))


def binding(table: Table) -> tuple[Rule, ...]:
    """The rules that slots and each other do not imply: they allow what all rules allow.

    Raises:
        TooMuchError: Finding out would take too long.
    """
    kept: list[Rule] = []
    for rule in all_rules(table):
        if not implied(table, rule, kept):
            kept.append(rule)
    for rule in tuple(kept):
        rest = [other for other in kept if other is not rule]
        if implied(table, rule, rest):
            kept = rest
    return tuple(kept)


def implied(table: Table, rule: Rule, others: Sequence[Rule]) -> bool:
    """Whether partitions that do not overlap and obey *others* obey *rule* in any case."""
    starting: dict[int, set[tuple[int, int, Counts]]] = {}
    for n, profile in enumerate(table.profiles):
        part = profile.size, rule.needs[n], tuple(other.needs[n] for other in others)
        for start in profile.starts:
            starting.setdefault(start, set()).add(part)
    end = max((start + size for start, parts in starting.items() for size, *_ in parts), default=0)
    solved: dict[tuple[int, Counts], int] = {}

    def heaviest(slot: int, left: Counts) -> int:
        """The most that partitions from *slot* on can need, with so much left of the others."""
        if slot == end:
            return 0
        if (slot, left) not in solved:
            if len(solved) > MOST_STEPS:
                raise TooMuchError
            loads = [heaviest(slot + 1, left)]
            for size, load, needs in starting.get(slot, ()):
                rest = tuple(map(int.__sub__, left, needs))
                if min(rest, default=0) >= 0:
                    loads.append(load + heaviest(slot + size, rest))
            solved[slot, left] = max(loads)
        return solved[slot, left]

    return heaviest(0, tuple(other.total for other in others)) <= rule.total
