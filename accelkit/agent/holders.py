"""Who holds what, as the kubelet said last. Not here: how it is asked, and what else holds."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

import attrs

from accelkit.agent.problems import AGENT, Problems
from accelkit.core.errors import AccelkitError
from accelkit.core.model import DeviceId, Holding
from accelkit.core.values import Enforcement
from accelkit.core.view import View

HoldingsReader = Callable[[View], Awaitable[tuple[Holding, ...]]]
"""Holdings of a view's devices, as the kubelet says; raises TransportError or another
AccelkitError."""


class Holders:
    """Asks, and keeps the last answer while there is none.

    Args:
        reader: None: nobody can be asked, and devices change hands at once.
        problems: Where it is noted that there is no answer.
    """

    def __init__(self, reader: HoldingsReader | None, problems: Problems) -> None:
        self.holdings: tuple[Holding, ...] = ()
        """What was said last, sorted."""
        self.known = reader is None
        """Whether there was an answer the last time."""
        self.heard = self.known
        """Whether there ever was one."""
        self.asked = 0
        """How many questions have begun."""
        self.answered = 0
        """Which of these was answered last."""
        self._reader = reader
        self._problems = problems

    async def ask(self, view: View) -> None:
        """Learn who holds devices of *view*; what was said of others stays."""
        if self._reader is None:
            return
        self.asked += 1
        question = self.asked
        try:
            holdings = await self._reader(view)
        except AccelkitError as error:
            self.known = False
            remedy = error.remedy or "start the kubelet"
            self._problems.note(AGENT, "holders-unknown", "", str(error), remedy)
            return
        self.known = self.heard = True
        self.answered = question
        self._problems.solve(AGENT, "holders-unknown", "")
        # Of a claim it is said at once what it holds, whatever devices were asked about.
        others = (
            h for h in self.holdings if h.holder.claim is None and h.device not in view.devices
        )
        self.holdings = tuple(sorted((*others, *holdings), key=_order))


def joined(claims: Iterable[Holding], told: Iterable[Holding]) -> Iterator[Holding]:
    """What claims hold, with the pods that the kubelet names for them; then all else *told*.

    A claim that the kubelet does not name is held without a pod; one that only the kubelet names
    is held, too.
    """
    kept = tuple(told)
    users: dict[tuple[DeviceId, str | None, str | None], list[Holding]] = {}
    for holding in kept:
        users.setdefault(_claim_of(holding), []).append(holding)
    explained: set[Holding] = set()
    for claim in claims:
        # An older kubelet does not say which share a claim has.
        ours = [one for one in users.get(_claim_of(claim), ()) if one.share in {None, claim.share}]
        explained.update(ours)
        for one in ours:
            yield attrs.evolve(claim, holder=attrs.evolve(one.holder, uid=claim.holder.uid))
        if not ours:
            yield claim
    yield from (holding for holding in kept if holding not in explained)


def split_sets(view: View) -> Mapping[str, str]:
    """Containers that have several sets of one vendor, and which, by namespace, pod and container.

    What a vendor says of one set hides what it says of another: neither protocol shows both at
    once, so it can only be seen afterwards.
    """
    sets: dict[tuple[str, str], set[str]] = {}
    for holding in view.holdings:
        who = holding.holder
        if who.container is not None and _describes_sets(view, holding.device):
            name = f"{who.namespace}/{who.pod}/{who.container}"
            of = f"claim {who.claim}" if who.claim else f"resource {holding.resource}"
            sets.setdefault((name, holding.device.vendor), set()).add(of)
    return {
        name: f"{name} has {' and '.join(sorted(several))} of {vendor} at once"
        for (name, vendor), several in sorted(sets.items())
        if len(several) > 1
    }


def _describes_sets(view: View, device: DeviceId) -> bool:
    given = view.assignments.get(device)
    terms = given.terms if given is not None else None
    library = terms is not None and terms.sharing.enforce is Enforcement.LIBRARY
    return library or device.vendor in view.sets


def _claim_of(holding: Holding) -> tuple[DeviceId, str | None, str | None]:
    return (holding.device, holding.holder.namespace, holding.holder.claim)


def _order(holding: Holding) -> tuple[DeviceId, tuple[str, ...]]:
    who = holding.holder
    parts = (holding.share, holding.through, who.namespace, who.pod, who.container, who.claim)
    return holding.device, tuple(part or "" for part in parts)
