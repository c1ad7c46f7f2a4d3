"""Locks among all instances on a node: one on each claim, one on all places."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import attrs

from accelkit.agent.disk import Disk, in_words
from accelkit.core.clock import Clock
from accelkit.core.errors import LedgerBusy

RESERVE = "reserve.lock"
POLL_S = 0.02
"""How often a lock that somebody has is tried again."""


@attrs.frozen(kw_only=True)
class Locks:
    """Locks as files, which end with the process that has them."""

    run: Path
    """Where the lock on all places is."""
    claims: Path
    """Where those on claims are."""
    disk: Disk
    clock: Clock
    make: Callable[[], None]
    """Makes both directories."""
    has_entry: Callable[[str], bool]
    """Whether a claim has an entry; its lock goes with it."""
    _reserve: Path = attrs.field(
        default=attrs.Factory(lambda self: self.run / RESERVE, takes_self=True), init=False
    )
    signature: str = attrs.field(factory=lambda: f"{os.getpid()} {uuid4()}", init=False)
    """Ours alone: in containers, several processes have one number."""

    @asynccontextmanager
    async def claim(self, uid: str, until: float) -> AsyncIterator[None]:
        """Nobody else works on a claim inside; its lock is waited for *until* then, at most.

        Raises:
            LedgerBusy: Another process had it all the time.
            LedgerError: It cannot be locked.
        """
        path = self.claims / f"{uid}.lock"
        handle = await self._taken(path, f"claim {uid}", until)
        try:
            self.disk.sign(path, handle, self.signature)
            yield
        finally:
            self.disk.unlock(path, handle, remove=not self.has_entry(uid))

    @contextmanager
    def free(self, uid: str) -> Iterator[bool]:
        """Whether nobody works on a claim; if so, nobody else does inside.

        Raises:
            LedgerError: It cannot be locked.
        """
        path = self.claims / f"{uid}.lock"
        handle = self._try(path, f"claim {uid}")
        try:
            yield handle is not None
        finally:
            if handle is not None:
                self.disk.unlock(path, handle, remove=not self.has_entry(uid))

    @asynccontextmanager
    async def places(self, until: float) -> AsyncIterator[bool]:
        """Nobody else decides about places inside; nothing is waited for inside either.

        Yields:
            Whether nobody else has decided since we did the last time.

        Raises:
            LedgerBusy: Another process had the lock all the time.
            LedgerError: It cannot be locked.
        """
        path = self._reserve
        handle = await self._taken(path, "the places of this node", until)
        try:
            alone = self.disk.owner(path) == self.signature
            if not alone:
                self.disk.sign(path, handle, self.signature)
            yield alone
        finally:
            self.disk.unlock(path, handle, remove=False)

    @contextmanager
    def places_free(self) -> Iterator[bool]:
        """Whether nobody decides about places; if so, nobody else does inside.

        Raises:
            LedgerError: They cannot be locked.
        """
        path = self._reserve
        handle = self._try(path, "the places of this node")
        try:
            yield handle is not None
        finally:
            if handle is not None:
                self.disk.unlock(path, handle, remove=False)

    async def _taken(self, path: Path, what: str, until: float) -> int:
        while (handle := self._try(path, what)) is None:
            if self.clock.monotonic() >= until:
                raise LedgerBusy(
                    f"{what}: another agent works there ({self._whose(path)})",
                    remedy="wait, or end that process",
                )
            await self.clock.sleep(POLL_S)
        return handle

    def _whose(self, path: Path) -> str:
        return f"process {self.disk.owner(path).partition(' ')[0] or 'unknown'}"

    def _try(self, path: Path, what: str) -> int | None:
        with in_words(f"{what} cannot be locked"):
            try:
                return self.disk.lock(path)
            except FileNotFoundError:  # the directory was removed
                self.make()
                return self.disk.lock(path)
