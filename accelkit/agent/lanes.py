"""Lanes: queues with one thread each, in which vendors are called. Not here: what is called."""

import asyncio
import queue
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import TypeVar

from accelkit.core.clock import Clock
from accelkit.core.errors import AccelkitError, PluginError, SourceError, SourceTimeout
from accelkit.core.foreign import code_of
from accelkit.core.model import DeviceId

T = TypeVar("T")
Observe = Callable[[str, str, float], None]
"""Told of every call: its name, its outcome, its seconds."""

DEADLINES_S: Mapping[str, float] = {
    "inventory": 10.0,
    "conditions": 10.0,
    "edits": 5.0,
    "set edits": 2.0,  # inside Allocate, which holds up the kubelet's whole sync loop
    "holders": 5.0,
    "signals": 5.0,
    "interpret": 0.1,
    "diagnose": 10.0,
    "samples": 5.0,
    "listen": 2.0,  # after the time that it blocks
    "create": 30.0,
    "destroy": 30.0,
    "set mode": 60.0,
    "needs": 5.0,
    "apply": 20.0,
    "revert": 20.0,
}
"""How long a call may take, before the vendor's own scale."""
LISTEN_S = 5.0
"""How long one listen call blocks."""


class Lane:
    """A queue and one daemon thread: its calls never overlap.

    A call that overruns its deadline, or whose caller is cancelled, marks the lane stuck: calls
    fail at once until the thread comes back, and the late answer is thrown away. A daemon thread,
    because the interpreter joins every other kind when it ends, however long the call hangs.

    Args:
        vendor: Whose calls these are.
        observe: Told of every call that was made.
        freed: Called on the loop when a stuck lane is free again.
        margin_s: How much longer than its deadline a call is waited for, where what it runs ends
            by itself then.
    """

    def __init__(
        self,
        vendor: str,
        clock: Clock,
        observe: Observe = lambda _call, _outcome, _seconds: None,
        freed: Callable[[], None] = lambda: None,
        *,
        margin_s: float = 0.0,
    ) -> None:
        self._vendor = vendor
        self._clock = clock
        self._observe = observe
        self._freed = freed
        self._margin_s = margin_s
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._turn = asyncio.Lock()
        self.running: str | None = None
        """The call in the thread, stuck or not."""
        self.stuck = False
        self.about: frozenset[DeviceId] = frozenset()
        """Whole devices that the call in the thread works at."""

    @property
    def busy(self) -> bool:
        return self.stuck or self._turn.locked()

    async def call(
        self,
        name: str,
        work: Callable[[], T],
        *,
        deadline_s: float,
        about: Collection[DeviceId] = (),
    ) -> T:
        """Run *work*, at the whole devices *about*, in the lane's thread.

        The deadline counts from when its turn comes.

        Raises:
            SourceTimeout: The lane is stuck, or *work* did not end in *deadline_s*.
            PluginError: *work* raised what no caller may see, such as SystemExit.
            Exception: Whatever else *work* raised.
        """
        self.check(name)
        async with self._turn:
            self.check(name)
            self.about = frozenset(about)
            begun = self._clock.monotonic()
            outcome = "abandoned"
            try:
                result = await self._run(name, work, deadline_s)
                outcome = "ok"
            except AccelkitError as error:
                outcome = code_of(error)
                raise
            except Exception:
                outcome = "plugin-bug"
                raise
            finally:
                self._observe(name, outcome, self._clock.monotonic() - begun)
            return result

    def check(self, name: str) -> None:
        """Refuse the call *name* while an earlier one hangs.

        Raises:
            SourceTimeout: It does.
        """
        if self.stuck and self._thread is not None and not self._thread.is_alive():
            # It died of a lack of memory, say, and nothing of it goes on.
            self._jobs, self._thread = queue.SimpleQueue(), None
            self.stuck, self.running = False, None
            self._freed()
        if self.stuck:
            raise timeout(self._vendor, name, f"an earlier call, {self.running}, still hangs")

    def close(self, last: Callable[[], None] | None = None) -> None:
        """Let the thread end after its present call and *last*; nobody waits for it."""
        if self._thread is not None and last is not None:
            self._jobs.put(lambda: _ignore(_outcome(self._vendor, last)))
        self._jobs.put(None)

    async def _run(self, name: str, work: Callable[[], T], deadline_s: float) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._submit(work, answer)
        self.running = name
        try:
            async with asyncio.timeout(deadline_s + self._margin_s):
                return await asyncio.shield(answer)
        except TimeoutError:
            if answer.done():  # at the last moment, or with the vendor's own TimeoutError
                return answer.result()
            raise timeout(self._vendor, name, f"no answer in {deadline_s:g} s") from None
        finally:
            self.stuck = not answer.done()
            if not self.stuck:
                self.running = None

    def _submit(self, work: Callable[[], T], answer: asyncio.Future[T]) -> None:
        loop = asyncio.get_running_loop()

        def job() -> None:
            result, error = _outcome(self._vendor, work)
            try:
                loop.call_soon_threadsafe(self._finish, answer, result, error)
            except RuntimeError:
                return  # the loop is closed: nobody waits for any answer

        if self._thread is None:
            self._thread = self._started()
        self._jobs.put(job)

    def _started(self) -> threading.Thread:
        """The lane's thread, which runs."""
        thread = threading.Thread(
            target=_work_off, args=(self._jobs,), name=f"lane-{self._vendor}", daemon=True
        )
        start_thread(thread, self._vendor)
        return thread

    def _finish(
        self, answer: asyncio.Future[T], result: list[T], error: BaseException | None
    ) -> None:
        if self.stuck:
            self.stuck = False
            self.running = None
            answer.cancel()
            self._freed()
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result[0])


def start_thread(thread: threading.Thread, vendor: str) -> None:
    """Start *thread*, by which *vendor* is asked.

    Raises:
        SourceError: The system gives no more threads now.
    """
    try:
        thread.start()
    except RuntimeError as error:
        raise SourceError(
            f"{vendor} cannot be asked: no thread can be started for it",
            vendor=vendor,
            remedy="let the agent have more threads and memory: see the limits of its pod",
        ) from error


def timeout(vendor: str, call: str, why: str) -> SourceTimeout:
    """The error of a *call* that got no answer."""
    return SourceTimeout(
        f"{vendor}: {call} got no answer: {why}",
        vendor=vendor,
        operation=call,
        remedy="look for a hanging driver in the kernel log",
    )


def _work_off(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # else the thread keeps the last answer alive


def _outcome(vendor: str, work: Callable[[], T]) -> tuple[list[T], BaseException | None]:
    try:
        return [work()], None
    except StopIteration as error:  # a future cannot carry it
        return [], _foreign(vendor, error)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return [], error
    except BaseException as error:  # noqa: BLE001 - SystemExit of a plugin is not ours
        return [], _foreign(vendor, error)


def _ignore(_outcome: object) -> None:
    """Whatever a call brought that nobody waits for."""


def _foreign(vendor: str, error: BaseException) -> PluginError:
    found = PluginError(f"{vendor}: a call raised {type(error).__name__}", plugin=vendor)
    found.__cause__ = error
    return found


class Lanes:
    """The lanes of one vendor: reads, *parallel* works, and listening.

    Args:
        parallel: How many work calls may overlap.
        scale: Multiplies every deadline.
        margin_s: See Lane.
    """

    def __init__(  # noqa: PLR0917 - what all of the lanes share
        self,
        vendor: str,
        parallel: int,
        scale: float,
        clock: Clock,
        observe: Observe = lambda _call, _outcome, _seconds: None,
        freed: Callable[[], None] = lambda: None,
        *,
        margin_s: float = 0.0,
    ) -> None:
        def lane() -> Lane:
            return Lane(vendor, clock, observe, freed, margin_s=margin_s)

        self.scale = scale
        self._read = lane()
        self._works = tuple(lane() for _ in range(max(1, parallel)))
        self._listen = lane()
        self._turns: dict[DeviceId, asyncio.Lock] = {}

    @property
    def all(self) -> tuple[Lane, ...]:
        return (self._read, *self._works, self._listen)

    @property
    def stuck(self) -> int:
        """How many calls overran and go on."""
        return sum(lane.stuck for lane in self.all)

    @property
    def reads_hang(self) -> bool:
        """Whether a read call overran and goes on: no other one is made meanwhile."""
        return self._read.stuck

    async def read(self, call: str, work: Callable[[], T]) -> T:
        """A read call: none overlaps with another."""
        return await self._read.call(call, work, deadline_s=self.deadline_s(call))

    async def work(self, call: str, work: Callable[[], T], about: Collection[DeviceId] = ()) -> T:
        """A work call, in the first lane that is free.

        Two of them never work at one of the whole devices *about*, not even where the earlier
        one overran.
        """
        async with AsyncExitStack() as stack:
            for device in sorted(set(about)):  # in one order, so that no two wait for each other
                turn = self._turns.setdefault(device, asyncio.Lock())
                await stack.enter_async_context(turn)
            self.check(call, about)
            free = min(self._works, key=lambda one: (one.stuck, one.busy))
            return await free.call(call, work, deadline_s=self.deadline_s(call), about=about)

    def check(self, call: str, about: Collection[DeviceId]) -> None:
        """Refuse *call* while a work call at one of the whole devices *about* hangs.

        Raises:
            SourceTimeout: One does: what it will have done is not known.
        """
        for lane in self._works:
            if not lane.about.isdisjoint(about):
                lane.check(call)

    async def listen(self, work: Callable[[], T]) -> T:
        """A listen call: overlaps with all others."""
        return await self._listen.call("listen", work, deadline_s=self.deadline_s("listen"))

    def close(self, last: Callable[[], None] | None = None) -> None:
        """Let every thread end; that of reads calls *last* before."""
        self._read.close(last)
        for lane in (*self._works, self._listen):
            lane.close()

    def deadline_s(self, call: str) -> float:
        """How long *call* may take; a listen call so long after the time that it blocks."""
        blocks_s = LISTEN_S if call == "listen" else 0.0
        return blocks_s + DEADLINES_S[call] * self.scale
