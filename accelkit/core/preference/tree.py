"""Exact preferred allocation where devices form a hierarchy: switches, sockets, hives, shares.

A node without such a hierarchy (a cube mesh, a torus) has no program here and goes to the lanes.
"""

from collections.abc import Iterator

import attrs

from accelkit.core.preference.key import Key, Levels

Alike = tuple[dict[tuple[int, ...], int], ...]
"""Per group and weight the mask of the groups that it meets at that weight, itself left out."""


@attrs.frozen(kw_only=True)
class Join:
    """Parts whose members all meet at one weight."""

    a: int
    """A group of one part: with *b* it shows the weight."""
    b: int
    """A group of another part."""
    parts: int
    """How many parts are joined, at least 2."""


Program = tuple[int | Join, ...]
"""The hierarchy from the leaves up: a number is a group, a join takes the last parts before it."""


def members(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def alike(levels: Levels) -> Alike:
    """Sort the pairs of every group by their weights on all levels together."""
    return tuple(_meetings(levels, group) for group in range(len(levels[0])))


def _meetings(levels: Levels, group: int) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for other, weight in enumerate(zip(*(level[group] for level in levels), strict=True)):
        if other != group:
            found[weight] = found.get(weight, 0) | 1 << other
    return found


def split(pairs: Alike, everyone: int) -> Program | None:
    """Take the groups of mask *everyone* apart until each is alone.

    Returns:
        What puts them together again; None if some part cannot be taken apart.
    """
    program: list[int | Join] = []
    todo = [everyone] if everyone else []
    while todo:
        some = todo.pop()
        if some & (some - 1) == 0:
            program.append(some.bit_length() - 1)
            continue
        parts = _parts(pairs, some)
        if len(parts) == 1:
            return None
        a, b = (next(members(part)) for part in parts[:2])
        program.append(Join(a=a, b=b, parts=len(parts)))
        todo += parts
    program.reverse()
    return tuple(program)


def _parts(pairs: Alike, some: int) -> list[int]:
    """Split *some* at the one weight that can do it; one part if none can.

    Where two weights could, each would have to join all that the other keeps apart,
    so it is enough to try the weights of one group, and only those that occur at every group.
    """
    for weight in pairs[next(members(some))]:
        if all(pairs[group].get(weight, 0) & some for group in members(some)):
            parts = _components(pairs, some, weight)
            if len(parts) > 1:
                return parts
    return [some]


def _components(pairs: Alike, some: int, weight: tuple[int, ...]) -> list[int]:
    """Collect what hangs together by pairs of any other weight."""
    parts = []
    while some:
        part, edge = 0, some & -some
        while edge:
            part |= edge
            reached = 0
            for group in members(edge):
                reached |= some & ~pairs[group].get(weight, 0)
            edge = reached & ~part
        parts.append(part)
        some &= ~part
    return parts


def solve(program: Program, key: Key) -> int:
    """Return the greatest key of all sets of the wanted size."""
    tables: list[list[int]] = []
    for step in program:
        if isinstance(step, int):
            tables.append(key.table(step))
            continue
        parts = tables[-step.parts :]
        del tables[-step.parts :]
        weight = key.pair(step.a, step.b)
        joined = parts[0]
        for part in parts[1:]:
            joined = merge(joined, part, weight, key.size)
        tables.append(joined)
    return tables[-1][key.size]


def merge(one: list[int], other: list[int], weight: int, size: int) -> list[int]:
    """Join two tables whose members meet at *weight*.

    A table holds, for 0, 1, 2, … members, the greatest key of so many;
    the tables given are used up, the result goes no further than *size* members.
    """
    if len(one) < len(other):
        one, other = other, one
    if len(other) == 1:
        return one
    if len(other) == 2:
        return _add(one, other[1], weight, size)
    joined = [-1] * min(len(one) + len(other) - 1, size + 1)
    for b, value in enumerate(other[: len(joined)]):
        step = weight * b
        for a in range(min(len(one), len(joined) - b)):
            total = one[a] + value + step * a
            if total > joined[a + b]:  # noqa: PLR1730 - a call to max() for each doubles the time
                joined[a + b] = total
    return joined


def _add(table: list[int], value: int, weight: int, size: int) -> list[int]:
    """Let one more member into *table*, from the far end so that it is counted once."""
    last = len(table)
    if last <= size:
        table.append(table[-1] + value + weight * (last - 1))
    for count in range(last - 1, 0, -1):
        total = table[count - 1] + value + weight * (count - 1)
        if total > table[count]:  # noqa: PLR1730 - a call to max() for each doubles the time
            table[count] = total
    return table
