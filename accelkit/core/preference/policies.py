"""Topologies made of others: from pairs of devices, and of the shares of devices."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

from accelkit.core.policy import Place
from accelkit.core.preference.topology import Topology


@attrs.frozen(kw_only=True)
class Level:
    """The weights of one level, by the names of physical parents."""

    pairs: Mapping[tuple[str, str], int]
    """In either order; of two readings the smaller counts."""
    apart: int
    """Of a pair that is not named."""
    inside: int
    """Of two devices of one parent."""


def of_devices(parents: Mapping[str, str], levels: Iterable[Level]) -> Topology:
    """Make the topology of devices that are as close to each other as their parents are.

    Args:
        parents: Of each device its physical parent; a whole device is its own.
        levels: The first decides, each further one breaks ties only.
    """
    ids = sorted(parents)
    names = sorted(set(parents.values()))
    number = {name: position for position, name in enumerate(names)}
    return Topology(
        ids=ids,
        groups=[number[parents[name]] for name in ids],
        levels=[_matrix(names, level) for level in levels],
    )


def _matrix(names: Sequence[str], level: Level) -> list[list[int]]:
    number = {name: position for position, name in enumerate(names)}
    matrix = [[level.apart] * len(names) for _ in names]
    for (a, b), weight in level.pairs.items():
        if a in number and b in number:
            smaller = min(weight, level.pairs.get((b, a), weight))
            matrix[number[a]][number[b]] = matrix[number[b]][number[a]] = smaller
    return _inside(matrix, level.inside)


def share_id(name: str, number: int) -> str:
    """Return the id under which share *number* of device *name* is offered."""
    return f"{name}::{number}"


def share_ids(name: str, shares: int) -> list[str]:
    """Return the ids of all shares; a device that is not shared keeps its name."""
    return [name] if shares == 1 else [share_id(name, number) for number in range(shares)]


def of_shares(devices: Topology, shares: Mapping[str, int], place: Place) -> Topology:
    """Make the topology of the shares of *devices*, with ids ``name::0``, ``name::1``, ….

    A device with one share is not shared and keeps its id.

    packed takes as few devices as possible, the fullest that fits, then what is close;
    distributed levels the number of shares in use; spread keeps the shares of one container
    apart, then takes the least used. For the latter two give :func:`used` with each request.

    Args:
        devices: How close the devices are.
        shares: How many shares each device has.
        place: Which shares go together.
    """
    ids, groups = [], []
    for group, name in enumerate(devices.ids):
        ids += share_ids(name, shares[name])
        groups += [group] * shares[name]
    if place is Place.PACKED:
        levels = _packed(devices, len(ids))
    else:
        # Taking c of a device with u in use costs, with the worths of *used*,
        # distributed: c(c - 1) + (2u + 1)c = (u + c)² - u²;
        # spread: pairs inside before all use together, which is less than the number of ids².
        inside = -2 if place is Place.DISTRIBUTED else -2 * (len(ids) ** 2 + 1)
        levels = [_inside([[0] * len(devices.ids) for _ in devices.ids], inside)]
    return Topology(ids=ids, groups=groups, levels=levels)


def _packed(devices: Topology, ids: int) -> list[list[list[int]]]:
    """Let one pair inside a device be worth more than all pairs across together."""
    levels = []
    for level in devices.levels:
        matrix = [[level[a][b] for b in devices.groups] for a in devices.groups]
        across = [weight for a, row in enumerate(matrix) for weight in row[:a]] or [0]
        closest, farthest = max(across), min(across)
        inside = closest + 1 + (closest - farthest) * (ids * (ids - 1) // 2)
        levels.append(_inside(matrix, inside))
    return levels


def _inside(matrix: list[list[int]], weight: int) -> list[list[int]]:
    for group, row in enumerate(matrix):
        row[group] = weight
    return matrix


def used(shares: Topology, available: Collection[str], place: Place) -> tuple[int, ...] | None:
    """Return what one more share of each device is worth, by how many are not *available*.

    Give it as *unit* with a request; count among *available* what must be in the answer.

    Returns:
        One number per device; None where use does not matter.
    """
    taken = [0] * len(shares.levels[0])
    left = {shares.rank[name] for name in available if name in shares.rank}
    for position, group in enumerate(shares.groups):
        taken[group] += position not in left
    return worths(taken, place)


def worths(taken: Iterable[int], place: Place) -> tuple[int, ...] | None:
    """Return what one more share of each device is worth by how many are *taken*; as *used*."""
    if place is Place.PACKED:
        return None
    if place is Place.SPREAD:
        return tuple(-count for count in taken)
    return tuple(-(2 * count + 1) for count in taken)
