"""From a claim, as the API server has it, to what a driver has to prepare. Pure.

Not here: how the claim is read, and what preparing does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.claims_tree import at, items, mapping, text
from accelkit.backends.dra.config import configs_of
from accelkit.backends.dra.taints import DOMAIN
from accelkit.core.allocation import (
    TOLERATES_ALL,
    Allocation,
    ClaimConfig,
    ClaimRef,
    Piece,
    PodRef,
)
from accelkit.core.errors import AllocationError, ClaimMismatch, UnknownDevice
from accelkit.core.grants import main_request
from accelkit.core.kube import Json
from accelkit.core.limits import is_dns_subdomain
from accelkit.core.model import DeviceId
from accelkit.core.offers import extended_of
from accelkit.core.units import parse_quantity
from accelkit.core.values import FrozenMap, freeze, is_dns_label
from accelkit.core.view import View

EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims that the scheduler made for extended resources."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Before the name of a device class: its extended resource that nobody had to name."""

_UID = re.compile(r"[0-9a-f-]{1,64}")


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Driver:
    """Who serves the devices of one vendor on this node."""

    name: str
    """DNS subdomain of at most 63 bytes."""
    vendor: str
    pool: str
    """The one pool of this driver on this node."""
    siblings: FrozenMap[str, str] = FrozenMap()
    """Vendors of the agent's other drivers, by their names: a claim is prepared as a whole."""


def is_uid(text: str) -> bool:
    """Whether *text* can be the uid of a claim; only such ones may become names of files."""
    return _UID.fullmatch(text) is not None


def check_ref(claim: ClaimRef) -> None:
    """Refuse what can be no claim's name before anything is made of it.

    Raises:
        ClaimMismatch: It cannot.
    """
    named = is_dns_label(claim.namespace) and is_dns_subdomain(claim.name)
    if not (is_uid(claim.uid) and named):
        raise ClaimMismatch(
            f"{claim.namespace!r}/{claim.name!r} with uid {claim.uid!r} names no claim",
            claim=claim.uid,
        )


def base_names(requests: Iterable[str]) -> tuple[str, ...]:
    """Requests as containers name them, without subrequests, once each."""
    return tuple(dict.fromkeys(main_request(name) for name in requests if name))


def allocation_of(claim: Json, asked: ClaimRef, driver: Driver, view: View) -> Allocation:
    """What has to be prepared of *claim*: devices of *driver*, and of its siblings.

    The kubelet asks every driver of a claim, but a claim is recorded as a whole. So whoever is
    asked first prepares for all, and all of them make the same of a claim.

    Args:
        claim: The ResourceClaim.
        asked: As the kubelet named it.
        driver: Who is asked. Results and configuration of other agents' drivers are left to them.
        view: Knows under which extended-resource names devices are offered.

    Raises:
        ClaimMismatch: It is another claim of that name, it is not allocated, or not here.
        UnknownDevice: A result names no device of this node.
        AllocationError: An amount cannot be served.
        ConfigRefused: A configuration block is wrong.
    """
    found = text(claim, "metadata", "uid")
    if found != asked.uid:
        raise ClaimMismatch(
            f"claim {asked.name} is another one by now: its uid is {found}, not {asked.uid}",
            claim=asked.uid,
            remedy="delete the pod and create it again",
        )
    allocation = mapping(claim, "status", "allocation")
    if not allocation:
        raise ClaimMismatch(
            f"claim {asked.name} is not allocated",
            claim=asked.uid,
            remedy="let the scheduler place the pod: do not set its nodeName",
        )
    pieces = dict(_pieces(allocation, asked, driver))
    if driver.name not in pieces:
        raise ClaimMismatch(
            f"claim {asked.name} has no device of {driver.name}",
            claim=asked.uid,
            remedy="delete the pod and create it again",
        )
    every = tuple(piece for name in sorted(pieces) for piece in pieces[name])
    vendors = {driver.name: driver.vendor, **driver.siblings}
    return Allocation(
        claim=asked,
        driver=min(pieces),
        pieces=every,
        configs=tuple(_configs(allocation, pieces, asked)),
        pods=tuple(_pods(claim, asked.namespace)),
        extended=_extended(claim, every, view),
        drivers=FrozenMap({vendors[name]: name for name in sorted(pieces)}),
    )


def _pieces(
    allocation: Json, asked: ClaimRef, driver: Driver
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """What each of our drivers has in *allocation*, by its name; those that have nothing not."""
    vendors = {driver.name: driver.vendor, **driver.siblings}
    for name, vendor in vendors.items():
        results = [r for r in items(allocation, "devices", "results") if text(r, "driver") == name]
        if results:
            one = driver
            if name != driver.name:
                one = attrs.evolve(driver, name=name, vendor=vendor)
            yield name, tuple(_piece(result, asked, one) for result in results)


def _configs(
    allocation: Json, pieces: Mapping[str, tuple[Piece, ...]], asked: ClaimRef
) -> Iterable[ClaimConfig]:
    """Blocks for each of our drivers, those of classes before those of the claim."""
    found: list[ClaimConfig] = []
    for name in sorted(pieces):
        requests = dict.fromkeys(piece.request for piece in pieces[name])
        found += configs_of(allocation, name, tuple(requests), asked)
    return sorted(found, key=lambda config: config.source)


def _piece(result: object, asked: ClaimRef, driver: Driver) -> Piece:
    pool, name = text(result, "pool"), text(result, "device")
    if pool != driver.pool or not is_dns_label(name):
        raise UnknownDevice(
            f"claim {asked.name}: device {name!r} of pool {pool!r} is not on this node, "
            f"whose pool is {driver.pool!r}",
            claim=asked.uid,
            remedy="delete the pod and create it again",
        )
    return Piece(
        device=DeviceId(vendor=driver.vendor, name=name),
        request=text(result, "request"),
        share=text(result, "shareID") or None,
        amounts=FrozenMap(_amounts(mapping(result, "consumedCapacity"), asked, driver)),
        admin=at(result, "adminAccess") is True,
        tolerates=tuple(_tolerates(result)),
    )


def _tolerates(result: object) -> Iterator[str]:
    """Codes of our taints that are tolerated; the scheduler has looked at their effects."""
    for toleration in items(result, "tolerations"):
        key, domain = text(toleration, "key"), f"{DOMAIN}/"
        if text(toleration, "operator") != "Exists" and text(toleration, "value"):
            continue  # ours have no values
        if not key:
            yield TOLERATES_ALL
        elif key.startswith(domain):
            yield key.removeprefix(domain)


def _amounts(
    consumed: Mapping[str, object], asked: ClaimRef, driver: Driver
) -> Iterator[tuple[str, int]]:
    for key, quantity in consumed.items():
        try:
            yield key.removeprefix(f"{driver.name}/"), parse_quantity(str(quantity))
        except ValueError as error:
            raise AllocationError(
                f"claim {asked.name}, amount of {key}: {error}",
                claim=asked.uid,
                remedy="ask for a whole number",
            ) from None


def _pods(claim: Json, namespace: str) -> Iterator[PodRef]:
    """The pods among those for whom *claim* is reserved."""
    for user in items(claim, "status", "reservedFor"):
        if text(user, "resource") == "pods" and not text(user, "apiGroup"):
            yield PodRef(uid=text(user, "uid"), namespace=namespace, name=text(user, "name"))


def _extended(claim: Json, pieces: tuple[Piece, ...], view: View) -> str | None:
    """The resource name for which the scheduler made *claim*; with commas if it is several.

    A pod's status would say it outright, but an agent may not read pods.
    """
    if not text(claim, "metadata", "annotations", EXTENDED):
        return None
    classes = dict(_classes(claim))
    names = {_offered_as(piece.device, view) or _implicit(classes, piece) for piece in pieces}
    return ",".join(sorted(names - {""})) or None


def _offered_as(device: DeviceId, view: View) -> str:
    """The extended-resource name under which *device* is offered; empty: under none."""
    assignment, known = view.assignments.get(device), view.offered.get(device)
    if assignment is None or assignment.terms is None or known is None:
        return ""
    return extended_of(assignment.terms, known)


def _implicit(classes: Mapping[str, str], piece: Piece) -> str:
    name = classes.get(piece.request, "")
    return f"{IMPLICIT}{name}" if name else ""


def _classes(claim: Json) -> Iterator[tuple[str, str]]:
    """(request, device class); a subrequest as ``main/sub``."""
    for request in items(claim, "spec", "devices", "requests"):
        name = text(request, "name")
        yield name, text(request, "exactly", "deviceClassName")
        for sub in items(request, "firstAvailable"):
            yield f"{name}/{text(sub, 'name')}", text(sub, "deviceClassName")
