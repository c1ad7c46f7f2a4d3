"""What a connection brings: whole bodies, and streams read as they come. Not here: connecting."""

import http.client
import json
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeGuard

from accelkit.backends.kube.call import Call
from accelkit.backends.kube.chunks import Chunks
from accelkit.core.kube import Json

BODY_BYTES = 32 * 2**20
"""Of one answer; a page of the largest slices is a tenth of it."""
LINE_BYTES = 8 * 2**20
"""Of one change; what etcd keeps of an object has at most 1.5 MB."""
_PIECE = 2**16
_BUFFER = 2**13


class TooLarge(http.client.HTTPException):
    """More than any API server sends."""


class NotJson(http.client.HTTPException):
    """An answer that no API server gives."""


def mapping_of(text: bytes | bytearray) -> Json:
    """The JSON object in *text*.

    Raises:
        NotJson: There is none.
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"{bytes(text[:80])!r} is not JSON") from error
    if not is_mapping(found):
        raise NotJson(f"{bytes(text[:80])!r} is no object")
    return found


def is_mapping(found: object) -> TypeGuard[Json]:
    """Whether it is a JSON object; keys of those are texts."""
    return isinstance(found, dict)


def meta(item: Json, key: str) -> str:
    """A text of the object's metadata; empty: it has none."""
    metadata = item.get("metadata")
    found = metadata.get(key) if is_mapping(metadata) else None
    return found if isinstance(found, str) else ""


def read_body(response: http.client.HTTPResponse, sock: socket.socket, call: Call) -> bytes:
    """Read *response* to its end, and leave the connection ready for the next request.

    Raises:
        TooLarge: It does not end.
        IncompleteRead: The connection ended before it.
        TimeoutError: *call* has no time left.
    """
    call.stage = "reading the answer"
    pieces: list[bytes] = []
    size, length = 0, response.length
    while length is None or size < length:
        if max(size, length or 0) > BODY_BYTES:
            raise TooLarge(f"an answer of more than {BODY_BYTES >> 20} MiB")
        sock.settimeout(call.left())
        piece = response.read1(_PIECE if length is None else min(_PIECE, length - size))
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    if length is not None and size < length:
        raise http.client.IncompleteRead(b"", length - size)
    response.close()
    return b"".join(pieces)


class Stream:
    """JSON objects, one a line, from a response that goes on; nothing here waits.

    Args:
        response: Its head has been read.
        sock: Where it comes from.
        close: Ends the connection.
    """

    def __init__(
        self, response: http.client.HTTPResponse, sock: socket.socket, close: Callable[[], None]
    ) -> None:
        self._response = response  # if the connection ends with it, nobody else keeps it open
        self._socket = sock
        self._end_connection = close
        self._chunks = Chunks() if response.chunked else None
        self._text = bytearray()
        self._searched = 0
        sock.settimeout(0)
        # What came with the head is in the response's buffer, the rest is read from the socket.
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            self._feed(response.fp.peek(_BUFFER))

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> list[Json] | None:
        """What has come: None if nothing has come whole, an empty list at the end.

        Raises:
            IncompleteRead: The connection ended, the stream did not.
            TooLarge: One line does not end.
            NotJson: What came is something else.
            OSError: The connection broke.
        """
        while not (lines := self._whole_lines()):
            if len(self._text) > LINE_BYTES:
                raise TooLarge(f"a line of more than {LINE_BYTES >> 20} MiB")
            try:
                piece = b"" if self._over else self._socket.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return None
            if not piece:
                return self._end()
            self._feed(piece)
        return [mapping_of(line) for line in lines]

    def close(self) -> None:
        self._response.close()
        self._end_connection()

    @property
    def _over(self) -> bool:
        return self._chunks is not None and self._chunks.ended

    def _whole_lines(self) -> list[bytearray]:
        if self._text.find(b"\n", self._searched) < 0:
            self._searched = len(self._text)
            return []
        whole, _, self._text = self._text.rpartition(b"\n")
        self._searched = len(self._text)
        return [line for line in whole.split(b"\n") if line.strip()]

    def _feed(self, piece: bytes) -> None:
        self._text += piece if self._chunks is None else self._chunks.feed(piece)

    def _end(self) -> list[Json]:
        if self._text.strip() or not (self._chunks is None or self._chunks.ended):
            raise http.client.IncompleteRead(bytes(self._text[:80]))
        return []
