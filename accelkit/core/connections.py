"""Connections of a server of asyncio, which all end with it. Not here: what is said on them."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[object, object, None]]
"""Talks on a connection until all is said and sent."""


class Connections:
    """What is open of one server: *begin* is what it calls for each connection.

    A server of asyncio knows none of its connections before Python 3.13, and one that came just
    before the end would stay open.
    """

    def __init__(self, converse: Converse) -> None:
        self._converse = converse
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """The oldest first."""
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._conversation(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._ended)

    async def _conversation(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError, TimeoutError):  # the peer is gone, or does not read
            await self._converse(reader, writer)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if (writer := self._open.pop(task, None)) is not None:
            writer.transport.abort()  # closing could wait for the peer for ever
        if not task.cancelled() and (error := task.exception()) is not None:
            told = {"message": "a connection broke", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(told)

    def end_oldest(self) -> None:
        """End the one that has been open for longest, at once."""
        task = next(iter(self._open))
        self._open.pop(task).transport.abort()
        task.cancel()

    async def close(self) -> None:
        """End all, in the middle of an answer if need be, and what still comes."""
        self._closed = True
        tasks = [*self._open]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
