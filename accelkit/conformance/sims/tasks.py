"""Ending tasks, and having the loop of a simulation in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

_T = TypeVar("_T")


async def cancel(*tasks: "asyncio.Task[None]") -> None:
    """Cancel *tasks* and wait for their end.

    Raises:
        Exception: One of them had failed; a simulation that broke must not look fine.
    """
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


class Do(Protocol):
    """Runs a coroutine in the other thread and returns what it returned."""

    def __call__(self, coroutine: Coroutine[object, object, _T], /) -> _T: ...


@contextmanager
def loop_in_thread(patience_s: float = 60.0) -> Iterator[Do]:
    """Run an event loop in a thread, for callers that are not asynchronous.

    ``with loop_in_thread() as do: do(sim.start()); do(sim.admit(...)); do(sim.kill())``

    Args:
        patience_s: How long one coroutine may take.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="simulation", daemon=True)
    thread.start()

    def do(coroutine: Coroutine[object, object, _T], /) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(patience_s)

    try:
        yield do
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
