"""Starts what ended again. Not here: what is served."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from accelkit.core.clock import Clock
from accelkit.core.errors import BackendError

log = logging.getLogger(__name__)

LONGEST_S = 60.0
CLEAN_S = 300.0
"""So long without an end, and the next back-off is the shortest again."""

Serve = Callable[[], Awaitable[None]]


async def supervise(
    name: str, serve: Serve, clock: Clock, failed: Callable[[Exception], None]
) -> None:
    """Keep *serve* running until cancelled; what it raises is its own problem.

    Args:
        name: Of the backend, for the log.
        serve: Serves until cancelled; whatever else ends it is a failure.
        clock: Of the pauses.
        failed: Told of every end, before the pause of 1, 2, 4 … 60 s.
    """
    pause = 1.0
    while True:
        begun = clock.monotonic()
        error = await _end_of(name, serve)
        if clock.monotonic() - begun >= CLEAN_S:
            pause = 1.0
        log.error(
            "backend ended, starting it again",
            extra={"backend": name, "error": str(error), "pause_s": pause},
            exc_info=None if isinstance(error, BackendError) else error,
        )
        failed(error)
        await clock.sleep(pause)
        pause = min(pause * 2, LONGEST_S)


async def _end_of(name: str, serve: Serve) -> Exception:
    try:
        await serve()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return BackendError(f"backend {name} cancelled itself", backend=name)
    except Exception as error:  # noqa: BLE001 - a backend may raise anything
        return error
    except SystemExit as error:
        return BackendError(f"backend {name} raised SystemExit({error.code})", backend=name)
    return BackendError(f"backend {name} stopped serving", backend=name)
