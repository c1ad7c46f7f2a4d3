"""Starts agents out of a process that has loaded what they need. Not here: what they do.

To load it takes most of the time of a start, and a run of checks starts dozens of them.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import cast

LOADED = ("agent", "backends", "core", "testing", "vendors")
"""Packages of accelkit that agents load sooner or later; of others' plugins nothing is loaded
here, as they may do anything then."""
BESIDE = ("accelkit.cli.agent", "kubernetes.client", "grpc.aio")
"""What else they load, if it is installed."""
PROGRAM = "import sys; from accelkit.cli.main import main; sys.exit(main())"
_READY = b"ready\n"
_START_S = 60.0
_AT_ONCE_S = 0.001


class Started:
    """A process that was started; it ends at the latest with the one that asked for it.

    Args:
        line: To its parent.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._heard = b""
        self._code: int | None = None
        self._waits = threading.Lock()
        self.pid = int(self._hear(_START_S))

    def send_signal(self, number: int) -> None:
        """Send it a signal; one that has ended does not mind."""
        with contextlib.suppress(OSError):
            self._line.sendall(b"%d\n" % number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit code when it has ended; of one that a signal ended its number, below 0.

        Raises:
            TimeoutError: It has not ended in time.
        """
        with self._waits:
            if self._code is None:
                self._code = int(self._hear(timeout_s))
                self._line.close()
            return self._code

    def ended(self) -> bool:
        """Whether it has."""
        with contextlib.suppress(TimeoutError):
            self.wait(_AT_ONCE_S)
        return self._code is not None

    def _hear(self, timeout_s: float | None) -> bytes:
        self._line.settimeout(timeout_s)
        while b"\n" not in self._heard:
            more = self._line.recv(64)
            if not more:
                raise ConnectionError("whoever starts agents has ended")
            self._heard += more
        word, _, self._heard = self._heard.partition(b"\n")
        return word


def start(
    words: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    afresh: bool = False,
) -> Started:
    """Start ``accelkit`` with *words*, as a command line does.

    Args:
        words: What comes after the name of the program.
        log: What it says is added to it.
        environment: More than that of this process.
        afresh: It loads everything itself.
    """
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(_START_S)
    line.connect(_address())
    asked = {
        "words": [*words],
        "log": str(log),
        "env": {**os.environ, **environment},
        "cwd": str(Path.cwd()),
        "afresh": afresh,
    }
    line.sendall(json.dumps(asked).encode() + b"\n")
    return Started(line)


_once = threading.Lock()


def _address() -> str:
    """The socket of this process's nursery."""
    with _once:  # a cache alone lets two threads make one each
        return _opened(os.getpid())


@cache
def _opened(_pid: int) -> str:
    path = f"{tempfile.mkdtemp(prefix='ak-')}/nursery"
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # Ctrl-C is for whoever asks, and ends what was started
    )
    atexit.register(process.communicate)  # the end of its input is its end
    assert process.stdout is not None
    if process.stdout.readline() != _READY:
        raise ConnectionError("what starts agents has ended: see above")
    return path


# What follows runs in the nursery, and in what it starts.


def _load() -> None:
    for folder in LOADED:
        package = importlib.import_module(f"accelkit.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with contextlib.suppress(ImportError):  # of what needs something that is not there
                importlib.import_module(module.name)
    for name in BESIDE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def _serve(path: str) -> Callable[[], int] | None:
    """Start what is asked for at *path* until there is nobody to ask.

    Returns:
        In each process that was started what it has to do; None: in the nursery, at its end.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody looks after those who look after them
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    os.write(1, _READY)
    while True:
        if 0 in _readable(0, listener.fileno()):
            shutil.rmtree(Path(path).parent, ignore_errors=True)
            return None
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return _parent(line)
        line.close()


def _readable(*files: int) -> list[int]:
    """Those of *files* that can be read, at least one."""
    return select.select(files, (), ())[0]


def _parent(line: socket.socket) -> Callable[[], int]:
    """Start what *line* asks for, and look after it; returns only in what was started."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked = b""
    while not asked.endswith(b"\n"):
        asked += line.recv(1 << 16) or b"\n"
    pid = os.fork()
    if pid == 0:
        line.close()
        return _become(json.loads(asked))
    line.sendall(b"%d\n" % pid)
    ended = os.pidfd_open(pid)
    while ended not in _readable(ended, line.fileno()):
        for number in line.recv(64).split() or [b"%d" % signal.SIGKILL]:
            os.kill(pid, int(number))
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(asked: dict[str, object]) -> Callable[[], int]:
    """Be a process like any other that a command line starts."""
    try:
        log = os.open(str(asked["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except FileNotFoundError:  # who asked has taken its directory away meanwhile
        return lambda: 1
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(here, there)
    os.close(log)
    os.close(nothing)
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    os.environ.update(cast("dict[str, str]", asked["env"]))
    words = cast("list[str]", asked["words"])
    if asked["afresh"]:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *words])  # noqa: S606 - ourselves
    sys.path[:0] = [p for p in _python_path() if p not in sys.path]
    main = importlib.import_module("accelkit.cli.main").main
    return lambda: cast("int", main(words))


def _python_path() -> list[str]:
    """Where an interpreter that starts looks first."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


if __name__ == "__main__":
    _load()
    job = _serve(sys.argv[1])
    sys.exit(0 if job is None else job())
