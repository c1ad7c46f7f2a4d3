"""Questions to one server from the loop: threads, deadlines, patience. Not here: what is asked."""

import asyncio
import http.client
import random
import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from accelkit.backends.kube.call import Call
from accelkit.backends.kube.faults import transport_error
from accelkit.backends.kube.reading import Stream
from accelkit.backends.kube.refusals import refusal
from accelkit.backends.kube.transport import Answer, Request, Transport, exchange
from accelkit.backends.kube.worker import Worker
from accelkit.core.clock import Clock
from accelkit.core.errors import TransportError
from accelkit.core.kube import Json

Count = Callable[[str, str, str], None]
"""Told of every request: verb, resource and code, which is ``error`` where no answer came."""

CALLS = 4
"""At once, at most."""
_BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_SHORTEST_PAUSE_S = 0.2
_FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What transports raise; a ValueError where a token or a name cannot be sent at all."""


class Asking:
    """Asks through a transport, which the first question opens.

    Calls have a thread each, up to some, so that one that is slow holds up no other; streams have
    one together.

    Args:
        open_transport: Called in a thread; what it raises is the question's error.
        timeout_s: Of each answer, pauses and waiting for a turn included.
        count: Told of every request.
    """

    def __init__(
        self,
        open_transport: Callable[[], Transport],
        *,
        timeout_s: float,
        count: Count,
        clock: Clock,
    ) -> None:
        self._open = open_transport
        self._timeout_s = timeout_s
        self._count = count
        self._clock = clock
        self._calls = tuple(Worker("kube-calls") for _ in range(CALLS))
        self._streams = Worker("kube-watches")
        self._opening = threading.Lock()
        self._transport: Transport | None = None

    async def ask(self, request: Request) -> Json:
        """The answer's object.

        Raises:
            ApiError: The server refused.
            TransportError: It could not be asked, or did not answer in time.
        """
        answer = await self._patiently(self._idle(), request)
        assert isinstance(answer, Answer)
        assert answer.item is not None
        return answer.item

    async def stream(self, request: Request) -> Stream:
        """An answer that goes on; the caller's to *drop*.

        Raises:
            ApiError, TransportError: As above.
        """
        answer = await self._patiently(self._streams, request)
        assert isinstance(answer, Stream)
        return answer

    async def next(self, stream: Stream, seconds: float) -> list[Json]:
        """What *stream* brings next; empty at its end.

        Raises:
            Silent: Nothing came for so many *seconds*.
            TransportError: It broke off.
        """
        try:
            return await self._streams.next(stream, seconds)
        except _FAILURES as error:
            raise self._named(error, "reading a watch") from error

    def drop(self, stream: Stream) -> None:
        self._streams.drop(stream)

    async def close(self) -> None:
        """End what runs, and the threads; may be called twice."""
        await asyncio.gather(*(worker.close() for worker in (*self._calls, self._streams)))
        if self._transport is not None:
            self._transport.close()

    def _idle(self) -> Worker:
        """The first of those with least to do, so that no more threads start than are needed."""
        return min(self._calls, key=lambda worker: worker.waited_for)

    async def _patiently(self, worker: Worker, request: Request) -> Answer | Stream:
        """Ask until the server is not too busy to answer, while there is time."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = await self._once(worker, request, Call(deadline - time.monotonic()))
            if isinstance(answer, Stream) or answer.good:
                return answer
            pause = _pause(answer)
            if pause is None or time.monotonic() + pause >= deadline:
                raise refusal(request, answer)
            await self._clock.sleep(pause)

    async def _once(self, worker: Worker, request: Request, call: Call) -> Answer | Stream:
        def work() -> Answer | Stream:
            return exchange(self._opened(), request, call)

        code = "error"
        try:
            answer = await worker.run(work, call)
            code = str(answer.status if isinstance(answer, Answer) else HTTPStatus.OK.value)
        except _FAILURES as error:
            raise self._named(error, call.stage) from error
        finally:
            self._count(request.verb, request.resource, code)
        return answer

    def _opened(self) -> Transport:
        with self._opening:
            if self._transport is None:
                self._transport = self._open()
            return self._transport

    def _named(self, error: BaseException, stage: str) -> TransportError:
        server = "" if self._transport is None else f" at {self._transport.server}"
        return transport_error(error, f"the API server{server}", stage)


def _pause(answer: Answer) -> float | None:
    """Seconds that the server asks to be left alone; None: it does not ask for that."""
    if answer.status not in _BUSY or not answer.retry_after.isdecimal():
        return None
    # Others wait for the same server.
    return max(float(answer.retry_after), _SHORTEST_PAUSE_S) * random.uniform(1.0, 1.2)  # noqa: S311 - spreads clients
