"""Whether devices may be handed out now, and who just got some. Not here: what containers need."""

from collections.abc import Collection, Iterable, Sequence

from accelkit.core.allocation import TOLERATES_ALL, Granted, Piece
from accelkit.core.clock import Clock
from accelkit.core.errors import DeviceUnavailable, IllegalSet, MissingParts, UnknownDevice
from accelkit.core.health import fatal
from accelkit.core.model import Device, DeviceId, Holder, Holding
from accelkit.core.policy import Offer
from accelkit.core.values import GroupRule, Health, HolderKind
from accelkit.core.view import Verdict, View

PENDING_S = 60.0
"""An admission that nobody reports as a holding by then did not become one."""


def check(
    view: View, backend: str, offer: str, pieces: Sequence[Piece]
) -> tuple[Offer | None, tuple[Granted, ...]]:
    """Check that *pieces* may be handed out together by *backend* under *offer*.

    Returns:
        The terms of the offer, None without pieces, and the pieces with their devices.

    Raises:
        UnknownDevice: No such device in the offer.
        DeviceUnavailable: Unhealthy, leaving, in use as a parent, or another backend's.
        IllegalSet: The vendor cannot run this set.
        MissingParts: What its container needs could not be found.
    """
    terms: Offer | None = None
    granted = []
    for piece in pieces:
        terms = terms_of(view, backend, piece.device, offer)
        granted.append(
            Granted(
                device=_available(view, piece.device),
                request=piece.request,
                share=piece.share,
                amounts=piece.amounts,
                admin=piece.admin,
            )
        )
    check_law(view, frozenset(piece.device for piece in pieces))
    return terms, tuple(granted)


def terms_of(
    view: View, backend: str, device: DeviceId, offer: str | None = None, *, held: bool = False
) -> Offer:
    """On which terms *backend* may hand out *device* now; with *offer*: under that one alone.

    Whoever has it (*held*) keeps it, whether or not it is leaving.

    Raises:
        UnknownDevice: No such device in the offer.
        DeviceUnavailable: Leaving, or another backend's.
    """
    assignment = view.assignments.get(device)
    if device not in view.offered or assignment is None or assignment.terms is None:
        raise UnknownDevice(
            f"{device} is not offered on this node", remedy="see `accelkit devices`"
        )
    terms = assignment.terms
    offer = terms.name if offer is None else offer
    if terms.name != offer and terms.through == backend:
        raise UnknownDevice(f"{device} is offered as {terms.name}, not as {offer}")
    if terms.name != offer or terms.through != backend:
        raise DeviceUnavailable(f"{device} is offered through {terms.through}, not {backend}")
    if assignment.leaving and not held:
        raise DeviceUnavailable(
            f"{device} leaves the offer {offer}: {assignment.why or 'the policy changed'}",
            remedy="it comes back under its new offer once nobody holds it",
        )
    return terms


def _available(view: View, device_id: DeviceId) -> Device:
    device = view.offered[device_id]
    if not device.usable:
        raise DeviceUnavailable(f"{device_id} is cut into partitions and not to be had whole")
    check_health(view, device)
    if device_id not in view.edits:
        raise MissingParts(
            f"{device_id}: what its container needs could not be found",
            remedy="see its problem in `accelkit devices`",
        )
    return device


def check_health(view: View, device: Device, tolerates: Collection[str] = ()) -> None:
    """Check that *device* is well; of one that does not exist yet its parent's health counts.

    Args:
        view: What is known.
        device: One that is offered.
        tolerates: What may be wrong, see `Piece.tolerates`.

    Raises:
        DeviceUnavailable: It is not, or nobody knows.
    """
    judged = device.id if device.id in view.verdicts else device.root
    verdict = view.verdicts.get(judged)
    if (verdict is None or not verdict.good) and not _tolerated(verdict, tolerates):
        why = ", ".join(c.code for c in verdict.reasons) if verdict else ""
        state = verdict.health.lower() if verdict else "not judged yet"
        raise DeviceUnavailable(
            f"{device.id} is {state}" + (f": {why}" if why else ""), remedy="see `accelkit devices`"
        )


def _tolerated(verdict: Verdict | None, tolerates: Collection[str]) -> bool:
    """Whether everything that is wrong by *verdict* may be; what has no code is its health."""
    if TOLERATES_ALL in tolerates:
        return True
    health = Health.UNKNOWN if verdict is None else verdict.health
    reasons = () if verdict is None else verdict.reasons
    wrong = {one.code for one in fatal(reasons)}
    return (wrong or {health.lower()}) <= {*tolerates}


def check_law(view: View, chosen: Collection[DeviceId]) -> None:
    """Check that vendors with laws about sets can run those of *chosen*.

    Raises:
        IllegalSet: One cannot.
    """
    laws = [g for g in view.snapshot.groups if g.rule is GroupRule.LAW]
    for vendor in sorted({device.vendor for device in chosen}):
        legal = [
            frozenset(g.members) for g in laws if g.members[:1] and _vendor(g.members) == vendor
        ]
        bound = frozenset().union(*legal)
        asked = frozenset(device for device in chosen if device.vendor == vendor)
        if asked & bound and asked not in legal:
            names = ", ".join(sorted(device.name for device in asked))
            sizes = ", ".join(str(n) for n in sorted({len(members) for members in legal}))
            raise IllegalSet(
                f"{vendor} cannot run {names} together: they are none of its groups",
                remedy=f"ask for one of the sizes {sizes}",
            )


def _vendor(members: Sequence[DeviceId]) -> str:
    return members[0].vendor


class Pending:
    """Admissions that nobody has reported as holdings yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Holding, float] = {}

    def add(self, through: str, pieces: Iterable[Piece]) -> None:
        """Note that *pieces* were handed out by the backend *through*, to whom is not known yet."""
        until = self._clock.monotonic() + PENDING_S
        for piece in pieces:
            holding = Holding(
                device=piece.device,
                share=piece.share,
                through=through,
                holder=Holder(kind=HolderKind.POD),
            )
            self._until[holding] = until

    def besides(self, seen: Iterable[Holding]) -> tuple[Holding, ...]:
        """Those that are neither too old nor among the holdings *seen*."""
        now = self._clock.monotonic()
        explained = {(h.device, h.share) for h in seen}
        self._until = {
            holding: until
            for holding, until in self._until.items()
            if until > now and (holding.device, holding.share) not in explained
        }
        return tuple(sorted(self._until, key=lambda h: (h.device, h.share or "", h.through)))
