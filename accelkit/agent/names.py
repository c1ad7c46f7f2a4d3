"""Which path has a resource name: the kubelet's device plugin or DRA, never both at once.

The scheduler decides by the node's allocatable alone: more than 0, and no pod that asks for the
name gets a device through DRA; 0, and all of them do. So a name moves as a whole.

Not here: who lists and who publishes.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

import attrs

from accelkit.agent.problems import AGENT, Problems
from accelkit.agent.signals import Bell
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.errors import BackendError, ModelError
from accelkit.core.kube import NODES, Json, KubePort
from accelkit.core.offers import KUBELET, extended_of, resource_of
from accelkit.core.policy import Offer
from accelkit.core.units import parse_quantity
from accelkit.core.values import FrozenMap, Version
from accelkit.core.view import View

log = logging.getLogger(__name__)

PERIOD_S = 10.0
"""Between two looks at the node: the kubelet's status changes that often."""
AGAIN_S = 1.0
"""The same while a name waits for the first of them."""
FIRST_S = 5.0
"""So long after the start nothing is published before the node was seen."""
OLDEST = (1, 36)
"""An older kubelet starts pods with such claims without any device (seen on 1.35 below 1.36)."""

TOO_OLD, SHADOWED, BOTH, UNKNOWN, LEFT = (
    "kubelet-too-old",
    "shadowed",
    "name-in-both",
    "node-unknown",
    "claims-left",
)


@attrs.frozen
class NodeFacts:
    """What a Node object says, as far as names depend on it."""

    kubelet: str
    """Its version; empty: it does not say."""
    allocatable: FrozenMap[str, int]
    """Of extended resources, those that are not 0."""

    @property
    def old(self) -> bool:
        """Whether its kubelet does not know claims of extended resources."""
        try:
            found = Version.parse(self.kubelet)
        except ModelError:
            return False
        return (found.major, found.minor) < OLDEST


class Names:
    """Says which names must wait, in every view.

    Args:
        node: Its name.
        kube: None: there is no API access.
        entries: All claims of this boot.
        changed: Called when a name need wait no longer, or must.
    """

    def __init__(  # noqa: PLR0917 - what is asked, and who is told
        self,
        node: str,
        kube: Callable[[], KubePort | None],
        entries: Callable[[], Mapping[str, LedgerEntry]],
        clock: Clock,
        problems: Problems,
        changed: Callable[[], None],
    ) -> None:
        self._node = node
        self._kube = kube
        self._entries = entries
        self._clock = clock
        self._problems = problems
        self._changed = changed
        self._begun_s = clock.monotonic()
        self._facts = NodeFacts("", FrozenMap())
        self._asked_s = float("-inf")
        """When the question began that the facts answer."""
        self._since: dict[str, float] = {}
        """Since when a name is DRA's: what the node said before is no answer."""
        self._bell = Bell()
        self._noted: set[tuple[str, str]] = set()

    def amend(self, view: View) -> View:
        """*view* with the names that must wait, and why: the code of their problem."""
        claims = _extended(self._entries())
        if not claims and not any(offer.extended_resource for offer in _terms(view)):
            return view
        kubelet = _names(view, through_kubelet=True)
        dra = _names(view, through_kubelet=False)
        waits = {name: why for name in dra if (why := self._wait(name, name in kubelet))}
        return attrs.evolve(
            view,
            dra_waits=FrozenMap(waits),
            kubelet_waits=FrozenMap((name, LEFT) for name in kubelet & claims.keys()),
        )

    def settled(self, view: View) -> bool:
        """Whether it is known which names wait; yes after a while: the API may be away."""
        if self._clock.monotonic() - self._begun_s >= FIRST_S:
            return True
        return all(self._known(name) for name in _names(view, through_kubelet=False))

    def follow(self, view: View) -> None:
        """Take note of names that became DRA's with *view*, and announce what waits."""
        names = _names(view, through_kubelet=False)
        now = self._clock.monotonic()
        if names - self._since.keys():
            self._bell.ring()
        self._since = {name: self._since.get(name, now) for name in sorted(names)}
        self._announce(view)

    async def watch(self) -> None:
        """Look at the node as long as names depend on it, until cancelled."""
        while True:
            if self._since:
                await self._look()
            else:
                self._problems.solve(AGENT, UNKNOWN, self._node)
            unknown = any(not self._known(name) for name in self._since)
            await self._bell.wait(self._clock, AGAIN_S if unknown else PERIOD_S)

    def _wait(self, name: str, in_kubelet: bool) -> str:
        if in_kubelet:
            return BOTH
        if not self._known(name):
            return UNKNOWN
        if self._facts.old:
            return TOO_OLD
        return SHADOWED if self._facts.allocatable.get(name, 0) > 0 else ""

    def _known(self, name: str) -> bool:
        return self._asked_s >= self._since.get(name, float("inf"))

    async def _look(self) -> None:
        asked_s = self._clock.monotonic()
        kube = self._kube()
        if kube is None:
            self._unread("no API access is configured", "set $.kube.config")
            return
        try:
            facts = facts_of(await kube.get(NODES, self._node))
        except BackendError as error:
            self._unread(str(error), error.remedy)
            return
        self._problems.solve(AGENT, UNKNOWN, self._node)
        unsettled = [name for name in self._since if not self._known(name)]
        before, self._facts, self._asked_s = self._facts, facts, asked_s
        if unsettled or facts != before:
            log.info(
                "node read",
                extra={"kubelet": facts.kubelet, "allocatable": dict(facts.allocatable)},
            )
            self._changed()

    def _unread(self, why: str, remedy: str) -> None:
        reason = f"node {self._node} cannot be read: {why}"
        if any(not self._known(name) for name in self._since):
            waiting = ", ".join(name for name in self._since if not self._known(name))
            reason += f"; until it can, {waiting} is not offered through DRA"
        remedy = remedy or "let the agent get its node"
        self._problems.note(AGENT, UNKNOWN, self._node, reason, remedy)
        self._changed()  # nothing is waited for any longer than need be

    def _announce(self, view: View) -> None:
        told = {(why, name): self._said(why, name) for name, why in view.dra_waits.items()}
        told |= {(why, name): self._said(why, name) for name, why in view.kubelet_waits.items()}
        told = {key: said for key, said in told.items() if key[0] != UNKNOWN}
        for (code, name), (reason, remedy) in told.items():
            self._problems.note(AGENT, code, name, f"{name}: {reason}", remedy)
        for code, name in self._noted - told.keys():
            self._problems.solve(AGENT, code, name)
        self._noted = set(told)

    def _said(self, why: str, name: str) -> tuple[str, str]:
        """Reason and remedy."""
        if why == TOO_OLD:
            return (
                f"the kubelet {self._facts.kubelet} starts pods that ask for it without any device",
                "upgrade the kubelet to 1.36 or later, or offer the name through the kubelet",
            )
        if why == SHADOWED:
            count = self._facts.allocatable.get(name, 0)
            return (
                f"the node still has {count} from a device plugin, and pods get those first",
                "wait until the kubelet has noticed, or end the other device plugin",
            )
        if why == BOTH:
            return (
                "it is offered through the kubelet as well, which has it then",
                "give one of the offers another name, or move all of its devices",
            )
        left = ", ".join(_extended(self._entries()).get(name, ()))
        return (
            f"its devices stay Unhealthy in the kubelet while claims made for it are left: {left}",
            "end the pods of these claims, or wait for them",
        )


def facts_of(node: Json) -> NodeFacts:
    """What the Node object *node* says; what it says oddly counts as not said."""
    status = _mapping(node.get("status"))
    allocatable = {}
    for name, amount in _mapping(status.get("allocatable")).items():
        if "/" in name:
            try:
                count = parse_quantity(str(amount))
            except ValueError:
                continue
            if count > 0:
                allocatable[name] = int(count)
    info = _mapping(status.get("nodeInfo"))
    return NodeFacts(str(info.get("kubeletVersion", "")), FrozenMap(allocatable))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _terms(view: View) -> Iterator[Offer]:
    yield from view.offers
    yield from (given.terms for given in view.assignments.values() if given.terms is not None)


def _names(view: View, *, through_kubelet: bool) -> frozenset[str]:
    """Names under which *view* offers devices now: those that leave are on their way out."""
    names = set()
    for device in view.offered.values():
        given = view.assignments[device.id]
        terms = given.terms
        if terms is None or given.leaving or (terms.through == KUBELET) is not through_kubelet:
            continue
        domain = view.domains.get(device.id.vendor, "")
        names.add(
            resource_of(terms, device, domain) if through_kubelet else extended_of(terms, device)
        )
    return frozenset(names - {""})


def _extended(entries: Mapping[str, LedgerEntry]) -> Mapping[str, list[str]]:
    """Claims that the scheduler made for extended resources and the kubelet counts, by name."""
    found: dict[str, list[str]] = {}
    for entry in entries.values():
        if entry.extended and entry.state is not EntryState.STUCK:
            for name in entry.extended.split(","):
                found.setdefault(name, []).append(f"{entry.claim.namespace}/{entry.claim.name}")
    return found
