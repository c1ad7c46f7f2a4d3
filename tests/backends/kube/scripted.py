"""A small HTTP server that answers as a test says, and may answer wrong. Not here: Kubernetes."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from accelkit.core.kube import Json


@attrs.frozen
class Asked:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    connection: int
    """Which of the server's connections it came through, counted from 1."""

    @property
    def item(self) -> Json:
        found: Json = json.loads(self.body)
        return found


Writer = asyncio.StreamWriter
Reply = Callable[[Asked, Writer], Awaitable[None]]


class Scripted:
    """Answers each request with the next of *replies*, the last one for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.replies: list[Reply] = [says({})]
        self.connections = 0
        self.open: set[asyncio.Task[object]] = set()
        self.url = ""

    def answer(self, *replies: Reply) -> None:
        self.replies = [*replies]

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self.open.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    asked = await _read(reader, number)
                    self.asked.append(asked)
                    reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                    await _while_there(reader, reply(asked, writer))
                    await writer.drain()
            writer.close()
        except asyncio.CancelledError:  # would be logged as an error
            writer.transport.abort()
        finally:
            self.open.discard(task)

    async def all_closed(self) -> None:
        """Wait until the clients have ended every connection."""
        async with asyncio.timeout(20):
            while self.open:
                await asyncio.wait([*self.open], timeout=5)


async def _while_there(reader: asyncio.StreamReader, replying: Awaitable[None]) -> None:
    """Reply until the client has gone."""
    task = asyncio.ensure_future(replying)
    try:
        while not task.done():
            if reader.at_eof() or reader.exception() is not None:
                raise ConnectionAbortedError
            await asyncio.wait([task], timeout=0.01)
        await task
    finally:
        task.cancel()


async def _read(reader: asyncio.StreamReader, connection: int) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body, connection)


@asynccontextmanager
async def scripted(
    host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    """A server on any port of *host*; its connections end with it."""
    found = Scripted()
    server = await asyncio.start_server(found.serve, host, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    at = f"[{host}]" if ":" in host else host
    found.url = f"{'https' if tls else 'http'}://{at}:{port}"
    try:
        yield found
    finally:
        server.close()
        for task in [*found.open]:
            task.cancel()
        await asyncio.gather(*found.open, return_exceptions=True)
        await _gone(server)


async def _gone(server: asyncio.Server) -> None:
    """Wait until its connections are closed; before Python 3.12 it does not do so itself."""
    async with asyncio.timeout(20):
        if sys.version_info >= (3, 12):
            await server.wait_closed()
        else:
            while server._active_count:  # type: ignore[attr-defined] # noqa: ASYNC110 - it sets no event
                await asyncio.sleep(0.005)


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def says(item: object, status: int = 200, **headers: str) -> Reply:
    """The whole of *item*."""
    body = json.dumps(item).encode()
    return raw(head(status, Content_Length=str(len(body)), **headers) + body)


def raw(text: bytes, *, then_close: bool = False) -> Reply:
    """These bytes, right or wrong."""

    async def reply(_asked: Asked, writer: Writer) -> None:
        writer.write(text)
        await writer.drain()
        if then_close:
            raise ConnectionAbortedError

    return reply


async def nothing(_asked: Asked, _writer: Writer) -> None:
    """No answer, for ever."""
    await asyncio.Event().wait()


def slow(text: bytes, *, drips: bool) -> Reply:
    """These bytes and no end: nothing more, or single bytes for ever."""

    async def reply(_asked: Asked, writer: Writer) -> None:
        writer.write(text)
        while True:
            await writer.drain()
            await (asyncio.sleep(0.02) if drips else asyncio.Event().wait())
            writer.write(b"1")

    return reply


async def hang_up(_asked: Asked, _writer: Writer) -> None:
    """The end of the connection instead of an answer."""
    raise ConnectionAbortedError


async def reset(_asked: Asked, writer: Writer) -> None:
    """A reset instead of an answer."""
    writer.transport.abort()
    raise ConnectionAbortedError


def status(code: int, message: str = "", **headers: str) -> Reply:
    """A refusal as an API server writes it."""
    return says({"kind": "Status", "code": code, "message": message}, code, **headers)


def chunk(text: bytes) -> bytes:
    return f"{len(text):x}\r\n".encode() + text + b"\r\n"


def lines(*changes: Json) -> bytes:
    """Changes as a watch tells them."""
    return b"".join(json.dumps(change).encode() + b"\n" for change in changes)


def stream(*pieces: bytes, end: bool = True) -> Reply:
    """A watch: each piece a chunk of its own; without *end* it stays open."""

    async def reply(_asked: Asked, writer: Writer) -> None:
        writer.write(head(Transfer_Encoding="chunked"))
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
        if end:
            writer.write(b"0\r\n\r\n")
        else:
            await writer.drain()
            await asyncio.Event().wait()

    return reply


def kubeconfig(
    folder: Path, server: str, *, user: Json | None = None, cluster: Json | None = None
) -> Path:
    """Write one with a single context."""
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
                "users": [{"name": "u", "user": user or {}}],
            }
        )
    )
    return file


def metadata(name: str, version: int = 1, **more: object) -> Json:
    return {"name": name, "resourceVersion": str(version), **more}


def named(*items: Json) -> Sequence[str]:
    """Names of objects."""
    found = []
    for item in items:
        meta = item["metadata"]
        assert isinstance(meta, dict)
        found.append(meta["name"])
    return found


async def until(ready: Callable[[], object]) -> None:
    """Look until it is so."""
    async with asyncio.timeout(20):
        while not ready():  # noqa: ASYNC110 - threads set no event
            await asyncio.sleep(0.005)
