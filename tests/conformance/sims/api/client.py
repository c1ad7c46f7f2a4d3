"""A client that does only what it is told: no retries, no limits. Not here: any server."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, frozen

from tests.conformance.sims.api.asking import JSON, Document

PATIENCE_S = 20.0
ROOT = "/apis/resource.k8s.io/v1"
SLICES = f"{ROOT}/resourceslices"


@frozen
class Answered:
    status: int
    headers: dict[str, str]
    """By names in lower case."""
    text: str

    @property
    def document(self) -> Document:
        found: Document = json.loads(self.text)
        return found

    @property
    def names(self) -> list[str]:
        """Of the objects in a list."""
        return [item["metadata"]["name"] for item in self.document["items"]]


@define
class Client:
    """Asks on a connection of its own each time, or on one that is kept."""

    port: int
    token: str = ""
    trust: ssl.SSLContext | None = None
    agent: str = "test/1"

    async def ask(
        self, method: str, path: str, body: object = None, *, kind: str = JSON, accept: str = JSON
    ) -> Answered:
        async with self.connected() as (reader, writer):
            return await self.on(reader, writer, method, path, body, kind=kind, accept=accept)

    @asynccontextmanager
    async def connected(
        self,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        body: object = None,
        *,
        kind: str = JSON,
        accept: str = JSON,
    ) -> Answered:
        """Ask on this connection."""
        writer.write(self._written(method, path, body, kind, accept))
        async with asyncio.timeout(PATIENCE_S):
            status, headers = await _head(reader)
            size = int(headers.get("content-length", "0"))
            text = (await reader.readexactly(size)).decode()
        return Answered(status, headers, text)

    def _written(self, method: str, path: str, body: object, kind: str, accept: str) -> bytes:
        sent = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"User-Agent: {self.agent}",
            f"Accept: {accept}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(sent.encode())}",
            *([f"Authorization: Bearer {self.token}"] if self.token else []),
        ]
        return "\r\n".join((*lines, "", sent)).encode()

    @asynccontextmanager
    async def watch(self, query: str, path: str = SLICES) -> AsyncIterator["Stream"]:
        """Open a watch."""
        async with self.connected() as (reader, writer):
            writer.write(self._written("GET", f"{path}?watch=1&{query}", None, JSON, JSON))
            async with asyncio.timeout(PATIENCE_S):
                status, _ = await _head(reader)
            assert status == 200
            yield Stream(reader)


@frozen
class Stream:
    """The lines of a watch."""

    reader: asyncio.StreamReader

    async def line(self) -> Document | None:
        """The next one; None: it ended as it should.

        Raises:
            IncompleteReadError, OSError: It broke off.
        """
        async with asyncio.timeout(PATIENCE_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            piece = await self.reader.readexactly(size + 2)
        found: Document | None = json.loads(piece) if size else None
        return found

    async def told(self, count: int) -> list[tuple[str, str]]:
        """Types and names of the next *count* lines."""
        lines = [await self.line() for _ in range(count)]
        return [
            (line["type"], line["object"]["metadata"].get("name", "")) for line in lines if line
        ]

    async def rest(self) -> list[tuple[str, str]]:
        """Types and names of all lines until the end."""
        told = []
        while (line := await self.line()) is not None:
            told.append((line["type"], line["object"].get("metadata", {}).get("name", "")))
        return told


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    return int(head[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}
