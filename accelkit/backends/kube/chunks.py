"""A body in chunks, decoded as its pieces come. Not here: where they come from.

Source:
    RFC 9112 section 7.1.
"""

import http.client
import re

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;.*)?")
_LINE_BYTES = 2**12


class BadChunk(http.client.HTTPException):
    """What came are no chunks."""


class Chunks:
    """Decodes one body."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the last chunk has come, and all that follows it."""
        self._raw = bytearray()
        self._left = 0
        """Bytes of the present chunk that have not come yet."""
        self._after_data = False
        self._trailer = False

    def feed(self, piece: bytes) -> bytes:
        """The data that came with *piece*.

        Raises:
            BadChunk: It is no part of a body in chunks.
        """
        self._raw += piece
        data = bytearray()
        while not self.ended and (self._data(data) if self._left else self._line()):
            pass
        return bytes(data)

    def _data(self, data: bytearray) -> bool:
        part = self._raw[: self._left]
        del self._raw[: self._left]
        data += part
        self._left -= len(part)
        return not self._left

    def _line(self) -> bool:
        """Take one line that is not data; False: it has not come whole."""
        raw, sign, rest = self._raw.partition(b"\n")
        if len(raw) > _LINE_BYTES:
            raise BadChunk(f"a line of more than {_LINE_BYTES} bytes between chunks")
        if not sign:
            return False
        self._raw, line = rest, bytes(raw.removesuffix(b"\r"))
        if self._trailer:
            self.ended = not line
        elif self._after_data and not line:
            self._after_data = False
        else:
            self._begin(line)
        return True

    def _begin(self, line: bytes) -> None:
        found = None if self._after_data else _SIZE.fullmatch(line)
        if found is None:
            raise BadChunk(f"{line[:20]!r} is no size of a chunk")
        self._left = int(found[1], 16)
        self._trailer = not self._left
        self._after_data = not self._trailer
