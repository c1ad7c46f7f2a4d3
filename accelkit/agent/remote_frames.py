"""How an agent and its workers write to each other. Not here: what they write."""

import json
import socket
from collections.abc import Iterator, Mapping
from typing import BinaryIO, TypeAlias

from accelkit.core import errors
from accelkit.core.errors import AccelkitError, PluginError
from accelkit.core.foreign import code_of, in_words, remedy_of, text_of

Frame: TypeAlias = Mapping[str, object]
PROTOCOL = 1
"""Both ends are of one version of accelkit; a worker that is asked for another one ends."""
MOST_BYTES = 1 << 24
"""Of a frame: ten thousand devices. Who announces more has written something else."""
_LENGTH = 4

_KINDS: Mapping[str, type[AccelkitError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, AccelkitError)
}


def write_frame(connection: socket.socket, frame: Frame) -> None:
    """Send *frame*: four bytes of length, big-endian, then JSON. Callers take turns.

    Raises:
        ValueError: It has more bytes than the other end takes.
        OSError: The other end is gone, or does not read.
    """
    body = json.dumps(frame, separators=(",", ":")).encode()
    if len(body) > MOST_BYTES:
        raise ValueError(f"{len(body)} bytes are told at once, of at most {MOST_BYTES}")
    connection.sendall(len(body).to_bytes(_LENGTH, "big") + body)


def read_frames(stream: BinaryIO) -> Iterator[Frame]:
    """What comes, until the other end is closed.

    Raises:
        ValueError: That is no frame.
        OSError: The connection failed.
    """
    while len(head := stream.read(_LENGTH)) == _LENGTH:
        length = int.from_bytes(head, "big")
        if length > MOST_BYTES:
            raise ValueError(f"a frame of {length} bytes")
        body = stream.read(length)
        if len(body) < length:
            return
        frame: object = json.loads(body)
        if not isinstance(frame, Mapping):
            raise ValueError(f"a frame that is a {type(frame).__name__}")  # noqa: TRY004 - as json's own
        yield frame


def error_frame(error: BaseException, vendor: str) -> Frame:
    """*error* as the other end can make it again; what is not of ours is a bug of *vendor*'s."""
    if not isinstance(error, AccelkitError):
        error = PluginError(
            f"{vendor}: {in_words(error)}",
            plugin=vendor,
            remedy=f"report it to the author of the plugin for {vendor}",
        )
    # Of a plugin's own class the other end knows what it is derived from.
    kind = next(kind for kind in type(error).__mro__ if _KINDS.get(kind.__name__) is kind)
    return {
        "type": kind.__name__,
        "text": text_of(error),
        "remedy": remedy_of(error),
        "code": code_of(error),
        "more": {key: value for key, value in vars(error).items() if _is_plain(value)},
    }


def error_of(frame: Frame) -> AccelkitError:
    """The error that *frame* tells of."""
    kind = _KINDS[str(frame["type"])]
    error = kind.__new__(kind, str(frame["text"]))
    more = frame["more"]
    assert isinstance(more, Mapping)
    vars(error).update(more, remedy=str(frame["remedy"]))
    if frame["code"] != kind.code:
        vars(error)["code"] = str(frame["code"])
    return error


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
