"""Vendors that are asked what signals mean, until all of them are."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Protocol

from accelkit.agent.interpreting import Interpreting
from accelkit.agent.knowledge import Knowledge
from accelkit.core.clock import RealClock
from accelkit.core.vendor import Signal

PATIENCE_S = 60


class Tell(Protocol):
    def __call__(self, *signals: Signal) -> Coroutine[None, None, None]: ...


@asynccontextmanager
async def interpreting(knowledge: Knowledge) -> AsyncIterator[Tell]:
    """Tells signals to the vendors of *knowledge*; returns when all were asked about them."""
    made = Interpreting(knowledge, RealClock())
    tasks = [asyncio.create_task(loop) for loop in made.loops()]

    async def tell(*signals: Signal) -> None:
        for signal in signals:
            await made.take(signal)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(one.waiting.join() for one in made._listeners))

    try:
        yield tell
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
