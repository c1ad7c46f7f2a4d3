"""Connections end with their server, on real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from accelkit.core.connections import Connections

PATIENCE_S = 20.0
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while said := await reader.readline():
        writer.write(said)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def serving(connected: Connected) -> AsyncIterator[int]:
    """The port of a server that does so with each connection."""
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self, line: bytes) -> bytes:
        self.writer.write(line)
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readline()

    async def ended(self) -> bool:
        """Wait for the end; whether nothing came before."""
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                return await self.reader.read() == b""
        return True


@asynccontextmanager
async def client(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_conversation_that_ends_is_open_no_more() -> None:
    connections = Connections(echo)
    async with serving(connections.begin) as port:
        async with client(port) as one:
            assert await one.answer(b"a\n") == b"a\n"
            assert len(connections) == 1
            one.writer.write_eof()
            assert await one.ended()
        async with asyncio.timeout(PATIENCE_S):
            while len(connections):  # noqa: ASYNC110 - it sets no event
                await asyncio.sleep(0.005)


async def test_conversation_in_its_middle_ends_with_the_server() -> None:
    connections = Connections(echo)
    async with serving(connections.begin) as port, client(port) as one:
        await one.answer(b"a\n")

        await connections.close()

        assert await one.ended()
        assert len(connections) == 0


async def test_connection_that_has_just_come_ends_with_the_server() -> None:
    """Its conversation is cancelled before it begins, and could not close it."""
    connections = Connections(echo)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.begin(reader, writer)
        await connections.close()

    async with serving(connected) as port, client(port) as one:
        assert await one.ended()


async def test_connection_that_comes_after_the_end_is_ended() -> None:
    connections = Connections(echo)
    await connections.close()

    async with serving(connections.begin) as port, client(port) as one:
        assert await one.ended()


async def test_oldest_connection_can_be_ended_alone() -> None:
    connections = Connections(echo)
    async with serving(connections.begin) as port, client(port) as first, client(port) as second:
        await first.answer(b"a\n")
        await second.answer(b"a\n")

        connections.end_oldest()

        assert await first.ended()
        assert await second.answer(b"b\n") == b"b\n"
        await connections.close()


@pytest.mark.parametrize("error", [ConnectionResetError, TimeoutError])
async def test_peer_that_is_gone_is_no_error(error: type[Exception]) -> None:
    told = handled()

    async def gone(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise error

    async with serving(Connections(gone).begin) as port, client(port) as one:
        assert await one.ended()

    assert told == []


async def test_conversation_that_breaks_is_told_and_its_connection_ends() -> None:
    told = handled()

    async def broken(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise ZeroDivisionError("a bug")

    async with serving(Connections(broken).begin) as port, client(port) as one:
        assert await one.ended()

    assert [str(error) for error in told] == ["a bug"]


def handled() -> list[object]:
    """Exceptions that the loop is told of from now on."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: told.append(context.get("exception"))
    )
    return told
