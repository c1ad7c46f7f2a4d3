"""Plays a scenario: a kubelet, and agents that come and go. Not here: when they go."""

import asyncio
from collections.abc import Callable, Iterator

import attrs

from accelkit.core.errors import LedgerError
from tests.agent.keeping import truths
from tests.agent.keeping.kubelet import Kubelet
from tests.agent.keeping.process import Crash, Process
from tests.agent.keeping.scenarios import Scenario
from tests.agent.keeping.world import Agent, World, view_of

TICK_S, RECONCILE_TICKS, LONGEST_S = 2.0, 5, 5_000.0
"""An agent's loops; and how long a story may be until it counts as never ending."""


class WrongError(AssertionError):
    """Something is not as it must be."""


@attrs.define(kw_only=True)
class Play:
    """One scenario on one world.

    Attributes:
        processes: Those in which an agent runs, one after the other; of several agents at once.
        facts: What has happened already.
    """

    scenario: Scenario
    world: World
    processes: tuple[Iterator[Process], ...]
    facts: set[str]
    kubelet: Kubelet = attrs.field(init=False)
    restart_s: Callable[[], float] = lambda: 0.5
    again: Callable[[float], float] = lambda seconds: seconds
    choose: Callable[[list[Agent]], Agent] = lambda agents: agents[-1]
    """Whom the kubelet asks, of those that answer."""
    chance: Callable[[Agent], None] = lambda _agent: None
    """Called with every new agent."""
    agents: list[Agent] = attrs.Factory(list)
    """Those that answer now."""

    def check(self) -> None:
        """Check what must be true at every moment."""
        if wrong := list(truths.now(self.world, self.kubelet)):
            raise WrongError("; ".join(wrong))

    def __attrs_post_init__(self) -> None:
        self.kubelet = Kubelet(
            self.world,
            self.scenario.lives,
            self.facts,
            lambda: self.choose(self.agents) if self.agents else None,
            check=self.check,
            again=self.again,
        )

    async def run(self) -> None:
        """Play until all claims have ended and nothing is left of them."""
        agents = [asyncio.create_task(self._agents(line)) for line in self.processes]
        lives = [asyncio.create_task(work) for work in self.kubelet.work()]
        try:
            async with asyncio.timeout(LONGEST_S):
                await _all_of(agents, lives)
                while list(truths.end(self.world, self.facts)):
                    await _all_of(agents, [asyncio.create_task(asyncio.sleep(TICK_S))])
        except TimeoutError:
            left = [*truths.end(self.world, self.facts), *sorted(self.facts)]
            raise WrongError(f"it does not end: {'; '.join(left)}") from None
        self.check()
        for task in agents:
            task.cancel()

    async def _agents(self, processes: Iterator[Process]) -> None:
        """Run one agent after the other."""
        for process in processes:
            try:
                await self._serve(process)
            except (Crash, LedgerError):  # a record that cannot be read ends the process, too
                process.end()
                await asyncio.sleep(self.restart_s())
        raise WrongError("there is no other process")

    async def _serve(self, process: Process) -> None:
        agent = self.world.agent(process)
        agent.hardware.slow = dict(self.scenario.slow)
        agent.give_up_after_s = self.scenario.give_up_after_s
        self.chance(agent)
        self._look(agent)
        try:
            await agent.keeper.load()
            self.agents.append(agent)
            await self._loops(agent)
        finally:
            if agent in self.agents:
                self.agents.remove(agent)

    async def _loops(self, agent: Agent) -> None:
        """What an agent does beside answering."""
        lost = {life.uid for life in self.scenario.lives if life.lost}
        ticks = 0
        while True:
            self._look(agent)
            await agent.keeper.mend()
            await agent.keeper.retry()
            ticks += 1
            if lost and ticks % RECONCILE_TICKS == 0:
                await agent.keeper.reconcile(self._ended() & lost, ())
            await asyncio.sleep(TICK_S)
            agent.process.alive()

    def _ended(self) -> set[str]:
        return {fact.split()[0] for fact in self.facts if fact.endswith(" ended")}

    def _look(self, agent: Agent) -> None:
        agent.view = view_of(self.world.board, agent.keeper.made, self.scenario.offer)


async def _all_of(always: list[asyncio.Task[None]], wanted: list[asyncio.Task[None]]) -> None:
    """Return when all *wanted* have ended; raise what any of both raises."""
    left = set(wanted)
    while left:
        ended, _ = await asyncio.wait({*always, *left}, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        left -= ended
