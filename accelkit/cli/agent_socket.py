"""Asking the agent of this node, over its socket. Not here: what it answers, and a view of it."""

import http.client
import socket
from pathlib import Path

from accelkit.agent.listening import SOCKET
from accelkit.core.errors import TransportError

ANSWER_S = 10.0
"""It answers from memory."""
OK, NOT_FOUND = 200, 404


class NoAgent(TransportError):
    """None runs there."""


class NotKnown(TransportError):
    """It answers, but knows nothing of what it is asked about."""


def ask(
    run: str, path: str, *, post: bool = False, body: bytes = b"", within_s: float = ANSWER_S
) -> bytes:
    """What the agent whose run directory is *run* answers at *path*.

    Args:
        run: ``paths.run`` of its policy.
        path: As in ``/view``.
        post: Let it do something, rather than tell.
        body: What is posted.
        within_s: How long it may take.

    Raises:
        NoAgent: None runs there.
        NotKnown: It does not know what this is about.
        TransportError: It does not answer, or refuses.
    """
    file = Path(run) / SOCKET
    asking = _Connection(file, within_s)
    try:
        asking.request("POST" if post else "GET", path, body if post else None)
        answer = asking.getresponse()
        told = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise _unanswered(file, error) from error
    finally:
        asking.close()
    if answer.status == OK:
        return told
    said = " ".join(told.decode(errors="replace").split())[:500]
    if post and answer.status == NOT_FOUND:
        raise NotKnown(said)
    raise TransportError(f"the agent at {file} answers {answer.status}: {said}")


def _unanswered(file: Path, error: Exception) -> TransportError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NoAgent(
            f"no agent answers at {file}: {why}",
            remedy="start accelkit agent, or name its policy: --policy FILE",
        )
    remedy = "ask as root" if isinstance(error, PermissionError) else "look at the agent's log"
    return TransportError(f"the agent at {file} does not answer: {why}", remedy=remedy)


class _Connection(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
