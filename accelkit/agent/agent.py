"""The agent: everything started in order, kept running and ended in order. Not here: a process."""

import asyncio
import logging
import platform
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path

import attrs

from accelkit.agent import figures, loops
from accelkit.agent.admission import Pending
from accelkit.agent.endpoints import Answers
from accelkit.agent.http import HttpServer, address, reason
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.leader import Lease, prepare_run_directory
from accelkit.agent.metrics import Metrics
from accelkit.agent.port import Port, Shared
from accelkit.agent.problems import Problems
from accelkit.agent.signals import Bell, within
from accelkit.agent.sources import Source
from accelkit.agent.store import Switch
from accelkit.agent.supervisor import supervise
from accelkit.core.backend import Backend, BackendFactory
from accelkit.core.clock import Clock
from accelkit.core.errors import ConfigError
from accelkit.core.host import Host
from accelkit.core.model import Problem
from accelkit.core.policy import Policy
from accelkit.core.vendor import Vendor

log = logging.getLogger(__name__)

TICK_S = 0.5
"""A follower leads within two of them."""
HANG_S = 10.0
"""A loop that did not turn for so long hangs."""
REBIND_S = 5.0
"""Between two tries to have a port that somebody else has."""
END_BACKENDS_S = 6.0
"""How long backends may take to end their streams."""
SOCKET = "agent.sock"
_OURS = "agent"

RESTART_ONLY = ("paths", "vendors", "backends", "kube", "http", "logging")
"""Blocks of the policy that are read at start alone."""


@attrs.frozen(kw_only=True)
class Parts:
    """What an agent is made of; whoever starts it composes them."""

    node: str
    policy: Policy
    vendors: tuple[Vendor, ...]
    backends: Mapping[str, BackendFactory] = attrs.field(factory=dict)
    """By name, those that no offer uses among them."""
    host: Host
    clock: Clock
    version: str = ""
    boot: str = ""
    holdings: loops.HoldingsReader | None = None
    """None: nobody can say who holds what, and devices change hands at once."""
    read_policy: Callable[[], Policy] | None = None
    """Reads the policy again; raises ConfigError."""
    policy_file: Path | None = None
    """Read again when it changes."""
    load_failures: tuple[str, ...] = ()
    """Plugins that could not be loaded."""


@attrs.define
class _Backend:
    """A backend that was started."""

    factory: BackendFactory
    port: Port
    task: asyncio.Task[None] | None = None
    served: Backend[object] | None = None


class Agent:
    """Runs until it is told to end.

    Raises:
        ConfigError: It cannot start as the policy says; nothing is running then.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._directory = Path(parts.policy.paths.run)
        self._listen = _address(parts.policy)
        prepare_run_directory(self._directory)
        self._metrics = Metrics()
        self._problems = Problems(parts.clock.now)
        sources = [self._source(vendor) for vendor in parts.vendors]
        pending = Pending(parts.clock)
        self._knowledge = Knowledge(
            parts.node, parts.boot, parts.policy, sources, pending, parts.clock
        )
        self._knowledge.holders_known = parts.holdings is None
        self._lease = Lease(self._directory)
        self._shared = Shared(
            node=parts.node,
            paths=parts.policy.paths,
            clock=parts.clock,
            meter=self._metrics,
            store=self._knowledge.store,
            leading=Switch(),
            closing=Switch(),
            answered=self._knowledge.answered,
            problems=self._problems,
            pending=pending,
            sources=self._knowledge.sources,
            holdings=Bell(),
        )
        self._backends: dict[str, _Backend] = {}
        self._reload = Bell()
        self._turned = parts.clock.monotonic()
        self._shown = -1
        answers = Answers(
            live=self.live,
            why_not_ready=self.why_not_ready,
            metrics=self._metrics,
            view=lambda: self._knowledge.store.view,
            problems=self.problems,
            backends=lambda: {n: b.served for n, b in self._backends.items() if b.served},
        )
        self._tcp = HttpServer(answers.public)
        self._local = HttpServer(answers.local)
        self.port: int | None = None
        """Where probes and metrics are served; None: nowhere (yet)."""

    async def run(self) -> None:
        """Serve until *stop*; then end streams and unlink sockets.

        Raises:
            ExceptionGroup: A loop broke; everything that could be ended was.
        """
        self._describe()
        self._shared.leading.set(self._lease.check())
        try:
            if self._shared.leading.now:
                await self._serve_local()
            self._start_backends(self._parts.policy)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(loop) for loop in self._loops()]
                log.info("agent started", extra={"node": self._parts.node})
                await self._shared.closing.wait()
                log.info("agent ends")
                for task in tasks:
                    task.cancel()
        finally:
            await self._end()

    def stop(self) -> None:
        """Let *run* end; may be called twice."""
        self._shared.closing.set(True)

    def reload(self) -> None:
        """Read the policy again, soon."""
        self._reload.ring(urgent=True)

    def live(self) -> bool:
        """Whether the loop turned lately."""
        return self._clock.monotonic() - self._turned < HANG_S

    def why_not_ready(self) -> tuple[str, ...]:
        """Why the agent is not ready, a sentence each; empty when it is.

        Ready is the agent, not the node: a vendor that failed has been heard, too.
        """
        return tuple(self._reasons())

    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the agent, its backends or its vendors from their work."""
        return (*self._knowledge.problems, *self._problems.all)

    def dump(self) -> None:
        """Log what runs: tasks, lanes, and how old things are."""
        for task in asyncio.all_tasks():
            log.info("task", extra={"task": task.get_name(), "at": repr(task.get_coro())})
        for source in self._knowledge.sources.values():
            log.info(
                "vendor",
                extra={
                    "vendor": source.name,
                    "answered": bool(source.report and source.report.answered),
                    "stuck": source.lanes.stuck,
                    "running": [lane.running for lane in source.lanes.all if lane.running],
                },
            )
        view = self._knowledge.store.view
        log.info("view", extra={"devices": len(view.devices), "taken_at": view.snapshot.taken_at})

    # What runs.

    def _loops(self) -> Iterable[Coroutine[None, None, None]]:
        yield self._tick()
        yield self._keep_policy()
        if self._listen is not None:
            yield self._serve_tcp(*self._listen)
        for source in self._knowledge.sources.values():
            yield from loops.all_of(self._knowledge, source, self._clock)
        if self._parts.holdings is not None:
            yield loops.read_holdings(
                self._knowledge,
                self._parts.holdings,
                self._shared.holdings,
                self._problems,
                self._clock,
            )

    def _source(self, vendor: Vendor) -> Source:
        scale = next(
            (v.deadline_scale for v in self._parts.policy.vendors if v.name == vendor.name), 1.0
        )

        def observe(call: str, outcome: str, seconds: float) -> None:
            labels = (vendor.name, call.replace(" ", "-"), outcome)
            self._metrics.observe("accelkit_vendor_call_seconds", seconds, labels)
            if call == "inventory":
                self._metrics.observe("accelkit_read_seconds", seconds, (vendor.name,))

        return Source(vendor, self._parts.host, scale, self._clock, observe)

    def _start_backends(self, policy: Policy) -> None:
        for name in sorted({offer.through for offer in policy.offers} - self._backends.keys()):
            factory = self._parts.backends[name]
            backend = _Backend(factory, Port(name, self._shared))
            self._backends[name] = backend
            self._metrics.set("accelkit_up", 0, (name,))
            self._metrics.count("accelkit_backend_restarts_total", (name,), 0)
            backend.task = asyncio.create_task(self._supervise(name, backend), name=name)

    async def _supervise(self, name: str, backend: _Backend) -> None:
        async def serve() -> None:
            backend.served = backend.factory.create(self._knowledge.policy)
            await backend.served.serve(backend.port)

        def failed(error: Exception) -> None:
            self._metrics.count("accelkit_backend_restarts_total", (name,))
            backend.port.report(attrs.evolve(backend.port.status, registered=False))
            backend.port.problem("backend-failed", name, str(error), "it is started again")

        await supervise(name, serve, self._clock, failed)

    async def _tick(self) -> None:
        """Look after what is cheap to look at: the lock, the policy file, the passing of time."""
        seen = _stamp(self._parts.policy_file)
        while True:
            self._turned = self._clock.monotonic()
            await self._lead(self._lease.check())
            if (stamp := _stamp(self._parts.policy_file)) != seen:
                seen = stamp
                self._reload.ring()
            end = self._knowledge.overdue_at()
            if end is not None and self._turned > end:
                self._knowledge.commit()
            await self._clock.sleep(TICK_S)

    async def _lead(self, leading: bool) -> None:
        if leading and not self._shared.leading.now:
            log.info("leading now")
            await self._serve_local()
        self._shared.leading.set(leading)

    async def _keep_policy(self) -> None:
        while self._parts.read_policy is not None:
            await self._reload.wait(self._clock, float("inf"), 0.0)
            await self._adopt(self._parts.read_policy)

    async def _adopt(self, read_policy: Callable[[], Policy]) -> None:
        try:
            policy = read_policy()
        except ConfigError as error:
            self._metrics.count("accelkit_config_reloads_total", ("refused",))
            self._problems.note(
                _OURS,
                "config-invalid",
                str(self._parts.policy_file or ""),
                str(error),
                "correct the file; until then the policy before stays in force",
            )
            return
        self._metrics.count("accelkit_config_reloads_total", ("accepted",))
        self._problems.solve(_OURS, "config-invalid", str(self._parts.policy_file or ""))
        await self._knowledge.adopt(policy)
        self._start_backends(policy)
        self._say_restart(policy)
        for source in self._knowledge.sources.values():
            source.inventory.ring(urgent=True)
        log.info("policy read", extra={"revision": self._knowledge.store.view.revision})

    def _say_restart(self, policy: Policy) -> None:
        for block in RESTART_ONLY:
            if getattr(policy, block) == getattr(self._parts.policy, block):
                self._problems.solve(_OURS, "restart-needed", f"$.{block}")
            else:
                self._problems.note(
                    _OURS,
                    "restart-needed",
                    f"$.{block}",
                    f"$.{block} changed, which is read at start alone",
                    "restart the agent",
                )

    # What is served over HTTP.

    async def _serve_local(self) -> None:
        path = self._directory / SOCKET
        try:
            await self._local.listen_unix(path)
        except OSError as error:
            self._problems.note(
                _OURS,
                "agent-socket",
                str(path),
                f"{path} cannot be served: {reason(error)}",
                "choose another $.paths.run: a socket's path may have 107 bytes",
            )

    async def _serve_tcp(self, host: str | None, port: int) -> None:
        where = self._parts.policy.http.listen
        while self.port is None:
            try:
                self.port = await self._tcp.listen(host, port)
            except OSError as error:
                self._problems.note(
                    _OURS,
                    "http-listen",
                    where,
                    f"metrics and probes cannot be served on {where}: {reason(error)}",
                    "end what uses it, or choose another $.http.listen and restart",
                )
                await self._clock.sleep(REBIND_S)
        self._problems.solve(_OURS, "http-listen", where)
        log.info("metrics and probes are served", extra={"port": self.port})

    def _reasons(self) -> Iterable[str]:
        if self._shared.closing.now:
            yield "the agent is ending"
        for source in self._knowledge.sources.values():
            if source.report is None:
                yield f"vendor {source.name} has not answered yet"
        if not self._shared.leading.now:
            if not self._lease.elsewhere:
                yield f"nobody leads: {self._directory} cannot be locked"
            return
        for name in sorted({offer.through for offer in self._knowledge.policy.offers}):
            status = self._backends[name].port.status
            if not (status.registered and status.published):
                state = "published" if status.registered else "registered"
                detail = f": {status.detail}" if status.detail else ""
                yield f"backend {name} has not {state} yet{detail}"

    # What is measured.

    def _describe(self) -> None:
        python = platform.python_version()
        self._metrics.set("accelkit_build_info", 1, (self._parts.version, python))
        for outcome in ("accepted", "refused"):
            self._metrics.count("accelkit_config_reloads_total", (outcome,), 0)
        for plugin in self._parts.load_failures:
            self._metrics.set("accelkit_plugin_load_failures", 1, (plugin,))
        self._metrics.collect_with(self._show)

    def _show(self) -> None:
        store = self._knowledge.store
        if store.version != self._shown:
            figures.show(self._metrics, store.view)
            self._shown = store.version
        figures.show_problems(self._metrics, self.problems())
        self._metrics.set("accelkit_ready", float(not self.why_not_ready()))
        self._metrics.set("accelkit_leader", float(self._shared.leading.now))
        for source in self._knowledge.sources.values():
            self._metrics.set("accelkit_lane_stuck", source.lanes.stuck, (source.name,))

    # How it ends.

    async def _end(self) -> None:
        self._shared.closing.set(True)
        tasks = [backend.task for backend in self._backends.values() if backend.task]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=END_BACKENDS_S)
            for task in late:
                log.error("backend did not end", extra={"backend": task.get_name()})
        await self._local.close()
        # The lock goes last: who leads next must not meet streams and sockets of ours.
        self._shared.leading.set(False)
        self._lease.release()
        await self._tcp.close()
        for source in self._knowledge.sources.values():
            source.close()
        log.info("agent ended")


def _address(policy: Policy) -> tuple[str | None, int] | None:
    if not policy.http.listen:
        return None
    try:
        return address(policy.http.listen)
    except ValueError as error:
        raise ConfigError([("$.http.listen", str(error))]) from error


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """What changes when a file does, the target of a link for a link."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None


__all__ = ["Agent", "Parts", "within"]
