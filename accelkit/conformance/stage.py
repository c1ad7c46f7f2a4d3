"""A driver of claims with a kubelet, an API server and a scheduler, for one check after another.

Not here: what checks do with it.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TypeVar

import attrs

from accelkit.conformance.bench import Scope
from accelkit.conformance.claims_agent import ClaimsAgent
from accelkit.conformance.model import Feature, Level, Unanswered
from accelkit.conformance.setups import MANY, Setup, Site
from accelkit.conformance.sims.api.files import port_of
from accelkit.conformance.sims.api.kinds import NAMESPACES, TEMPLATES, kinds
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.strategies import ADMIN_LABEL
from accelkit.conformance.sims.api.values import names_of, number, part, parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered, SlicesWiped
from accelkit.conformance.sims.dra.side import Cluster
from accelkit.conformance.sims.events import Refused
from accelkit.conformance.sims.gates import PATCHES
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.scheduler.scheduler import SchedulerSim
from accelkit.conformance.sims.tasks import do
from accelkit.conformance.sims.timing import Timing
from accelkit.conformance.socket_bench import FIRST_S, sweep
from accelkit.conformance.subjects import ClaimsDriver, DriverSubject, PluginSubject, Subject
from accelkit.core.kube import CLAIMS, CLASSES, NODES, PODS, SLICES, Json

T = TypeVar("T")

NODE = "conformance-0"
NAMESPACE = "conformance"
QUIET_S = 10.0
"""For everything that a check left to be gone, and all devices to be published."""
_LOOK_S = 0.05


class Stage:
    """Everything that claims need, running.

    Args:
        subject: Whose driver.
        setup: How it runs.
        seed: Decides what is left to chance.
        scale: Multiplies every patience.
        root: Stands for /var/lib/kubelet; None: a new directory.
        node: The name of the node.
    """

    def __init__(
        self,
        subject: Subject,
        setup: Setup,
        seed: int,
        scale: float,
        *,
        root: Path | None = None,
        node: str = NODE,
    ) -> None:
        self.scope = Scope(seed, scale)
        self.setup = setup
        self.node = node
        fixed = subject.directory if isinstance(subject, DriverSubject) else None
        self.home = self.scope.directory()
        self.root = fixed or root or self.home / "k"
        self.name = driver_name(subject)
        self.driver = _driver_of(subject, self.scope, self.home)
        self.cdi = subject.cdi if isinstance(subject, DriverSubject) else self.driver.cdi
        self.numbers = count(1)
        """For names of objects."""
        self.first_seen_s = 0.0
        """When the devices were there for the first time, on the monotonic clock."""
        self._runs = False
        self._subject = subject
        self.kubeconfig = (fixed or self.home) / "kubeconfig"
        self.api = ApiSim(setup.release, seed=seed, port=port_of(self.kubeconfig))
        self.sim = self._kubelet(seed)
        self._scheduler = SchedulerSim(self.api, seed=seed)

    def _kubelet(self, seed: int) -> KubeletSim:
        patience = self.scope.patience
        timing = Timing(
            tick_s=_LOOK_S,
            admission_s=patience(1.0),
            down_s=_LOOK_S,
            stop_s=_LOOK_S,
            watch_s=_LOOK_S,
            retry_s=_LOOK_S,
            dial_s=patience(10.0),
            info_s=patience(3.0),
            prepare_again_s=0.5,
            unprepare_again_s=0.3,
            reconcile_s=2.0,
            create_again_s=0.2,
            health_again_s=0.3,
            wipe_s=0.1,
            wipe_anyway_s=_LOOK_S,
        )
        directories = () if self.cdi is None else (self.cdi,)
        cluster = Cluster(api=self.api, node=self.node, cdi=directories)
        return KubeletSim(
            self.root,
            release=self.setup.kubelet or self.setup.release,
            timing=timing,
            numa_nodes=(0, 1),
            seed=seed,
            cluster=cluster,
        )

    # Its life.

    def run(self) -> None:
        """Start everything, unless it runs, and wait until devices can be had by claims.

        Raises:
            Unanswered: They do not come.
        """
        if self._runs:
            return
        self._runs = True
        self.open()
        if self.setup.through == "dra":
            self.start()
        else:
            self.driver.start(self.root)

    def open(self) -> None:
        """Start everything but the driver, which finds a kubelet that has removed old slices."""
        sweep(self.root)
        self.do(self.api.start())
        self.scope.later(lambda: self.do(self.api.stop()))
        self.ask(lambda: furnish(self.api, self.node, self.setup.kubelet or self.setup.release))
        self.api.write_kubeconfig(self.kubeconfig)
        self.do(self._scheduler.__aenter__())
        self.scope.later(lambda: self.do(self._scheduler.__aexit__(None, None, None)))
        self.do(self.sim.start())
        self.scope.later(lambda: self.do(self.sim.__aexit__(None, None, None)))
        self.scope.later(self.driver.kill)
        self.happens(lambda: self.sim.seen(SlicesWiped))
        self.driver.furnish(self.site, self.setup)

    @property
    def site(self) -> Site:
        return Site(kubeconfig=self.kubeconfig, node=self.node)

    def start(self) -> None:
        """Start the driver, and wait until its devices can be had.

        Raises:
            Unanswered: They do not come.
        """
        self.driver.start(self.root)
        self.happens(lambda: self.published() or self.driver.ended(), FIRST_S)
        if self.ask(self.published):
            self.first_seen_s = time.monotonic()
        else:
            why = "; ".join(e.text for e in self.sim.seen(Refused)) or self.ask(self._lacking)
            raise Unanswered(f"no devices for claims came ({why}){self.driver.said()}")

    def _lacking(self) -> str:
        """What is not as it should be of what is published."""
        if not self.sim.seen(DriverRegistered, driver=self.name):
            return "it does not register"
        slices = self.slices()
        if not self.devices():
            refused = [a for a in self.api.journal.writes("resourceslices") if a.status >= 400]
            return f"{len(slices)} slices without devices, {len(refused)} writes refused"
        counts = sorted({f"{_count(one)}" for one in slices})
        return f"its pool is never complete: {len(slices)} slices of {' and of '.join(counts)}"

    def close(self) -> None:
        self.scope.close()

    def tidy(self) -> bool:
        """Take away what a check has made; returns whether all is as it was."""
        self.api.faults.mend()
        self.ask(self._remove_all)
        if Feature.BREAK in self._features:
            self.driver.mend_device()
        return self.happens(self._quiet, QUIET_S)

    @property
    def _features(self) -> frozenset[Feature]:
        return self._subject.features(Level.L2)

    def _remove_all(self) -> None:
        for kind in (PODS, CLAIMS, TEMPLATES, CLASSES):
            for item in self.api.items(kind):
                namespace, name = names_of(item)
                if kind is CLAIMS and part(item, "metadata").get("finalizers"):
                    patch = {"metadata": {"finalizers": None}}
                    self.api.patch(CLAIMS, name, patch, namespace)
                elsewhere = text(item, "spec", "nodeName") not in {"", self.node}
                if self.api.has(kind, name, namespace):
                    grace_s = 0 if elsewhere else None
                    self.api.delete(kind, name, namespace, grace_s=grace_s)

    def _quiet(self) -> bool:
        left = [p for p in self.cdi.glob("*") if p.is_file()] if self.cdi is not None else []
        held = self.api.items(PODS) or self.api.items(CLAIMS) or self.sim.dra.claims.known
        tainted = any(d.get("taints") for _, d in self.devices())
        published = self.setup.through != "dra" or self.published()
        return bool(not left and not held and not tainted and published)

    # What is published; to be asked in the loop of the simulations.

    def slices(self) -> list[Json]:
        """Slices of the driver on the node, by name."""
        return [item for item in self.api.items(SLICES) if self._is_ours(item)]

    def _is_ours(self, item: Json) -> bool:
        mine = (self.name, self.node)
        return (text(item, "spec", "driver"), text(item, "spec", "nodeName")) == mine

    def states(self, since: int) -> Iterator[list[Json]]:
        """What there was of slices after each change of them since a version, in order."""
        kind = next(k for k in kinds(self.api.dialect) if k.resource == SLICES)
        for written in self.api.store.since(kind, since):
            there = self.api.store.items(kind, version=written.version)
            yield [item for item in there if self._is_ours(item)]

    def devices(self) -> list[tuple[Json, Json]]:
        """Slice and device of everything that is published, in order."""
        return [(item, d) for item in self.slices() for d in parts(item, "spec", "devices")]

    def published(self) -> bool:
        """Whether there is a complete pool with devices, and the driver is registered."""
        slices = self.slices()
        pools = {(number(s, "spec", "pool", "generation"), _count(s)) for s in slices}
        complete = len(pools) == 1 and next(iter(pools))[1] == len(slices)
        return complete and bool(self.devices()) and self.name in self.sim.dra.drivers.alive

    # Between threads.

    def do(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run *coroutine* beside the simulations."""
        return do(coroutine, self.scope.patience(60.0) + 60.0)

    def ask(self, call: Callable[[], T]) -> T:
        """What *call* returns, which looks at what the simulations change."""

        async def answer() -> T:
            return call()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return do(answer(), self.scope.patience(60.0))
        return call()  # of a predicate, which is asked there already

    def happens(self, predicate: Callable[[], object], patience_s: float = 10.0) -> bool:
        """Whether *predicate* comes to hold."""
        try:
            self.do(self.sim.wait_for(predicate, self.scope.patience(patience_s)))
        except TimeoutError:
            return False
        return True


def furnish(api: ApiSim, node: str, kubelet: str) -> None:
    """Let there be a node whose kubelet is of a release, and a namespace for claims."""
    version = {"nodeInfo": {"kubeletVersion": PATCHES[kubelet]}}
    api.create(NODES, {"metadata": {"name": node}})
    api.patch(NODES, node, {"status": version}, sub="status")
    meta = {"name": NAMESPACE, "labels": {ADMIN_LABEL: "true"}}
    api.create(NAMESPACES, {"metadata": meta})


def _count(item: Json) -> int:
    return number(item, "spec", "pool", "resourceSliceCount")


def driver_name(subject: Subject) -> str:
    """The name of the subject's DRA driver."""
    if isinstance(subject, DriverSubject):
        return subject.dra
    return f"{subject.vendor.name}.accelkit.dev"


def _driver_of(subject: Subject, scope: Scope, home: Path) -> ClaimsDriver:
    if isinstance(subject, PluginSubject):
        return ClaimsAgent(subject, scope, home)
    driver = subject.driver
    assert hasattr(driver, "furnish")
    return driver  # type: ignore[return-value]  # a driver with a DRA name is one of claims


def fitting(subject: Subject, setup: Setup) -> Setup:
    """*setup* with as many devices as *subject* can bear, where it wishes for many."""
    if setup.units == MANY and isinstance(subject, PluginSubject):
        return attrs.evolve(setup, units=subject.many)
    return setup


class Stages:
    """Stages that a check may have when another is done with them.

    Args:
        subject: Whose driver.
        most: How many may wait for their next check.
        coming: Setups of the checks that are still to come; None: nobody knows.
    """

    def __init__(
        self, subject: Subject, most: int = 1, coming: Iterable[Setup] | None = None
    ) -> None:
        self._subject = subject
        self._most = most
        self._coming = None if coming is None else Counter(fitting(subject, s) for s in coming)
        self._idle: list[Stage] = []
        self._lock = threading.Lock()
        self.over = False
        """Nobody wants to know any more what checks come to."""

    def begin(self, setup: Setup) -> None:
        """Know that one of the checks with *setup* is not to come any more."""
        with self._lock:
            if self._coming is not None:
                self._coming[fitting(self._subject, setup)] -= 1

    def take(self, setup: Setup, seed: int, scale: float) -> Stage:
        """A stage with *setup*, to be run if it does not; of one process there is one only."""
        with self._lock:
            found = next((one for one in self._idle if one.setup == setup), None)
            alone = isinstance(self._subject, DriverSubject)
            if found is not None:
                self._idle.remove(found)
            spare = self._idle[:] if found is None and alone else []
            self._idle = [one for one in self._idle if one not in spare]
        for one in spare:
            one.close()
        return found or Stage(self._subject, setup, seed, scale)

    def give(self, stage: Stage) -> None:
        """Let the next check have *stage*, or end it."""
        clean = not self.over and stage.tidy()
        with self._lock:
            there = [*self._idle, stage]
            fit = [one for one in there if self._is_wanted(one) and (clean or one is not stage)]
            self._idle = fit[max(0, len(fit) - self._most) :]
            spare = [one for one in there if one not in self._idle]
        for one in spare:
            one.close()

    def _is_wanted(self, stage: Stage) -> bool:
        if self.over:
            return False
        return self._coming is None or self._coming[stage.setup] > 0

    def end(self) -> None:
        """End what waits for its next check, and whatever is given back from now on."""
        with self._lock:
            self.over = True
            spare, self._idle = self._idle, []
        for one in spare:
            one.close()
