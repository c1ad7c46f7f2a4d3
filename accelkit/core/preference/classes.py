"""Members that differ in nothing but their name, taken together before every set is tried."""

from collections.abc import Sequence
from itertools import combinations

import attrs

from accelkit.core.preference.key import Key, tabulate
from accelkit.core.preference.lanes import Plan, plan


@attrs.frozen(kw_only=True)
class Classes:
    """Free members in classes of equals."""

    size: int
    """How many members are wanted."""
    count: tuple[int, ...]
    """Of each class how many there are."""
    tables: tuple[tuple[int, ...], ...]
    """Of each class the greatest keys of 0, 1, 2, … members, up to the size."""
    inside: tuple[int, ...]
    """What two members of a class add by being together."""
    cross: tuple[tuple[int, ...], ...]
    """The same for members of two classes; the diagonal does not count."""


def classes(key: Key) -> Classes:
    """Put groups together whose members are interchangeable."""
    pairs = {a: {b: key.pair(a, b) for b in key.bits} for a in key.bits}
    kinds: list[list[int]] = []
    for group in key.bits:
        for kind in kinds:
            if _equal(key, pairs, kind[0], group):
                kind.append(group)
                break
        else:
            kinds.append([group])
    bits = [sorted((bit for a in kind for bit in key.bits[a]), reverse=True) for kind in kinds]
    inside = [pairs[kind[0]][kind[-1]] for kind in kinds]
    return Classes(
        size=key.size,
        count=tuple(len(some) for some in bits),
        tables=tuple(
            tuple(tabulate(some[: key.size], key.linear[kind[0]], weight))
            for kind, some, weight in zip(kinds, bits, inside, strict=True)
        ),
        inside=tuple(inside),
        cross=tuple(tuple(pairs[one[0]][other[0]] for other in kinds) for one in kinds),
    )


def _equal(key: Key, pairs: dict[int, dict[int, int]], a: int, b: int) -> bool:
    if key.linear[a] != key.linear[b]:
        return False
    between = pairs[a][b]
    if any(len(key.bits[group]) > 1 and pairs[group][group] != between for group in (a, b)):
        return False
    return all(pairs[a][other] == pairs[b][other] for other in key.bits if other not in {a, b})


def everything(some: Classes) -> tuple[Plan, ...]:
    """Plan to try every number of members of every class."""
    return (plan([tuple(enumerate(table)) for table in some.tables], some.size),)


def ends(some: Classes) -> tuple[Plan, ...]:
    """Plan to try every set that takes at most one class in part.

    Where members are closer inside any two classes than between them, an exchange between two
    classes taken in part helps in one direction, so the best set is among these.

    Returns:
        A plan for each class that may be taken in part; none if that is not so here.
    """
    several = [index for index, count in enumerate(some.count) if count > 1]
    if any(
        some.inside[a] + some.inside[b] <= 2 * some.cross[a][b] for a, b in combinations(several, 2)
    ):
        return ()
    return tuple(
        plan([_whole(some, index, free) for index in range(len(some.count))], some.size)
        for free in several
    )


def _whole(some: Classes, index: int, free: int) -> Sequence[tuple[int, int]]:
    table, count = some.tables[index], some.count[index]
    if index == free:
        return tuple(enumerate(table))
    return ((0, 0), (count, table[count])) if count < len(table) else ((0, 0),)
