"""An HTTP/1.1 server for requests with bodies and answers without an end. Not here: any answer."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import frozen

from accelkit.core.connections import Connections

HEAD_LIMIT = 65536
"""Bytes of a request line with its headers."""
BODY_LIMIT = 3 * 1024 * 1024
"""Bytes; a real server takes no more either."""
JSON = "application/json"


@frozen
class Request:
    """One request, read whole."""

    method: str
    path: str
    """Without its query, and decoded."""
    query: Mapping[str, str]
    """The last value of each name."""
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes | None
    """None: longer than a server reads."""


@frozen
class Reply:
    """One answer with an end."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@frozen
class Streamed:
    """An answer that goes on until its pieces end."""

    pieces: AsyncIterator[bytes]
    headers: tuple[tuple[str, str], ...] = ()


@frozen
class Raw:
    """Bytes that need not be an answer; the connection ends after them."""

    body: bytes = b""


Answer = Reply | Streamed | Raw
Handler = Callable[[Request], Awaitable[Answer]]


@frozen
class _Broken:
    """What came is not a request."""

    text: str


class HttpServer:
    """Answers requests on one TCP port until it is closed; it may listen again on that port."""

    def __init__(
        self, handler: Handler, tls: ssl.SSLContext | None = None, *, port: int = 0
    ) -> None:
        self._handler = handler
        self._tls = tls
        self._connections = Connections(self._serve)
        self._server: asyncio.Server | None = None
        self.port = port

    async def listen(self) -> None:
        """Serve on 127.0.0.1, on the port of the last time if there was one."""
        self._connections = Connections(self._serve)
        self._server = await asyncio.start_server(
            self._connections.begin, "127.0.0.1", self.port, limit=HEAD_LIMIT, ssl=self._tls
        )
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and end every connection, in the middle of an answer if need be."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._connections.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._converse(reader, writer)
        writer.close()
        await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (asked := await _read(reader, writer)) is not None:
            if isinstance(asked, _Broken):
                _write(writer, Reply(400, asked.text.encode(), "text/plain"), keep=False)
                return
            keep = asked.headers.get("connection", "").lower() != "close"
            answer = await self._handler(asked)
            match answer:
                case Reply():
                    _write(writer, answer, keep=keep, head=asked.method == "HEAD")
                    await writer.drain()
                case Streamed():
                    await _stream(reader, writer, answer)
                    keep = False
                case Raw():
                    writer.write(answer.body)
                    keep = False
            if not keep:
                return


async def _read(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | _Broken | None:
    """The next request; None where none came."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        return _Broken(f"a request may have {HEAD_LIMIT} bytes of headers")
    first, *rest = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
        return _Broken("this is not an HTTP/1.1 request")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in rest if line)
    }
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await _read_body(reader, headers)
    except asyncio.IncompleteReadError:
        return None
    except ValueError as error:
        return _Broken(str(error))
    target = urlsplit(parts[1])
    query = dict(parse_qsl(target.query, keep_blank_values=True))
    return Request(parts[0], unquote(target.path), query, headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes | None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    size = int(headers.get("content-length", "0"))
    if size <= BODY_LIMIT:
        return await reader.readexactly(size)
    # Read all the same, or a peer that still sends would not see the answer.
    while size:
        size -= len(await reader.readexactly(min(size, HEAD_LIMIT)))
    return None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes | None:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while (await reader.readuntil(b"\r\n")) != b"\r\n":
        pass  # trailers
    return body if len(body) <= BODY_LIMIT else None


def _head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = (f"{name}: {value}" for name, value in headers)
    phrase = HTTPStatus(status).phrase
    return "\r\n".join((f"HTTP/1.1 {status} {phrase}", *lines, "", "")).encode("latin-1")


def _write(writer: asyncio.StreamWriter, answer: Reply, *, keep: bool, head: bool = False) -> None:
    headers = (
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(answer.body))),
        *(() if keep else (("Connection", "close"),)),
        *answer.headers,
    )
    writer.write(_head(answer.status, headers) + (b"" if head else answer.body))


async def _stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Streamed
) -> None:
    """Send the pieces until they end or the peer goes."""
    kind = (("Content-Type", JSON), ("Transfer-Encoding", "chunked"), ("Connection", "close"))
    writer.write(_head(200, (*kind, *answer.headers)))
    sending = asyncio.create_task(_send_pieces(writer, answer.pieces))
    # Whoever only listens says nothing, so a read ends when the peer goes. It might take the first
    # byte of a next request: none can follow.
    leaving = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send_pieces(writer: asyncio.StreamWriter, pieces: AsyncIterator[bytes]) -> None:
    async for piece in pieces:
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
