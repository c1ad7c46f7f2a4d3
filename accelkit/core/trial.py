"""Loading a plugin first in a process that may end by it. Not here: loading it for good."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable

import attrs

LONGEST_S = 120
"""Then the process ends, whatever becomes of this one."""
_LOADED = b"."


@attrs.frozen(kw_only=True)
class Trial:
    """Work that is being done in a process of its own."""

    pid: int
    told: int
    """A pipe on which that process says that it has done it."""

    def ended(self) -> str:
        """How the process ended before it had done its work; empty: it has done it."""
        done = os.read(self.told, 1) == _LOADED
        os.close(self.told)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return "" if done else in_short(status)


def begin(work: Callable[[], object]) -> Trial | None:
    """Begin *work* in a copy of this process, where what it raises does not matter.

    None: a process with several threads cannot be copied safely, so nothing is tried.
    """
    if threading.active_count() > 1:
        return None
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - in a process of its own
        _do(work, tell)
    os.close(tell)
    return Trial(pid=pid, told=told)


def in_short(code: int) -> str:
    """How a process ended: by SIGSEGV, with code 3.

    Args:
        code: As in `subprocess.Popen.returncode`: negative for a signal.
    """
    if code >= 0:
        return f"with code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:  # those for real time have none
        return f"by signal {-code}"


def _do(work: Callable[[], object], tell: int) -> None:  # pragma: no cover - see above
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_S)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    with contextlib.suppress(BaseException):
        work()
    os.write(tell, _LOADED)
    os._exit(0)
