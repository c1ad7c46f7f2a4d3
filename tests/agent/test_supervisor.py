import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from accelkit.agent.supervisor import CLEAN_S, supervise
from accelkit.core.errors import BackendError
from tests.agent.toys import until


class Still:
    """A clock that moves only by sleeping."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def now(self) -> datetime:
        return datetime(2027, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


async def ends(serve: Callable[[], Awaitable[None]], clock: Still, count: int) -> list[Exception]:
    """What the first *count* failures were."""
    found: list[Exception] = []
    task = asyncio.create_task(supervise("toy", serve, clock, found.append))
    await until(lambda: len(found) >= count)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return found[:count]


async def test_backend_that_raises_is_started_again_with_growing_pauses() -> None:
    clock = Still()

    async def serve() -> None:
        raise BackendError("no")

    await ends(serve, clock, 9)

    assert clock.slept[:8] == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_five_clean_minutes_make_the_next_pause_short_again() -> None:
    clock = Still()
    runs: list[int] = []

    async def serve() -> None:
        runs.append(1)
        if len(runs) == 4:
            clock.at += CLEAN_S
        raise BackendError("no")

    await ends(serve, clock, 6)

    assert clock.slept[:5] == [1, 2, 4, 1, 2]


@pytest.mark.parametrize(
    "error, text",
    [
        (ValueError("bug"), "bug"),
        (SystemExit(3), "raised SystemExit"),
        (asyncio.CancelledError(), "cancelled itself"),
        (None, "stopped serving"),
    ],
)
async def test_whatever_ends_a_backend_is_its_own_problem(
    error: BaseException | None, text: str
) -> None:
    async def serve() -> None:
        if error is not None:
            raise error

    (found,) = await ends(serve, Still(), 1)

    assert text in str(found)


async def test_cancelling_ends_the_backend_for_good() -> None:
    ended: list[bool] = []

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(supervise("toy", serve, Still(), lambda _error: None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert ended == [True]
