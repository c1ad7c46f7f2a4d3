"""Which gRPC status an error becomes, and what the peer may read. Not here: the errors."""

import logging
import secrets

import grpc

from accelkit.core import errors

log = logging.getLogger(__name__)

TEXT_LIMIT = 2048
"""Bytes of a text, in UTF-8: it is sent as metadata, of which gRPC takes 8 KiB in all, and each
byte that is not ASCII becomes three there."""

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
    text = "internal error"
    if isinstance(error, errors.AccelkitError):
        text = _cut("; ".join(filter(None, (str(error), error.remedy))))
    for kind, code in CODES:
        if isinstance(error, kind):
            return code, text
    ident = secrets.token_hex(4)
    log.error("handler failed, id %s", ident, exc_info=error)
    return grpc.StatusCode.INTERNAL, f"{text} (id {ident} in the log)"


def _cut(text: str) -> str:
    """*text*, which may quote what a peer sent, in a length that reaches it."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= TEXT_LIMIT else f"{raw[:TEXT_LIMIT].decode(errors='ignore')} ..."
