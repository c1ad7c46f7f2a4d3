"""A process that can end before any of its effects."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Crash(BaseException):
    """The process is no more: no code of ours handles this."""


class Process:
    """Counts effects, and ends before the one that it is told.

    Args:
        ends_before: The number of the effect before which it ends, from 0; None: it does not.
        before: Called before every effect, with its name.
    """

    def __init__(
        self,
        ends_before: int | None = None,
        before: Callable[[str], None] = lambda _effect: None,
    ) -> None:
        self._ends_before = ends_before
        self._before = before
        self.effects = 0
        self.dead = False
        self.gone = asyncio.Event()
        self.last: list[Callable[[], None]] = []
        """What the kernel does when it ends."""

    def effect(self, name: str, do: Callable[[], T]) -> T:
        """Do what has an effect outside of the process."""
        self.alive()
        self._before(name)
        if self.effects == self._ends_before:
            self.end()
        self.alive()
        self.effects += 1
        return do()

    def end(self) -> None:
        """Be no more."""
        self.dead = True
        self.gone.set()
        for do in self.last:
            do()

    def alive(self) -> None:
        """Do nothing, if there is somebody to do it."""
        if self.dead:
            raise Crash
