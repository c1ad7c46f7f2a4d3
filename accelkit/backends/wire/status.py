"""Which gRPC status an error becomes, and what the peer may read. Not here: the errors."""

import logging
import secrets

import grpc

from accelkit.core import errors
from accelkit.core.foreign import one_line

log = logging.getLogger(__name__)

TEXT_LIMIT = 2048
"""Bytes of a text, in UTF-8: it is sent as metadata, of which gRPC takes 8 KiB in all, and each
byte that is not ASCII becomes three there."""

_MORE = " ..."

# The first class that fits counts, so that a narrow one stands before its parent.
CODES: tuple[tuple[type[errors.AccelkitError], grpc.StatusCode], ...] = (
    (errors.UnknownDevice, grpc.StatusCode.NOT_FOUND),
    (errors.DeviceUnavailable, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.IllegalSet, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.MissingParts, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.PartitionError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.SourceTimeout, grpc.StatusCode.DEADLINE_EXCEEDED),
    (errors.SourceError, grpc.StatusCode.UNAVAILABLE),
    (errors.LedgerBusy, grpc.StatusCode.UNAVAILABLE),
    (errors.NoSpace, grpc.StatusCode.RESOURCE_EXHAUSTED),
)


class StatusError(Exception):
    """A handler's wish for exactly this status; nothing is logged.

    Args:
        code: The status.
        text: What the peer reads.
    """

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    """Spell *error* as a status and a text that the peer may read.

    Only accelkit's own errors are quoted. Every other one is logged with its traceback
    under an id, and the peer gets the id alone: a text that nobody wrote for a reader may
    hold anything.
    """
    if isinstance(error, StatusError):
        return error.code, error.text
    for kind, code in CODES:
        if isinstance(error, kind):
            return code, shown(error)
    return grpc.StatusCode.INTERNAL, logged(error)


def logged(error: Exception) -> str:
    """What a peer may read of *error*, whose traceback goes to the log under an id."""
    ident = secrets.token_hex(4)
    log.error("handler failed, id %s", ident, exc_info=error)
    text = shown(error) if isinstance(error, errors.AccelkitError) else "internal error"
    return f"{text} (id {ident} in the log)"


def shown(error: errors.AccelkitError, limit: int = TEXT_LIMIT) -> str:
    """What *error* says and what to do next, in one printable line of at most *limit* bytes."""
    text, remedy = map(one_line, (str(error), error.remedy))
    next_step = f"; {cut(remedy, limit // 2)}" if remedy else ""
    return cut(text, limit - len(next_step.encode())) + next_step


def cut(text: str, limit: int) -> str:
    """*text*, which may quote what a peer sent, in at most *limit* bytes of UTF-8.

    It ends with a whole character, and with dots if something is missing.
    """
    raw = text.encode(errors="replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - len(_MORE)].decode(errors="ignore") + _MORE
