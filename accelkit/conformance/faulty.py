"""Calls of a door that fail, wait or are only noted, each by its number. Not here: the door."""

import threading
from collections.abc import Callable
from typing import TypeVar

from accelkit.conformance.mortal import ToldDoor, print_of
from accelkit.core.host import Host

T = TypeVar("T")


class Steps:
    """Notes every call, and which of them changed the machine in *directory*."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.calls: list[str] = []
        self.first = 0
        """Number of the first call that matters."""
        self.changing: list[int] = []
        """Numbers of calls, from 0."""

    def around(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:  # noqa: ARG002 - it only looks
        number = len(self.calls)
        self.calls.append(name)
        before = print_of(self._directory)
        try:
            return call()
        finally:
            if print_of(self._directory) != before:
                self.changing.append(number)

    def door(self, host: Host) -> Host:
        return ToldDoor(host, self.around)


class Refusing:
    """The call with one number is not done; counting begins with *armed*."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._next = 0
        self.refused = ""
        """The call that was refused."""

    def around(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:
        number = self._next
        self._next += 1
        if number != self._number:
            return call()
        self.refused = name
        return refuse()

    def door(self, host: Host) -> Host:
        return ToldDoor(host, self.around)


class Holding:
    """The call with one number waits until it is told to go on."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._next = 0
        self.entered, self.go_on = threading.Event(), threading.Event()

    def around(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:  # noqa: ARG002 - it only waits
        number = self._next
        self._next += 1
        if number == self._number:
            self.entered.set()
            self.go_on.wait()
        return call()

    def door(self, host: Host) -> Host:
        return ToldDoor(host, self.around)
