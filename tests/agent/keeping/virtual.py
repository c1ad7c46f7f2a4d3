"""Time that jumps to the next thing that happens."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Jumping(selectors.BaseSelector):
    """Waits for nothing: adds what should be waited to the loop's time."""

    def __init__(self) -> None:
        self.time = 0.0

    def register(self, fileobj: object, events: int, data: object = None) -> selectors.SelectorKey:  # type: ignore[explicit-any]  # of the base class
        return selectors.SelectorKey(-1, -1, events, data if fileobj else None)

    def unregister(self, fileobj: object) -> selectors.SelectorKey:  # type: ignore[explicit-any]  # of the base class
        return selectors.SelectorKey(-1, -1, 0, fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:  # type: ignore[explicit-any]  # of the base class
        if timeout is None:
            raise RuntimeError("nothing will ever happen")
        self.time += max(0.0, timeout)
        return []

    def get_map(self) -> Mapping[object, selectors.SelectorKey]:  # type: ignore[override, explicit-any]  # it is empty
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which a minute passes in no time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.time

    def rewind(self) -> None:
        """Begin anew at 0; nothing may be waiting."""
        self._jumping.time = 0.0

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run *work* to its end, and end all that it left."""
        try:
            return self.run_until_complete(work)
        finally:
            left = asyncio.all_tasks(self)
            for task in left:
                task.cancel()
            if left:
                self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.rewind()


class VirtualClock:
    """The time of the running loop; the wall stands still."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2027, 1, 31, 10, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def virtually(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run an asynchronous test in a loop of its own, in which time jumps."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        loop = VirtualLoop()
        try:
            loop.run(test(*args, **kwargs))
        finally:
            loop.close()

    return run
