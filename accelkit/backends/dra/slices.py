"""The slices of a node, written while this instance leads. Not here: what is in them."""

import asyncio
import logging
from collections.abc import Mapping

import attrs

from accelkit.backends.dra.dialect import lacking
from accelkit.backends.dra.document import Document, offered_vendors, render, vendors_of
from accelkit.backends.dra.pool import Dialect, Pool
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices_driver import DriverSlices, Tell
from accelkit.backends.dra.slices_plan import Verb
from accelkit.backends.dra.slices_rivals import Rivals
from accelkit.backends.dra.slices_seen import Seen
from accelkit.backends.dra.slices_server import Server
from accelkit.backends.dra.slices_settings import Patience
from accelkit.backends.dra.slices_write import Writer
from accelkit.backends.kube.follow import follow
from accelkit.backends.leading import while_leading
from accelkit.core.backend import NodePort
from accelkit.core.errors import BackendError
from accelkit.core.kube import SLICES
from accelkit.core.policy import DraPolicy
from accelkit.core.view import View

UNKNOWN = "slices-unknown"
FAILED = "slices-failed"
DROPPED = "fields-dropped"
_PATIENCE = Patience()

log = logging.getLogger(__name__)


async def publish(
    node: NodePort,
    policy: DraPolicy,
    registrations: Registrations,
    tell: Tell,
    patience: Patience = _PATIENCE,
) -> None:
    """Keep the slices of every driver as the views say, until cancelled.

    Writes while this instance leads, and nothing at all where nothing has changed. Slices stay
    when it ends: whoever leads next finds them as they should be. Nothing is written for a vendor
    that has not answered, for a driver that the kubelet has not registered, or while a held device
    is not known.

    Args:
        node: The agent.
        policy: What drivers are called.
        registrations: To be told of every time that the kubelet accepts a driver.
        tell: Told of each driver whether its slices are as they should be, when that changes.
        patience: How long things may take.

    Raises:
        BackendError: The node has no API server.
    """
    if node.kube is None:
        raise BackendError(
            "slices need an API server", backend="dra", remedy="set kube.config in the policy"
        )
    while True:
        await node.leading.wait()
        server = Server(kube=node.kube, node=node.node, lists=policy.list_attributes)
        term = _Term(node, policy, server, registrations, tell, patience)
        await while_leading(node, term.run())


@attrs.frozen
class _Drawn:
    """What was made of a view."""

    view: View
    given: tuple[Dialect, Mapping[str, Pool]]
    """What the server keeps, and what was published before."""
    document: Document
    lacks: Mapping[str, frozenset[str]]
    """Of each driver the fields that its pool would have on a server that keeps everything."""


@attrs.define
class _Term:
    """As long as this instance leads."""

    node: NodePort
    policy: DraPolicy
    server: Server
    registrations: Registrations
    tell: Tell
    patience: Patience
    _seen: Seen = attrs.field(init=False, factory=Seen)
    _wake: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _begun_s: float = attrs.field(init=False)
    _ask_s: float = attrs.field(init=False, default=0.0)
    """When to ask the server again, if it did not answer."""
    _drivers: dict[str, DriverSlices] = attrs.field(init=False, factory=dict)
    _drawn: _Drawn | None = attrs.field(init=False, default=None)
    _told: _Drawn | None = attrs.field(init=False, default=None)
    """What was reported last."""
    _problems: set[tuple[str, str]] = attrs.field(init=False, factory=set)
    """Of that, by code and subject."""
    _lacks: dict[str, frozenset[str]] = attrs.field(init=False, factory=dict)
    """Of that, by driver."""

    def __attrs_post_init__(self) -> None:
        self._begun_s = self._now()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._look())
            while True:
                self._wake.clear()
                await self._sleep(await self._survived_turn())

    async def _follow(self) -> None:
        fields = f"spec.nodeName={self.node.node}"
        objects = follow(
            self.server.kube,
            SLICES,
            fields=fields,
            cached=True,
            told=self._heard,
            clock=self.node.clock,
        )
        async for found in objects:
            self._seen.show(((name, item) for (_, name), item in found.items()), self._now())
            self._wake.set()

    def _heard(self, error: BackendError | None) -> None:
        """The server was listed anew, or could not be."""
        if error is not None:
            self.node.problem(UNKNOWN, self.node.node, str(error), error.remedy)
            return
        self.node.solved(UNKNOWN, self.node.node)
        self.server.stale, self._ask_s = True, 0.0
        for driver in self._drivers.values():
            driver.hurry()

    async def _look(self) -> None:
        async for _ in self.node.views():
            self._wake.set()

    async def _sleep(self, until: float | None) -> None:
        """Until something happens, or it is time."""
        longest = self.patience.idle_s
        seconds = longest if until is None else min(longest, max(0.0, until - self._now()))
        tasks = (
            asyncio.create_task(self._wake.wait()),
            asyncio.create_task(self.node.clock.sleep(seconds)),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _survived_turn(self) -> float | None:
        """A turn, whatever comes of it: whoever has claims is served while slices are not."""
        try:
            until = await self._turn()
        except Exception as error:  # a mistake of ours; claims go on
            log.exception("slices could not be written")
            self.node.problem(
                FAILED, self.node.node, f"{type(error).__name__}: {error}", "report it"
            )
            return self._now() + self.patience.again_s[1]
        self.node.solved(FAILED, self.node.node)
        return until

    async def _turn(self) -> float | None:
        """Do what there is to do; returns when there is more, None: when something happens."""
        view = self.node.view()
        wanted = self._wanted(view)
        if self.node.closing.now or not self._seen.listed or not wanted:
            return None
        if self._now() < self._ask_s:
            return self._ask_s
        try:
            await self.server.learn(wanted[0], self._now())
        except BackendError as error:
            self._ask_s = self._now() + self.patience.again_s[0]
            self.node.problem(UNKNOWN, self.node.node, str(error), error.remedy)
            return self._ask_s
        self.node.solved(UNKNOWN, self.node.node)
        drawn = self._draw(view)
        self._say(drawn)
        assert self.server.owner is not None
        times = [
            await self._driver(name).step(drawn.document.pools.get(name), self.server.owner)
            for name in wanted
        ]
        return min((time for time in times if time is not None), default=None)

    def _wanted(self, view: View) -> tuple[str, ...]:
        """Drivers whose slices follow from *view*, those that have none any more among them.

        So have those that are called otherwise by now, of whose claims some are left.
        """
        offered, wanted = offered_vendors(view), vendors_of(view)
        left = (
            vendor
            for vendor in view.snapshot.answered & view.domains.keys() - offered
            if self._seen.of(self.policy.driver_of(vendor), self._now())
        )
        now = set(map(self.policy.driver_of, view.domains))
        former = {
            name
            for entry in self.node.claims().values()
            for name in entry.called.values()
            if name not in now and self._seen.of(name, self._now())
        }
        return tuple(sorted({*map(self.policy.driver_of, (*wanted, *left)), *former}))

    def _driver(self, name: str) -> DriverSlices:
        if name not in self._drivers:
            for verb in Verb:
                self.node.meter.count("accelkit_slice_writes_total", (name, verb), 0)
            self._drivers[name] = DriverSlices(
                writer=Writer(name, self.node, self.server, self._seen),
                node=self.node,
                registrations=self.registrations,
                patience=self.patience,
                tell=self.tell,
                begun_s=self._begun_s,
                rivals=Rivals(self.patience),
            )
        return self._drivers[name]

    def _draw(self, view: View) -> _Drawn:
        """What to publish of *view*; the same as before if nothing has changed."""
        dialect = self.server.dialect(self._now())
        previous = {
            self.policy.driver_of(vendor): pool
            for vendor in vendors_of(view)
            if (pool := self._driver(self.policy.driver_of(vendor)).published()) is not None
        }
        given = (dialect, previous)
        last = self._drawn
        if last is None or last.view is not view or last.given != given:
            made = render(view, self.policy, dialect, previous)
            last = _Drawn(view, given, made, _lacks(view, self.policy, dialect))
            self._drawn = last
        return last

    def _say(self, drawn: _Drawn) -> None:
        """Report what devices cannot say, and what the server does not keep."""
        if drawn is self._told:
            return
        self._told = drawn
        problems = {(p.code, p.subject or ""): p for p in drawn.document.problems}
        for code, subject in self._problems - problems.keys():
            self.node.solved(code, subject)
        for (code, subject), problem in problems.items():
            self.node.problem(code, subject, problem.reason, problem.remedy)
        self._problems = set(problems)
        for driver, fields in drawn.lacks.items():
            if fields != self._lacks.get(driver, frozenset()):
                self._say_dropped(driver, fields)

    def _say_dropped(self, driver: str, fields: frozenset[str]) -> None:
        self._lacks[driver] = fields
        if not fields:
            self.node.solved(DROPPED, driver)
            return
        text = f"the API server keeps no {', '.join(sorted(fields))} in slices of {driver}"
        self.node.problem(DROPPED, driver, text, "turn on the feature gates of these fields")
        self.node.tell("FieldsDropped", text)
        for field in fields:
            self.node.meter.count("accelkit_slice_drops_total", (driver, field))

    def _now(self) -> float:
        return self.node.clock.monotonic()


def _lacks(view: View, policy: DraPolicy, dialect: Dialect) -> Mapping[str, frozenset[str]]:
    full = attrs.evolve(Dialect(), list_attributes=dialect.list_attributes)
    if attrs.evolve(dialect, most_taints=full.most_taints) == full:
        return dict.fromkeys(map(policy.driver_of, vendors_of(view)), frozenset())
    pools = render(view, policy, full).pools
    return {driver: lacking(pool, dialect) for driver, pool in pools.items()}
