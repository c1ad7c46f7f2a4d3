"""What runs for a check of a DRA driver, and what is published. Not here: claims, and checks."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import grpc.aio

from accelkit.backends.wire import services
from accelkit.conformance.bench import TAKEN_AWAY, Scope
from accelkit.conformance.calls import called, unprepare_request
from accelkit.conformance.model import Feature, Inapplicable, Level, Unanswered
from accelkit.conformance.setups import MANY, Setup
from accelkit.conformance.sims.api.journal import Asked
from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import entries, parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered
from accelkit.conformance.sims.dra.wiping import wipe
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.socket_bench import FIRST_S
from accelkit.conformance.stage import Stage, Stages, fitting
from accelkit.conformance.subjects import ClaimsDriver, Subject
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import Json

T = TypeVar("T")

CALL_S = 20.0
"""For a call that should be answered at once; what has its own limit says so."""
SOON_S = 10.0
"""For anything that a driver does by itself."""
LOOK_S = 0.005
STILL_S = 2.0
"""Without any change, nothing is under way any more. Not scaled: nobody waits for it to end."""


@attrs.frozen
class Offered:
    """A device in a slice."""

    name: str
    pool: str
    item: Json = attrs.field(repr=False, hash=False)
    slice: str = attrs.field(repr=False)

    @property
    def shareable(self) -> bool:
        return self.item.get("allowMultipleAllocations") is True

    @property
    def taints(self) -> tuple[Json, ...]:
        return tuple(parts(self.item, "taints"))

    @property
    def free(self) -> bool:
        """Whether no taint keeps pods away."""
        return all(text(taint, "effect") == "None" for taint in self.taints)

    @property
    def counters(self) -> dict[tuple[str, str], str]:
        """Quantities by counter set and counter."""
        return {
            (text(one, "counterSet"), name): text(value, "value")
            for one in parts(self.item, "consumesCounters")
            for name, value in entries(one, "counters")
        }


def side_by_side(devices: Sequence[Offered]) -> list[Offered]:
    """Those of *devices* that can be had beside the others: cores, say, and not their chip."""
    sums: Counter[tuple[str, str]] = Counter()
    for device in devices:
        sums.update({key: int(amount(value)) for key, value in device.counters.items()})
    return [
        device
        for device in devices
        if not any(
            sums[key] > int(amount(value)) >= sums[key] - int(amount(value))
            for key, value in device.counters.items()
        )
    ]


class Staged(Scope):
    """A driver of claims, and all that it meets; nothing runs before *up*.

    Args:
        subject: Whose driver.
        stages: Lends what runs.
        setup: How the driver runs, if a check does not wish for anything else.
    """

    def __init__(
        self,
        subject: Subject,
        seed: int,
        scale: float,
        stages: Stages,
        setup: Setup = Setup(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(seed, scale)
        self.subject = subject
        self._stages = stages
        self._setup = fitting(subject, setup)
        self._stage: Stage | None = None
        self._spoilt = False
        self._prepared: list[ClaimRef] = []

    # What runs.

    @property
    def stage(self) -> Stage:
        """What runs.

        Raises:
            Unanswered: It was taken away: the run has ended, or the check took too long.
        """
        stage = self._stage
        if stage is None:
            raise Unanswered(TAKEN_AWAY)
        return stage

    @property
    def sim(self) -> KubeletSim:
        return self.stage.sim

    @property
    def api(self) -> ApiSim:
        """To be asked through `ask`, as others change it at the same time."""
        return self.stage.api

    @property
    def driver(self) -> ClaimsDriver:
        return self.stage.driver

    @property
    def cdi(self) -> Path:
        """Where CDI files are written (CDI)."""
        assert self.stage.cdi is not None
        return self.stage.cdi

    def up(self, *, fresh: bool = False, **wishes: object) -> list[Offered]:
        """Let a driver run; devices that can be had, at least one.

        Args:
            fresh: It was just started, for this check alone.
            wishes: Fields of its `Setup` that are to be others than the check says.

        Raises:
            Unanswered: None comes.
        """
        setup = attrs.evolve(self._setup, **wishes)  # type: ignore[arg-type]  # its fields
        if fresh:
            self._spoilt = True
            stage = Stage(self.subject, setup, self.seed, self.scale)
        else:
            stage = self._stages.take(setup, self.seed, self.scale)
        return self.enter(stage)

    def enter(self, stage: Stage) -> list[Offered]:
        """Work with *stage* from now on; devices that can be had side by side, at least one.

        Of a driver whose devices can be cut, all that can be had.

        Raises:
            Unanswered: None comes.
        """
        self.work_with(stage)
        try:
            stage.run()
        except BaseException:
            self.spoil()
            raise
        if stage.setup.through != "dra":
            return []
        found = [d for d in self.devices() if d.free]
        if not found:
            raise Unanswered("every device that is published has a taint")
        return found if stage.setup.cut else side_by_side(found)

    def work_with(self, stage: Stage) -> None:
        """Work with *stage* from now on, whether anything is published or not."""
        self._stage = stage
        self.later(self.leave)

    @property
    def many(self) -> int:
        """Devices enough for several slices."""
        return fitting(self.subject, Setup(units=MANY)).units

    @property
    def features(self) -> frozenset[Feature]:
        """What can be done to the driver."""
        return self.subject.features(Level.L2)

    def restart(self, *, meanwhile: Callable[[], object] | None = None, **wishes: object) -> None:
        """Let the driver end and start again, and wait until its devices can be had.

        Args:
            meanwhile: Called when it has ended (STOP).
            wishes: Fields of its `Setup` that are others from now on, for this check alone.

        Raises:
            Unanswered: They do not come, or it does not end.
        """
        stage = self.stage
        if wishes:
            self.spoil()
            setup = attrs.evolve(stage.setup, **wishes)  # type: ignore[arg-type]  # its fields
            self.driver.furnish(stage.site, setup)
        before = len(self.sim.seen(DriverRegistered, driver=stage.name))
        if meanwhile is None:
            self.driver.restart()
        else:
            self.driver.stop()
            meanwhile()
            self.driver.start(stage.root)
        if not self.happens(
            lambda: len(self.sim.seen(DriverRegistered, driver=stage.name)) > before, FIRST_S
        ):
            raise Unanswered(f"after a restart it does not register{self.driver.said()}")

    def wipe(self) -> None:
        """Remove all slices of the driver, as a kubelet that starts does."""
        stage = self.stage
        self.ask(lambda: list(wipe(stage.api, stage.node, stage.name)))

    def spoil(self) -> None:
        """Let no other check have what runs."""
        self._spoilt = True

    def leave(self) -> None:
        """Let others have what runs; may be called twice."""
        stage, self._stage = self._stage, None
        if stage is None:
            return
        if self._spoilt:
            stage.close()
            return
        try:
            self._give_back(stage)
        except (grpc.aio.AioRpcError, IndexError):  # whoever was called is gone
            stage.close()
        else:
            self._stages.give(stage)

    def _give_back(self, stage: Stage) -> None:
        if self._prepared:
            endpoint = stage.sim.seen(DriverRegistered, driver=stage.name)[-1].endpoint
            request, timeout_s = unprepare_request(self._prepared), self.patience(CALL_S)
            stage.do(called(Path(endpoint), services.UNPREPARE, request, timeout_s))

    def ask(self, call: Callable[[], T]) -> T:
        """What *call* returns, which looks at what the simulations change."""
        return self.stage.ask(call)

    def watch(self, predicate: Callable[[], object]) -> Callable[[], bool]:
        """Look at *predicate* all the time from now on.

        Returns:
            What ends that, and tells whether it ever held.
        """
        found: list[bool] = []

        async def look() -> None:
            with contextlib.suppress(Unanswered):  # taken away, as whoever watches is told
                while not found:
                    await asyncio.sleep(LOOK_S)
                    if predicate():
                        found.append(True)

        async def begin() -> "asyncio.Task[None]":
            return asyncio.create_task(look())

        task = self.stage.do(begin())

        async def end() -> bool:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return bool(found)

        return lambda: self.stage.do(end())

    def happens(self, predicate: Callable[[], object], patience_s: float = SOON_S) -> bool:
        """Whether *predicate* comes to hold; it may look at what the simulations change."""
        return self.stage.happens(predicate, patience_s)

    def still(self, seconds: float = STILL_S) -> None:
        """Wait and see what happens by itself."""
        self.stage.do(asyncio.sleep(seconds))

    # What is published.

    def devices(self) -> list[Offered]:
        """Every device of the driver, in order."""
        return [
            Offered(
                text(d, "name"), text(s, "spec", "pool", "name"), d, text(s, "metadata", "name")
            )
            for s, d in self.ask(self.stage.devices)
        ]

    def device(self, name: str) -> Offered | None:
        """The device of that name; None: it is not published."""
        return next((one for one in self.devices() if one.name == name), None)

    def shareable(self, offered: Iterable[Offered]) -> Offered:
        """The first that several claims may have.

        Raises:
            Inapplicable: There is none.
        """
        for one in offered:
            if one.shareable:
                return one
        raise Inapplicable("no device is published that several claims may have")

    def slices(self) -> list[Json]:
        """The slices of the driver, by name."""
        return self.ask(self.stage.slices)

    def pools(self, since: int) -> list[list[Json]]:
        """The slices of the driver after each change since a version of the server, in order."""
        return self.ask(lambda: list(self.stage.states(since)))

    def version(self) -> int:
        """The version of the server now."""
        return self.ask(lambda: self.api.store.version)

    def writes(self, *, since: int = 0) -> list[Asked]:
        """The requests that were meant to change slices, but for the first *since*."""
        return self.ask(lambda: self.api.journal.writes("resourceslices"))[since:]
