"""A small HTTP/1.1 server: GET, HEAD and, where it is wanted, POST. Not here: what it answers."""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

import attrs

from accelkit.core.connections import Connections

log = logging.getLogger(__name__)

HEAD_LIMIT = 8192
"""Bytes of a request line with its headers."""
BODY_LIMIT = 1 << 20
"""Bytes of what is posted."""
CONNECTIONS = 64
"""At once, where there are descriptors for them; for one more the oldest is ended."""
DESCRIPTORS = 8
"""One of so many that the process may have is for connections, the others for its work."""
IDLE_S = 30.0
SEND_S = 30.0
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@attrs.frozen
class Response:
    status: int
    body: bytes
    content_type: str = TEXT

    @classmethod
    def of(cls, status: int, text: str) -> "Response":
        """One line of text."""
        return cls(status, f"{text}\n".encode())


Route = Callable[[str], Response | None]
"""The answer for a path; None: there is no such path."""
Post = Callable[[str, bytes], Awaitable[Response | None]]
"""What comes of posting bytes to a path; None: nothing can be posted there."""


@attrs.frozen
class _Request:
    method: str
    path: str
    keep: bool
    length: int | None
    """Of its body; None: it does not say."""


class HttpServer:
    """Answers requests on one listening socket until it is closed.

    Args:
        route: What is there to be read.
        post: What can be done; None: nothing.
    """

    def __init__(self, route: Route, post: Post | None = None) -> None:
        self._route = route
        self._post = post
        self._connections = Connections(self._serve)
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._inode: int | None = None

    async def listen(self, host: str | None, port: int) -> int:
        """Serve on TCP; *host* None: on every address.

        Returns:
            The port, where 0 asked for any.

        Raises:
            OSError: The address cannot be had.
        """
        # Kept before it serves: who is cancelled in between must find what to close.
        self._server = await asyncio.start_server(
            self._connected, host, port, limit=HEAD_LIMIT, start_serving=False
        )
        await self._server.start_serving()
        return int(self._server.sockets[0].getsockname()[1])

    async def listen_unix(self, path: Path) -> None:
        """Serve on a unix socket, for its owner alone; what was at *path* is replaced.

        Raises:
            OSError: The path cannot be bound.
        """
        # Bound under another name first: nobody may find it before its mode is right, and a
        # socket that another instance has just bound is replaced in one step.
        fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        self._server = await asyncio.start_unix_server(
            self._connected, fresh, limit=HEAD_LIMIT, start_serving=False
        )
        try:
            fresh.chmod(0o600)
            self._inode = fresh.stat().st_ino
            fresh.rename(path)
        except OSError:
            self._server.close()
            fresh.unlink(missing_ok=True)
            raise
        self._path = path
        await self._server.start_serving()

    @property
    def in_place(self) -> bool:
        """Whether the unix socket is where it was put."""
        try:
            return self._path is not None and self._path.stat().st_ino == self._inode
        except OSError:
            return False

    async def close(self) -> None:
        """End every connection; unlink the socket if it is still ours."""
        if self._server is not None:
            self._server.close()
        await self._connections.close()
        if self._path is not None and self.in_place:
            self._path.unlink(missing_ok=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _most():
            # Whoever keeps connections for long keeps nobody else, such as a probe, from asking.
            self._connections.end_oldest()
        self._connections.begin(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._converse(reader, writer)
        writer.close()
        async with asyncio.timeout(SEND_S):
            await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keep = True
        while keep:
            asked = await _read(reader)
            if asked is None:
                return
            if isinstance(asked, Response):
                await _send(writer, asked, keep=False)
                return
            answer = await self._answer(asked, reader)
            # A body that was not read stands where the next request should.
            keep = asked.keep and (not asked.length or answer.status < 400)
            await _send(writer, answer, keep=keep, head=asked.method == "HEAD", allow=self._methods)
            # Whoever sends many requests at once would be the only one who is served.
            await asyncio.sleep(0)

    async def _answer(self, asked: _Request, reader: asyncio.StreamReader) -> Response:
        if asked.method not in self._methods:
            return Response.of(405, f"only {' and '.join(self._methods)} are served here")
        try:
            if asked.method == "POST":
                found = await self._posted(asked, reader)
            else:
                found = self._route(asked.path)
        except (asyncio.IncompleteReadError, TimeoutError):
            return Response.of(400, "the body is shorter than it says")
        except Exception:
            ident = secrets.token_hex(4)
            log.exception("request failed", extra={"path": asked.path, "id": ident})
            return Response.of(500, f"internal error (id {ident} in the log)")
        return found or Response.of(404, f"{asked.path} is not served here")

    async def _posted(self, asked: _Request, reader: asyncio.StreamReader) -> Response | None:
        assert self._post is not None
        if asked.length is None:
            return Response.of(411, "say how long the body is")
        if asked.length > BODY_LIMIT:
            return Response.of(413, f"a body may have {BODY_LIMIT} bytes")
        async with asyncio.timeout(IDLE_S):
            body = await reader.readexactly(asked.length)
        return await self._post(asked.path, body)

    @property
    def _methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD", "POST") if self._post else ("GET", "HEAD")


def _most() -> int:
    """How many connections there may be at once."""
    soft, _ = getrlimit(RLIMIT_NOFILE)
    return CONNECTIONS if soft == RLIM_INFINITY else max(1, min(CONNECTIONS, soft // DESCRIPTORS))


async def _read(reader: asyncio.StreamReader) -> _Request | Response | None:
    """The next request; a response where it cannot be served; None where none came."""
    try:
        async with asyncio.timeout(IDLE_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        return Response.of(431, f"a request may have {HEAD_LIMIT} bytes")
    except TimeoutError:
        return Response.of(408, f"no request in {IDLE_S:g} s")
    first, *rest = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
        return Response.of(400, "this is not an HTTP/1.1 request")
    headers = {
        name.strip().lower(): value.strip().lower()
        for name, _, value in (line.partition(":") for line in rest if line)
    }
    said = headers.get("content-length", "0")
    known = said.isascii() and said.isdecimal() and "transfer-encoding" not in headers
    length = int(said[:20]) if known else None
    # What is not read, or ends nobody knows where, lets nothing after it be understood.
    plain = length == 0 or (parts[0] == "POST" and known)
    keep = parts[2] != "HTTP/1.0" and headers.get("connection") != "close" and plain
    return _Request(parts[0], parts[1].partition("?")[0], keep, length)


async def _send(
    writer: asyncio.StreamWriter,
    answer: Response,
    *,
    keep: bool,
    head: bool = False,
    allow: Collection[str] = (),
) -> None:
    lines = (
        f"HTTP/1.1 {answer.status} {REASONS[answer.status]}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        *((f"Allow: {', '.join(allow)}",) if answer.status == 405 else ()),
        f"Connection: {'keep-alive' if keep else 'close'}",
    )
    writer.write("\r\n".join((*lines, "", "")).encode() + (b"" if head else answer.body))
    async with asyncio.timeout(SEND_S):
        await writer.drain()


def address(text: str) -> tuple[str | None, int]:
    """Read ``host:port`` or ``:port``; a host of None is every address.

    Raises:
        ValueError: It is neither.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address: write host:port or :port")
    return host.strip("[]") or None, int(port)


def reason(error: OSError) -> str:
    """What the system says, without what asyncio adds; of a host that is not found, likewise."""
    if error.errno is not None and error.errno > 0:  # negative: of getaddrinfo
        return os.strerror(error.errno)
    return error.strerror or str(error)
