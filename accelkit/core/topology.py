"""The topology of what an offer offers, from links and localities.

How devices are chosen by it is in the preference package; which device is offered is in the view.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import combinations

from accelkit.core.model import Device, Link, Locality
from accelkit.core.policy import Offer
from accelkit.core.preference import (
    Legality,
    Level,
    Topology,
    family,
    of_devices,
    of_shares,
    share_ids,
    worths,
)
from accelkit.core.values import GroupRule, LinkKind
from accelkit.core.view import View

Pair = tuple[str, str]

BUS: Mapping[LinkKind, int] = {
    LinkKind.ONDIE: 60,
    LinkKind.SWITCH: 50,
    LinkKind.BRIDGE: 40,
    LinkKind.HOST: 30,
    LinkKind.SOCKET: 20,
}
APART = 10
"""Weight of two devices that nothing but the machine connects."""
LINK = 100
"""Weight of one direct or fabric link; above any bus."""


def topology_of(view: View, offer: Offer) -> Topology:
    """Make the topology of the devices that *offer* has, or of their shares.

    The first level is the vendor's links and, where there are none, the bus; the second the bus
    alone. Partitions stand for their parent, those of one parent are in one package.
    Made when the view changes, not when somebody asks.

    Returns:
        Ids as they are offered: device names, or ``name::i`` where a device is shared.
    """
    offered = _offered(view, offer)
    roots = {str(device.root): view.devices[device.root] for device, _ in offered.values()}
    bus, links = _bus(view, roots), _links(view)
    # Above every link of the node, also of devices that are offered elsewhere.
    package = LINK * (1 + max(links.values(), default=0))
    near = {
        pair: package if weight == BUS[LinkKind.ONDIE] else max(LINK * links[pair], weight)
        for pair, weight in bus.items()
    }
    devices = of_devices(
        {name: str(device.root) for name, (device, _) in offered.items()},
        [
            Level(pairs=near, apart=APART, inside=package),
            Level(pairs=bus, apart=APART, inside=BUS[LinkKind.ONDIE]),
        ],
    )
    shares = {name: count for name, (_, count) in offered.items()}
    if all(count == 1 for count in shares.values()):
        return devices
    return of_shares(devices, shares, offer.sharing.place)


def unit_of(view: View, offer: Offer, available: Collection[str]) -> tuple[int, ...] | None:
    """Return the worth of one more share of each device, for a request to :func:`topology_of`.

    Args:
        view: The one that the topology was made of.
        offer: The same.
        available: Ids that are free, and those that must be in the answer.

    Returns:
        A number per device; None where it does not matter who uses how many.
    """
    offered = _offered(view, offer)
    if all(count == 1 for _, count in offered.values()):
        return None
    free = set(available)
    taken = [
        sum(one not in free for one in share_ids(name, count))
        for name, (_, count) in offered.items()
    ]
    return worths(taken, offer.sharing.place)


def legality_of(view: View, offer: Offer, topology: Topology) -> Legality | None:
    """Return the sets that the vendor can run, or else those that it would rather run.

    Returns:
        None if no group says anything about whole devices or partitions of the offer; shares of
        a device have no groups.
    """
    offered = _offered(view, offer)
    if any(count > 1 for _, count in offered.values()):
        return None
    names = {device.id: name for name, (device, _) in offered.items()}
    for rule in (GroupRule.LAW, GroupRule.HINT):
        sets = [
            [names.get(member, "") for member in group.members]
            for group in view.snapshot.groups
            if group.rule is rule and any(member in names for member in group.members)
        ]
        if sets:
            return family(topology, sets, hard=rule is GroupRule.LAW)
    return None


def _offered(view: View, offer: Offer) -> dict[str, tuple[Device, int]]:
    """Return the devices of an offer by name, ascending, with the number of shares of each.

    A name is one vendor's; where two vendors in one offer have the same, the first one counts.
    """
    found: dict[str, tuple[Device, int]] = {}
    for name in sorted(view.assignments, reverse=True):
        terms = view.assignments[name].terms
        if terms is not None and terms.name == offer.name and name in view.devices:
            found[name.name] = (view.devices[name], terms.sharing.shares)
    return dict(sorted(found.items()))


def _between(view: View, link: Link) -> Pair:
    """Return the whole devices that *link* connects, in ascending order."""
    a, b = sorted(str(view.devices[end].root) for end in (link.a, link.b))
    return a, b


def _links(view: View) -> Counter[Pair]:
    """Count the vendor's links between every two whole devices."""
    counts: Counter[Pair] = Counter()
    for link in view.snapshot.links:
        if link.up and link.kind in {LinkKind.DIRECT, LinkKind.FABRIC}:
            counts[_between(view, link)] += link.count
    return counts


def _bus(view: View, roots: Mapping[str, Device]) -> dict[Pair, int]:
    """Weigh the nearest common part of every two whole devices."""
    weights = {
        (a, b): _derived(roots[a].locality, roots[b].locality)
        for a, b in combinations(sorted(roots), 2)
    }
    named: dict[Pair, int] = {}
    for link in view.snapshot.links:
        pair = _between(view, link)
        if link.up and link.kind in BUS and pair in weights:
            named[pair] = max(named.get(pair, 0), BUS[link.kind])
    return weights | named


def _derived(one: Locality, other: Locality) -> int:
    """Weigh what two localities have in common, for a pair of which no vendor says more."""
    if one.pcie_root is not None and one.pcie_root == other.pcie_root:
        return BUS[LinkKind.HOST]
    if one.numa_node is not None and one.numa_node == other.numa_node:
        return BUS[LinkKind.SOCKET]
    return APART
