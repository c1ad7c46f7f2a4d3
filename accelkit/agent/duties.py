"""What the agent does beside reading vendors and serving backends: claims, and all they need.

Not here: each of these duties, and who serves.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path

import attrs

from accelkit.agent import figures
from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.clearing import Clearing, Forgotten, clear
from accelkit.agent.cutting import Cutting
from accelkit.agent.cutting_steps import Steps
from accelkit.agent.disk import Disk
from accelkit.agent.events import Events
from accelkit.agent.holders import Holders, split_sets
from accelkit.agent.judged import verdicts
from accelkit.agent.keeper import Keeper
from accelkit.agent.knowledge import Claimed, Knowledge
from accelkit.agent.ledger import Ledger
from accelkit.agent.memory import NO_BOOT, Memory
from accelkit.agent.metrics import Metrics
from accelkit.agent.mps import Mps
from accelkit.agent.names import Names
from accelkit.agent.news import News, Told
from accelkit.agent.problems import AGENT, Problems
from accelkit.agent.reach import Reach
from accelkit.agent.reconcile import reconcile
from accelkit.agent.running import wanted
from accelkit.agent.signals import Bell, within
from accelkit.agent.standing import Standing
from accelkit.agent.store import Switch
from accelkit.agent.works import Works
from accelkit.core.backend import BackendFactory
from accelkit.core.clock import Clock
from accelkit.core.errors import LedgerError, SplitSet
from accelkit.core.kube import KubePort
from accelkit.core.model import Problem
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import SupportsPreparation
from accelkit.core.view import View

log = logging.getLogger(__name__)

SECOND_S = 1.0
"""Between two looks at files."""
TOGETHER_S = 0.05
"""Changes of claims so close to each other are published together."""
UNTIL_DONE_S = 0.15
"""So much longer they wait for claims that are being prepared or released: views cost those."""
SETTINGS_S = 60.0
"""Between two looks at settings that must hold."""
LEFT_S = 0.2
"""Between two looks at claims that are waited for at the end."""


@attrs.frozen(kw_only=True)
class Around:
    """What duties share with the rest of the agent."""

    node: str
    boot: str
    version: str
    run: Path
    disk: Disk
    knowledge: Knowledge
    holders: Holders
    holdings: Bell
    """Rung when the kubelet should be asked who holds what."""
    leading: Switch
    closing: Switch
    reach: Reach
    backends: Mapping[str, BackendFactory]
    problems: Problems
    metrics: Metrics
    clock: Clock


class Duties:
    """Makes them, and does them in order.

    Args:
        around: What they are done with.
    """

    def __init__(self, around: Around) -> None:
        self._around = around
        knowledge, problems, clock = around.knowledge, around.problems, around.clock
        boot = around.boot or NO_BOOT
        self.events = Events(
            around.node,
            self._events_kube,
            lambda: knowledge.policy.events.per_minute,
            clock,
            problems,
        )
        self.works = Works(knowledge.sources, lambda: knowledge.store.view)
        self._changed = Bell()
        self._ledger = Ledger(
            around.run, boot, writer=around.version, clock=clock, disk=around.disk
        )
        self.keeper = self._make_keeper()
        self.names = Names(
            around.node,
            self.kube,
            lambda: self.keeper.entries,
            clock,
            problems,
            self._changed.ring,
        )
        self._mps = Mps(around.run, problems)
        self._memory = Memory(around.run / boot, around.version, problems)
        self._remembered_s = float("-inf")
        self._led = False
        self._standing = Standing(
            self.works,
            frozenset(
                name
                for name, source in knowledge.sources.items()
                if issubclass(source.kind, SupportsPreparation)
            ),
            lambda: self.keeper.entries,
            around.run / boot,
            problems,
        )
        self.cutting = Cutting(
            knowledge,
            around.holders,
            Steps(self.works, self._ledger, around.run / boot, clock),
            problems,
            clock,
        )
        self._split: frozenset[str] = frozenset()
        self._settings = Bell()
        self._news = News(knowledge.store.view)
        knowledge.claimed = self._claimed
        knowledge.unserved = self._mps.unserved
        knowledge.amend = self.names.amend
        knowledge.settled = self.names.settled

    async def begin(self) -> None:
        """Take over what this boot left: once, before anything is served."""
        around = self._around
        if around.boot:  # else any of them may be this one
            try:
                self._ledger.forget_other_boots()
            except LedgerError as error:
                log.warning("earlier boots not forgotten", extra={"error": str(error)})
        while True:
            try:
                await self.keeper.load()
                break
            except LedgerError as error:
                # Who serves without knowing what is held gives it away a second time.
                around.problems.note(AGENT, LedgerError.code, "", str(error), error.remedy)
                await around.clock.sleep(SECOND_S)
        around.problems.solve(AGENT, LedgerError.code, "")
        view, edits = self._memory.recall(around.node)
        course = self._memory.recall_course()
        around.knowledge.heard.recall(course.told)
        kept = verdicts(course, around.clock.monotonic())
        around.knowledge.recall(attrs.evolve(view, verdicts=kept), edits)
        self.names.follow(around.knowledge.store.view)
        self._news = News(around.knowledge.store.view)

    def loops(
        self, problems: Callable[[], Iterable[Problem]]
    ) -> Iterable[Coroutine[None, None, None]]:
        """All that is done until the agent ends; *problems* are those of all its parts."""
        around = self._around
        yield self._look_each_second(problems)
        yield self._publish_claims()
        yield self._follow_views()
        yield self._renew_settings()
        yield self.cutting.run(self._leads)
        yield self.events.send()
        yield self.names.watch()
        yield reconcile(
            self.keeper,
            self.kube,
            self._ask_holders,
            self._leads,
            lambda: around.knowledge.policy.read.reconcile,
            around.clock,
        )

    def kube(self) -> KubePort | None:
        """The API server, for what the agent itself asks; None where no backend needs it."""
        return self._around.reach.for_agent(self._backends())

    async def clear(self, gone: Clearing) -> Forgotten:
        """Take an operator's word that something is *gone*, and write that down.

        Raises:
            UnknownDevice: There is no such thing.
        """
        forgotten = await clear(self._around.knowledge, gone)
        self._remember(soon=False)
        return forgotten

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those of the record of claims."""
        return self.keeper.problems

    def show(self, metrics: Metrics) -> None:
        """Count claims."""
        figures.show_claims(
            metrics, self.keeper.entries.values(), self._around.clock.now(), self._drivers()
        )

    async def finish(self, grace_s: float) -> None:
        """Let running preparations end within *grace_s*, and wait for claims as the policy says.

        Those that are left are logged: their pods cannot end while no agent runs.
        """
        clock = self._around.clock
        await within(clock, grace_s, self.keeper.settle())
        until = clock.monotonic() + self._around.knowledge.policy.shutdown.wait_for_claims
        while self.keeper.entries and clock.monotonic() < until:
            await clock.sleep(LEFT_S)
        self._remember(soon=False)
        if left := self.keeper.entries:
            log.warning(
                "claims are left prepared",
                extra={
                    "count": len(left),
                    "claims": [f"{e.claim.namespace}/{e.claim.name}" for e in left.values()],
                },
            )

    async def _look_each_second(self, problems: Callable[[], Iterable[Problem]]) -> None:
        around = self._around
        while True:
            await self.keeper.mend()
            await self.keeper.retry()
            view = around.knowledge.store.view
            if self._mps.look(view, leading=around.leading.now):
                around.knowledge.commit()
            self._remember()
            self._tell(self._news.of_problems(problems()))
            await around.clock.sleep(SECOND_S)

    async def _publish_claims(self) -> None:
        around = self._around
        while True:
            await self._changed.wait(around.clock, float("inf"), TOGETHER_S)
            await within(around.clock, UNTIL_DONE_S, self.keeper.settle())
            around.knowledge.commit()

    async def _follow_views(self) -> None:
        around = self._around
        given: object = None
        async for view in around.knowledge.store.views():
            self.names.follow(view)
            self._say_split_sets(view)
            self._remember()
            self._tell(self._news.of_devices(view))
            before, given = given, (view.assignments, view.snapshot.answered, view.devices.keys())
            if given != before:
                self._settings.ring()
            self.cutting.ring()

    def _say_split_sets(self, view: View) -> None:
        found = split_sets(view)
        for container, why in found.items():
            remedy = "let one claim or one resource have all of them, or use two containers"
            self._around.problems.note(AGENT, SplitSet.code, container, why, remedy)
        for container in self._split - found.keys():
            self._around.problems.solve(AGENT, SplitSet.code, container)
        self._split = frozenset(found)

    async def _renew_settings(self) -> None:
        around = self._around
        while True:
            if self._leads():
                await self._standing.renew(around.knowledge.store.view)
            await self._settings.wait(around.clock, SETTINGS_S, SECOND_S)

    def _leads(self) -> bool:
        """Whether this instance does what one on a node does, and will go on to."""
        return self._around.leading.now and not self._around.closing.now

    def _remember(self, *, soon: bool = True) -> None:
        """Write down what is new, as the leader; else learn what that one wrote.

        Args:
            soon: Not more often than each second.
        """
        around, now_s = self._around, self._around.clock.monotonic()
        leads, led = around.leading.now, self._led
        self._led = leads
        if (not leads or not led) and (told := self._memory.news()) is not None:
            around.knowledge.join(told)
        if leads and not (soon and now_s - self._remembered_s < SECOND_S):
            self._remembered_s = now_s
            view = around.knowledge.store.view
            self._memory.keep(view)
            self._memory.keep_course(around.knowledge.heard.told, view.judged)

    def _tell(self, news: Iterable[Told]) -> None:
        for one in news if self._leads() else ():
            self.events.tell(one.reason, one.text, warning=one.warning)

    async def _ask_holders(self) -> Holders:
        await self._around.knowledge.ask_holders()
        return self._around.holders

    def _make_keeper(self) -> Keeper:
        around = self._around
        policy = around.knowledge.policy
        return Keeper(
            ledger=self._ledger,
            files=ClaimFiles(Path(policy.paths.cdi), disk=around.disk),
            hardware=self.works,
            view=lambda: around.knowledge.store.view,
            clock=around.clock,
            drivers=self._drivers,
            give_up_after_s=lambda: around.knowledge.policy.release.give_up_after,
            changed=self._claims_changed,
            tell=self.events.tell,
            observe=around.metrics.observe,
        )

    def _drivers(self) -> tuple[str, ...]:
        knowledge = self._around.knowledge
        return tuple(knowledge.policy.backends.dra.driver_of(name) for name in knowledge.sources)

    def _claims_changed(self) -> None:
        self._changed.ring()
        self._around.holdings.ring()

    def _claimed(self) -> Claimed:
        return Claimed(
            holdings=self.keeper.holdings(),
            made=self.keeper.made,
            given=FrozenMap(self.keeper.given),
            awaited=self.keeper.awaited,
            unmade=self.keeper.unmade,
            stuck=self.keeper.stuck,
            renamed=self.keeper.renamed,
        )

    def _events_kube(self) -> KubePort | None:
        policy = self._around.knowledge.policy
        return self._around.reach.for_events(policy, self._backends())

    def _backends(self) -> frozenset[str]:
        return frozenset(wanted(self._around.knowledge.policy, self._around.backends))
