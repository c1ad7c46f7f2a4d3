"""Devices cut as the policy says, while nobody has them. Not here: what they shall be cut to.

Who might still be given a device is told first that it is going; who has it is asked last.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import attrs

from accelkit.agent.cutting_steps import Steps, root_of, touched
from accelkit.agent.holders import Holders
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.problems import Problems
from accelkit.agent.signals import Bell
from accelkit.core.clock import Clock
from accelkit.core.errors import AccelkitError
from accelkit.core.model import DeviceId
from accelkit.core.partitioning import Destroy, Plan, Step, plan, steps
from accelkit.core.policy import PartitioningHow, When
from accelkit.core.vendor import SupportsPartitioning
from accelkit.core.view import View

log = logging.getLogger(__name__)

OWNER = "partitioning"
"""Whose problems these are."""
WAITS = "partitioning-waits"
PERIOD_S = 10.0
"""Between two looks at what is left to do."""
TOGETHER_S = 1.0
GOING_S = 2.5
"""How long after it was said that a device is going somebody may still be given it: Allocate takes
2 s at most."""
AGAIN_S = 60.0
"""Before a device is tried again that could not be cut."""
WHY = "it is being cut as the policy says"
AGAIN = "it is tried again by itself"
Said: TypeAlias = Mapping[tuple[str, str], tuple[str, str]]
"""Reason and remedy of problems, by code and device."""


@attrs.frozen(kw_only=True)
class Applied:
    """What came of cutting; a sentence each."""

    done: tuple[str, ...] = ()
    """Steps, in order."""
    failed: tuple[str, ...] = ()
    """Steps, why, and what to do."""
    left: tuple[str, ...] = ()
    """What is not as it should be, and has to wait."""


@attrs.frozen(kw_only=True)
class _Failure:
    code: str
    reason: str
    remedy: str
    until_s: float
    """When the device is tried again."""


class Cutting:
    """Does what the policy's ``partitioning`` leaves to do, as the leader.

    Args:
        knowledge: What is there, and who has it.
        holders: Who was asked who holds what.
        hands: Does single steps.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        holders: Holders,
        hands: Steps,
        problems: Problems,
        clock: Clock,
    ) -> None:
        self._knowledge = knowledge
        self._holders = holders
        self._hands = hands
        self._problems = problems
        self._clock = clock
        self._makers = frozenset(
            name
            for name, source in knowledge.sources.items()
            if issubclass(source.kind, SupportsPartitioning)
        )
        self._turn = asyncio.Lock()
        self._failed: dict[DeviceId, _Failure] = {}
        """By whole device."""
        self._back: frozenset[DeviceId] = frozenset()
        self._noted: frozenset[tuple[str, str]] = frozenset()
        self._bell = Bell()

    def ring(self) -> None:
        """Look soon: something is other than it was."""
        self._bell.ring()

    async def run(self, leading: Callable[[], bool]) -> None:
        """Cut what may be cut when it is idle, until cancelled."""
        while True:
            if leading():
                await self.apply(told=False)
            await self._bell.wait(self._clock, PERIOD_S, TOGETHER_S)

    async def apply(self, *, told: bool) -> Applied:
        """Do what is left to do; *told*: also what waits to be told, and what failed just now."""
        async with self._turn:
            if told:
                self._failed.clear()
                await self._ask(self._makers)
            done: list[str] = []
            await self._look_for_those_back()
            if self._holders.known and (todo := self._todo(told=told)):
                await self._cut(todo, told, done)
            self._forget_failures()
            left = self._left()
            self._announce(left)
            return Applied(
                done=tuple(done),
                failed=tuple(
                    f"{one.reason}; {one.remedy}" if one.remedy else one.reason
                    for one in self._failed.values()
                ),
                left=tuple(f"{device}: {reason}" for (_, device), (reason, _) in left.items()),
            )

    async def _cut(self, todo: Collection[Step], told: bool, done: list[str]) -> None:
        """Do *todo*, or what of it is still right when everybody was asked once more."""
        knowledge = self._knowledge
        view = knowledge.store.view
        roots = {root_of(view.snapshot, step) for step in todo}
        going = frozenset().union(*(touched(view.snapshot, step) for step in todo))
        offered = any(i in view.assignments and view.assignments[i].terms for i in going)
        knowledge.going = dict.fromkeys(going, WHY)
        knowledge.commit()
        try:
            if offered:
                await self._clock.sleep(GOING_S)
            await self._ask({root.vendor for root in roots})
            view = knowledge.store.view
            for step in self._todo(told=told):
                root = root_of(view.snapshot, step)
                if root in roots and root not in self._failed:
                    await self._try(view, step, done)
        finally:
            knowledge.going = {}
        await self._learn({root.vendor for root in roots})

    async def _try(self, view: View, step: Step, done: list[str]) -> None:
        try:
            await self._hands.do(view, step)
        except AccelkitError as error:
            log.warning("device not cut", extra={"step": str(step), "error": str(error)})
            self._failed[root_of(view.snapshot, step)] = _Failure(
                code=error.code,
                reason=f"{step}: {error}",
                remedy=error.remedy,
                until_s=self._clock.monotonic() + AGAIN_S,
            )
        else:
            log.info("device cut", extra={"step": str(step)})
            done.append(str(step))

    async def _ask(self, vendors: Collection[str]) -> None:
        """Ask who holds what and what is there, once more."""
        devices = self._knowledge.store.view.snapshot.devices
        for vendor in sorted(vendors):
            await self._knowledge.sources[vendor].ask_holders(devices)
        await self._knowledge.ask_holders()
        await self._learn(vendors)

    async def _learn(self, vendors: Collection[str]) -> None:
        for vendor in sorted(vendors):
            await self._knowledge.learn(self._knowledge.sources[vendor])

    def _todo(self, *, told: bool) -> tuple[Step, ...]:
        """Steps that may be done now: not for what waits to be told, or failed a moment ago."""
        now = self._clock.monotonic()
        hold = {root for root, failure in self._failed.items() if failure.until_s > now}
        for root in self._failed.keys() - hold:
            del self._failed[root]
        found = self._found()
        wanted = (
            one
            for one in found.wanted
            if (told or one.when is When.IDLE) and one.device not in hold
        )
        planned = self._steps(attrs.evolve(found, wanted=tuple(wanted)))
        snapshot = self._knowledge.store.view.snapshot
        back = (step for step in self._come_back() if root_of(snapshot, step) not in hold)
        return tuple(dict.fromkeys((*back, *planned)))

    def _found(self) -> Plan:
        policy, view = self._knowledge.policy, self._knowledge.store.view
        if all(rule.how is PartitioningHow.NONE for rule in policy.partitioning):
            return Plan()
        made = {*view.made, *self._hands.made}
        return plan(
            view.snapshot,
            policy,
            view.holdings,
            made=made,
            claimed=view.made,
            makers=self._makers,
        )

    def _steps(self, found: Plan) -> tuple[Step, ...]:
        return steps(self._knowledge.store.view.snapshot, found)

    def _come_back(self) -> tuple[Step, ...]:
        """For partitions of claims that are over: they came back with a device that was away."""
        view = self._knowledge.store.view
        free = view.devices.keys() - view.made - {holding.device for holding in view.holdings}
        return tuple(Destroy(partition=device) for device in sorted(self._back & free))

    async def _look_for_those_back(self) -> None:
        try:
            self._back = await self._hands.come_back(self._knowledge.store.view.snapshot)
        except AccelkitError as error:
            log.warning("partitions not looked for", extra={"error": str(error)})

    def _forget_failures(self) -> None:
        """Of devices for which nothing is left to do."""
        snapshot = self._knowledge.store.view.snapshot
        todo = (*self._come_back(), *self._steps(self._found()))
        left = {root_of(snapshot, step) for step in todo}
        self._failed = {root: one for root, one in self._failed.items() if root in left}

    def _left(self) -> Said:
        """What is not as it should be, and why nothing is done for it now."""
        found = self._found()
        left = {(p.code, f"{p.vendor}/{p.subject}"): (p.reason, p.remedy) for p in found.problems}
        drained = tuple(one for one in found.wanted if one.when is When.DRAINED)
        snapshot = self._knowledge.store.view.snapshot
        for step in self._steps(attrs.evolve(found, wanted=drained)):
            remedy = "drain the node, then run accelkit partition apply"
            subject = str(root_of(snapshot, step))
            left[WAITS, subject] = ("it is cut when that is asked for", remedy)
        return left

    def _announce(self, left: Said) -> None:
        said = {
            (f.code, str(root)): (f.reason, f.remedy or AGAIN) for root, f in self._failed.items()
        }
        said = {**left, **said}
        for (code, subject), (reason, remedy) in said.items():
            self._problems.note(OWNER, code, subject, f"{subject}: {reason}", remedy)
        for code, subject in self._noted - said.keys():
            self._problems.solve(OWNER, code, subject)
        self._noted = frozenset(said)
