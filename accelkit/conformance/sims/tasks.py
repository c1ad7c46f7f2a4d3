"""Ending tasks, and running them from code that is not asynchronous. Not here: any task."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import TypeVar

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


_once = threading.Lock()


def shared_loop() -> asyncio.AbstractEventLoop:
    """The loop of all checks of this process, in a thread that ends with the process.

    One for all, so that none is closed while gRPC, which serves every loop of a process from one
    queue, still has something for it.
    """
    with _once:  # a cache alone lets two threads make one each
        return _made()


@cache
def _made() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="simulations", daemon=True).start()
    return loop


def do(coroutine: Coroutine[object, object, _T], patience_s: float = 60.0) -> _T:
    """Run *coroutine* in the shared loop, and return what it returned.

    Raises:
        TimeoutError: It took longer than *patience_s*; it is cancelled then.
    """
    coming = asyncio.run_coroutine_threadsafe(coroutine, shared_loop())
    try:
        return coming.result(patience_s)
    except TimeoutError:
        coming.cancel()
        raise
