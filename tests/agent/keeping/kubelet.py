"""What a kubelet asks for the claims of a scenario, until it is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TypeVar

import attrs

from accelkit.core.allocation import Allocation
from accelkit.core.errors import AccelkitError
from accelkit.core.values import freeze
from tests.agent.keeping.world import Agent, World

T = TypeVar("T")

PREPARE_AGAIN_S, RELEASE_AGAIN_S, DIAL_AGAIN_S = 75.0, 12.0, 1.0
"""Seen of kubelets: when they ask again for what failed."""
RUNS_S = 5.0
"""How long containers run at least."""


class LostError(Exception):
    """Nobody answers, or whoever was to answer is no more."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Life:
    """What happens to one claim.

    Facts are ``<uid> asked``, ``<uid> ran``, ``<uid> refused``, ``<uid> ends``, ``<uid> ended``.
    """

    claim: Allocation
    begins: frozenset[str] = frozenset()
    """It is asked for once these are facts."""
    ends: frozenset[str] = frozenset()
    """It is given back once these are facts, and it ran."""
    hasty: bool = False
    """It is given back whether or not it ran: its pod was deleted by force."""
    twice: bool = False
    """Two calls give it back, side by side."""
    lost: bool = False
    """Nobody gives it back: it is only gone from the API server."""

    @property
    def uid(self) -> str:
        return self.claim.claim.uid


@attrs.define
class Kubelet:
    """Asks whichever agent there is, until it is answered."""

    world: World
    lives: tuple[Life, ...]
    facts: set[str]
    agent: Callable[[], Agent | None]
    """Whom to ask now; None: nobody answers."""
    check: Callable[[], None] = lambda: None
    """Called after every fact."""
    noted: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    again: Callable[[float], float] = lambda seconds: seconds
    """Seconds that it waits, of those that a kubelet waits about."""

    def note(self, fact: str) -> None:
        self.facts.add(fact)
        noted, self.noted = self.noted, asyncio.Event()
        noted.set()
        self.check()

    async def until(self, facts: Iterable[str]) -> None:
        while not self.facts.issuperset(facts):
            await self.noted.wait()

    def work(self) -> list[Coroutine[None, None, None]]:
        """What it does for all claims, side by side."""
        return [do for life in self.lives for do in (self._prepare(life), self._release(life))]

    @property
    def done(self) -> bool:
        return self.facts.issuperset(f"{life.uid} ended" for life in self.lives)

    def running(self) -> list[Life]:
        """Claims whose containers run."""
        return [
            life
            for life in self.lives
            if f"{life.uid} ran" in self.facts and f"{life.uid} ends" not in self.facts
        ]

    async def _prepare(self, life: Life) -> None:
        uid = life.uid
        await self.until(life.begins)
        while not self.facts & {f"{uid} ran", f"{uid} ends"}:
            self.note(f"{uid} asked")
            try:
                await self._call(lambda agent: _prepared(agent, life.claim))
            except LostError:
                await asyncio.sleep(self.again(DIAL_AGAIN_S))
            except AccelkitError:
                self.note(f"{uid} refused")
                await asyncio.sleep(self.again(PREPARE_AGAIN_S))
            else:
                if f"{uid} ends" not in self.facts:
                    self._begin(life)

    def _begin(self, life: Life) -> None:
        """Let its containers run, with the very partitions that are there now."""
        for piece in life.claim.pieces:
            part = self.world.board.parts.get(piece.device.name)
            if part is not None and not piece.admin:
                self.facts.add(f"{life.uid} has {piece.device.name} {part.number}")
        self.note(f"{life.uid} ran")

    async def _release(self, life: Life) -> None:
        uid = life.uid
        await self.until({*life.ends} if life.hasty else {*life.ends, f"{uid} ran"})
        await asyncio.sleep(0 if life.hasty else RUNS_S)
        self.check()
        self.note(f"{uid} ends")
        if life.lost:
            self.note(f"{uid} ended")
        while f"{uid} ended" not in self.facts:
            try:
                await asyncio.gather(
                    *(
                        self._call(lambda agent: agent.keeper.release(uid))
                        for _ in range(1 + life.twice)
                    )
                )
            except LostError:
                await asyncio.sleep(self.again(DIAL_AGAIN_S))
            except AccelkitError:
                await asyncio.sleep(self.again(RELEASE_AGAIN_S))
            else:
                self.note(f"{uid} ended")

    async def _call(self, ask: Callable[[Agent], Awaitable[T]]) -> T:
        """Ask the agent that there is; its end ends the call."""
        agent = self.agent()
        if agent is None or agent.process.dead:
            raise LostError
        call = asyncio.ensure_future(ask(agent))
        gone = asyncio.ensure_future(agent.process.gone.wait())
        await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not agent.process.gone.is_set():
            return call.result()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        raise LostError


async def _prepared(agent: Agent, claim: Allocation) -> None:
    if await agent.keeper.prepared(claim.claim) is None:
        await agent.keeper.prepare(claim)
