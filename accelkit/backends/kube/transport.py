"""What is asked over HTTP and what comes back, whoever carries it. Not here: carrying it."""

import json
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlencode

import attrs

from accelkit.backends.kube.call import Call
from accelkit.backends.kube.reading import Stream, mapping_of
from accelkit.core.kube import Json

JSON = "application/json"
MERGE = "application/merge-patch+json"
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""As kubectl writes: servers compare the parameters of claims byte for byte."""


@attrs.frozen(kw_only=True)
class Request:
    """One question to the API server."""

    method: str
    path: str
    query: Mapping[str, str] = attrs.field(factory=dict)
    """Those that are empty are left out."""
    item: Json | None = None
    content: str = JSON
    streaming: bool = False
    """Whether the answer goes on: then it comes as a `Stream`, unless it is a refusal."""
    verb: str
    resource: str
    """The verb and the resource as permissions name them."""

    @property
    def target(self) -> str:
        asked = urlencode({name: value for name, value in self.query.items() if value})
        return f"{self.path}?{asked}" if asked else self.path

    def body(self) -> bytes | None:
        if self.item is None:
            return None
        text = json.dumps(self.item, default=_plain, separators=(",", ":"), ensure_ascii=False)
        return text.translate(_ESCAPED).encode(errors="replace")

    def headers(self) -> dict[str, str]:
        found = {"Accept": JSON}
        if self.item is not None:
            found["Content-Type"] = self.content
        return found


def _plain(value: object) -> object:
    """Mappings of other kinds, as `FrozenMap`, are objects, too."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@attrs.frozen
class Answer:
    status: int
    body: bytes = attrs.field(repr=False)
    retry_after: str = ""
    """The header; empty without it."""
    item: Json | None = attrs.field(default=None, repr=False)
    """The body, read, if the answer is one of success."""

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Transport(Protocol):
    """Carries requests to one API server; blocks, and is used by several threads at once."""

    @property
    def server(self) -> str:
        """Its URL."""
        ...

    def exchange(self, request: Request, call: Call) -> Answer | Stream:
        """Ask once.

        A connection that failed, timed out or was ended is closed.

        Raises:
            OSError: It could not be asked, or *call* has no time left.
            HTTPException: What it said cannot be understood.
            Ended: Nobody waits any more.
        """
        ...

    def renew(self) -> None:
        """Read the credentials anew: they were not accepted."""
        ...

    def close(self) -> None:
        """Drop the connections that are kept; nothing is asked any more."""
        ...


def exchange(transport: Transport, request: Request, call: Call) -> Answer | Stream:
    """Ask once, and once more where that costs nobody anything and may help; read the answer.

    Raises:
        OSError, HTTPException, Ended: As in `Transport.exchange`.
    """
    answer = _patiently(transport, request, call)
    if isinstance(answer, Answer) and answer.good:
        return attrs.evolve(answer, body=b"", item=mapping_of(answer.body))
    return answer


def _patiently(transport: Transport, request: Request, call: Call) -> Answer | Stream:
    try:
        answer = transport.exchange(request, call)
    except (ConnectionError, ssl.SSLEOFError):
        # A connection that was kept may have been ended by the server at this very moment.
        if not call.kept or request.method != "GET":
            raise
        answer = transport.exchange(request, call)
    if isinstance(answer, Answer) and answer.status == 401:
        transport.renew()
        answer = transport.exchange(request, call)
    return answer
