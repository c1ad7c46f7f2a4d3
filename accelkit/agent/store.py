"""The newest view and the flags that everybody may wait for. Not here: how a view is made."""

import asyncio
from collections.abc import AsyncIterator

from accelkit.core.view import View


class Switch:
    """A flag that its owner turns."""

    def __init__(self, *, now: bool = False) -> None:
        self._now = now
        self._turned = asyncio.Event()

    @property
    def now(self) -> bool:
        return self._now

    def set(self, now: bool) -> None:
        """Turn it; those who wait are woken if that is news."""
        if now == self._now:
            return
        self._now = now
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def wait(self) -> None:
        while not self._now:
            await self._turned.wait()

    async def changed(self) -> None:
        await self._turned.wait()


class ViewStore:
    """Keeps one view, never a queue: who reads slowly skips."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._newer = asyncio.Event()
        self.version = 0
        """Counts the views that differed from the one before."""

    @property
    def view(self) -> View:
        return self._view

    def publish(self, view: View) -> bool:
        """Keep *view*; readers are woken only if it differs from the last one.

        An equal view still replaces it: messages and times are newer.

        Returns:
            Whether it differs.
        """
        differs = view != self._view
        self._view = view
        if differs:
            self.version += 1
            newer, self._newer = self._newer, asyncio.Event()
            newer.set()
        return differs

    async def views(self) -> AsyncIterator[View]:
        """The current view, then newer ones."""
        while True:
            newer = self._newer
            yield self._view
            await newer.wait()
