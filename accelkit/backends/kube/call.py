"""One exchange with the API server: its deadline, and how it is ended. Not here: what is said."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Ended(Exception):
    """Nobody waits for the exchange any more."""


class Call:
    """Until when an exchange may take, and the socket that it uses.

    A thread works on it; the loop may end it at any moment, which ends the socket.
    """

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.stage = "waiting for its turn"
        """What it does now, for whoever tells that it took too long."""
        self.kept = False
        """Whether it uses a connection from before, which the server may have ended."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def left(self) -> float:
        """Seconds that remain.

        Raises:
            TimeoutError: None do.
        """
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def hold(self, sock: socket.socket) -> None:
        """Note the socket that *end* has to end.

        Raises:
            Ended: It is too late.
        """
        with self._lock:
            if self.ended:
                raise Ended
            self._socket = sock

    def let_go(self) -> None:
        with self._lock:
            self._socket = None

    @contextmanager
    def holding(self, sock: socket.socket) -> Iterator[None]:
        """Hold *sock* inside; it must be closed outside, where nobody can end its successor."""
        self.hold(sock)
        try:
            yield
        finally:
            self.let_go()

    def end(self) -> None:
        """Let the thread have its turn back: whatever it waits for ends at once."""
        with self._lock:
            self._ended.set()
            if self._socket is not None:
                # The plain method: that of TLS sockets takes away what the thread reads from.
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
