"""Calls of a door that are noted, fail or wait, by their numbers. Not here: the door."""

import threading
from collections.abc import Callable
from typing import TypeVar

from accelkit.conformance.mortal import ToldDoor, print_of
from accelkit.core.host import Host

T = TypeVar("T")


class Numbered:
    """Counts calls from *begin* on, from 0; before that they are nothing to it."""

    def __init__(self) -> None:
        self._next: int | None = None

    def begin(self) -> None:
        self._next = 0

    def door(self, host: Host) -> Host:
        """*host* behind it."""
        return ToldDoor(host, self.around)

    def around(self, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:
        """Make *call*, unless it is the one."""
        number, self._next = self._next, None if self._next is None else self._next + 1
        return call() if number is None else self.numbered(number, name, call, refuse)

    def numbered(self, number: int, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:
        raise NotImplementedError


class Steps(Numbered):
    """Notes every call, and which of them changed the machine in *directory*."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._directory = directory
        self.count = 0
        self.changing: list[int] = []
        """Numbers of calls."""

    def numbered(
        self,
        number: int,
        name: str,  # noqa: ARG002 - a number is enough
        call: Callable[[], T],
        refuse: Callable[[], T],  # noqa: ARG002 - it only looks
    ) -> T:
        self.count = number + 1
        before = print_of(self._directory)
        try:
            return call()
        finally:
            if print_of(self._directory) != before:
                self.changing.append(number)


class Refusing(Numbered):
    """The call *which* is not done."""

    def __init__(self, which: int) -> None:
        super().__init__()
        self._which = which
        self.refused = ""
        """The call that was refused."""

    def numbered(self, number: int, name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:
        if number != self._which:
            return call()
        self.refused = name
        return refuse()


class Holding(Numbered):
    """The call *which* waits until it is told to go on."""

    def __init__(self, which: int) -> None:
        super().__init__()
        self._which = which
        self.entered, self.go_on = threading.Event(), threading.Event()

    def numbered(
        self,
        number: int,
        name: str,  # noqa: ARG002 - a number is enough
        call: Callable[[], T],
        refuse: Callable[[], T],  # noqa: ARG002 - it only waits
    ) -> T:
        if number == self._which:
            self.entered.set()
            self.go_on.wait()
        return call()
