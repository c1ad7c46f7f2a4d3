"""The backends that run: started, started again, ended. Not here: what they may ask."""

import asyncio
import logging
from collections.abc import Collection, Mapping

import attrs

from accelkit.agent.keeper_means import DRA
from accelkit.agent.port import Port, Shared
from accelkit.agent.supervisor import supervise
from accelkit.core.backend import Backend, BackendFactory
from accelkit.core.offers import KUBELET
from accelkit.core.policy import Policy

log = logging.getLogger(__name__)

END_S = 6.0
"""How long backends may take to end their streams."""


def wanted(policy: Policy, factories: Mapping[str, BackendFactory]) -> tuple[str, ...]:
    """Names of the backends that *policy* needs, sorted: those that offers go through, and more."""
    through = {offer.through for offer in policy.offers}
    beside = {name for name, factory in factories.items() if _asks(factory, policy)}
    return tuple(sorted(through | beside))


def _asks(factory: BackendFactory, policy: Policy) -> bool:
    try:
        return bool(factory.wanted(policy))
    except Exception:
        log.exception("backend cannot say whether it is wanted", extra={"backend": factory.name})
        return False


@attrs.define
class _Running:
    port: Port
    task: asyncio.Task[None]
    backend: Backend[object] | None = None


class Backends:
    """Starts each backend once; if it has to be started again, with the policy of then.

    Args:
        factories: By name.
        shared: What their ports have in common.
    """

    def __init__(self, factories: Mapping[str, BackendFactory], shared: Shared) -> None:
        self._factories = factories
        self._shared = shared
        self._running: dict[str, _Running] = {}
        self._policy = Policy()

    def start(self, policy: Policy, held_through: Collection[str] = ()) -> None:
        """Start what *policy* wants and does not run yet; what it wants no more goes on.

        A backend without offers takes back what it listed, which ending it would not. One through
        which somebody holds a device serves those who hold it.
        """
        self._policy = policy
        for name in sorted({*wanted(policy, self._factories), *held_through}):
            if name not in self._running and name in self._factories:
                self._shared.meter.set("accelkit_up", 0, (name,))
                self._shared.meter.count("accelkit_backend_restarts_total", (name,), 0)
                port = Port(name, self._shared)
                task = asyncio.create_task(self._supervise(name, port), name=name)
                self._running[name] = _Running(port, task)

    @property
    def made(self) -> Mapping[str, Backend[object]]:
        """Those that could be made, by name."""
        return {name: r.backend for name, r in self._running.items() if r.backend is not None}

    def why_not_up(self, policy: Policy, *, api_away: bool = False) -> tuple[str, ...]:
        """What is missing before *policy* is served, a sentence each.

        With *api_away* a backend need not have published what it could not publish.
        """
        names = wanted(policy, self._factories)
        return tuple(filter(None, (self._why(name, api_away=api_away) for name in names)))

    def why_not_registered(self, policy: Policy) -> tuple[str, ...]:
        """The same of an instance that does not lead: claims may come to it all the same."""
        if DRA not in wanted(policy, self._factories):
            return ()
        why = self._why(DRA, api_away=True)
        return (why,) if why else ()

    def _why(self, name: str, *, api_away: bool) -> str:
        if name not in self._running:
            return f"backend {name} has not started"
        status = self._running[name].port.status
        excused = api_away and name != KUBELET
        if status.registered and (status.published or excused):
            return ""
        lacks = "published" if status.registered else "registered"
        return f"backend {name} has not {lacks} yet" + (
            f": {status.detail}" if status.detail else ""
        )

    async def end(self) -> None:
        """Cancel all of them and wait a while for their streams to end."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=END_S)
            for task in late:
                log.error("backend did not end", extra={"backend": task.get_name()})

    async def _supervise(self, name: str, port: Port) -> None:
        async def serve() -> None:
            backend = self._factories[name].create(self._policy)
            self._running[name].backend = backend
            await backend.serve(port)

        def failed(error: Exception) -> None:
            self._shared.meter.count("accelkit_backend_restarts_total", (name,))
            port.report(
                attrs.evolve(port.status, registered=False, published=False, detail=str(error))
            )
            port.problem("backend-failed", name, str(error), "it is started again by itself")

        await supervise(name, serve, self._shared.clock, failed)
