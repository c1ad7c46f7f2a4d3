"""Streams of changes. Not here: what is written to sockets.

Source:
    Seen from kube-apiserver 1.37.2: what comes first, how an object leaves a selection, bookmarks.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Mapping

from attrs import define, field, frozen

from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.listing import Wanted
from accelkit.conformance.sims.api.refusals import Refused, expired
from accelkit.conformance.sims.api.store import Store, Written
from accelkit.conformance.sims.api.values import part
from accelkit.core.kube import ChangeKind

Object = Mapping[str, object]
INITIAL_END = "k8s.io/initial-events-end"
_ERROR = "ERROR"


@frozen
class Line:
    """One event of a watch."""

    type: str
    object: Object


@define(eq=False)
class Watch:
    """One open watch."""

    store: Store
    kind: Kind
    namespace: str
    wanted: Wanted
    bookmark_s: float
    """Between two bookmarks."""
    blank: Object
    """An object without anything, for bookmarks."""
    _cut: asyncio.Event = field(factory=asyncio.Event)

    def cut(self) -> None:
        """Break it off, in the middle of its connection."""
        self._cut.set()

    def start(self) -> int:
        """The version after which changes are told; -1 to begin with what is there.

        Raises:
            Refused: The version cannot be read.
        """
        version = self.wanted.version
        if version and not version.isdigit():
            message = (
                f'resourceVersion: Invalid value: "{version}": '
                f'strconv.ParseUint: parsing "{version}": invalid syntax'
            )
            raise Refused(500, "", message)
        begin = self.wanted.initial or (self.wanted.initial is None and version in {"", "0"})
        return -1 if begin else int(version or self.store.version)

    async def lines(self) -> AsyncIterator[Line]:
        """What a watcher is told, until its time is over.

        Raises:
            ConnectionResetError: It was cut.
        """
        loop = asyncio.get_running_loop()
        timeout_s = self.wanted.timeout_s
        end = math.inf if timeout_s is None else loop.time() + timeout_s
        version = self.start()
        if version < 0:
            version = self.store.version
            for line in self._beginning(version):
                yield line
        bookmark = loop.time() + self.bookmark_s
        while loop.time() < end and version >= self.store.oldest:
            known, version = version, self.store.version
            for line in self._news(known):
                yield line
            if loop.time() >= bookmark:
                bookmark += self.bookmark_s
                if self.wanted.bookmarks:
                    yield self._bookmark(version)
            await self._wait(min(bookmark, end) - loop.time(), version)
        if version < self.store.oldest:
            yield Line(_ERROR, expired(version, self.store.oldest).status)

    def _beginning(self, version: int) -> list[Line]:
        """What is there."""
        items = self.store.items(self.kind, self.namespace)
        lines = [Line(ChangeKind.ADDED, item) for item in items if self.wanted.chosen(item)]
        # Without being asked for initial events, too.
        return [*lines, self._bookmark(version, initial=True)] if self.wanted.bookmarks else lines

    def _news(self, known: int) -> list[Line]:
        """What came after the version *known*."""
        changes = self.store.since(self.kind, known)
        return [line for written in changes for line in self._told(written)]

    async def _wait(self, patience_s: float, version: int) -> None:
        if self._cut.is_set():
            raise ConnectionResetError("the watch was cut")
        if self.store.version != version or version < self.store.oldest:
            return  # while a line was being sent
        events = (self.store.news, self._cut)
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(
                waits, timeout=max(patience_s, 0), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if self._cut.is_set():
            raise ConnectionResetError("the watch was cut")

    def _told(self, written: Written) -> Iterator[Line]:
        """How one change looks from here: what leaves the selection is deleted."""
        if self.namespace not in {"", written.key[1]}:
            return
        before = written.before is not None and self.wanted.chosen(written.before)
        after = written.after is not None and self.wanted.chosen(written.after)
        if after and written.after is not None:
            yield Line(ChangeKind.MODIFIED if before else ChangeKind.ADDED, written.after)
        elif before and written.before is not None:
            meta = {**part(written.before, "metadata"), "resourceVersion": str(written.version)}
            yield Line(ChangeKind.DELETED, {**written.before, "metadata": meta})

    def _bookmark(self, version: int, *, initial: bool = False) -> Line:
        mark = {"annotations": {INITIAL_END: "true"}} if initial else {}
        meta = {"resourceVersion": str(version), **mark}
        return Line(ChangeKind.BOOKMARK, {**self.blank, "metadata": meta})
