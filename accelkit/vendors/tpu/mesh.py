"""Where chips sit in a host's block of the torus. Not here: what containers are told of it.

Chip i of a host is in column i % 2 and row i // 2. Two aligned neighbours, four or eight are then a
line, a square and two squares side by side, which are the blocks that libtpu knows.
"""

from collections.abc import Iterable, Iterator, Mapping

from accelkit import Device, Group, GroupRule, Link, LinkKind
from accelkit.vendors.tpu.facts import BY_NAME, SHAPES

_COLUMNS = 2


def read_links(devices: Iterable[Device]) -> Iterator[Link]:
    """Links to the next column and the next row; the host's own, not those to other hosts."""
    placed = _placed(devices)
    for index, device in placed.items():
        beside = index + 1 if index % _COLUMNS == 0 else None
        for other in (beside, index + _COLUMNS):
            if other is not None and other in placed:
                kind = BY_NAME.get(str(device.attributes.get("generation")))
                yield Link.between(
                    device.id,
                    placed[other].id,
                    LinkKind.DIRECT,
                    bandwidth=None if kind is None else kind.bandwidth,
                )


def legal_sets(devices: Iterable[Device]) -> Iterator[Group]:
    """The sets that containers may have.

    Of a host that is a slice by itself aligned blocks, as long as all their chips are there; of one
    of several hosts only all chips: a worker's part of the slice is never smaller.
    """
    found = tuple(devices)
    placed = _placed(found)
    for size in _sizes(found):
        for start in range(0, max(placed, default=-1) + 1, size):
            block = [placed[i].id for i in range(start, start + size) if i in placed]
            if len(block) == size:
                name = f"{size}-{start // size}"
                yield Group(kind="block", name=name, members=tuple(block), rule=GroupRule.LAW)
    if _alone(found):
        for device in found:
            if "index" not in device.attributes:
                name = f"1-{device.id.name}"
                yield Group(kind="block", name=name, members=(device.id,), rule=GroupRule.LAW)


def _placed(devices: Iterable[Device]) -> Mapping[int, Device]:
    """Chips by their place in the host, ascending."""
    found = {}
    for device in devices:
        index = device.attributes.get("index")
        if isinstance(index, int):
            found[index] = device
    return dict(sorted(found.items()))


def _sizes(devices: Iterable[Device]) -> tuple[int, ...]:
    for device in devices:
        chips, hosts = device.attributes.get("chipsPerHost"), device.attributes.get("hosts")
        if isinstance(chips, int) and isinstance(hosts, int):
            return tuple(SHAPES) if hosts == 1 else (chips,)
    return ()


def _alone(devices: Iterable[Device]) -> bool:
    """Whether the host is a slice by itself."""
    return any(device.attributes.get("hosts") == 1 for device in devices)
