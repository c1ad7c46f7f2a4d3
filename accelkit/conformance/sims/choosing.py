"""Which devices a container gets, and where they may be, as a kubelet decides it. Pure.

Source: kubernetes pkg/kubelet/cm/devicemanager (manager.go, topology_hints.go) and
pkg/kubelet/cm/topologymanager, seen on 1.37.2.
"""

import random
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from itertools import combinations

from attrs import frozen

from accelkit.conformance.sims.devices import Listing
from accelkit.conformance.sims.events import ListedDevice


class Policy(StrEnum):
    """The Topology Manager's policy."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE = "single-numa-node"


class Rejected(Exception):
    """The pod fails for good.

    Args:
        message: As in the pod's status.
        reason: Likewise.
    """

    def __init__(self, message: str, reason: str = "UnexpectedAdmissionError") -> None:
        super().__init__(message)
        self.reason = reason


@frozen
class Plan:
    """How one request is filled."""

    taken: frozenset[str]
    """Decided already: reused from init containers, or all that are aligned."""
    size: int
    ask: frozenset[str]
    """What the plugin may choose from, *taken* included; empty: it is not asked."""
    fill: tuple[frozenset[str], ...]
    """What is taken from without its word, in this order."""


def check_held(resource: str, listing: Listing | None, held: Collection[str]) -> None:
    """Refuse a container that is not running and whose devices are not all healthy.

    Raises:
        Rejected: So it is.
    """
    if listing is None:
        raise Rejected(because(f"cannot allocate unregistered device {resource}"))
    if not listing.healthy:
        raise Rejected(
            because(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        )
    if not listing.healthy.issuperset(held):
        raise Rejected(
            because(
                "previously allocated devices are no longer healthy; "
                f"cannot allocate unhealthy devices {resource}"
            )
        )


def plan(
    resource: str,
    listing: Listing | None,
    *,
    size: int,
    used: Collection[str],
    reusable: Collection[str],
    affinity: frozenset[int] | None,
    rng: random.Random,
) -> Plan:
    """Plan how *size* devices are found.

    Args:
        resource: The resource's name.
        listing: Its devices; None if it was never registered.
        size: How many are wanted.
        used: Devices that pods hold, *reusable* included.
        reusable: Devices of the pod's init containers, which are finished by then.
        affinity: NUMA nodes to prefer; None: no matter.
        rng: Picks where a kubelet takes what its map yields first.

    Raises:
        Rejected: There are not enough.
    """
    check_held(resource, listing, ())
    assert listing is not None
    taken = frozenset(some(reusable, size, rng))
    if len(taken) == size:
        return Plan(taken, size, frozenset(), ())
    available = frozenset(listing.healthy - set(used))
    needed = size - len(taken)
    if len(available) < needed:
        raise Rejected(
            because(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {needed}, Available: {len(available)}"
            )
        )
    aligned, unaligned, anywhere = by_affinity(available, listing.known, affinity)
    if needed < len(aligned):
        return Plan(taken, size, aligned | taken, (aligned,))
    taken |= aligned
    if len(taken) == size:
        return Plan(taken, size, frozenset(), ())
    return Plan(taken, size, available | taken, (unaligned, anywhere))


def complete(planned: Plan, preferred: Iterable[str], rng: random.Random) -> frozenset[str]:
    """Choose: what is taken, what the plugin prefers of the rest, then whatever there is."""
    chosen = set(planned.taken)
    wish = planned.ask & set(preferred)
    for source in (wish, *planned.fill):
        chosen |= some(source - chosen, planned.size - len(chosen), rng)
    return frozenset(chosen)


def some(ids: Collection[str], size: int, rng: random.Random) -> set[str]:
    """Pick at most *size* of *ids*, any: the kubelet takes what its map yields first."""
    return set(rng.sample(sorted(ids), min(size, len(ids))))


def by_affinity(
    ids: frozenset[str], known: Mapping[str, ListedDevice], affinity: frozenset[int] | None
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Split *ids* into those on the nodes of *affinity*, on other nodes, and on none."""
    if affinity is None:
        return frozenset(), frozenset(), ids
    placed = {ident for ident in ids if known[ident].nodes}
    aligned = {ident for ident in placed if affinity & set(known[ident].nodes)}
    return frozenset(aligned), frozenset(placed - aligned), ids - placed


def affinity_of(
    listing: Listing,
    *,
    size: int,
    available: Collection[str],
    reusable: Collection[str],
    host: tuple[int, ...],
    policy: Policy,
) -> frozenset[int] | None:
    """Find the NUMA nodes that a request is aligned to; None: no matter.

    The narrowest set of nodes that has enough free devices wins. It is *preferred* if no
    narrower set would have enough with all devices free.

    Args:
        listing: The resource's devices.
        size: How many are wanted.
        available: Those that can be had.
        reusable: Those of the pod's init containers; all of them must be on the nodes.
        host: The NUMA nodes of the host.
        policy: How strict.

    Raises:
        Rejected: The policy wants an alignment that there is not.
    """
    nodes = {ident: set(device.nodes) for ident, device in listing.known.items()}
    if policy is Policy.NONE or not any(nodes.values()):
        return None
    masks = [set(mask) for width in range(1, len(host) + 1) for mask in combinations(host, width)]

    def narrowest(ids: Collection[str], needed: Collection[str] = ()) -> set[int] | None:
        for mask in masks:
            within = {ident for ident in ids if nodes[ident] & mask}
            if len(within) >= size and within.issuperset(needed):
                return mask
        return None

    kept = {ident for ident in reusable if nodes.get(ident)}
    ideal, found = narrowest(nodes), narrowest(kept.union(available) & nodes.keys(), kept)
    preferred = found is not None and ideal is not None and len(found) == len(ideal)
    strict = policy in {Policy.RESTRICTED, Policy.SINGLE}
    if (strict and not preferred) or (
        policy is Policy.SINGLE and found is not None and len(found) > 1
    ):
        raise Rejected(
            "Pod was rejected: Resources cannot be allocated with Topology locality",
            "TopologyAffinityError",
        )
    if found is None or (policy is Policy.SINGLE and found == set(host)):
        return None
    return frozenset(found)


def because(text: str) -> str:
    """Word a failed allocation as it stands in a pod's status."""
    return f"Pod was rejected: Allocate failed due to {text}, which is unexpected"
