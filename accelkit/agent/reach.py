"""The way to the API server, opened when it is first used. Not here: what is asked there."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from accelkit.agent.metrics import Metrics
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.kube import KubePort
from accelkit.core.offers import KUBELET
from accelkit.core.policy import EventsEnabled, Policy

Count = Callable[[str, str, str], None]
"""Told of every request: verb, resource and the code of its answer, ``error`` where none came."""
Connect = Callable[[Count], KubePort | None]
"""Opens the way; None: the policy wants none."""

NO_ANSWER = "error"
AWAY, REFUSES = "api-away", "api-refuses"
REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "401": "give the agent a token, or a kubeconfig, that the API server knows",
        "403": "grant it in the agent's ClusterRole",
    }
)
"""What to do, by the code of a request that was refused."""


class Reach:
    """One way for all, if anybody needs it.

    Args:
        connect: None: there is no API server, whatever the policy says.
        problems: Has it while the API server is away, and what it refuses.
    """

    def __init__(self, connect: Connect | None, metrics: Metrics, problems: Problems) -> None:
        self._connect = connect
        self._metrics = metrics
        self._problems = problems
        self._opened = False
        self._kube: KubePort | None = None
        self.away = False
        """Whether the last request got no answer."""

    @property
    def kube(self) -> KubePort | None:
        """The API server, for a backend that needs it; None: no access is configured."""
        if not self._opened:
            self._opened = True
            self._kube = self._connect(self._count) if self._connect is not None else None
        return self._kube

    def for_agent(self, backends: frozenset[str]) -> KubePort | None:
        """The API server for what the agent itself asks; None where no backend needs it."""
        return self.kube if backends - {KUBELET} else None

    def for_events(self, policy: Policy, backends: frozenset[str]) -> KubePort | None:
        """The same for events, as the policy says."""
        match policy.events.enabled:
            case EventsEnabled.NEVER:
                return None
            case EventsEnabled.ALWAYS:
                return self.kube
            case EventsEnabled.AUTO:
                return self.for_agent(backends)

    async def close(self) -> None:
        """Drop connections; may be called twice."""
        if self._kube is not None:
            await self._kube.close()

    def _count(self, verb: str, resource: str, code: str) -> None:
        self.away = code == NO_ANSWER
        if self.away:
            reason = f"the API server gave no answer to {verb} {resource}"
            remedy = "see that it runs and that this node reaches it; what it has is kept meanwhile"
            self._problems.note(AGENT, AWAY, "", reason, remedy)
        else:
            self._problems.solve(AGENT, AWAY, "")
            self._note_refusal(verb, resource, code)
        self._metrics.count("accelkit_api_requests_total", (verb, resource, code))

    def _note_refusal(self, verb: str, resource: str, code: str) -> None:
        what = f"{verb} {resource}"
        if code in REMEDIES:
            reason = f"the API server refuses the agent to {what}: {code}"
            self._problems.note(AGENT, REFUSES, what, reason, REMEDIES[code])
        else:
            self._problems.solve(AGENT, REFUSES, what)
