"""``python -I -m accelkit.agent.worker``: makes the calls of one vendor, as an agent asks it to.

Standard input is one end of a pair of sockets, standard output a file for traces of the end. The
agent writes a first frame that says which vendor, and then one for each call. Not here: when a call
has taken too long, and what then.
"""

import contextlib
import ctypes
import faulthandler
import logging
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NoReturn

import attrs

from accelkit.agent.calls import CALLS, LISTEN, Call, Here
from accelkit.agent.logs import fields_of, traceback_of
from accelkit.agent.remote_frames import PROTOCOL, Frame, error_frame, read_frames, write_frame
from accelkit.core.allocation import Grant
from accelkit.core.errors import AccelkitError, PluginError
from accelkit.core.foreign import in_words
from accelkit.core.serde import from_tree, to_tree
from accelkit.core.vendor import Vendor
from accelkit.testing.hosts import open_host

TRACE_SIGNAL = signal.SIGUSR2
"""Asks for a trace of all threads, which even a library that never returns cannot prevent."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_BAD_FIRST_FRAME = 65  # EX_DATAERR of sysexits.h


def main() -> NoReturn:
    """Serve until the agent closes its end; then leave at once, whatever still runs."""
    connection = _take_over()
    # An end that leaves answers unread is an error of the connection.
    with contextlib.suppress(OSError), connection.makefile("rb") as stream:
        frames = read_frames(stream)
        first = next(frames, None)
        if first is None or first["protocol"] != PROTOCOL:
            os._exit(_BAD_FIRST_FRAME)
        worker = Worker(connection, first)
        worker.write({"made": worker.name})
        for frame in frames:
            worker.take(frame)
    if os.getpgrp() == os.getpid():  # not that of whoever tries this by hand
        os.killpg(0, signal.SIGKILL)  # what a library has forked goes, too
    os._exit(0)


def _take_over() -> socket.socket:
    """The connection, and a process in which nothing else uses it or ends it."""
    connection = socket.socket(fileno=os.dup(0))
    trace = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)  # libraries print
    faulthandler.enable(trace)
    faulthandler.register(TRACE_SIGNAL, trace, all_threads=True)
    # Whoever ends a whole group means the agent, which ends this process when it is done.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    # Where memory ends, the agent is not the one to go: other makers' devices need it.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123 - pathlib is not needed otherwise
        score.write("1000")
    # A library that keeps the interpreter to itself would hide that the agent has ended.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return connection


class Worker:
    """One vendor, asked by one thread for each of the agent's.

    Args:
        connection: To the agent.
        first: Names the vendor, its options and its host.
    """

    def __init__(self, connection: socket.socket, first: Frame) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._lanes: dict[object, queue.SimpleQueue[Frame]] = {}
        self.name = str(first["name"])
        self._log(first)
        self._here: Here | None = None
        self._lack: BaseException | None = None
        try:
            self._here = _made(first)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
            self._lack = error

    def take(self, frame: Frame) -> None:
        """Let a call be made in the thread of its lane."""
        lane = self._lanes.get(frame["lane"])
        if lane is None:
            lane = self._lanes[frame["lane"]] = queue.SimpleQueue()
            threading.Thread(target=self._work_off, args=(lane,), daemon=True).start()
        lane.put(frame)

    def _work_off(self, lane: queue.SimpleQueue[Frame]) -> None:
        while True:
            frame = lane.get()
            try:
                self.write({"id": frame["id"], "ok": self._answer(frame)})
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
                self.write({"id": frame["id"], "error": error_frame(error, self.name)})

    def _answer(self, frame: Frame) -> object:
        if self._here is None:
            raise self._no_vendor()
        call = CALLS[str(frame["call"])]
        args = _arguments(call, frame["args"], type(self._here.vendor))
        answer = self._here.ask(call, args)
        if call is not LISTEN:
            return to_tree(answer)
        assert isinstance(answer, Iterator)
        for event in answer:  # told at once: the process may not outlive the next one
            self.write({"event": to_tree(event)})
        return []

    def _no_vendor(self) -> AccelkitError:
        assert self._lack is not None
        if isinstance(self._lack, AccelkitError):
            return self._lack
        return PluginError(
            f"{self.name} cannot be made: {in_words(self._lack)}",
            plugin=self.name,
            remedy=f"report it to the author of the plugin for {self.name}",
        )

    def write(self, frame: Frame) -> None:
        """Tell the agent; if it is gone, nobody needs this process.

        Raises:
            ValueError: It is too much.
        """
        try:
            with self._writing:
                write_frame(self._connection, frame)
        except OSError:
            os._exit(0)

    def _log(self, first: Frame) -> None:
        logging.basicConfig(handlers=[_Told(self)], level=str(first["level"]), force=True)


class _Told(logging.Handler):
    """Leaves log lines to the agent, which knows where they go."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        fields = {key: str(value) for key, value in fields_of(record).items()}
        if text := traceback_of(record):
            fields["traceback"] = text
        line = {
            "level": record.levelno,
            "logger": record.name,
            "text": record.getMessage(),
            "fields": fields,
        }
        with contextlib.suppress(ValueError):
            self._worker.write({"log": line})


def _made(first: Frame) -> Here:
    """The vendor, made as in the agent."""
    # Whatever the agent could import can be imported here; nothing that the environment names is.
    path = first["path"]
    assert isinstance(path, list)
    sys.path += [folder for folder in path if folder not in sys.path]
    module, _, name = str(first["vendor"]).partition(":")
    kind: object = import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    assert isinstance(kind, type)
    assert issubclass(kind, Vendor)
    return Here(kind(from_tree(kind.options, first["options"])), open_host(str(first["host"])))


def _arguments(call: Call[object], trees: object, kind: type[Vendor]) -> tuple[object, ...]:
    assert isinstance(trees, list)
    pairs = zip(call.takes, trees, strict=True)
    return tuple(_argument(taken, tree, kind) for taken, tree in pairs)


def _argument(taken: type[object], tree: object, kind: type[Vendor]) -> object:
    value: object = from_tree(taken, tree)
    if isinstance(value, Grant) and isinstance(value.config, Mapping):
        return attrs.evolve(value, config=from_tree(kind.claim_config, value.config))
    return value


if __name__ == "__main__":
    main()
