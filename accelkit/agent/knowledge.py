"""All that was read, and the view that follows from it. Not here: when to read."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial

import attrs

from accelkit.agent.admission import Pending
from accelkit.agent.given_back import GivenBack
from accelkit.agent.heard import Heard, Numbered, Told
from accelkit.agent.holders import Holders, joined
from accelkit.agent.made import Offered
from accelkit.agent.memory import MadeFor
from accelkit.agent.mps import with_missing, without_missing
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.agent.store import Switch, ViewStore
from accelkit.core.allocation import ContainerEdits
from accelkit.core.clock import Clock
from accelkit.core.damping import forgiven
from accelkit.core.health import next_change
from accelkit.core.model import (
    DeviceId,
    Event,
    Holding,
    Problem,
    Snapshot,
    VendorReport,
)
from accelkit.core.policy import Policy
from accelkit.core.reading import HealthReading
from accelkit.core.snapshot import assemble, build_view, diff
from accelkit.core.values import FrozenMap, HolderKind, Severity, freeze
from accelkit.core.vendor import SupportsPartitioning
from accelkit.core.view import View

log = logging.getLogger(__name__)

RECALLED = FrozenMap({"": "of an earlier instance"})
"""Software that none is: edits that were made with it are made again."""
TURN_S = 1.0
"""How long a new policy waits for a vendor that is being read."""


def revision_of(policy: Policy) -> str:
    """A short name of *policy*: equal policies have equal names, in every process."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:12]


@attrs.frozen(kw_only=True)
class _Draft:
    """What to believe instead of what is kept."""

    report: VendorReport | None = None
    reading: HealthReading | None = None
    policy: Policy | None = None


_AS_KEPT = _Draft()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Claimed:
    """What the record of claims says of devices."""

    holdings: tuple[Holding, ...] = ()
    made: frozenset[DeviceId] = frozenset()
    given: FrozenMap[DeviceId, str] = FrozenMap()
    awaited: frozenset[DeviceId] = frozenset()
    unmade: frozenset[DeviceId] = frozenset()
    stuck: frozenset[DeviceId] = frozenset()
    renamed: frozenset[DeviceId] = frozenset()


class Knowledge:
    """Keeps what was read last, and publishes the view of it.

    A new report or policy is drafted first, so that health and edits of what it brings are there
    when its view is: nobody sees a device that is only not ready yet.
    """

    def __init__(  # noqa: PLR0917 - what a view is made of
        self,
        node: str,
        boot: str,
        policy: Policy,
        sources: Iterable[Source],
        pending: Pending,
        clock: Clock,
        holders: Holders | None = None,
    ) -> None:
        self.policy = policy
        self.sources: Mapping[str, Source] = {source.name: source for source in sources}
        self.heard = Heard()
        self.answered = Switch()
        """Whether a view with at least one vendor's answer, and its edits, is there."""
        self.claimed: Callable[[], Claimed] = Claimed
        """Asked for every view."""
        self.going: Mapping[DeviceId, str] = {}
        """Devices that are about to be unmade or set to another mode, and why."""
        self.unserved: Callable[[View], frozenset[DeviceId]] = lambda _view: frozenset()
        """Devices of a view that are to be shared by a daemon that is not ready."""
        self.amend: Callable[[View], View] = lambda view: view
        """What else is known of a view before anybody sees it."""
        self.settled: Callable[[View], bool] = lambda _view: True
        """Whether what *amend* knows will do for the first view that is served."""
        self._asking: list[asyncio.Task[None]] = []
        self._coming: View | None = None
        """The view as it will be once a new policy is taken over."""
        self._node = node
        self._boot = boot
        self._pending = pending
        self._holders = holders or Holders(None, Problems(clock.now))
        self._given_back = GivenBack(self.sources, self._holders)
        self._clock = clock
        kinds = {name: source.kind for name, source in self.sources.items()}
        self._domains = FrozenMap({name: kind.domain for name, kind in kinds.items()})
        self._sets = frozenset(name for name, kind in kinds.items() if kind.sets)
        self._makers = frozenset(
            name for name, kind in kinds.items() if issubclass(kind, SupportsPartitioning)
        )
        self._revision = revision_of(policy)
        self.store = ViewStore(
            View(
                snapshot=Snapshot(node=node),
                offers=policy.offers,
                domains=self._domains,
                sets=self._sets,
                revision=self._revision,
                boot=boot,
            )
        )

    def draft(self, new: _Draft = _AS_KEPT) -> View:
        """The view as it would be with *new*."""
        claimed = self.claimed()
        changing = claimed.unmade | (claimed.made & claimed.awaited)
        self._given_back.compare(claimed.made, claimed.holdings, changing, claimed.given)
        holdings = self._all_holdings(claimed.holdings)
        judge = partial(self._judge, new.policy, claimed, holdings)
        held = {one.device for one in holdings if not self._ends_with_it(one)} - claimed.unmade
        held -= {i for i in claimed.awaited if self._is_part(i)}
        snapshot = without_missing(self._snapshot(new, held))
        view = judge(snapshot)
        if unserved := self.unserved(view):
            before = self.store.view.devices
            view = judge(with_missing(snapshot, unserved, before, self._clock.now()))
        return self.amend(attrs.evolve(view, edits=FrozenMap(self._edits(view))))

    def _ends_with_it(self, holding: Holding) -> bool:
        """Whether its holder cannot outlive the device: a process that was seen at a partition."""
        return holding.holder.kind is HolderKind.FOREIGN and self._is_part(holding.device)

    def _is_part(self, device: DeviceId) -> bool:
        known = self.store.view.devices.get(device)
        return known is not None and known.parent is not None

    def _snapshot(self, new: _Draft, held: set[DeviceId]) -> Snapshot:
        """What is believed, with what *new* says; what is *held* does not go unnoticed."""
        # Who has not said anything yet says nothing of what an earlier instance saw.
        reports = {
            s.name: s.report or VendorReport(vendor=s.name, answered=False)
            for s in self.sources.values()
        }
        readings = {s.name: s.reading for s in self.sources.values() if s.reading is not None}
        if new.report is not None:
            reports[new.report.vendor] = new.report
        if new.reading is not None:
            readings[new.reading.vendor] = new.reading
        if not self._holders.heard:  # of what an earlier instance saw, anything may be held
            held |= self.store.view.devices.keys()
        return assemble(
            self._node,
            map(self._given_back.corrected, reports.values()),
            readings.values(),
            previous=self.store.view.snapshot,
            held=held,
            now=self._clock.now(),
            unseen=self._given_back.unseen(self.store.view),
        )

    def _judge(
        self,
        policy: Policy | None,
        claimed: Claimed,
        holdings: tuple[Holding, ...],
        snapshot: Snapshot,
    ) -> View:
        """*snapshot* judged by *policy*; None: by the one in force."""
        return build_view(
            snapshot,
            policy or self.policy,
            edits={},
            holdings=holdings,
            holders_known=self._holders.known,
            previous=self.store.view,
            domains=self._domains,
            sets=self._sets,
            revision=self._revision if policy is None else revision_of(policy),
            boot=self._boot,
            now_s=self._clock.monotonic(),
            now=self._clock.now(),
            makers=self._makers,
            made=claimed.made,
            stuck=claimed.stuck,
            renamed=claimed.renamed,
            going=self.going,
        )

    def recall(self, view: View, edits: Iterable[MadeFor]) -> None:
        """Begin with *view* and *edits* of an earlier instance of this boot.

        Its devices are stale until their vendors answer. Its edits serve until new ones are made.
        """
        for one in edits:
            source = self.sources.get(one.device.vendor)
            if source is not None and one.device in view.devices:
                source.made.keep(view.devices[one.device], one.terms, RECALLED, one.edits)
        kept = self.store.view
        self.store.publish(
            attrs.evolve(
                kept,
                snapshot=view.snapshot,
                assignments=view.assignments,
                verdicts=view.verdicts,
            )
        )
        self.commit()

    def _edits(self, view: View) -> Iterator[tuple[DeviceId, ContainerEdits]]:
        for source in self.sources.values():
            for device, terms in offered(view, source.name).values():
                if (edits := source.made.get(device.id, terms)) is not None:
                    yield device.id, edits

    def commit(self) -> None:
        """Publish the view of what is kept now; wake who must make edits that it lacks."""
        before = self.store.view
        after = self.draft()
        for source in self.sources.values():
            wanted = offered(after, source.name).values()
            if not all(source.made.tried(device.id, terms) for device, terms in wanted):
                source.health.ring()
        if bool(after.snapshot.answered) and self.settled(after):
            self.answered.set(True)
        if self.store.publish(after):
            _tell(before, after)

    async def learn(self, source: Source) -> None:
        """Read *source*, how its devices are and what containers need of them; then publish."""
        async with source.turn:
            report = await source.read()
            found = self._draft_of(source, report)
            if found.devices.keys() - self.store.view.devices.keys():
                # A new device may be held on earlier terms: known before it is offered on others.
                await self._holders.ask(found)
            reading = await source.assess(found.snapshot.devices, self.heard.evidence)
            if report != source.report or reading != source.reading:
                found = self.draft(_Draft(report=report, reading=reading))
            await source.make_edits(offered(found, source.name), report)
            source.report = report
            source.heard = source.asked
            source.reading = reading
            self.commit()
            views = (self.store.view, self._coming)
            source.forget_edits_but(*(offered(view, source.name) for view in views if view))

    def _draft_of(self, source: Source, report: VendorReport) -> View:
        # Nearly always it says the same again.
        return self.store.view if report == source.report else self.draft(_Draft(report=report))

    async def examine(self, source: Source) -> None:
        """Read how the devices of *source* are, make edits that are missing; then publish."""
        async with source.turn:
            source.reading = await source.assess(
                self.store.view.snapshot.devices, self.heard.evidence
            )
            if source.report is not None:
                wanted = offered(self.store.view, source.name)
                await source.make_edits(wanted, source.report)
            self.commit()

    async def adopt(self, policy: Policy) -> None:
        """Offer devices as *policy* says, but for those that somebody has by now."""
        await self._ask_processes()
        found = self._coming = self.draft(_Draft(policy=policy))
        await asyncio.gather(*(self._remake(source, found) for source in self.sources.values()))
        self._coming = None
        self.policy = policy
        self._revision = revision_of(policy)
        self.commit()

    async def _ask_processes(self) -> None:
        """Ask vendors which processes use devices, before any changes hands; not for long."""
        devices = self.store.view.snapshot.devices
        self._asking = [
            asyncio.create_task(source.ask_holders(devices)) for source in self.sources.values()
        ]
        if self._asking:  # who is late answers later: to cut a call off would hold up its lane
            await asyncio.wait(self._asking, timeout=TURN_S)

    async def _remake(self, source: Source, view: View) -> None:
        # A vendor that is just being read makes its edits afterwards: the others do not wait.
        try:
            async with asyncio.timeout(TURN_S):
                await source.turn.acquire()
        except TimeoutError:
            return
        try:
            if source.report is not None:
                await source.make_edits(offered(view, source.name), source.report)
        finally:
            source.turn.release()

    async def ask_holders(self) -> None:
        """Ask who holds what; then publish."""
        await self._holders.ask(self.store.view)
        self.commit()

    def hear(
        self,
        vendor: str,
        events: Iterable[Event],
        at: Numbered | None = None,
        said_s: float | None = None,
    ) -> None:
        """Write down *events*; the next look at health takes them into account.

        What is about a device of another vendor alone is left out: uevents do not say whose it is.

        Args:
            vendor: Who told.
            events: In the order in which they came.
            at: Which signal they were made of, if it may be heard again.
            said_s: When that was said, in monotonic seconds; None: now.
        """
        now_s = self._clock.monotonic()
        at_s = now_s if said_s is None else min(said_s, now_s)
        now = self._clock.now() - timedelta(seconds=now_s - at_s)
        devices = self.store.view.snapshot.devices
        own = [device for device in devices if device.id.vendor == vendor]
        strange = {a for d in devices if d.id.vendor != vendor for a in d.aliases}
        strange -= {alias for device in own for alias in device.aliases}
        serious = {c.code for d in own for c in d.conditions if c.severity is not Severity.INFO}
        ours = [event for event in events if event.subject not in strange]
        self.heard.take(vendor, ours, now, now_s=at_s, serious=serious, at=at)

    def join(self, told: Told) -> None:
        """Take over what the instance that leads heard."""
        if self.heard.join(told):
            for source in self.sources.values():
                source.health.ring()

    def forgive(self, devices: Collection[DeviceId], code: str | None) -> None:
        """Let nothing hold *devices* down that an operator says is gone; then publish."""
        view = self.store.view
        freed = {
            i: attrs.evolve(verdict, past=forgiven(verdict.past, code))
            for i, verdict in view.verdicts.items()
            if i in devices and verdict.past is not None
        }
        verdicts = FrozenMap({**view.verdicts, **freed})
        self.store.publish(attrs.evolve(view, verdicts=verdicts))
        self.commit()

    def due_at(self) -> float | None:
        """When, in monotonic seconds, time alone changes the view next; None: never."""
        return next_change(self.store.view.verdicts, self.policy.health)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What vendors could not tell or do."""
        beside = (p for source in self.sources.values() for p in source.problems.values())
        return (*self.store.view.snapshot.problems, *beside)

    def _all_holdings(self, claims: tuple[Holding, ...]) -> tuple[Holding, ...]:
        processes = tuple(h for source in self.sources.values() for h in source.processes)
        kubelet = self._given_back.without_over(self._holders.holdings)
        told = tuple(joined(claims, kubelet))
        return (*told, *self._pending.besides(told), *processes)


def offered(view: View, vendor: str) -> Offered:
    """Devices of *vendor* that *view* offers, with their terms."""
    return {
        device.id: (device, assignment.terms)
        for device in view.snapshot.devices
        if device.id.vendor == vendor
        and (assignment := view.assignments.get(device.id)) is not None
        and assignment.terms is not None
    }


def _tell(before: View, after: View) -> None:
    for change in diff(before, after):
        log.info("view changed", extra={"change": change})
