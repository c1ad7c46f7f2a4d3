"""Which devices are in the slices, on which terms, and why not to be had. Pure.

Not here: what they say of themselves, and which slice they are in.
"""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra import taints
from accelkit.backends.dra.checking import binding_faults
from accelkit.backends.dra.pool import Dialect, Taint
from accelkit.core.model import Binding, Device, DeviceId, Holding
from accelkit.core.offers import extended_of
from accelkit.core.partition.counters import Counters, counters
from accelkit.core.partitioning.rules import fixed_cut
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import FrozenMap, HolderKind, Standing
from accelkit.core.view import View

BACKEND = "dra"
_NOTHING = Counters()


@attrs.frozen(kw_only=True)
class Listed:
    """A device that is published."""

    device: Device
    terms: Offer
    taints: tuple[Taint, ...] = ()
    """Worst first."""
    held: bool = False
    """It stays, whatever its state: what is not listed is given away again (seen on 1.37.2)."""
    exists: bool = True
    """False: it is made for the claim that gets it."""

    @property
    def root(self) -> DeviceId:
        return self.device.root

    @property
    def binding(self) -> Binding | None:
        """What must be true before a pod binds to it; None: nothing, or what cannot be written."""
        said = self.device.binding
        return None if said is None or any(binding_faults(said)) else said

    def bindable(self, dialect: Dialect) -> bool:
        """Whether pods wait for what must be true before they bind, if anything must."""
        return self.device.binding is None or (dialect.bindings and self.binding is not None)


def listed_of(
    view: View, vendor: str, dialect: Dialect, competing: Mapping[DeviceId, Counters]
) -> tuple[Listed, ...]:
    """Devices of *vendor* that are published, by id.

    Args:
        view: Of the node.
        vendor: Whose.
        dialect: What is not kept of a slice decides what may be in it.
        competing: Of each whole device what its partitions compete for.
    """
    found = tuple(_offered(view, vendor, competing))
    if not dialect.counters:
        found = tuple(_apart(found))
    return tuple(
        one
        for one in found
        if one.held
        or ((dialect.taints or not taints.keeps_away(one.taints)) and one.bindable(dialect))
    )


def competing_of(view: View, vendor: str) -> Mapping[DeviceId, Counters]:
    """Of each whole device of *vendor* that can be cut, what its partitions compete for."""
    return {
        device.id: counters(device)
        for device in view.snapshot.devices
        if device.id.vendor == vendor and device.profiles
    }


def _offered(view: View, vendor: str, competing: Mapping[DeviceId, Counters]) -> Iterator[Listed]:
    holdings = _claimed(view, vendor)
    taken = _taken(view, competing)
    every = [(d, True) for d in view.snapshot.devices] + [(d, False) for d in view.potential]
    for device, exists in sorted(every, key=lambda one: one[0].id):
        if device.id.vendor != vendor:
            continue
        held = holdings.get(device.id, [])
        terms = _terms(view, device, held)
        if terms is None or (not held and extended_of(terms, device) in view.dra_waits):
            continue
        yield Listed(
            device=device,
            terms=terms,
            taints=taints.worst_first(
                (
                    *_taints(view, device, exists=exists),
                    *_in_the_way(
                        device,
                        competing.get(device.root, _NOTHING),
                        taken.get(device.root, {}),
                    ),
                )
            ),
            held=bool(held) and device.id not in view.renamed,
            exists=exists,
        )


def _claimed(view: View, vendor: str) -> Mapping[DeviceId, list[Holding]]:
    found: dict[DeviceId, list[Holding]] = {}
    for holding in view.holdings:
        if holding.device.vendor == vendor and holding.holder.kind is not HolderKind.FOREIGN:
            found.setdefault(holding.device, []).append(holding)
    return found


def _terms(view: View, device: Device, held: Iterable[Holding]) -> Offer | None:
    """On which terms *device* is published; None: it is not.

    One that a claim holds is, even if no offer ever had it, and as shareable as it was taken.
    """
    given = view.assignments.get(device.id)
    if given is not None and given.terms is not None:
        return given.terms if given.terms.through == BACKEND else None
    ours = [h for h in held if h.through == BACKEND]
    if not ours:
        return None
    shares = {h.share for h in ours} - {None}
    sharing = Sharing(shares=max(2, len(shares))) if shares else Sharing()
    return Offer(name=taints.UNKNOWN, through=BACKEND, sharing=sharing)


def _taints(view: View, device: Device, *, exists: bool) -> Iterator[Taint]:
    yield from taints.of_health(view.verdicts.get(device.id if exists else device.root), view.evict)
    given = view.assignments.get(device.id)
    if given is None or given.leaving or given.terms is None or device.id in view.renamed:
        yield taints.taint(taints.LEAVING)
    if device.standing is Standing.LOST:
        yield taints.taint(taints.LOST)
    elif exists and device.id not in view.edits and device.id not in view.made:
        yield taints.taint(taints.NO_EDITS)
    if device.id in view.stuck:
        yield taints.taint(taints.STUCK)


def _taken(
    view: View, competing: Mapping[DeviceId, Counters]
) -> Mapping[DeviceId, Mapping[DeviceId, FrozenMap[str, int]]]:
    """By whole device: what stands in the way and no claim accounts for, and what that takes.

    Partitions that somebody else made, and whatever a claim left behind, or has from a driver of
    another name.
    """
    found: dict[DeviceId, dict[DeviceId, FrozenMap[str, int]]] = {}
    for device in view.snapshot.devices:
        strange = device.parent is not None and device.id not in view.made
        strange = strange and not _is_for_good(view, device)
        if device.root in competing and (strange or device.id in view.stuck | view.renamed):
            amounts = competing[device.root].of(device)
            found.setdefault(device.root, {})[device.id] = amounts
    return found


def _is_for_good(view: View, part: Device) -> bool:
    """Whether nobody made *part*: it comes with the mode of a device that is usable as well."""
    whole = view.devices.get(part.root)
    return whole is not None and whole.usable and fixed_cut(whole, part.profile or "")


def _in_the_way(
    device: Device, competing: Counters, taken: Mapping[DeviceId, Mapping[str, int]]
) -> Iterator[Taint]:
    """A taint if *device* could not be there beside what is *taken*."""
    if not taken or device.id in taken:
        return
    left = dict(competing.totals)
    for amounts in (competing.of(device), *taken.values()):
        for name, amount in amounts.items():
            left[name] -= amount
    if any(amount < 0 for amount in left.values()):
        yield taints.taint(taints.PLACE_OCCUPIED)


def _apart(listed: Iterable[Listed]) -> Iterator[Listed]:
    """What does not overlap, for servers without counters: they would give both away.

    Only what exists. What is held comes first; then partitions go before their parent, as it can
    be had only when they are gone.
    """
    families: dict[DeviceId, list[Listed]] = {}
    for one in listed:
        if one.exists or one.held:
            families.setdefault(one.root, []).append(one)
    for family in families.values():
        parts = [one for one in family if one.device.parent is not None]
        whole = [one for one in family if one.device.parent is None]
        taken = {slot for one in parts if one.held for slot in _slots(one)}
        if any(one.held for one in whole):
            yield from (one for one in family if one.held)
        else:
            yield from (one for one in parts if one.held or taken.isdisjoint(_slots(one)))
            yield from () if parts else whole


def _slots(one: Listed) -> Iterable[int]:
    return one.device.placement.slots if one.device.placement else ()
