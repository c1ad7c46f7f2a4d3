"""What a backend may ask of the agent. Not here: how the agent comes to know it."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence

import attrs

from accelkit.agent.admission import Pending, check
from accelkit.agent.keeper import Keeper
from accelkit.agent.keeper_means import Tell
from accelkit.agent.metrics import Metrics
from accelkit.agent.problems import Problems
from accelkit.agent.reach import Reach
from accelkit.agent.signals import Bell
from accelkit.agent.sources import Source
from accelkit.agent.store import Switch, ViewStore
from accelkit.core.allocation import (
    Allocation,
    ClaimRef,
    ContainerEdits,
    Edits,
    Grant,
    Granted,
    Piece,
    PodRef,
    Prepared,
    merged,
)
from accelkit.core.backend import BackendStatus
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.kube import KubePort
from accelkit.core.model import DeviceId
from accelkit.core.policy import Offer, Paths
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.view import View

log = logging.getLogger(__name__)

_OF_A_SET = frozenset({Enforcement.LIBRARY, Enforcement.MPS})
"""Limits of a library are numbered by position in the set; a program has one daemon only."""


@attrs.frozen(kw_only=True)
class Shared:
    """What the ports of all backends have in common."""

    node: str
    paths: Paths
    clock: Clock
    meter: Metrics
    store: ViewStore
    leading: Switch
    closing: Switch
    answered: Switch
    problems: Problems
    pending: Pending
    sources: Mapping[str, Source]
    holdings: Bell
    reach: Reach
    keeper: Keeper
    tell: Tell


class Port:
    """The NodePort of one backend.

    Args:
        backend: Its name.
        shared: What all backends see.
    """

    def __init__(self, backend: str, shared: Shared) -> None:
        self._backend = backend
        self._shared = shared
        self.status = BackendStatus(backend=backend)

    @property
    def node(self) -> str:
        return self._shared.node

    @property
    def paths(self) -> Paths:
        return self._shared.paths

    @property
    def clock(self) -> Clock:
        return self._shared.clock

    @property
    def meter(self) -> Metrics:
        return self._shared.meter

    @property
    def leading(self) -> Switch:
        return self._shared.leading

    @property
    def closing(self) -> Switch:
        return self._shared.closing

    @property
    def kube(self) -> KubePort | None:
        return self._shared.reach.kube

    def views(self) -> AsyncIterator[View]:
        return self._shared.store.views()

    def view(self) -> View:
        return self._shared.store.view

    def answered(self) -> bool:
        return self._shared.answered.now

    async def admit(self, offer: str, pieces: Sequence[Piece]) -> Edits:
        view = self._shared.store.view
        terms, granted = check(view, self._backend, offer, pieces)
        edits = Edits()
        if terms is not None:
            edits = await self._edits(view, terms, granted)
        self._shared.pending.add(self._backend, pieces)
        self._shared.holdings.ring()
        return edits

    async def prepared(self, claim: ClaimRef) -> Prepared | None:
        return await self._shared.keeper.prepared(claim)

    async def prepare(self, allocation: Allocation) -> Prepared:
        return await self._shared.keeper.prepare(allocation)

    async def release(self, claim: str) -> None:
        await self._shared.keeper.release(claim)

    def claims(self) -> Mapping[str, LedgerEntry]:
        return self._shared.keeper.entries

    def tell(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,
        pod: PodRef | None = None,
        warning: bool = True,
    ) -> None:
        self._shared.tell(reason, text, claim=claim, pod=pod, warning=warning)

    def report(self, status: BackendStatus) -> None:
        if status != self.status:
            log.info(
                "backend reported",
                extra={
                    "backend": self._backend,
                    "registered": status.registered,
                    "published": status.published,
                    "detail": status.detail,
                },
            )
            status = attrs.evolve(status, since=self._shared.clock.now())
        else:
            status = self.status
        self.status = status
        up = status.registered and status.published
        self.meter.set("accelkit_up", float(up), (self._backend,))
        if up:
            self.solved("backend-failed", self._backend)

    def problem(self, code: str, subject: str, reason: str, remedy: str = "") -> None:
        self._shared.problems.note(self._backend, code, subject, reason, remedy)

    def solved(self, code: str, subject: str) -> None:
        self._shared.problems.solve(self._backend, code, subject)

    async def _edits(self, view: View, terms: Offer, granted: tuple[Granted, ...]) -> Edits:
        """Those in the view; of vendors with sets, what the vendor says now."""
        asked = {device.device.id.vendor for device in granted}
        if terms.sharing.enforce not in _OF_A_SET:
            asked &= view.sets
        each: dict[DeviceId, ContainerEdits] = {
            one.device.id: view.edits[one.device.id] for one in granted
        }
        whole = ContainerEdits()
        for vendor in sorted(asked):
            answer = await self._shared.sources[vendor].set_edits(
                Grant(
                    owner=f"{self._backend}/{terms.name}",
                    granted=tuple(one for one in granted if one.device.id.vendor == vendor),
                    sharing=terms.sharing,
                )
            )
            each.update(answer.each)
            whole = merged(whole, answer.whole)
        return Edits(each=FrozenMap(each), whole=whole)
