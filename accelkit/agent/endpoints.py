"""What the agent answers over HTTP. Not here: the protocol."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping

import attrs

from accelkit.agent.clearing import Clearing
from accelkit.agent.http import JSON, Response
from accelkit.agent.metrics import CONTENT_TYPE, Metrics
from accelkit.core.backend import Backend
from accelkit.core.claims import LedgerEntry
from accelkit.core.errors import ConfigError, UnknownDevice
from accelkit.core.model import Evidence, Problem
from accelkit.core.view import View


@attrs.frozen(kw_only=True)
class Answers:
    """Where the answers come from: memory, never vendors and never sockets."""

    live: Callable[[], bool]
    why_not_ready: Callable[[], tuple[str, ...]]
    metrics: Metrics
    view: Callable[[], View]
    problems: Callable[[], Iterable[Problem]]
    backends: Callable[[], Mapping[str, Backend[object]]]
    ledger: Callable[[], Mapping[str, LedgerEntry]] = dict
    """Claims of this boot by uid."""
    evidence: Callable[[], Iterable[Evidence]] = tuple
    """What was heard of devices in this boot."""
    clear: Callable[[Clearing], Awaitable[object]] | None = None
    """Takes an operator's word that a fault is gone; returns what came of it."""
    apply: Callable[[], Awaitable[object]] | None = None
    """Cuts devices as the policy says, those that wait to be told, too; returns what came of it."""

    def public(self, path: str) -> Response | None:
        """For everybody who reaches the port: probes and metrics."""
        match path:
            case "/livez":
                return Response.of(*((200, "ok") if self.live() else (503, "the loop hangs")))
            case "/readyz":
                reasons = self.why_not_ready()
                return Response.of(503, "\n".join(reasons)) if reasons else Response.of(200, "ok")
            case "/metrics":
                return Response(200, self.metrics.text(), CONTENT_TYPE)
            case _:
                return None

    def local(self, path: str) -> Response | None:
        """For root on this node: all of it."""
        match path.split("/")[1:]:
            case ["view"]:
                return _json(self.view())
            case ["ledger"]:
                entries = self.ledger()
                return _json(tuple(entries[uid] for uid in sorted(entries)))
            case ["evidence"]:
                return _json(tuple(self.evidence()))
            case ["problems"]:
                return _json(tuple(self.problems()))
            case ["documents", name] if name in self.backends():
                return _json(self.backends()[name].render(self.view()))
            case _:
                return self.public(path)

    async def post(self, path: str, body: bytes) -> Response | None:
        """For root on this node: what it may let the agent do."""
        if path == "/evidence/clear" and self.clear is not None:
            return await self._cleared(self.clear, body)
        if path != "/apply" or self.apply is None:
            return None
        if body:
            return Response.of(400, "nothing is said by what is posted here: leave it empty")
        return _json(await self.apply())

    async def _cleared(
        self, clear: Callable[[Clearing], Awaitable[object]], body: bytes
    ) -> Response:
        from accelkit.core.serde import from_tree  # noqa: PLC0415 - as in _json

        try:
            gone = from_tree(Clearing, json.loads(body))
        except (ValueError, ConfigError) as error:
            wrong = " ".join(str(error).split())
            return Response.of(400, f'post {{"subject": DEVICE, "code": CODE}}: {wrong}')
        try:
            return _json(await clear(gone))
        except UnknownDevice as error:
            return Response.of(404, str(error))


def _json(value: object) -> Response:
    # Imported by the first request: an agent that nobody asks does without it.
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - see above

    return Response(200, json.dumps(to_tree(value)).encode() + b"\n", JSON)
