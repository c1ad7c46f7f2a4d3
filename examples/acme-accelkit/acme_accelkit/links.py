"""Which cards are wired together, which make a board, and who has one open."""

from collections import defaultdict
from collections.abc import Iterable

from accelkit import (
    Device,
    Group,
    Holding,
    Host,
    Link,
    LinkKind,
    SourceError,
    SupportsGroups,
    SupportsHolders,
    SupportsLinks,
    Vendor,
    holders_of,
)
from acme_accelkit.files import file_of


class Links(Vendor, SupportsLinks, SupportsGroups, SupportsHolders):
    """The file ``links`` has a line for each other card: its PCI address, and how many cables."""

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        cards = {card.locality.pci_address: card.id for card in _cards(devices)}
        for card in _cards(devices):
            for line in host.read(file_of(card, "links")).splitlines():
                address, _, count = line.partition(" ")
                if not count.isdecimal():
                    raise SourceError(f"{card.id}: links says {line[:40]!r}")
                other = cards.get(address)
                if other is not None and card.id < other:  # the other one says the same
                    yield Link.between(card.id, other, LinkKind.DIRECT, count=int(count))

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        boards = defaultdict(list)
        for card in _cards(devices):
            boards[str(card.attributes["board"])].append(card.id)
        for board, members in boards.items():
            if len(members) > 1:
                yield Group(kind="board", name=board, members=tuple(members))

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        return holders_of(host, {d.id: [node.on_host for node in d.nodes] for d in devices})


def _cards(devices: tuple[Device, ...]) -> list[Device]:
    return [device for device in devices if device.parent is None]
