"""A vendor that is asked in a process of its own: which process, and when the next one starts.

Not here: the process, and what is asked.
"""

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

import attrs

from accelkit.agent.calls import LISTEN, Call, Isolated
from accelkit.agent.lanes import timeout
from accelkit.agent.remote_frames import PROTOCOL, Frame, error_of
from accelkit.agent.remote_process import Cut, End, WorkerProcess
from accelkit.core.clock import Clock
from accelkit.core.errors import (
    ConfigError,
    DriverUnresponsive,
    PluginError,
    SourceError,
    StartOver,
    WorkerDied,
)
from accelkit.core.model import DeviceId, Problem, VendorReport
from accelkit.core.reading import HealthReading
from accelkit.core.serde import from_tree, to_tree

T = TypeVar("T")

log = logging.getLogger(__name__)

PAUSES_S = (1.0, 60.0)
"""Shortest and longest time from the end of a process to the start of the next one."""
REASONS = ("crash", "deadline", "exit", "garbage", "start", StartOver.code)
"""Why there was another one: it ended by a signal; a call took too long; it ended by itself; it
wrote what is no answer; it could not be started; its vendor asked for it."""
CLEAN_S = 300.0
"""A process that lived so long is followed after the shortest."""
MOST_ABANDONED = 2
"""With so many processes that cannot be killed, no other is started."""


class Remote:
    """Asks a vendor in a worker, which is replaced when it ends, hangs or should start over.

    Args:
        isolated: Which vendor.
        clock: Of the pauses.
        woken: Called in any thread: after so many seconds the vendor can be asked again.
    """

    def __init__(
        self, isolated: Isolated, clock: Clock, woken: Callable[[float], None] = lambda _s: None
    ) -> None:
        self._isolated = isolated
        self._clock = clock
        self._woken = woken
        self._state = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._abandoned: list[WorkerProcess] = []
        self._closed = False
        self._last: _Last | None = None
        self._begun_s = 0.0
        self._pause_s = PAUSES_S[0]
        self._not_before_s = float("-inf")
        self._restarts = Counter(dict.fromkeys(REASONS, 0))

    @property
    def pid(self) -> int | None:
        """Of the process that is asked now; None: there is none."""
        worker = self._worker
        return None if worker is None else worker.pid

    @property
    def hanging(self) -> int:
        return len(self._abandoned)

    @property
    def restarts(self) -> Mapping[str, int]:
        return dict(self._restarts)

    def ask(
        self,
        call: Call[T],
        args: tuple[object, ...],
        deadline_s: float,
        about: Collection[DeviceId] = (),
    ) -> T:
        self.check(call.lane, about)
        worker = self._ready(call.lane)
        try:
            frame = worker.ask(call.name, [to_tree(arg) for arg in args], deadline_s, about)
        except Cut as cut:
            if cut.end is None:
                self._abandon_unless_over(worker)
            if call is LISTEN and (told := worker.heard()):
                return self._read(call, told)  # the next call will meet the end
            if cut.end is None:
                why = f"no answer in {deadline_s:g} s"
                raise timeout(self._isolated.name, call.lane, why) from None
            raise self._died(call.lane, cut.end) from None
        if "error" in frame:
            error = error_of(_mapping(frame["error"]))
            self._start_over([error], worker)
            raise error
        answer = self._read(call, worker.heard() if call is LISTEN else frame["ok"])
        self._start_over(_errors_in(answer), worker)
        return answer

    def check(self, call: str, about: Collection[DeviceId]) -> None:
        for worker in tuple(self._abandoned):
            if not worker.about.isdisjoint(about):
                why = "an earlier call still hangs in the driver, and its process cannot be killed"
                raise timeout(self._isolated.name, call, why)

    def close(self) -> None:
        with self._state:
            self._closed = True
            worker = self._worker
        if worker is not None:
            worker.close()

    def _ready(self, call: str) -> WorkerProcess:
        """The process that is there, or a new one.

        Raises:
            SourceError: There may be none now.
        """
        with self._state:
            if self._worker is not None:
                return self._worker
            if len(self._abandoned) >= MOST_ABANDONED:
                raise self._unresponsive(call)
            if self._last is not None and self._clock.monotonic() < self._not_before_s:
                raise self._waiting(call, self._last)
            if self._closed:
                raise SourceError(f"{self._isolated.name}: {call}: the agent ends")
            self._begun_s = self._clock.monotonic()
            self._worker = WorkerProcess(self._isolated.name, self._first(), self._ended)
            if self._last is not None:
                self._restarts[self._last.end.reason] += 1
            return self._worker

    def _first(self) -> Frame:
        kind = self._isolated.kind
        return {
            "protocol": PROTOCOL,
            "name": kind.name,
            "vendor": f"{kind.__module__}:{kind.__qualname__}",
            "options": to_tree(self._isolated.options),
            "host": self._isolated.host,
            # Not the empty one, which is wherever a process happens to be.
            "path": [folder for folder in sys.path if folder],
            "level": logging.getLevelName(log.getEffectiveLevel()),
        }

    def _ended(self, worker: WorkerProcess, end: End) -> None:
        with self._state:
            if self._closed:
                return
            if worker in self._abandoned:
                self._abandoned.remove(worker)
                pause_s = max(0.0, self._not_before_s - self._clock.monotonic())
            elif worker is self._worker:
                pause_s = self._lose(_Last(end=end))
            else:
                return
        about = {"vendor": self._isolated.name, "why": end.text, "pause_s": pause_s}
        log.error("worker ended", extra={**about, "trace": end.trace})
        self._woken(pause_s)

    def _lose(self, last: "_Last") -> float:
        """Be without a process; how long until the next one may start."""
        now_s = self._clock.monotonic()
        shortest, longest = PAUSES_S
        pause_s = shortest if now_s - self._begun_s >= CLEAN_S else self._pause_s
        self._pause_s = min(pause_s * 2, longest)
        self._not_before_s = now_s + pause_s
        self._last = last
        self._worker = None
        return pause_s

    def _abandon_unless_over(self, worker: WorkerProcess) -> None:
        with self._state:
            if worker.over.is_set() or worker in self._abandoned:
                return
            self._abandoned.append(worker)
            if worker is not self._worker:
                return
            end = End(reason="deadline", text="hangs in the driver and cannot be killed")
            pause_s = self._lose(_Last(end=end))
        about = {"vendor": self._isolated.name, "pid": worker.pid, "pause_s": pause_s}
        log.error("worker cannot be killed", extra=about)
        self._woken(pause_s)

    def _start_over(self, errors: Iterable[Exception], worker: WorkerProcess) -> None:
        """Replace *worker* if one of *errors* asks for it."""
        over = next((error for error in errors if isinstance(error, StartOver)), None)
        if over is None:
            return
        end = End(reason=StartOver.code, text="was ended: its vendor starts over")
        with self._state:
            if self._worker is not worker:
                return
            pause_s = self._lose(_Last(end=end, over=over))
        worker.kill(end.reason, end.text)
        about = {"vendor": self._isolated.name, "why": str(over), "pause_s": pause_s}
        log.info("worker starts over", extra=about)
        self._woken(pause_s)

    def _read(self, call: Call[T], tree: object) -> T:
        if call.gives is None:
            return None  # type: ignore[return-value]  # as its type says
        try:
            return from_tree(call.gives, tree)
        except ConfigError as error:
            name = self._isolated.name
            raise PluginError(f"{name}: {call.lane}: no answer: {error}", plugin=name) from error

    def _died(self, call: str, end: End) -> WorkerDied:
        name = self._isolated.name
        return WorkerDied(
            f"{name}: {call} got no answer: its process {end.text}",
            vendor=name,
            operation=call,
            remedy="look for the fault in the log of the agent and in that of the kernel;"
            " the process is started again",
            signal=end.signal,
        )

    def _waiting(self, call: str, last: "_Last") -> SourceError:
        return self._died(call, last.end) if last.over is None else last.over

    def _unresponsive(self, call: str) -> DriverUnresponsive:
        name = self._isolated.name
        return DriverUnresponsive(
            f"{name}: {call}: {MOST_ABANDONED} processes hang in the driver and cannot be killed",
            vendor=name,
            operation=call,
            remedy="look for hung tasks in the kernel log; most likely the node must be rebooted",
        )


@attrs.frozen(kw_only=True)
class _Last:
    """How the process before ended."""

    end: End
    over: StartOver | None = None
    """The vendor's own words, where it asked for it."""


def _mapping(tree: object) -> Frame:
    assert isinstance(tree, Mapping)
    return tree


def _errors_in(answer: object) -> Iterable[Exception]:
    """What *answer* tells of errors that ended in it."""
    problems: tuple[Problem, ...] = ()
    if isinstance(answer, VendorReport):
        problems = answer.problems
    elif isinstance(answer, HealthReading):
        problems = (*answer.problems, *answer.failed.values())
    for problem in problems:
        if problem.code == StartOver.code:
            yield StartOver(problem.reason, vendor=problem.vendor or "", remedy=problem.remedy)
