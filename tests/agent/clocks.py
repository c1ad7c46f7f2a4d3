"""A clock that stands still until the test moves it."""

import asyncio
from datetime import UTC, datetime, timedelta

TURNS = 50
"""So many turns of the loop and whoever was woken waits again."""


class HeldClock:
    """Sleepers wake when *advance* passes their time, the earliest first."""

    def __init__(self) -> None:
        self._now_s = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now_s

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now_s - 1000.0)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self._now_s + max(0.0, seconds), woken)
        self._sleepers.append(entry)
        try:
            if seconds <= 0:
                woken.set_result(None)
            await woken
        finally:
            self._sleepers.remove(entry)

    async def advance(self, seconds: float) -> None:
        """Let *seconds* pass, and everybody do what is due meanwhile."""
        await settled()
        end = self._now_s + seconds
        while True:
            due = min((s for s in self._sleepers if not s[1].done()), default=None, key=_until)
            if due is None or due[0] > end:
                break
            self._now_s = max(self._now_s, due[0])
            due[1].set_result(None)
            await settled()
        self._now_s = end
        await settled()


def _until(sleeper: tuple[float, asyncio.Future[None]]) -> float:
    return sleeper[0]


async def settled() -> None:
    """Let every task run until it waits for something else than the loop."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
