"""Kubernetes events: folded, limited, and sent when the API server is there.

Not here: what is worth one.
"""

import logging
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import attrs

from accelkit.agent.problems import AGENT, Problems
from accelkit.agent.signals import Bell
from accelkit.core.allocation import ClaimRef, PodRef
from accelkit.core.clock import Clock
from accelkit.core.errors import ApiError, TransportError
from accelkit.core.foreign import one_line
from accelkit.core.kube import CLAIMS, EVENTS, NODES, PODS, Json, KubePort

log = logging.getLogger(__name__)

CONTROLLER = "accelkit.dev/agent"
NODE_NAMESPACE = "default"
"""Where events about nodes are (kubernetes pkg/apis/core/validation/events.go, 1.37)."""
NOTE_BYTES = 1024
"""Most that a note may have (the same)."""
INSTANCE_CHARACTERS = 128
SERIES_S = 360.0
"""A repetition after so long is an event of its own: servers forget events in time."""
REPEAT_S = 60.0
"""At least between two updates of one event."""
MOST_SERIES = 256
MINUTE_S = 60.0
PAUSES_S = (1.0, 60.0)
"""Shortest and longest pause while the API server cannot be reached."""
NOT_THERE, CONFLICT = 404, 409


@attrs.frozen
class _Key:
    reason: str
    text: str
    kind: str
    namespace: str
    name: str
    uid: str


@attrs.define
class _Series:
    """One event, and how often it came."""

    key: _Key
    warning: bool
    first: datetime
    last: datetime
    last_s: float
    due_s: float
    count: int = 1
    told: int = 0
    """How many of them the server knows of."""
    ident: str = attrs.field(factory=lambda: secrets.token_hex(8))

    @property
    def namespace(self) -> str:
        return self.key.namespace or NODE_NAMESPACE

    @property
    def name(self) -> str:
        return f"{self.key.name[:200]}.{self.ident}"


class Events:
    """Tells the API server what happened; what it never hears is in the log.

    Args:
        node: What an event is about that names neither pod nor claim.
        kube: None now: events are logged alone.
        per_minute: How many requests may be made for them.
    """

    def __init__(
        self,
        node: str,
        kube: Callable[[], KubePort | None],
        per_minute: Callable[[], int],
        clock: Clock,
        problems: Problems,
    ) -> None:
        self._node = node
        self._kube = kube
        self._per_minute = per_minute
        self._clock = clock
        self._problems = problems
        self._series: dict[_Key, _Series] = {}
        self._news = Bell()
        self._sent: deque[float] = deque()

    def tell(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,
        pod: PodRef | None = None,
        warning: bool = True,
    ) -> None:
        """Emit an event about *pod*, in the namespace of *claim*, or about the node."""
        text = one_line(text)
        log.log(
            logging.WARNING if warning else logging.INFO,
            "event",
            extra={
                "reason": reason,
                "text": text,
                "claim": None if claim is None else f"{claim.namespace}/{claim.name}",
                "pod": None if pod is None else f"{pod.namespace}/{pod.name}",
            },
        )
        if self._kube() is None:
            return
        if pod is not None:
            key = _Key(reason, text, PODS.kind, pod.namespace, pod.name, pod.uid)
        elif claim is not None and claim.name:  # else nothing but its uid is known
            key = _Key(reason, text, CLAIMS.kind, claim.namespace, claim.name, claim.uid)
        else:
            key = _Key(reason, text, NODES.kind, "", self._node, self._node)
        self._count(key, warning=warning)
        self._news.ring()

    async def send(self) -> None:
        """Send what was told, oldest first, until cancelled."""
        shortest, longest = PAUSES_S
        pause = shortest
        while True:
            series = await self._next()
            kube = self._kube()
            if kube is None:
                series.told = series.count
                continue
            self._sent.append(self._clock.monotonic())
            try:
                await self._send(kube, series)
                pause = shortest
            except TransportError:
                await self._clock.sleep(pause)
                pause = min(pause * 2, longest)

    def _count(self, key: _Key, *, warning: bool) -> None:
        now, now_s = self._clock.now(), self._clock.monotonic()
        series = self._series.pop(key, None)
        if series is None or now_s - series.last_s > SERIES_S:
            series = _Series(key, warning, now, now, last_s=now_s, due_s=now_s)
        else:
            series.count += 1
            series.last, series.last_s = now, now_s
        self._series[key] = series
        if len(self._series) > MOST_SERIES:
            oldest = min(self._series.values(), key=lambda one: (one.count > one.told, one.last_s))
            del self._series[oldest.key]

    async def _next(self) -> _Series:
        """The event that has waited longest, when there is room for a request."""
        while True:
            now = self._clock.monotonic()
            while self._sent and self._sent[0] <= now - MINUTE_S:
                self._sent.popleft()
            waiting = [one for one in self._series.values() if one.count > one.told]
            first = min(waiting, key=lambda one: one.due_s, default=None)
            if first is None:
                await self._news.wait(self._clock, float("inf"))
                continue
            due = first.due_s
            if len(self._sent) >= max(1, self._per_minute()):
                due = max(due, self._sent[0] + MINUTE_S)
            if due <= now:
                return first
            await self._news.wait(self._clock, due - now)

    async def _send(self, kube: KubePort, series: _Series) -> None:
        count = series.count
        try:
            if series.told:
                body = {"series": _repetition(count, series.last)}
                await kube.patch(EVENTS, series.name, body, namespace=series.namespace)
            else:
                await kube.create(EVENTS, self._body(series), namespace=series.namespace)
        except ApiError as error:
            if error.status == NOT_THERE and series.told:  # the server has forgotten it
                series.told, series.ident = 0, secrets.token_hex(8)
                return
            # Not there: its namespace is gone, and with it whoever would read it.
            if error.status not in {CONFLICT, NOT_THERE}:
                self._refused(series, error)
        else:
            self._problems.solve(AGENT, "events-refused", "")
        series.told = count
        series.due_s = self._clock.monotonic() + REPEAT_S

    def _refused(self, series: _Series, error: ApiError) -> None:
        log.warning("event refused", extra={"reason": series.key.reason, "error": str(error)})
        self._problems.note(
            AGENT,
            "events-refused",
            "",
            f"the API server does not take events: {error}",
            "let the agent create and patch events.events.k8s.io, or set $.events.enabled to never",
        )

    def _body(self, series: _Series) -> Json:
        key = series.key
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": _micro(series.first),
            **({"series": _repetition(series.count, series.last)} if series.count > 1 else {}),
            "reportingController": CONTROLLER,
            "reportingInstance": self._node[:INSTANCE_CHARACTERS],
            "action": key.reason,
            "reason": key.reason,
            "regarding": _regarding(key),
            "note": key.text.encode()[:NOTE_BYTES].decode(errors="ignore"),
            "type": "Warning" if series.warning else "Normal",
        }


def _regarding(key: _Key) -> Mapping[str, str]:
    kind = next(one for one in (PODS, CLAIMS, NODES) if one.kind == key.kind)
    about = {"apiVersion": kind.api_version, "kind": kind.kind, "name": key.name, "uid": key.uid}
    return {**about, "namespace": key.namespace} if key.namespace else about


def _repetition(count: int, last: datetime) -> Mapping[str, object]:
    return {"count": count, "lastObservedTime": _micro(last)}


def _micro(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
