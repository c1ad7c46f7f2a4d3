"""The agent: everything started in order, kept running and ended in order. Not here: a process."""

import asyncio
import logging
import platform
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path

import attrs

from accelkit.agent import figures, loops
from accelkit.agent.admission import Pending
from accelkit.agent.calls import Isolated
from accelkit.agent.disk import Disk, HostDisk
from accelkit.agent.duties import Around, Duties
from accelkit.agent.endpoints import Answers
from accelkit.agent.holders import Holders, HoldingsReader
from accelkit.agent.interpreting import Interpreting
from accelkit.agent.kernel import Ear, FileEar
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.leader import Lease, prepare_run_directory
from accelkit.agent.listening import Listening
from accelkit.agent.measuring import Measuring
from accelkit.agent.metrics import Metrics
from accelkit.agent.port import Shared
from accelkit.agent.problems import Problems
from accelkit.agent.reach import Connect, Reach
from accelkit.agent.renewal import Renewal, Stamp
from accelkit.agent.running import Backends
from accelkit.agent.signals import Bell, within
from accelkit.agent.sources import Source
from accelkit.agent.store import Switch
from accelkit.core.backend import BackendFactory
from accelkit.core.clock import Clock
from accelkit.core.host import Host
from accelkit.core.model import Problem
from accelkit.core.offers import DEVICES_MISSING
from accelkit.core.policy import Policy
from accelkit.core.registry import LoadFailure
from accelkit.core.vendor import Vendor

log = logging.getLogger(__name__)

TICK_S = 0.5
"""A follower leads within two of them."""
SOON_S = 0.01
"""At least between two looks, whatever is due."""
HANG_S = 10.0
"""A loop that did not turn for so long hangs."""
GRACE_S = 30.0
"""Of a pod whose manifest does not say."""
CLOSE_S = 0.5
"""How long connections to the API server may take to be dropped."""
LAST_S = 5.0
"""What is left of the time to end for streams and sockets, when preparations had the rest."""


@attrs.frozen(kw_only=True)
class Parts:
    """What an agent is made of; whoever starts it composes them."""

    node: str
    policy: Policy
    vendors: tuple[Vendor | Isolated, ...]
    backends: Mapping[str, BackendFactory] = attrs.field(factory=dict)
    """By name; those that no offer goes through are not started."""
    host: Host
    clock: Clock
    disk: Disk = attrs.field(factory=HostDisk)
    """The door to the record of claims, and to their CDI files."""
    version: str = ""
    boot: str = ""
    holdings: HoldingsReader | None = None
    """None: nobody can say who holds what, and devices change hands at once."""
    read_policy: Callable[[], Policy] | None = None
    """Reads the policy again; raises ConfigError."""
    policy_file: Path | None = None
    """The policy is read again when it changes."""
    policy_stamp: Stamp | None = None
    """Of the file before it was read, so that a change of since then is noticed."""
    load_failures: tuple[LoadFailure, ...] = ()
    """Plugins that are not used."""
    connect: Connect | None = None
    """Opens the way to the API server; None: there is none."""
    grace_s: float = GRACE_S
    """How long after the order to end the process is killed."""


class Agent:
    """Reads vendors, publishes views and lets backends serve them, until it is told to end.

    Raises:
        ConfigError: It cannot start as the policy says; nothing is running then.
    """

    def __init__(self, parts: Parts) -> None:
        directory = Path(parts.policy.paths.run)
        self._parts = parts
        self._clock = parts.clock
        self._metrics = Metrics()
        self._problems = Problems(parts.clock.now)
        self._measuring = Measuring(self._problems, parts.clock)
        self._pending = Pending(parts.clock)
        self._holders = Holders(parts.holdings, self._problems)
        self._knowledge = Knowledge(
            parts.node,
            parts.boot,
            parts.policy,
            [self._source(vendor) for vendor in parts.vendors],
            self._pending,
            parts.clock,
            self._holders,
        )
        self._reach = Reach(parts.connect, self._metrics, self._problems)
        self._leading, self._closing, self._holdings = Switch(), Switch(), Bell()
        self._duties = Duties(self._around(directory))
        self._shared = self._port_parts()
        self._backends = Backends(parts.backends, self._shared)
        self._listening = Listening(
            parts.policy.http.listen, directory, self._answers(), self._problems, parts.clock
        )
        self._renewal = Renewal(
            parts.read_policy,
            parts.policy_file,
            self._knowledge,
            self._backends,
            self._problems,
            self._metrics,
            parts.policy_stamp,
        )
        self.finished = asyncio.Event()
        """Set when nothing is left but to end streams and sockets."""
        self._unused = tuple(_problem(failure) for failure in parts.load_failures)
        self._reload = Bell()
        self._turned = parts.clock.monotonic()
        self._shown = -1
        prepare_run_directory(directory)
        self._lease = Lease(directory)

    @property
    def port(self) -> int | None:
        """Where probes and metrics are served; None: nowhere, or not yet."""
        return self._listening.port

    async def run(self) -> None:
        """Serve until *stop*; then end streams and unlink sockets.

        Raises:
            ExceptionGroup: A loop broke; everything that could be ended was.
        """
        self._describe()
        try:
            await self._lead()
            if not await self._begun():
                return
            self._backends.start(self._parts.policy)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(loop) for loop in self._loops()]
                log.info("agent started", extra={"node": self._parts.node})
                await self._shared.closing.wait()
                log.info("agent ends")
                await self._duties.finish(max(0.0, self._parts.grace_s - LAST_S))
                self.finished.set()
                for task in tasks:
                    task.cancel()
        finally:
            await self._end()

    def stop(self) -> None:
        """Let *run* end; may be called twice."""
        self._shared.closing.set(True)

    def reload(self) -> None:
        """Read the policy again, soon."""
        self._reload.ring()

    def live(self) -> bool:
        """Whether the loop turned lately."""
        return self._clock.monotonic() - self._turned < HANG_S

    def why_not_ready(self) -> tuple[str, ...]:
        """Why the agent is not ready, a sentence each; empty when it is.

        Ready is the agent, not the node: a vendor that failed has been heard, too, and a follower
        is ready while somebody leads.
        """
        if self._shared.closing.now:
            return ("the agent ends",)
        unheard = tuple(
            f"vendor {source.name} has not answered yet"
            for source in self._knowledge.sources.values()
            if source.report is None
        )
        policy = self._knowledge.policy
        if self._shared.leading.now:
            up = self._backends.why_not_up(policy, api_away=self._reach.away)
            return (*unheard, *up)
        nobody = () if self._lease.elsewhere else ("nobody leads: the leader lock cannot be had",)
        return (*unheard, *nobody, *self._backends.why_not_registered(policy))

    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the agent, its backends or its vendors from their work."""
        return (
            *self._knowledge.problems,
            *self._problems.all,
            *self._duties.problems,
            *self._unused,
        )

    def dump(self) -> None:
        """Log what runs: tasks, lanes, and how old the view is."""
        for task in asyncio.all_tasks():
            log.info("task", extra={"task": task.get_name(), "what": repr(task.get_coro())})
        for source in self._knowledge.sources.values():
            running = [lane.running for lane in source.lanes.all if lane.running]
            log.info(
                "lanes",
                extra={"vendor": source.name, "stuck": source.stuck, "running": running},
            )
        view = self._knowledge.store.view
        log.info("view", extra={"devices": len(view.devices), "taken_at": view.snapshot.taken_at})

    def _source(self, vendor: Vendor | Isolated) -> Source:
        blocks = {block.name: block for block in self._parts.policy.vendors}
        scale = blocks[vendor.name].deadline_scale if vendor.name in blocks else 1.0

        def observe(call: str, outcome: str, seconds: float) -> None:
            labels = (vendor.name, call.replace(" ", "-"), outcome)
            self._metrics.observe("accelkit_vendor_call_seconds", seconds, labels)
            if call == "inventory":
                self._metrics.observe("accelkit_read_seconds", seconds, (vendor.name,))

        return Source(vendor, self._parts.host, scale, self._clock, observe)

    def _port_parts(self) -> Shared:
        return Shared(
            node=self._parts.node,
            paths=self._parts.policy.paths,
            clock=self._clock,
            meter=self._metrics,
            store=self._knowledge.store,
            leading=self._leading,
            closing=self._closing,
            answered=self._knowledge.answered,
            problems=self._problems,
            pending=self._pending,
            sources=self._knowledge.sources,
            holdings=self._holdings,
            reach=self._reach,
            keeper=self._duties.keeper,
            tell=self._duties.events.tell,
        )

    def _around(self, run: Path) -> Around:
        return Around(
            node=self._parts.node,
            boot=self._parts.boot,
            version=self._parts.version,
            run=run,
            disk=self._parts.disk,
            knowledge=self._knowledge,
            holders=self._holders,
            holdings=self._holdings,
            leading=self._leading,
            closing=self._closing,
            reach=self._reach,
            backends=self._parts.backends,
            problems=self._problems,
            metrics=self._metrics,
            clock=self._clock,
        )

    def _answers(self) -> Answers:
        return Answers(
            live=self.live,
            why_not_ready=self.why_not_ready,
            metrics=self._metrics,
            view=lambda: self._knowledge.store.view,
            problems=self.problems,
            backends=lambda: self._backends.made,
            ledger=lambda: self._duties.keeper.entries,
            evidence=lambda: self._knowledge.heard.evidence,
            clear=self._duties.clear,
            apply=lambda: self._duties.cutting.apply(told=True),
        )

    def _loops(self) -> Iterable[Coroutine[None, None, None]]:
        yield self._tick()
        yield self._renew()
        yield self._listening.serve_port()
        for source in self._knowledge.sources.values():
            yield from loops.all_of(self._knowledge, source, self._measuring, self._clock)
        host = self._parts.host
        ear = Ear(self._problems) if host.live else FileEar(host, self._clock)
        interpreting = Interpreting(self._knowledge, self._clock)
        yield ear.listen(interpreting.take)
        yield from interpreting.loops()
        if self._parts.holdings is not None:
            yield loops.read_holdings(self._knowledge, self._shared.holdings, self._clock)
        yield from self._duties.loops(self.problems)

    async def _begun(self) -> bool:
        """Take over what this boot left; False: the agent was told to end meanwhile."""
        begin = asyncio.create_task(self._duties.begin())
        end = asyncio.create_task(self._shared.closing.wait())
        try:
            while not (begin.done() or end.done()):
                self._turned = self._clock.monotonic()
                either = asyncio.wait((begin, end), return_when=asyncio.FIRST_COMPLETED)
                await within(self._clock, TICK_S, either)
            if begin.done():
                begin.result()
            return begin.done() and not end.done()
        finally:
            for task in (begin, end):
                task.cancel()
            await asyncio.gather(begin, end, return_exceptions=True)

    async def _tick(self) -> None:
        """Look after what costs nothing: the lock, the policy file, the passing of time."""
        while True:
            self._turned = self._clock.monotonic()
            await self._lead()
            if self._renewal.file_changed():
                self.reload()
            if self._until_due() <= 0.0:
                self._knowledge.commit()
            through = {holding.through for holding in self._knowledge.store.view.holdings}
            self._backends.start(self._knowledge.policy, through)
            await self._clock.sleep(min(TICK_S, max(SOON_S, self._until_due())))

    def _until_due(self) -> float:
        """Seconds until time alone changes how a device is judged."""
        due = self._knowledge.due_at()
        return float("inf") if due is None else due - self._clock.monotonic()

    async def _lead(self) -> None:
        leading = self._lease.check()
        if leading:
            await self._listening.serve_socket()
        if leading != self._shared.leading.now:
            log.info("leading" if leading else "leading no more")
        self._shared.leading.set(leading)

    async def _renew(self) -> None:
        while True:
            await self._reload.wait(self._clock, float("inf"))
            await self._renewal.renew()

    def _describe(self) -> None:
        python = platform.python_version()
        self._metrics.set("accelkit_build_info", 1, (self._parts.version, python))
        for failure in self._parts.load_failures:
            self._metrics.set("accelkit_plugin_load_failures", 1, (failure.plugin,))
        self._metrics.collect_with(self._show)

    def _show(self) -> None:
        store = self._knowledge.store
        if store.version != self._shown:
            figures.show(self._metrics, store.view)
            self._shown = store.version
        figures.show_events(self._metrics, store.view, self._knowledge.heard.evidence)
        problems, ready = self.problems(), not self.why_not_ready()
        figures.show_problems(self._metrics, problems)
        self._duties.show(self._metrics)
        names, leading = self._knowledge.policy.telemetry.names, self._shared.leading.now
        self._measuring.show(self._metrics, store.view, names, leading=leading)
        complete = all(problem.code != DEVICES_MISSING for problem in problems)
        self._metrics.set("accelkit_ready", float(ready))
        self._metrics.set("accelkit_node_ready", float(ready and complete))
        self._metrics.set("accelkit_leader", float(self._shared.leading.now))
        for source in self._knowledge.sources.values():
            self._metrics.set("accelkit_lane_stuck", source.stuck, (source.name,))
        restarts = {name: source.restarts for name, source in self._knowledge.sources.items()}
        figures.show_restarts(self._metrics, restarts)

    async def _end(self) -> None:
        self._shared.closing.set(True)
        self.finished.set()
        await self._backends.end()
        await self._listening.close_socket()
        # The lock goes after them: who leads next must meet neither streams nor sockets of ours.
        self._shared.leading.set(False)
        self._lease.release()
        await self._listening.close_port()
        await within(self._clock, CLOSE_S, self._reach.close())
        for source in self._knowledge.sources.values():
            source.close()
        log.info("agent ended")


def _problem(failure: LoadFailure) -> Problem:
    return Problem(
        subject=failure.plugin, code=failure.code, reason=failure.reason, remedy=failure.remedy
    )
