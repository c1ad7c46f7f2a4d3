"""A thread for what may block: one job after the other, and streams between them.

Not here: what the jobs do.
"""

import asyncio
import errno
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import attrs

from accelkit.backends.kube.call import Call, Ended
from accelkit.backends.kube.faults import Closed, Silent
from accelkit.backends.kube.reading import Stream
from accelkit.core.kube import Json

log = logging.getLogger(__name__)

T = TypeVar("T")
SLACK_S = 0.5
"""So much later the loop gives up on a thread that should have given up by itself."""
END_S = 2.0
"""How long *close* waits for the thread; only a host name that is looked up keeps it longer."""


class _Box(Generic[T]):
    """Takes an answer from the thread to whoever waits for it on the loop."""

    def __init__(self, unwanted: Callable[[T], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._unwanted = unwanted
        self.answer: asyncio.Future[T] = self._loop.create_future()

    def put(self, answer: list[T], error: BaseException | None = None) -> None:
        """Give the one *answer*, or *error*; from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._arrive, answer, error)
        except RuntimeError:  # the loop is closed: nobody waits for any answer
            self._refuse(answer)

    def abandon(self) -> None:
        """Nobody takes the answer any more, though it may have come."""
        answer = self.answer
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            self._unwanted(answer.result())

    def _arrive(self, answer: list[T], error: BaseException | None) -> None:
        if self.answer.done():
            self._refuse(answer)
        elif error is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(answer[0])

    def _refuse(self, answer: list[T]) -> None:
        for one in answer:
            self._unwanted(one)


@attrs.define(eq=False)
class _Waiting:
    """Somebody who waits for what a stream brings next."""

    stream: Stream
    deadline: float
    box: _Box[list[Json]]


class Worker:
    """A daemon thread that the first job starts.

    Everything of a stream is done in it, so that nobody closes what another reads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._jobs: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._bell = -1
        self._closed = False
        self._ends: set[Callable[[], None]] = set()
        """How to end what somebody on the loop waits for."""
        self._gone: Callable[[], object] = lambda: None
        # Used by the thread alone:
        self._selector = selectors.PollSelector()
        self._streams: set[Stream] = set()
        self._waiting: dict[Stream, _Waiting] = {}

    @property
    def waited_for(self) -> int:
        """How many wait for something of it."""
        return len(self._ends)

    async def run(self, work: Callable[[], T], call: Call) -> T:
        """Do *work* in the thread when its turn comes; who is cancelled ends *call*.

        A `Stream` that comes of it is the caller's to *drop*.

        Raises:
            TimeoutError: *call* has no time left.
            Closed: The worker was closed.
            Exception: Whatever else *work* raised.
        """
        box = _Box[T](self._unwanted)

        def job() -> None:
            try:
                answer = None if call.ended else [work()]
            except Ended:
                return
            except Exception as error:  # noqa: BLE001 - it is for whoever waits
                box.put([], error)
                return
            for one in answer or ():
                if isinstance(one, Stream):
                    self._streams.add(one)
            if answer:
                box.put(answer)

        try:
            return await self._wait(box, job, call.deadline + SLACK_S, call.end)
        finally:
            call.end()

    async def next(self, stream: Stream, seconds: float) -> list[Json]:
        """What *stream* brings next; empty at its end.

        Raises:
            Silent: Nothing came for so many *seconds*.
            Closed: The worker was closed.
            OSError, HTTPException: It broke off, or brought something else.
        """
        box = _Box[list[Json]](lambda _items: None)
        deadline = time.monotonic() + seconds
        waiting = _Waiting(stream, deadline, box)
        return await self._wait(box, lambda: self._look(waiting), deadline + SLACK_S)

    def drop(self, stream: Stream) -> None:
        """Close *stream*; from any thread."""
        with suppress(Closed):  # then the thread has closed it
            self._post(lambda: self._close(stream))

    async def close(self) -> None:
        """End what runs and every stream, then the thread; may be called twice."""
        gone = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread is None:
                return
            self._gone = lambda: loop.call_soon_threadsafe(gone.set)
            os.eventfd_write(self._bell, 1)
        for end in [*self._ends]:
            end()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await gone.wait()

    async def _wait(
        self,
        box: _Box[T],
        job: Callable[[], None],
        until: float,
        end: Callable[[], None] = lambda: None,
    ) -> T:
        def closed() -> None:
            box.put([], Closed())  # before the thread can tell what it looks like from there
            end()

        self._post(job)
        self._ends.add(closed)
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                return await box.answer
        except BaseException:
            box.abandon()
            raise
        finally:
            self._ends.discard(closed)

    def _post(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise Closed
            if self._thread is None:
                self._thread = self._started()
            self._jobs.append(job)
            os.eventfd_write(self._bell, 1)

    def _started(self) -> threading.Thread:
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the next job tries again
            os.close(self._bell)
            raise OSError(errno.EAGAIN, "no thread can be started") from error
        return thread

    def _unwanted(self, answer: object) -> None:
        if isinstance(answer, Stream):
            self.drop(answer)

    # in the thread

    def _work(self) -> None:
        self._selector.register(self._bell, selectors.EVENT_READ)
        while not self._closed:
            for key, _ in self._selector.select(self._patience()):
                if isinstance(key.data, _Waiting):
                    self._look(key.data)
                else:
                    os.eventfd_read(self._bell)
            self._give_up()
            while self._jobs:
                try:
                    self._jobs.popleft()()
                except Exception:  # everybody else needs this thread
                    log.exception("job failed", extra={"worker": self._name})
        self._jobs.clear()
        for stream in [*self._streams]:
            self._close(stream)
        with self._lock:
            self._selector.close()
            os.close(self._bell)
        with suppress(RuntimeError):  # the loop is closed
            self._gone()

    def _patience(self) -> float | None:
        """How long nothing has to be given up."""
        soonest = min((one.deadline for one in self._waiting.values()), default=None)
        return None if soonest is None else max(0.0, soonest - time.monotonic())

    def _give_up(self) -> None:
        now = time.monotonic()
        for waiting in [one for one in self._waiting.values() if one.deadline <= now]:
            self._let_be(waiting.stream)
            waiting.box.put([], Silent())

    def _look(self, waiting: _Waiting) -> None:
        stream = waiting.stream
        try:
            items = stream.take()
        except Exception as error:  # noqa: BLE001 - it is for whoever waits
            self._let_be(stream)
            waiting.box.put([], error)
            return
        if items is not None:
            self._let_be(stream)
            waiting.box.put([items])
        elif stream not in self._waiting:
            self._waiting[stream] = waiting
            self._selector.register(stream, selectors.EVENT_READ, waiting)

    def _let_be(self, stream: Stream) -> None:
        if self._waiting.pop(stream, None) is not None:
            self._selector.unregister(stream)

    def _close(self, stream: Stream) -> None:
        self._let_be(stream)
        self._streams.discard(stream)
        with suppress(OSError):
            stream.close()
