"""Asking the agent of this node, over its socket. Not here: what it answers, and a view of it."""

import http.client
import socket
from pathlib import Path

from accelkit.agent.listening import SOCKET
from accelkit.core.errors import TransportError

ANSWER_S = 10.0
"""It answers from memory."""
OK = 200


class NoAgent(TransportError):
    """None runs there."""


def ask(run: str, path: str, *, post: bool = False, within_s: float = ANSWER_S) -> bytes:
    """What the agent whose run directory is *run* answers at *path*.

    Args:
        run: ``paths.run`` of its policy.
        path: As in ``/view``.
        post: Let it do something, rather than tell.
        within_s: How long it may take.

    Raises:
        NoAgent: None runs there.
        TransportError: It does not answer, or refuses.
    """
    file = Path(run) / SOCKET
    asking = _Connection(file, within_s)
    try:
        asking.request("POST" if post else "GET", path)
        answer = asking.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise _unanswered(file, error) from error
    finally:
        asking.close()
    if answer.status != OK:
        said = " ".join(body.decode(errors="replace").split())[:500]
        raise TransportError(f"the agent at {file} answers {answer.status}: {said}")
    return body


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
