"""One worker: a process that makes a vendor's calls, and the thread that hears what it says.

Not here: when another one is started, and what its answers mean.
"""

import contextlib
import io
import itertools
import logging
import os
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import attrs

from accelkit.agent.lanes import start_thread
from accelkit.agent.remote_frames import Frame, read_frames, write_frame
from accelkit.core.errors import SourceError
from accelkit.core.foreign import in_words
from accelkit.core.model import DeviceId
from accelkit.core.trial import in_short

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_OPTIMISED = ("-" + "O" * sys.flags.optimize,) if sys.flags.optimize else ()
COMMAND = (sys.executable, *_OPTIMISED, "-I", "-m", "accelkit.agent.worker")
START_S = 30.0
"""How long loading and making the vendor may take; deadlines of calls count from then."""
KILL_S = 1.0
"""How long a process may take to end that was killed; then it hangs in the kernel."""
TRACE_S = 0.02
"""How long a process that hangs may take to say where."""
TRACE_BYTES = 1 << 16
LOOK_S = 1.0
"""Between two looks at whether a silent process is still there: what a library has forked holds
its end of the connection, too."""

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class End:
    """How a process ended."""

    reason: str
    """In metrics."""
    text: str
    """Continues a sentence that begins with the process."""
    signal: int = 0
    trace: str = ""
    """Where its threads were."""


class Cut(Exception):
    """A call was ended from outside: the process has ended, or the call was not answered.

    Args:
        end: Of the process; None: it was killed for this call, and has not ended.
    """

    def __init__(self, end: End | None) -> None:
        super().__init__()
        self.end = end


class WorkerProcess:
    """A process that serves the vendor that *first* names, until it ends or is ended.

    May be used by several threads.

    Args:
        vendor: Its name.
        first: What it is told before any call.
        ended: Called in a thread of its own when it has ended, before anybody who waits knows.

    Raises:
        SourceError: The system gives no more threads or files now.
    """

    def __init__(
        self, vendor: str, first: Frame, ended: Callable[["WorkerProcess", End], None]
    ) -> None:
        self.over = threading.Event()
        """Set when the process is no more."""
        self.about: frozenset[DeviceId] = frozenset()
        """Whole devices that calls were at when it was killed."""
        self._made = threading.Event()
        """Set when it takes calls, and when it never will."""
        self._vendor = vendor
        self._ended = ended
        self._end: End | None = None
        self._why: tuple[str, str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._state = threading.Lock()
        self._numbers = itertools.count(1)
        self._calls: dict[int, tuple[queue.SimpleQueue[Frame | End], frozenset[DeviceId]]] = {}
        self._heard: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._writing = threading.Lock()
        with contextlib.ExitStack() as unless_it_starts:
            self._trace, self._connection, self._theirs = _files(vendor, unless_it_starts)
            live = threading.Thread(
                target=self._live, args=(first,), name=f"worker-{vendor}", daemon=True
            )
            start_thread(live, vendor)
            unless_it_starts.pop_all()

    @property
    def pid(self) -> int | None:
        """None: it has not started yet."""
        return None if self._process is None else self._process.pid

    def ask(self, call: str, args: object, deadline_s: float, about: Collection[DeviceId]) -> Frame:
        """The answer to *call*; a process that has not answered after *deadline_s* is killed.

        Raises:
            Cut: There is none.
        """
        number = next(self._numbers)
        answer: queue.SimpleQueue[Frame | End] = queue.SimpleQueue()
        with self._state:
            if self._end is not None:
                raise Cut(self._end)
            self._calls[number] = (answer, frozenset(about))
        frame = {"id": number, "lane": threading.get_ident(), "call": call, "args": args}
        try:
            if not self._made.wait(START_S):
                self._overrun(f"was killed, for its vendor was not made in {START_S:g} s")
                raise Cut(None)
            until_s = time.monotonic() + deadline_s
            self._write(frame, deadline_s)
            found = answer.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            self._overrun(f"was killed, for {call} got no answer in {deadline_s:g} s")
            raise Cut(None) from None
        finally:
            with self._state:
                del self._calls[number]
        if isinstance(found, End):
            raise Cut(found)
        return found

    def heard(self) -> list[object]:
        """What it told unasked since the last time."""
        told = []
        with contextlib.suppress(queue.Empty):
            while True:
                told.append(self._heard.get_nowait())
        return told

    def kill(self, reason: str, text: str) -> None:
        """End it; the first reason counts."""
        with self._state:
            self._why = self._why or (reason, text)
            self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Let it end; nobody waits for it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def _overrun(self, text: str) -> None:
        with self._state:
            self.about = self.about.union(*(about for _, about in self._calls.values()))
            self._why = self._why or ("deadline", text)
            self._signal(signal.SIGUSR2)
        if not self.over.wait(TRACE_S):
            self.kill("deadline", text)
            self.over.wait(KILL_S)

    def _write(self, frame: Frame, deadline_s: float) -> None:
        """Send *frame*; whoever cannot be written to is as silent as one that does not answer.

        Raises:
            Empty: It does not read.
        """
        if not self._writing.acquire(timeout=deadline_s):
            raise queue.Empty
        try:
            # For sending alone: the other thread waits as long as it takes.
            limit = struct.pack("@ll", int(deadline_s), int(deadline_s % 1 * 1e6) or 1)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            write_frame(self._connection, frame)
        except BlockingIOError:
            raise queue.Empty from None
        except OSError:
            return  # it has ended, and whoever hears that tells
        finally:
            self._writing.release()

    def _signal(self, number: signal.Signals) -> None:
        # Under the lock: once it has been waited for, its number may be somebody else's.
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, number)

    def _live(self, first: Frame) -> None:
        try:
            process = subprocess.Popen(
                COMMAND,
                stdin=self._theirs.fileno(),
                stdout=self._trace,
                start_new_session=True,  # a terminal's Ctrl-C is for the agent
            )
        except Exception as error:  # noqa: BLE001 - there may be no memory either
            self._finish(End(reason="start", text=f"cannot be started: {error}"))
            return
        finally:
            self._theirs.close()
        with self._state:
            self._process = process
            if self._why is not None:
                self._signal(signal.SIGKILL)
        with contextlib.suppress(OSError):
            write_frame(self._connection, first)
        self._hear(process.pid)
        with contextlib.suppress(OSError):  # nobody may be told of ends, if SIGCHLD is ignored
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            os.killpg(process.pid, signal.SIGKILL)  # what its library has forked
        with self._state:
            code = process.wait()
        self._finish(self._end_of(code))

    def _hear(self, pid: int) -> None:
        """Return when the process closed its end, has ended, or wrote what it may not."""
        try:
            # An end with calls that it had not read yet is an error of the connection.
            with contextlib.suppress(OSError):
                for frame in read_frames(io.BufferedReader(_Ear(self._connection, pid))):
                    self._take(frame)
        except Exception as error:  # noqa: BLE001 - whatever it wrote, it is of no use any more
            self.kill("garbage", f"was killed, for it wrote what is no answer: {in_words(error)}")
        else:
            with self._state:
                self._signal(signal.SIGKILL)  # what it does without its end, nobody would know

    def _take(self, frame: Frame) -> None:
        if "event" in frame:
            self._heard.put(frame["event"])
        elif "made" in frame:
            self._made.set()
        elif "log" in frame:
            _log(self._vendor, frame["log"])
        else:
            with self._state:
                waiting = self._calls.get(int(str(frame["id"])))
            if waiting is not None:
                waiting[0].put(frame)

    def _end_of(self, code: int) -> End:
        trace = os.pread(self._trace, TRACE_BYTES, 0).decode(errors="replace").strip()
        if self._why is not None:
            reason, text = self._why
            return End(reason=reason, text=text, signal=max(0, -code), trace=trace)
        reason = "crash" if code < 0 else "exit"
        text = f"ended {in_short(code)}"
        return End(reason=reason, text=text, signal=max(0, -code), trace=trace)

    def _finish(self, end: End) -> None:
        self._ended(self, end)
        with self._state:
            self._end = end
            for waiting, _ in self._calls.values():
                waiting.put(end)
        self._made.set()
        self.over.set()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with self._writing:
            self._connection.close()
        os.close(self._trace)


class _Ear(io.RawIOBase):
    """Hears what comes over *connection* as long as the process *pid* lives."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection = connection
        self._pid = pid
        self._coming = select.poll()
        self._coming.register(connection, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, into: "WriteableBuffer") -> int:
        while not self._coming.poll(LOOK_S * 1000):
            if _has_ended(self._pid):
                return 0
        return self._connection.recv_into(into)


def _has_ended(pid: int) -> bool:
    """Whether a process of ours has, which somebody has yet to wait for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:  # nobody is told of ends, if SIGCHLD is ignored
        return True


def _files(vendor: str, closing: contextlib.ExitStack) -> tuple[int, socket.socket, socket.socket]:
    """A file for traces and both ends of a connection, which *closing* closes.

    Raises:
        SourceError: There are no more.
    """
    try:
        trace = os.memfd_create(f"worker-{vendor}")
        closing.callback(os.close, trace)
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise SourceError(
            f"{vendor} cannot be asked: no process can be started for it: {error}",
            vendor=vendor,
            remedy="let the agent have more open files: see the limits of its pod",
        ) from error
    closing.enter_context(ours)
    closing.enter_context(theirs)
    return trace, ours, theirs


def _log(vendor: str, line: object) -> None:
    """Pass a line of the process on to wherever lines of this one go."""
    if not isinstance(line, Mapping) or not isinstance(line["fields"], Mapping):
        raise TypeError("a log line that is none")
    logger, level = logging.getLogger(str(line["logger"])), int(str(line["level"]))
    if logger.isEnabledFor(level):
        about = {"name": logger.name, "levelno": level, "levelname": logging.getLevelName(level)}
        told = {**line["fields"], **about, "msg": line["text"], "vendor": vendor}
        logger.handle(logging.makeLogRecord(told))
