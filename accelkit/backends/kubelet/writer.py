"""Work on files that may hang, with an end to the waiting. Not here: what is written."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")


class Writer(Generic[T]):
    """Runs one job at a time in a thread.

    A thread that is stuck in a file system cannot be ended, so that nothing else is begun until it
    returns. A process that ends does not wait for it.
    """

    def __init__(self) -> None:
        self._job: Callable[[], T] | None = None
        self._coming: asyncio.Future[T] | None = None
        self._overdue = False

    async def run(self, job: Callable[[], T], seconds: float) -> T | None:
        """Run *job*, or go on waiting for it if it runs still; for no job is waited twice.

        Returns:
            What it returned; None: it, or the one before it, has not ended within *seconds*.

        Raises:
            Exception: What the job raised.
        """
        while True:
            if self._coming is None:
                self._job, self._coming = job, _begun(job)
            patience = 0.0 if self._overdue else seconds
            done, _ = await asyncio.wait((self._coming,), timeout=patience)
            self._overdue = not done
            if not done:
                return None
            mine, coming, self._coming = self._job == job, self._coming, None
            if mine:
                return coming.result()
            coming.exception()  # of a job that nobody waits for any more


def _begun(job: Callable[[], T]) -> "asyncio.Future[T]":
    loop = asyncio.get_running_loop()
    coming: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            answer = job()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            tell(coming.set_exception, error)
        else:
            tell(coming.set_result, answer)

    def tell(how: Callable[[V], None], what: V) -> None:
        with contextlib.suppress(RuntimeError):  # nobody waits: the loop is closed
            loop.call_soon_threadsafe(how, what)

    threading.Thread(target=work, name="cdi-files", daemon=True).start()
    return coming
