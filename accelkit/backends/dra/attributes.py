"""What a device says of itself in a slice. Pure. Not here: how much of it one may have."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.packing import PARENT
from accelkit.core.limits import LATEST, TEXT_LIMIT
from accelkit.core.model import Device, Locality
from accelkit.core.offers import WHOLE
from accelkit.core.policy import Offer
from accelkit.core.values import AttributeValue, FrozenMap, Version

UNKNOWN = "unknown"
"""A text that is not known. A device without the attribute would stop every pod that asks for it
(CEL: no such key; seen on 1.37.2)."""
OWN = ("kind", "offer", PARENT, "product", "profile", "vendor")
DOMAIN = "resource.kubernetes.io"
STANDARD = tuple(f"{DOMAIN}/{name}" for name in ("numaNode", "pciBusID", "pcieRoot"))
FIRST_AMOUNTS = ("memory", "shares", "cores")
"""Capacities that go before others, if there is no room for all."""
_WIDEST = 4
"""Bytes of a character."""
_MOST_NEAR = 8
"""NUMA nodes in a list: some room for values is the vendor's."""


def attributes_of(
    device: Device, offer: Offer, *, lists: bool = False
) -> dict[str, AttributeValue]:
    """What the core says of *device*: whose, what, where, how it is offered.

    Args:
        device: A whole one or a partition; the parent of a whole one is itself, so that equal
            parents mean one chip.
        offer: Its terms.
        lists: Whether the server keeps lists.
    """
    own = {
        "kind": device.kind,
        "offer": offer.name,
        PARENT: device.root.name,
        "product": device.product or UNKNOWN,
        "profile": device.profile or WHOLE,
        "vendor": device.id.vendor,
    }
    return {name: trimmed(text) for name, text in own.items()} | _standard(device.locality, lists)


def _standard(place: Locality, lists: bool) -> dict[str, AttributeValue]:
    numa: AttributeValue | None = (
        place.near_nodes[:_MOST_NEAR] if lists and place.near_nodes else place.numa_node
    )
    values = dict(zip(STANDARD, (numa, place.pci_address, place.pcie_root), strict=True))
    return {name: value for name, value in values.items() if value is not None}


def trimmed(text: str) -> str:
    """*text*, cut at a character to what a server keeps; it counts bytes."""
    if len(text) * _WIDEST <= TEXT_LIMIT:
        return text
    return text.encode()[:TEXT_LIMIT].decode(errors="ignore")


@attrs.frozen(kw_only=True)
class Vocabulary:
    """Attributes of one vendor's devices: the same set, of the same types, on every device.

    Order of importance, where there is no room for all: what the core says, capacities (memory
    first), then the vendor's attributes by name.
    """

    texts: frozenset[str]
    """Where one is not known, it is said so."""
    names: tuple[str, ...]
    """Those that are published, in order."""
    amounts: frozenset[str]
    """Capacities that are published."""
    left_out: tuple[str, ...]
    """Attributes and capacities for which there is no room."""
    gaps: FrozenMap[str, int]
    """Attributes that are no texts, and how many devices lack them."""

    def of(self, device: Device) -> dict[str, AttributeValue]:
        """The vendor's attributes of *device*."""
        found: dict[str, AttributeValue] = {}
        for name in self.names:
            value = device.attributes.get(name, UNKNOWN if name in self.texts else None)
            if value is not None:
                found[name] = trimmed(value) if isinstance(value, str) else value
        return found


def vocabulary(
    devices: Iterable[Device], amounts: Iterable[Iterable[str]], *, lists: bool = False
) -> Vocabulary:
    """What all *devices* of a vendor can say together.

    Args:
        devices: All that are published.
        amounts: Names of capacities, of each device.
        lists: Whether the server keeps lists; if it does not, attributes that are some are left
            out: a text in their place would be of another type.
    """
    every = tuple(devices)
    room = LATEST.entries - len(OWN) - len(STANDARD)
    wanted = {name for several in amounts for name in several}
    kept = sorted(wanted, key=_amount_rank)[:room]
    there, texts, sizes = _counted(every, lists=lists)
    names, extra = _fitting(sizes, room - len(kept))
    return Vocabulary(
        texts=frozenset(texts),
        names=names,
        amounts=frozenset(kept),
        left_out=(*sorted(wanted - set(kept)), *extra),
        gaps=FrozenMap(
            (n, len(every) - there[n]) for n in names if n not in texts and there[n] < len(every)
        ),
    )


def _amount_rank(name: str) -> tuple[int, str]:
    return (FIRST_AMOUNTS.index(name) if name in FIRST_AMOUNTS else len(FIRST_AMOUNTS), name)


def _counted(
    devices: Iterable[Device], *, lists: bool
) -> tuple[Counter[str], set[str], Mapping[str, int]]:
    """Of each attribute how many have it, whether it is a text, and its most values."""
    there: Counter[str] = Counter()
    texts: set[str] = set()
    sizes: dict[str, int] = {}
    for device in devices:
        for name, value in device.attributes.items():
            if not _publishable(value, lists=lists):
                continue
            there[name] += 1
            if isinstance(value, str):
                texts.add(name)
            if isinstance(value, tuple):
                sizes[name] = max(len(value), sizes.get(name, 0))
            else:
                sizes.setdefault(name, 1)
    return there, texts, sizes


def _publishable(value: AttributeValue, *, lists: bool) -> bool:
    if isinstance(value, (str, int)):
        return True
    if isinstance(value, Version):
        return len(str(value).encode()) <= TEXT_LIMIT
    return lists and bool(value)


def _fitting(sizes: Mapping[str, int], room: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that fit, and those that do not; the first that does not fit ends it."""
    values = LATEST.values - len(OWN) - len(STANDARD) - _MOST_NEAR
    names = sorted(sizes)
    fitting = list(_while_room(names, sizes, room, values))
    return tuple(fitting), tuple(names[len(fitting) :])


def _while_room(
    names: Iterable[str], sizes: Mapping[str, int], room: int, values: int
) -> Iterator[str]:
    for number, name in enumerate(names):
        values -= sizes[name]
        if number >= room or values < 0:
            return
        yield name
