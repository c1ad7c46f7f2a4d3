"""Hears the kernel: uevents, and the lines of its log. Not here: what they mean to a vendor."""

import asyncio
import errno
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

from accelkit.agent.problems import AGENT, Problems
from accelkit.core.clock import Clock
from accelkit.core.errors import SourceError
from accelkit.core.host import KMSG, UEVENTS, Host
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import Signal

log = logging.getLogger(__name__)

UEVENT, LOG = "uevent", "kernel"
NUMBER = "number"
"""Field of a line of the log: which record of this boot it is, from 0."""
SAID_US = "said"
"""Field of a line that was there before anybody listened: microseconds of the monotonic clock."""
MISSED = "missed"
"""Source of a signal that stands for those that were lost: look for yourselves."""
UNHEARD = "kernel-unheard"
LOOK_S = 1.0
"""Between two looks at the files of a simulated machine."""
_KOBJECT_UEVENT = 15
_FROM_KERNEL = 1
"""include/uapi/linux/netlink.h; the group of the kernel itself, udev sends to the other one."""
_RCVBUFFORCE = 33
"""include/uapi/asm-generic/socket.h; for CAP_NET_ADMIN only."""
_BACKLOG = 1 << 22
"""Room for some thousand uevents, as of many functions that are made at once."""
_ROOM = 1 << 16
_MOST_WAITING = 1 << 16
"""Signals that nobody has looked at yet; more are dropped, as the kernel does."""
_AT_ONCE = 256
"""Of them are read before anybody else has a turn."""
_SOME = Signal(source=MISSED)
_RECORD = re.compile(rb"[0-9]+,([0-9]+),([0-9]+),[^;\n]*;([^\n]*)")
"""Documentation/ABI/testing/dev-kmsg."""


def uevent(message: bytes) -> Signal | None:
    """What the kernel sent; None: it is none of its own.

    Source:
        Linux, lib/kobject_uevent.c: ``ACTION@DEVPATH`` and pairs, each with a NUL at its end.
    """
    head, *pairs = message.decode(errors="replace").split("\0")
    action, at, path = head.partition("@")
    fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if not at or fields.get("ACTION") != action:
        return None
    return Signal(source=UEVENT, subject=path, fields=FrozenMap(fields))


def log_line(record: bytes, *, early: bool = False) -> Signal | None:
    """The text of a record of the log, and its number; None: it is none.

    Args:
        record: As the kernel tells it.
        early: It was said before anybody listened; what is said now needs no time, and the clock
            of the log drifts from all others. Like the monotonic one it stands still while the
            machine sleeps: of what was said before that the age is too low, and of the rest right.
    """
    found = _RECORD.match(record)
    if found is None:
        return None
    fields = {NUMBER: found[1].decode(), **({SAID_US: found[2].decode()} if early else {})}
    text = found[3].decode(errors="replace")
    return Signal(source=LOG, text=text, fields=FrozenMap(fields))


class FileEar:
    """Hears a simulated machine, whose kernel writes into files.

    Args:
        host: The machine.
    """

    def __init__(self, host: Host, clock: Clock) -> None:
        self._host = host
        self._clock = clock

    async def listen(self, take: Callable[[Signal], Awaitable[None]]) -> None:
        """Let every signal be taken, as long as the task lives."""
        taken: dict[str, list[bytes]] = {KMSG: [], UEVENTS: []}
        while True:
            for path, meaning in ((KMSG, log_line), (UEVENTS, uevent)):
                before, records = taken[path], self._records(path)
                taken[path] = records
                begun_anew = records[: len(before)] != before  # it was booted
                for record in records if begun_anew else records[len(before) :]:
                    if (signal := meaning(record)) is not None:
                        await take(signal)
            await self._clock.sleep(LOOK_S)

    def _records(self, path: str) -> list[bytes]:
        try:
            return self._host.read_bytes(path).splitlines()
        except SourceError:
            return []


class Ear:
    """Hears from the beginning of the log on, and uevents from now on.

    What may not be heard is a problem, and nothing else: files are looked at all the same.

    Args:
        problems: Has it while something is not heard.
        kmsg: The log.
    """

    def __init__(self, problems: Problems, kmsg: str = KMSG) -> None:
        self._problems = problems
        self._kmsg = kmsg
        self._waiting: asyncio.Queue[Signal] = asyncio.Queue(_MOST_WAITING)
        self._missed = False
        self._early = True

    async def listen(self, take: Callable[[Signal], Awaitable[None]]) -> None:
        """Let every signal be taken, one after the other, as long as the task lives."""
        with ExitStack() as stack:
            self._open("the kernel's log", stack, self._open_log)
            self._open("uevents", stack, self._open_uevents)
            while True:
                signal = await self._waiting.get()
                if self._missed:
                    self._missed = False
                    await take(_SOME)
                if signal is not _SOME:
                    await take(signal)

    def _open(self, what: str, stack: ExitStack, way: Callable[[ExitStack], None]) -> None:
        try:
            way(stack)
        except OSError as error:
            self._note(what, error)

    def _note(self, what: str, error: OSError) -> None:
        reason = f"{what} cannot be heard: {error.strerror or error}"
        remedy = "give the agent CAP_SYSLOG and the host's /dev/kmsg and network, or poll on"
        self._problems.note(AGENT, UNHEARD, what, reason, remedy)

    def _open_log(self, stack: ExitStack) -> None:
        number = os.open(self._kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, number)
        self._read_with("the kernel's log", stack, number, lambda: self._read_log(number))

    def _open_uevents(self, stack: ExitStack) -> None:
        kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK
        plug = socket.socket(socket.AF_NETLINK, kind, _KOBJECT_UEVENT)
        stack.callback(plug.close)
        with suppress(PermissionError):
            plug.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BACKLOG)
        plug.bind((0, _FROM_KERNEL))
        number = plug.fileno()
        self._read_with("uevents", stack, number, lambda: self._put(uevent(plug.recv(_ROOM))))

    def _read_with(
        self, what: str, stack: ExitStack, number: int, read: Callable[[], None]
    ) -> None:
        """Read one thing after the other while there is one."""

        def ready() -> None:
            for _ in range(_AT_ONCE):
                try:
                    read()
                except BlockingIOError:
                    return
                except OSError as error:
                    # Records that were overwritten, or more than there was room for: read on.
                    if error.errno in {errno.EPIPE, errno.ENOBUFS, errno.EINVAL}:
                        self._miss()
                        continue
                    loop.remove_reader(number)
                    self._note(what, error)
                    return

        loop = asyncio.get_running_loop()
        loop.add_reader(number, ready)
        stack.callback(loop.remove_reader, number)

    def _read_log(self, number: int) -> None:
        try:
            record = os.read(number, _ROOM)
        except BlockingIOError:
            self._early = False
            raise
        if not record:
            raise OSError(errno.EIO, "it has come to an end")
        self._put(log_line(record, early=self._early))

    def _put(self, signal: Signal | None) -> None:
        if signal is None:
            return
        if self._waiting.full():
            self._miss()
        else:
            self._waiting.put_nowait(signal)

    def _miss(self) -> None:
        """Have it told, once for all that is waiting now, that something was lost."""
        if not self._missed and not self._waiting.full():
            self._waiting.put_nowait(_SOME)
        self._missed = True
