"""Everything of one physical device, drawn as it stands in a slice. Pure.

Not here: which of its devices are published.
"""

from collections.abc import Iterable, Mapping, Sequence

from accelkit.backends.dra.attributes import Vocabulary, attributes_of
from accelkit.backends.dra.listing import Listed
from accelkit.backends.dra.packing import Unit
from accelkit.backends.dra.pool import Capacity, Consumption, Dialect, PoolDevice
from accelkit.backends.dra.sharing import capacity_of, is_shared
from accelkit.backends.dra.taints import spoken
from accelkit.core.model import Device
from accelkit.core.partition import filling_order
from accelkit.core.partition.counters import Counters
from accelkit.core.policy import Sharing
from accelkit.core.values import FrozenMap

_EXCLUSIVE = Sharing()


def unit_of(
    whole: Device,
    family: Sequence[Listed],
    words: Vocabulary,
    dialect: Dialect,
    competing: Counters | None = None,
) -> Unit:
    """What is published of *whole*.

    The largest comes first, so that a claim that does not say which gets the whole; partitions of
    one profile stand in the order that leaves most openings.

    Args:
        whole: The physical device.
        family: Those of its devices, itself among them, that are published.
        words: What devices of its vendor can say.
        dialect: What the server keeps.
        competing: What its partitions compete for; None: it has none.
    """
    taken = competing if competing is not None and dialect.counters and _compete(family) else None
    ranks = _ranks(whole, family)
    return Unit(
        name=whole.id.name,
        devices=tuple(
            _drawn(one, words, dialect, taken)
            for one in sorted(family, key=lambda one: ranks.get(_place(one), ()))
        ),
        counters=taken.totals if taken is not None else FrozenMap(),
        room=_room(whole),
    )


def amounts_of(one: Listed, dialect: Dialect) -> FrozenMap[str, Capacity]:
    """What there is of a device, and what claims may ask of it."""
    return capacity_of(one.device.capacity, _sharing(one, dialect))


def _sharing(one: Listed, dialect: Dialect) -> Sharing:
    return one.terms.sharing if dialect.consumable else _EXCLUSIVE


def _compete(family: Iterable[Listed]) -> bool:
    """Whether any two of *family* could exclude each other, now or when partitions are made."""
    parts = [one for one in family if one.device.parent is not None]
    return len(parts) > 0 and (len(parts) < len(list(family)) or not all(p.exists for p in parts))


def _place(one: Listed) -> tuple[str, int] | None:
    place = one.device.placement
    return None if place is None else (place.profile, place.start)


def _ranks(
    whole: Device, family: Iterable[Listed]
) -> Mapping[tuple[str, int] | None, tuple[int, ...]]:
    """Where partitions stand behind the whole: by size, the maker's order, and filling order."""
    offered = {place[0] for one in family if (place := _place(one)) is not None}
    if not offered:
        return {}
    starts = filling_order(whole, offered=offered)
    return {
        (profile.name, start): (1, -profile.size, number, position)
        for number, profile in enumerate(whole.profiles)
        for position, start in enumerate(starts.get(profile.name, ()))
    }


def _room(whole: Device) -> int:
    """The most partitions of *whole* that there can be at once, if it is cut for good."""
    smallest = min((profile.size for profile in whole.profiles), default=0)
    return max(1, whole.slots // smallest) if smallest else 1


def _drawn(
    one: Listed, words: Vocabulary, dialect: Dialect, competing: Counters | None
) -> PoolDevice:
    device = one.device
    said = attributes_of(device, one.terms, lists=dialect.list_attributes)
    amounts = amounts_of(one, dialect)
    return PoolDevice(
        name=device.id.name,
        attributes=FrozenMap({**said, **words.of(device)}),
        capacity=amounts
        if amounts.keys() <= words.amounts
        else FrozenMap((name, one) for name, one in amounts.items() if name in words.amounts),
        consumes=()
        if competing is None
        else (Consumption(counter_set=device.root.name, counters=competing.of(device)),),
        taints=spoken(one.taints, dialect),
        shareable=is_shared(_sharing(one, dialect)),
        binding=one.binding if dialect.bindings else None,
    )
