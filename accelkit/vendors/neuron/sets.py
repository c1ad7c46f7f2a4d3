"""Which chips and cores can run together, and what links chips. Not here: what containers get."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from accelkit import (
    AccessDenied,
    Device,
    DeviceId,
    Group,
    GroupRule,
    Host,
    Link,
    LinkKind,
    SourceError,
)
from accelkit.vendors.neuron import chips, facts


def links(host: Host, devices: Iterable[Device]) -> Iterator[Link]:
    """The NeuronLinks between chips; where the two ends differ, the lower count.

    Raises:
        AccessDenied: Links are for root only, and this process is not.
    """
    wholes = _by_index(devices)
    told = {index: _beside(host, index) for index in wholes}
    for one, other in combinations(wholes, 2):
        # An end that is silent may be one that cannot be read.
        if counts := [n for n in (told[one][other], told[other][one]) if n]:
            yield Link.between(wholes[one].id, wholes[other].id, LinkKind.DIRECT, count=min(counts))


def _beside(host: Host, index: int) -> Counter[int]:
    try:
        return Counter(chips.read_beside(host, chips.folder(index)))
    except AccessDenied:
        raise
    except SourceError:  # the chip itself says what is wrong with it
        return Counter()


def groups(devices: Iterable[Device]) -> Iterator[Group]:
    """Every set of chips, and of cores, that can run together."""
    several = tuple(devices)
    wholes = _by_index(several)
    cores = _cores(several)
    family = _family(wholes)
    # What is not documented is preferred, and nothing else is refused.
    rule = GroupRule.LAW if family is None or _is_full(wholes, family) else GroupRule.HINT
    seen: set[frozenset[DeviceId]] = set()
    for name, members in _runs(wholes, family):
        ids = [wholes[index].id for index in members]
        if frozenset(ids) in seen:
            continue
        seen.add(frozenset(ids))
        yield Group(kind="chips", name=name, members=tuple(ids), rule=rule)
        parts = [core for one in ids for core in cores.get(one, ())]
        if len(ids) > 1 and all(one in cores for one in ids):
            yield Group(kind="cores", name=name, members=tuple(parts), rule=GroupRule.LAW)
    for index, whole in wholes.items():
        yield from _core_runs(index, cores.get(whole.id, ()))


def _by_index(devices: Iterable[Device]) -> Mapping[int, Device]:
    """Chips by their numbers, ascending."""
    found = {
        index: device
        for device in devices
        if device.parent is None and (index := chips.index_of(device.handle)) is not None
    }
    return dict(sorted(found.items()))


def _cores(devices: Iterable[Device]) -> Mapping[DeviceId, Sequence[DeviceId]]:
    """The cores of each chip, in their order."""
    found: dict[DeviceId, list[tuple[int, DeviceId]]] = {}
    for device in devices:
        if device.parent is not None and device.placement is not None:
            found.setdefault(device.parent, []).append((device.placement.start, device.id))
    return {parent: [core for _, core in sorted(some)] for parent, some in found.items()}


def _family(wholes: Mapping[int, Device]) -> facts.Family | None:
    """The sort that all chips are of; None: it is not known, or there are several."""
    products = {device.product for device in wholes.values()}
    return facts.FAMILIES.get(next(iter(products)) or "") if len(products) == 1 else None


def _is_full(wholes: Mapping[int, Device], family: facts.Family) -> bool:
    """Whether it is a host of which the maker says which sets there are."""
    return not family.torus or _shape(wholes) == "torus" or (max(wholes) + 1) % facts.TORUS == 0


def _shape(wholes: Mapping[int, Device]) -> object:
    shapes = {device.attributes.get("topology") for device in wholes.values()}
    return next(iter(shapes)) if len(shapes) == 1 else None


def _runs(
    wholes: Mapping[int, Device], family: facts.Family | None
) -> Iterator[tuple[str, list[int]]]:
    """Names and numbers of the chips of each set; none of chips of a sort that is not known."""
    if family is None:
        return
    full = _is_full(wholes, family)
    if family.torus:
        yield from _blocks(wholes, facts.BLOCKS if full else facts.FEW)
    else:
        yield from _windows(wholes, ring=_shape(wholes) == "ring")
    if not (family.torus and full) and [*wholes] == [*range(len(wholes))]:
        yield f"{len(wholes)}-0", [*wholes]


def _blocks(wholes: Mapping[int, Device], sizes: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    for size in sizes:
        for first in sorted({index - index % size for index in wholes}):
            block = [*range(first, first + size)]
            if all(index in wholes for index in block):
                yield f"{size}-{first}", block


def _windows(wholes: Mapping[int, Device], *, ring: bool) -> Iterator[tuple[str, list[int]]]:
    around = max(wholes) + 1
    for size in range(1, min(facts.LONGEST, around) + 1):
        for first in wholes:
            window = [*range(first, first + size)]
            if ring:
                window = [index % around for index in window]
            if all(index in wholes for index in window):
                yield f"{size}-{first}", window


def _core_runs(index: int, cores: Sequence[DeviceId]) -> Iterator[Group]:
    """Every run of neighbouring cores of a chip."""
    for size in range(1, len(cores) + 1):
        for first in range(len(cores) - size + 1):
            yield Group(
                kind="cores",
                name=f"chip-{index}-{size}-{first}",
                members=tuple(cores[first : first + size]),
                rule=GroupRule.LAW,
            )
