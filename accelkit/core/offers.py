"""Which offer takes which device, and what the offer calls it. Not here: what backends render."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

import attrs

from accelkit.core.limits import resource_name_problem
from accelkit.core.model import Device, DeviceId, Holding, Problem, Snapshot
from accelkit.core.policy import Divide, Offer, Policy, Selection, Sharing
from accelkit.core.selection import matches
from accelkit.core.values import Enforcement, FrozenMap, HolderKind, Standing
from accelkit.core.view import Assignment

DEVICES_MISSING = "devices-missing"
"""Code of the problem that the policy expects more devices than there are."""
KUBELET = "kubelet"
"""The backend that has no counters: it never gets a device and its partitions at once."""
WHOLE = "whole"
"""What {profile} is for a device that is no partition."""

_DEFAULT_RESOURCE = "{domain}/{kind}"
_DEFAULT_PART_RESOURCE = "{domain}/{kind}-{profile}"


def resource_of(offer: Offer, device: Device, domain: str) -> str:
    """The resource name under which *offer* offers *device* to the kubelet.

    Args:
        offer: Its template, or ``{domain}/{kind}`` and, for partitions, ``-{profile}``.
        device: Fills in kind and profile; + in a profile is written as a dot.
        domain: The vendor's resource prefix.
    """
    default = _DEFAULT_RESOURCE if device.parent is None else _DEFAULT_PART_RESOURCE
    name = offer.resource or default
    words = (("{domain}", domain), ("{kind}", device.kind), ("{profile}", profile_in_names(device)))
    for word, value in words:
        name = name.replace(word, value)
    return name


def extended_of(offer: Offer, device: Device) -> str:
    """The extended resource under which *offer* offers *device* beside claims; empty: none."""
    return offer.extended_resource.replace("{profile}", profile_in_names(device))


def profile_in_names(device: Device) -> str:
    """What ``{profile}`` is for *device*: 1g.10gb.me of 1g.10gb+me; 1g.24gb-me keeps its minus."""
    return (device.profile or WHOLE).replace("+", ".")


def assign(
    snapshot: Snapshot,
    policy: Policy,
    previous: Mapping[DeviceId, Assignment],
    holdings: Iterable[Holding],
    *,
    domains: Mapping[str, str],
    holders_known: bool = True,
    potential: Iterable[Device] = (),
    whole_again: Collection[DeviceId] = (),
    going: Mapping[DeviceId, str] = MappingProxyType({}),
) -> FrozenMap[DeviceId, Assignment]:
    """Say of every device which offer has it, and on which terms.

    The first offer that selects a device takes it. A device keeps its terms while somebody holds
    it: if they are other than those it would get now, it is leaving. Partitions go before their
    parent where the kubelet would see both. A resource name belongs to the first offer in which
    it occurs. What a claim would have made first, the kubelet does not get.

    Args:
        snapshot: What is there.
        policy: Its offers and ``only``.
        previous: The last assignments.
        holdings: Who holds what now.
        domains: Vendor to resource prefix.
        holders_known: False: nothing that was assigned changes hands.
        potential: Partitions that are not there and that a claim may have.
        whole_again: Devices that are not usable as they stand and that a claim may have whole.
        going: Devices that are about to be unmade or set to another mode, and why.
    """
    potential = tuple(potential)
    devices = (*snapshot.devices, *potential)
    unmade = {*whole_again, *(part.id for part in potential)}
    wished = {d.id: _wish(d, policy, snapshot.node, unmade) for d in devices}
    wished |= {i: Assignment(terms=None, why=why) for i, why in going.items() if i in wished}
    holders: dict[DeviceId, list[Holding]] = {}
    for holding in holdings:
        holders.setdefault(holding.device, []).append(holding)
    pinned: dict[DeviceId, Assignment] = {}
    for device in devices:
        before = previous.get(device.id)
        held = holders.get(device.id, [])
        if before is not None and before.terms is not None:
            if held or not holders_known:
                pinned[device.id] = _kept(before.terms, wished[device.id])
            continue
        wish = wished[device.id]
        found = _found(device, held, _wished_first(policy.offers, wish), domains)
        if found is not None:
            pinned[device.id] = found if found.terms is None else _kept(found.terms, wish)
    given = {**wished, **pinned}
    for family in _families(devices):
        _settle(family, given, pinned)
    _name(devices, policy.offers, given, pinned, domains)
    return FrozenMap(given)


def check_offers(
    snapshot: Snapshot,
    policy: Policy,
    assignments: Mapping[DeviceId, Assignment],
    domains: Mapping[str, str],
) -> tuple[Problem, ...]:
    """What the policy asks of this node and does not get."""
    return (
        *_missing(snapshot, policy),
        *_shadowed(policy.offers),
        *_unshareable(snapshot, policy, assignments),
        *_unnamed(snapshot, policy, assignments, domains),
    )


def _wish(
    device: Device, policy: Policy, node: str, unmade: Collection[DeviceId] = ()
) -> Assignment:
    """What the policy alone gives *device*; if it is *unmade*, to a claim that has it made."""
    if not matches(policy.only, device, node):
        return Assignment(terms=None, why="the policy's only leaves it out")
    if not device.usable and device.id not in unmade:
        mode = f", only its partitions (mode {device.mode})" if device.mode else ""
        return Assignment(terms=None, why=f"it cannot be handed out as it stands{mode}")
    offer = _first(device, policy.offers, node)
    if offer is None:
        return Assignment(terms=None, why="no offer selects it")
    if device.id in unmade and offer.through == KUBELET:
        return Assignment(terms=None, why=f"{KUBELET} hands out only what is there already")
    return _on_terms(device, offer)


def _on_terms(device: Device, offer: Offer) -> Assignment:
    """*device* in *offer*: as promised, or exclusively."""
    if _promised(device, offer):
        return Assignment(terms=offer)
    return Assignment(
        terms=attrs.evolve(offer, sharing=Sharing()),
        why=f"offered exclusively, since it cannot do {_asked(offer.sharing)}",
    )


def _first(device: Device, offers: Iterable[Offer], node: str) -> Offer | None:
    return next((o for o in offers if matches(o.select, device, node)), None)


def _promised(device: Device, offer: Offer) -> bool:
    """Whether *device* can be shared as *offer* says."""
    shared = offer.sharing.shares > 1 or offer.sharing.enforce is not Enforcement.NONE
    return not shared or offer.sharing.enforce in device.sharing


def _asked(sharing: Sharing) -> str:
    enforced = sharing.enforce is not Enforcement.NONE
    return f"sharing by {sharing.enforce}" if enforced else "sharing"


def _kept(old: Offer, wish: Assignment) -> Assignment:
    """The terms *old* of a device that somebody holds, or those that do its holder no harm."""
    new = wish.terms
    if new is not None and _harmless(old, new):
        return wish
    now = "nowhere" if new is None else f"in {new.name}"
    same = new is not None and new.name == old.name
    why = "held on earlier terms" if same else f"held, though it is now offered {now}"
    return Assignment(terms=old, leaving=True, why=why)


def _harmless(old: Offer, new: Offer) -> bool:
    """Whether holders do not notice: other selections, or more shares where none has a part.

    From one share to several is noticed: the device is listed under other ids.
    """
    grown = old.sharing
    if 1 < old.sharing.shares < new.sharing.shares and new.sharing.divide is Divide.NONE:
        grown = attrs.evolve(old.sharing, shares=new.sharing.shares)
    return attrs.evolve(old, select=new.select, sharing=grown) == new


def _wished_first(offers: Iterable[Offer], wish: Assignment) -> list[Offer]:
    """*offers*, but first the one that has the device now: others may render the same name."""
    name = None if wish.terms is None else wish.terms.name
    return sorted(offers, key=lambda offer: offer.name != name)


def _found(
    device: Device, holdings: Iterable[Holding], offers: Iterable[Offer], domains: Mapping[str, str]
) -> Assignment | None:
    """What holdings say of a device without earlier terms; None: nobody was given it."""
    for holding in holdings:
        if holding.holder.kind is HolderKind.FOREIGN:
            continue
        for offer in offers:
            name = resource_of(offer, device, domains.get(device.id.vendor, ""))
            if offer.through == holding.through and holding.resource in {None, name}:
                return _on_terms(device, offer)
        return Assignment(
            terms=None,
            why=f"held through {holding.resource or holding.through}, which no offer has",
        )
    return None


def _families(devices: Iterable[Device]) -> Iterator[tuple[DeviceId, tuple[DeviceId, ...]]]:
    """Whole devices that are cut, each with its partitions."""
    parts: dict[DeviceId, list[DeviceId]] = {}
    for device in devices:
        if device.parent is not None:
            parts.setdefault(device.parent, []).append(device.id)
    yield from ((parent, tuple(of_parent)) for parent, of_parent in parts.items())


def _settle(
    family: tuple[DeviceId, tuple[DeviceId, ...]],
    given: dict[DeviceId, Assignment],
    pinned: Mapping[DeviceId, Assignment],
) -> None:
    """Leave one backend to a family, and only partitions or their parent to the kubelet."""
    parent, parts = family
    members = (*parts, parent)
    wanted = [given[i].terms for i in (*filter(pinned.__contains__, members), *members)]
    backend = next((terms.through for terms in wanted if terms is not None), None)
    held_parts = [i for i in parts if i in pinned]
    for part in parts:
        if part not in pinned:
            _withdraw(given, part, _why_not_part(given[part], backend, pinned.get(parent)))
    offered = any(given[i].terms is not None for i in parts)
    stranger = any(given[i].terms is None for i in held_parts)
    if parent not in pinned:
        _withdraw(given, parent, _why_not_parent(given[parent], backend, offered, stranger))


def _withdraw(given: dict[DeviceId, Assignment], device: DeviceId, why: str) -> None:
    if why:
        given[device] = Assignment(terms=None, why=why)


def _why_not_part(wish: Assignment, backend: str | None, parent: Assignment | None) -> str:
    if wish.terms is None:
        return ""
    if parent is not None and (parent.terms is None or parent.terms.through == KUBELET):
        return "the device that it is a part of is held as a whole"
    return "" if wish.terms.through == backend else f"its family is offered through {backend}"


def _why_not_parent(wish: Assignment, backend: str | None, offered: bool, stranger: bool) -> str:
    if wish.terms is None:
        return ""
    if stranger:
        return "a partition of it is held by a stranger"
    if wish.terms.through != backend:
        return f"its family is offered through {backend}"
    return "its partitions are offered instead" if offered and backend == KUBELET else ""


def _name(
    devices: Iterable[Device],
    offers: Iterable[Offer],
    given: dict[DeviceId, Assignment],
    pinned: Mapping[DeviceId, Assignment],
    domains: Mapping[str, str],
) -> None:
    """Leave each resource name to the first offer, and each device name in it to one device."""
    named = [
        (device.id, terms, resource_of(terms, device, domains.get(device.id.vendor, "")))
        for device in devices
        if (terms := given[device.id].terms) is not None
        and terms.through == KUBELET
        and not given[device.id].leaving
    ]
    owners = _owners(named, offers)
    taken = {(resource, i.name): i for i, _, resource in reversed(named) if i in pinned}
    for i, terms, resource in named:
        why = ""
        if wrong := resource_name_problem(resource):
            why = wrong
        elif owners[resource] != terms.name:
            why = f"{resource} belongs to {owners[resource]}"
        elif taken.setdefault((resource, i.name), i) != i:
            why = f"{resource} has another {i.name}, {taken[resource, i.name]}"
        if why and i in pinned:
            given[i] = Assignment(terms=terms, leaving=True, why=why)
        elif why:
            given[i] = Assignment(terms=None, why=why)


def _owners(
    named: Iterable[tuple[DeviceId, Offer, str]], offers: Iterable[Offer]
) -> Mapping[str, str]:
    """Of each resource name the first offer in which it occurs."""
    order = {offer.name: position for position, offer in enumerate(offers)}
    owners: dict[str, str] = {}
    for _, terms, resource in named:
        before = owners.setdefault(resource, terms.name)
        if order[terms.name] < order[before]:
            owners[resource] = terms.name
    return owners


def _missing(snapshot: Snapshot, policy: Policy) -> Iterator[Problem]:
    for position, expected in enumerate(policy.expect):
        there = sum(
            matches(expected.select, device, snapshot.node)
            for device in snapshot.devices
            if device.standing is not Standing.LOST
        )
        if there < expected.count:
            yield Problem(
                subject=f"expect[{position}]",
                code=DEVICES_MISSING,
                reason=f"{there} of {expected.count} expected devices are there",
                remedy="look for problems of their vendor, or correct expect in the policy",
            )


def _shadowed(offers: Iterable[Offer]) -> Iterator[Problem]:
    before: list[Offer] = []
    for offer in offers:
        taker = next((o for o in before if o.select in {Selection(), offer.select}), None)
        if taker is not None:
            yield Problem(
                subject=offer.name,
                code="offer-shadowed",
                reason=f"{taker.name} comes first and takes all that {offer.name} selects",
                remedy=f"write {offer.name} before {taker.name}",
            )
        before.append(offer)


def _unshareable(
    snapshot: Snapshot, policy: Policy, assignments: Mapping[DeviceId, Assignment]
) -> Iterator[Problem]:
    for device in snapshot.devices:
        terms = assignments[device.id].terms
        offer = _first(device, policy.offers, snapshot.node)
        if terms is None or offer is None or offer.name != terms.name or _promised(device, offer):
            continue
        yield Problem(
            vendor=device.id.vendor,
            subject=device.id.name,
            code="sharing-refused",
            reason=f"{offer.name} asks for {_asked(offer.sharing)}, which the device cannot do: "
            "it is offered exclusively",
            remedy=f"leave the device out of {offer.name}, or change its sharing",
        )


def _unnamed(
    snapshot: Snapshot,
    policy: Policy,
    assignments: Mapping[DeviceId, Assignment],
    domains: Mapping[str, str],
) -> Iterator[Problem]:
    """One problem for each offer that could not have a name, and each device."""
    owners: dict[str, str] = {}
    names: set[tuple[str, str]] = set()
    refused: list[tuple[Device, Offer, str]] = []
    for device in snapshot.devices:
        given = assignments[device.id]
        offer = given.terms or _wish(device, policy, snapshot.node).terms
        if offer is None or offer.through != KUBELET:
            continue
        resource = resource_of(offer, device, domains.get(device.id.vendor, ""))
        if given.terms is None or given.leaving:
            refused.append((device, offer, resource))
        else:
            owners[resource] = offer.name
            names.add((resource, device.id.name))
    found = (
        _refusal(device, offer, resource, owners.get(resource), (resource, device.id.name) in names)
        for device, offer, resource in refused
        if offer.name in {o.name for o in policy.offers}
    )
    yield from {(p.code, p.subject): p for p in found if p is not None}.values()


def _refusal(
    device: Device, offer: Offer, resource: str, owner: str | None, taken: bool
) -> Problem | None:
    if wrong := resource_name_problem(resource):
        code, subject, reason = "resource-name-invalid", offer.name, wrong
    elif owner not in {None, offer.name}:
        code, subject, reason = "resource-taken", offer.name, f"{resource} belongs to {owner}"
    elif taken:
        code, subject = "device-name-taken", str(device.id)
        reason = f"{resource} has another device called {device.id.name}"
    else:
        return None
    remedy = f"give {offer.name} another resource"
    return Problem(subject=subject, code=code, reason=reason, remedy=remedy)
