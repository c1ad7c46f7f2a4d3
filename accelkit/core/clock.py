"""Time that tests can hold still. Durations are monotonic seconds; wall time only informs."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What a component may know of time."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

    def now(self) -> datetime:
        """The wall clock, in UTC; informs people, decides nothing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return *seconds* later."""
        ...


class RealClock:
    """The clock of the host."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - values are read by programs that have no loop

        await asyncio.sleep(seconds)
