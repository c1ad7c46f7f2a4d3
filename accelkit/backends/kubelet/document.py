"""The lists of devices that the kubelet gets, made from a view. Pure. Not here: who sends them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

import attrs

from accelkit.core.limits import DEVICE_ID_LIMIT, RESOURCE_IDS_LIMIT
from accelkit.core.model import Device, DeviceId, Holding
from accelkit.core.offers import resource_of
from accelkit.core.policy import Offer
from accelkit.core.preference import share_id
from accelkit.core.values import FrozenMap, HolderKind, Standing, freeze
from accelkit.core.view import Assignment, View

BACKEND = "kubelet"


@attrs.frozen(kw_only=True, field_transformer=freeze, order=True)
class WireDevice:
    """One device of a list, as the kubelet sees it."""

    id: str
    """The device's name, or ``name::i`` for a share of it."""
    healthy: bool
    numa_nodes: tuple[int, ...] = ()
    """One node, or none: the kubelet rejects pods for a node that the host does not list."""


Document: TypeAlias = FrozenMap[str, tuple[WireDevice, ...]]
"""The list of each resource."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Entry:
    """One id of a list, and what it stands for."""

    wire: WireDevice
    device: DeviceId
    share: str | None = None
    terms: Offer | None = None
    """None: it is listed only because somebody holds it under this name."""
    why: str = ""
    """Why it is not to be had; empty: it is."""


Catalog: TypeAlias = FrozenMap[str, tuple[Entry, ...]]
"""The entries of each resource, by device and share."""


def document(catalog: Catalog) -> Document:
    """What of *catalog* the kubelet sees."""
    return FrozenMap(
        (name, tuple(entry.wire for entry in entries)) for name, entries in catalog.items()
    )


def catalog_of(view: View, undescribed: Collection[DeviceId] = ()) -> Catalog:
    """Say what every id of every resource stands for; nothing is left out for being too much.

    A device that somebody holds is listed for as long as the view has it: one that leaves the
    list turns healthy in its pod's status. So is one that is held under another name or id than
    it is offered under, beside what it is offered as; neither is to be had then.

    Args:
        view: What is offered and who holds it.
        undescribed: Devices whose names would mean nothing to the container runtime.
    """
    listed: dict[str, dict[str, Entry]] = {name: {} for name in _literal(view)}
    offered = dict(_offered(view))
    cut = {device.parent for device, _, _ in offered.values() if device.parent is not None}
    holdings: dict[DeviceId, list[Holding]] = {}
    for holding in view.holdings:
        holdings.setdefault(holding.device, []).append(holding)
    for device_id, (device, terms, resource) in offered.items():
        held = holdings.get(device_id, [])
        if device_id in cut and not held:
            continue
        why = (
            _unavailable(view, device, view.assignments[device_id])
            or ("its CDI file could not be written" if device_id in undescribed else "")
            or ("its partitions are offered" if device_id in cut else "")
            or ("claims made for its resource are left" if resource in view.kubelet_waits else "")
            or _strangers(device, terms, resource, held)
        )
        for entry in _entries(device, terms, why):
            listed.setdefault(resource, {}).setdefault(entry.wire.id, entry)
    for resource, entry in _former(view):
        listed.setdefault(resource, {}).setdefault(entry.wire.id, entry)
    return FrozenMap((name, tuple(entries.values())) for name, entries in listed.items())


def fit(catalog: Catalog, view: View) -> Catalog:
    """Leave out what the kubelet cannot take; what somebody holds stays.

    The kubelet's work under its lock grows with the square of a list.
    """
    return FrozenMap((name, _fit(entries, view.held)) for name, entries in catalog.items())


def overflow(catalog: Catalog) -> Mapping[str, str]:
    """Which resources have more ids than the kubelet can take, with a sentence for each."""
    return {
        name: f"{name} has {len(entries)} ids, {RESOURCE_IDS_LIMIT} are offered"
        for name, entries in catalog.items()
        if len(entries) > RESOURCE_IDS_LIMIT
    }


def is_former(entries: Iterable[Entry]) -> bool:
    """Whether a resource exists only because pods hold devices of that name."""
    entries = tuple(entries)
    return bool(entries) and all(entry.terms is None for entry in entries)


def _literal(view: View) -> Iterator[str]:
    """Resources that the policy names outright, once all vendors they are of have answered."""
    for offer in view.offers:
        if offer.through != BACKEND or not offer.resource or "{" in offer.resource:
            continue
        globs = offer.select.vendor
        vendors = {
            name
            for name in view.domains
            if not globs or any(fnmatchcase(name, glob) for glob in globs)
        }
        if vendors and vendors <= view.snapshot.answered:
            yield offer.resource


def _offered(view: View) -> Iterator[tuple[DeviceId, tuple[Device, Offer, str]]]:
    """Devices that the kubelet gets, with their terms and the name of their resource."""
    for device_id, assignment in view.assignments.items():
        terms, device = assignment.terms, view.devices.get(device_id)
        if terms is not None and terms.through == BACKEND and device is not None:
            domain = view.domains.get(device_id.vendor, "")
            yield device_id, (device, terms, resource_of(terms, device, domain))


def _unavailable(view: View, device: Device, assignment: Assignment) -> str:
    """Why *device* is not to be had as far as the view alone says; empty: it is."""
    if device.standing is Standing.LOST:
        return "it is gone"
    if assignment.leaving:
        return f"it leaves the offer: {assignment.why or 'the policy changed'}"
    if not device.usable:
        return "it is cut into partitions"
    verdict = view.verdicts.get(device.id)
    if verdict is None:
        return "its health is not known yet"
    if not verdict.good:
        codes = ", ".join(condition.code for condition in verdict.reasons)
        return f"it is {verdict.health.lower()}" + (f": {codes}" if codes else "")
    return "" if device.id in view.edits else "what its container needs could not be found"


def _strangers(device: Device, terms: Offer, resource: str, held: Iterable[Holding]) -> str:
    """Why *device* is not to be had, if it is held as something that we do not offer it as.

    The kubelet does not know that it is the same device, and would hand it out again.
    """
    ids = {share for share, _ in _ids(device, terms)}
    for holding in held:
        if holding.holder.kind is HolderKind.FOREIGN:
            continue
        known = holding.through == BACKEND and holding.resource in {None, resource}
        if not known or holding.share not in ids:
            return f"it is held through {holding.resource or holding.through}"
    return ""


def _ids(device: Device, terms: Offer) -> Iterator[tuple[str | None, str]]:
    if terms.sharing.shares == 1:
        yield None, device.id.name
        return
    for number in range(terms.sharing.shares):
        yield str(number), share_id(device.id.name, number)


def _entries(device: Device, terms: Offer, why: str) -> Iterator[Entry]:
    for share, ident in _ids(device, terms):
        wire = WireDevice(id=ident, healthy=not why, numa_nodes=_hint(device))
        yield Entry(wire=wire, device=device.id, share=share, terms=terms, why=why)


def _hint(device: Device) -> tuple[int, ...]:
    node = device.locality.numa_node
    return () if node is None else (node,)


def _former(view: View) -> Iterator[tuple[str, Entry]]:
    """What pods hold, by the name and id that they got it under."""
    for holding in view.holdings:
        device = view.devices.get(holding.device)
        if holding.through != BACKEND or holding.resource is None or device is None:
            continue
        name = holding.device.name
        ident = name if holding.share is None else f"{name}::{holding.share}"
        wire = WireDevice(id=ident, healthy=False, numa_nodes=_hint(device))
        yield (
            holding.resource,
            Entry(
                wire=wire,
                device=holding.device,
                share=holding.share,
                why="it is no longer offered under this name",
            ),
        )


def _fit(entries: tuple[Entry, ...], held: Collection[DeviceId]) -> tuple[Entry, ...]:
    fitting = [entry for entry in entries if len(entry.wire.id) <= DEVICE_ID_LIMIT]
    first = sorted(fitting, key=lambda entry: entry.device not in held)[:RESOURCE_IDS_LIMIT]
    kept = {entry.wire.id for entry in first}
    return tuple(entry for entry in fitting if entry.wire.id in kept)
