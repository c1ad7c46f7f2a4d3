"""A claim as its vendor sees it: what it may ask, what is one set, what its containers get.

Not here: calling the vendor, and what is written where.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from accelkit.core import cdi
from accelkit.core.allocation import (
    Answer,
    AskedSharing,
    ClaimConfig,
    ContainerEdits,
    Edits,
    Grant,
    Granted,
    Piece,
    PodRef,
    SetOf,
    merged,
)
from accelkit.core.errors import ConfigRefused, SplitSet
from accelkit.core.model import Device, DeviceId
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import Enforcement, freeze

Key: TypeAlias = tuple[DeviceId, str | None]
"""A device, and which share of it: what has a name of its own in a claim."""
SHARE_LETTERS = 8
"""How much of a share's id stands in a name."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Asked:
    """What all configuration blocks together ask for one request."""

    set: SetOf | None = None
    sharing: AskedSharing = AskedSharing()
    vendor: Mapping[str, object] = attrs.field(factory=dict, hash=False)


@attrs.frozen(kw_only=True)
class Term:
    """A piece with its device, and what holds for it."""

    piece: Piece
    device: Device
    sharing: Sharing = Sharing()
    config: object | None = None
    set: SetOf | None = None

    @property
    def granted(self) -> Granted:
        piece = self.piece
        return Granted(
            device=self.device,
            request=piece.request,
            share=piece.share,
            amounts=piece.amounts,
            admin=piece.admin,
        )


def main_request(request: str) -> str:
    """The request that a pod names: ``main`` of ``main/sub``."""
    return request.partition("/")[0]


def asked_for(request: str, configs: Iterable[ClaimConfig]) -> Asked:
    """What *configs* ask for *request*: of each key the last that says something."""
    asked = Asked()
    for config in configs:
        if config.requests and not {request, main_request(request)} & set(config.requests):
            continue
        body = config.body
        asked = Asked(
            set=body.set or asked.set,
            sharing=AskedSharing(
                timeslice=body.sharing.timeslice or asked.sharing.timeslice,
                enforce=body.sharing.enforce or asked.sharing.enforce,
            ),
            vendor={**asked.vendor, **body.vendor},
        )
    return asked


def agreed_sharing(offer: Offer, device: Device, asked: AskedSharing) -> Sharing:
    """The sharing of *device* under *offer*, with what a claim asks of it.

    Raises:
        ConfigRefused: The offer does not let claims ask it, or the device cannot do it.
    """
    sharing = offer.sharing
    wishes = attrs.asdict(asked, recurse=False).items()
    for key, wish in wishes:
        if wish is None or wish == getattr(sharing, key):
            continue
        if key not in sharing.claims_may_ask:
            raise ConfigRefused(
                f"$.sharing.{key}: the offer {offer.name} does not let claims ask for it",
                remedy=f"leave it out, or let the operator add {key} to claimsMayAsk",
            )
        if wish is Enforcement.MPS:
            raise ConfigRefused(
                f"$.sharing.{key}: the offer {offer.name} has no daemon for {wish}",
                remedy=f"let the operator give the offer enforce: {wish}, which starts the daemon",
            )
        if isinstance(wish, Enforcement) and wish not in device.sharing:
            raise ConfigRefused(
                f"$.sharing.{key}: {device.id} cannot do {wish}",
                remedy=f"ask for one of {', '.join(sorted(device.sharing))}",
            )
        sharing = attrs.evolve(sharing, **{key: wish})
    return sharing


def grants_of(
    terms: Sequence[Term],
    *,
    owner: str,
    pods: tuple[PodRef, ...] = (),
    scratch: str | None = None,
    apart: Callable[[Term], object] = lambda _term: None,
) -> tuple[Grant, ...]:
    """*terms* as the fewest sets that have one vendor, one sharing and one configuration each.

    Devices of admin access come first, in sets of their own: they are only looked at. Terms for
    which *apart* is not the same are not in one set either. *scratch* is for sets whose sharing a
    library enforces.
    """
    groups: list[tuple[tuple[object, ...], list[Term]]] = []
    for term in sorted(terms, key=lambda one: not one.piece.admin):
        key = (
            *(term.device.id.vendor, term.piece.admin, term.sharing, term.config),
            apart(term),
        )
        # Configurations are vendors' values: they are equal or not, and need not be hashable.
        group = next((members for known, members in groups if known == key), None)
        if group is None:
            groups.append((key, group := []))
        group.append(term)
    return tuple(
        Grant(
            owner=owner,
            granted=tuple(term.granted for term in group),
            sharing=group[0].sharing,
            config=group[0].config,
            pods=pods,
            scratch=scratch if group[0].sharing.enforce is Enforcement.LIBRARY else None,
        )
        for _, group in groups
    )


def split_by_request(terms: Sequence[Term], made: Sequence[tuple[Grant, Edits]]) -> frozenset[str]:
    """Vendors whose sets must be taken apart by request, for what they say of a set.

    Raises:
        SplitSet: It cannot be known which devices a container will get together.
    """
    found: set[str] = set()
    for vendor in sorted({vendor_of(grant) for grant, edits in made if edits.whole}):
        own = [term for term in terms if term.device.id.vendor == vendor]
        if len({main_request(term.piece.request) for term in own}) == 1:
            continue
        wishes = {term.set for term in own}
        if wishes == {SetOf.REQUEST}:
            found.add(vendor)
        elif wishes != {SetOf.CLAIM}:
            raise SplitSet(
                f"{vendor} can only describe a set as a whole, and this claim has several requests",
                remedy="say in the claim's ClaimConfig what containers name: set: request, or "
                "set: claim; or ask for all devices in one request",
            )
        elif sum(vendor_of(grant) == vendor for grant, _ in made) > 1:
            raise SplitSet(
                f"{vendor} can only describe a set as a whole, and the requests of this claim "
                "differ in their sharing or configuration",
                remedy="configure all requests alike, or say set: request",
            )
    return frozenset(found)


def vendor_of(grant: Grant) -> str:
    return grant.granted[0].device.id.vendor


def edits_by_key(made: Iterable[tuple[Grant, Edits]]) -> dict[Key, ContainerEdits]:
    """What containers need, for each device or share; what is said of a set is at its first."""
    found: dict[Key, ContainerEdits] = {}
    for grant, edits in made:
        rest = edits.whole
        for device, share in dict.fromkeys((g.device.id, g.share) for g in grant.granted):
            each = edits.each.get(device, ContainerEdits())
            found[device, share] = merged(each, rest) if rest else each
            rest = ContainerEdits()
    return found


def device_names(uid: str, keys: Iterable[Key]) -> dict[Key, str]:
    """Names in a CDI document: never given twice, since the uid is in them.

    Shares whose ids begin alike have the whole id in their name.
    """
    names: dict[Key, str] = {}
    for device, share in dict.fromkeys(keys):
        name = f"{uid}-{device.name}" + (f"-{share[:SHARE_LETTERS]}" if share else "")
        names[device, share] = f"{uid}-{device.name}-{share}" if name in names.values() else name
    return names


def described(
    driver: str, uid: str, edits: Mapping[Key, ContainerEdits]
) -> dict[str, cdi.Json] | None:
    """The CDI document of a claim; None: there is nothing to describe.

    Raises:
        RenderError: The vendor's edits, or the driver's name, are not as CDI wants them.
    """
    names = device_names(uid, edits)
    devices = {names[key]: part for key, part in edits.items() if cdi.has_part(part)}
    return cdi.document(cdi.claim_kind(driver), devices) if devices else None


def answers(
    driver: str, uid: str, pieces: Sequence[Piece], edits: Mapping[Key, ContainerEdits]
) -> tuple[Answer, ...]:
    """What the kubelet is told of *pieces*: each device or share once, with all its requests."""
    requests: dict[Key, list[str]] = {}
    for piece in pieces:
        requests.setdefault((piece.device, piece.share), []).append(main_request(piece.request))
    names = device_names(uid, edits)
    return tuple(
        Answer(
            device=key[0],
            requests=tuple(dict.fromkeys(own)),
            share=key[1],
            cdi_ids=(f"{cdi.claim_kind(driver)}={names[key]}",) if cdi.has_part(edits[key]) else (),
        )
        for key, own in requests.items()
    )
