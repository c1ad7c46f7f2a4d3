"""A node in memory: its files and hardware, and keepers that come and go."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import attrs

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.keeper import Keeper
from accelkit.agent.ledger import Ledger
from accelkit.core.allocation import Allocation, ClaimBody, ClaimConfig, ClaimRef, Piece, PodRef
from accelkit.core.clock import Clock
from accelkit.core.model import Device, DeviceId, Snapshot
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import Enforcement, FrozenMap, Health, Source
from accelkit.core.view import Assignment, Verdict, View
from tests.agent.keeping.board import VENDOR, Board, MemoryHardware, ident
from tests.agent.keeping.process import Process
from tests.agent.keeping.storage import MemoryStorage, Storage
from tests.agent.keeping.virtual import VirtualClock

DRIVER = "toy.accelkit.dev"
RUN, CDI, BOOT = Path("/run/accelkit"), Path("/var/run/cdi"), "boot-1"
CLAIMS = f"{RUN}/{BOOT}/claims"
OFFER = Offer(name="all", through="dra", sharing=Sharing(claims_may_ask=("timeslice", "enforce")))


def view_of(
    board: Board, made: Iterable[DeviceId] = (), offer: Offer = OFFER, **fields: object
) -> View:
    """What an agent sees of *board* that offers everything."""
    shown = _view(tuple(board.devices()), tuple(board.potential()), frozenset(made), offer)
    return attrs.evolve(shown, **fields) if fields else shown  # type: ignore[arg-type]  # of a view


@lru_cache
def _view(
    devices: tuple[Device, ...],
    potential: tuple[Device, ...],
    made: frozenset[DeviceId],
    offer: Offer,
) -> View:
    return View(
        snapshot=Snapshot(devices=devices, answered=frozenset({VENDOR})),
        verdicts=FrozenMap((d.id, Verdict(health=Health.HEALTHY)) for d in devices),
        assignments=FrozenMap((d.id, Assignment(terms=offer)) for d in (*devices, *potential)),
        offers=(offer,),
        potential=potential,
        made=made,
    )


def allocation(
    uid: str,
    *devices: str | Piece,
    config: dict[str, object] | None = None,
    name: str = "",
    pods: Sequence[PodRef] = (),
) -> Allocation:
    """What a claim got: whole devices or partitions by name, each in the request ``r``."""
    body = ClaimBody(api_version="accelkit.dev/v1", kind="ClaimConfig", vendor=config or {})
    return Allocation(
        claim=ClaimRef(uid=uid, namespace="default", name=name or f"claim-{uid}"),
        driver=DRIVER,
        pieces=tuple(
            d if isinstance(d, Piece) else Piece(device=ident(d), request="r") for d in devices
        ),
        configs=(ClaimConfig(source=Source.FROM_CLAIM, body=body),) if config else (),
        pods=tuple(pods),
    )


@attrs.define(kw_only=True)
class Agent:
    """A keeper with all that it is given, in a process of its own."""

    process: Process
    keeper: Keeper
    hardware: MemoryHardware
    view: View
    told: list[tuple[str, str]]
    """Reason and text of each event."""
    seconds: list[tuple[str, tuple[str, ...]]]
    """Metric and labels of each observation."""
    changes: int = 0
    """How often it said that something changed."""
    give_up_after_s: float = 600.0


@attrs.define
class World:
    """What outlives every agent."""

    board: Board = attrs.Factory(Board)
    storage: Storage = attrs.Factory(MemoryStorage)
    clock: Clock = attrs.Factory(VirtualClock)

    def agent(
        self,
        process: Process | None = None,
        hardware: Callable[[Board, Process], MemoryHardware] = MemoryHardware,
    ) -> Agent:
        """A new agent; it has read nothing yet."""
        process = process or Process()
        door = hardware(self.board, process)
        disk = self.storage.door(process)
        told: list[tuple[str, str]] = []
        seconds: list[tuple[str, tuple[str, ...]]] = []
        made: list[Agent] = []

        def tell(reason: str, text: str, **_: object) -> None:
            told.append((reason, text))

        def changed() -> None:
            made[0].changes += 1

        keeper = Keeper(
            ledger=Ledger(self.storage.path(RUN), BOOT, writer="1.0", clock=self.clock, disk=disk),
            files=ClaimFiles(self.storage.path(CDI), disk=disk),
            hardware=door,
            view=lambda: made[0].view,
            clock=self.clock,
            drivers=lambda: (DRIVER,),
            give_up_after_s=lambda: made[0].give_up_after_s,
            changed=changed,
            tell=tell,
            observe=lambda metric, _seconds, labels: seconds.append((metric, tuple(labels))),
        )
        made.append(
            Agent(
                process=process,
                keeper=keeper,
                hardware=door,
                view=view_of(self.board),
                told=told,
                seconds=seconds,
            )
        )
        return made[0]

    async def begun(
        self, hardware: Callable[[Board, Process], MemoryHardware] = MemoryHardware
    ) -> Agent:
        """A new agent that has read the record."""
        agent = self.agent(hardware=hardware)
        await agent.keeper.load()
        return agent

    def look(self, agent: Agent) -> None:
        """Let *agent* see the hardware as it is now."""
        agent.view = view_of(self.board, agent.keeper.made)

    def files(self, directory: Path) -> dict[str, bytes]:
        """What is below *directory*, by relative path."""
        above = f"{directory}/"
        return {
            path.removeprefix(above): content
            for path, content in self.storage.contents().items()
            if path.startswith(above)
        }

    def entry(self, uid: str) -> dict[str, object] | None:
        """A claim's entry as it is on disk."""
        return self._tree(f"{CLAIMS}/{uid}.json")

    def cdi(self, uid: str) -> dict[str, object] | None:
        """A claim's CDI document as it is on disk."""
        return self._tree(f"{CDI}/{DRIVER}-claim_{uid}.json")

    def _tree(self, path: str) -> dict[str, object] | None:
        content = self.storage.contents().get(path)
        if content is None:
            return None
        tree: dict[str, object] = json.loads(content)
        return tree


def library(offer: Offer = OFFER) -> Offer:
    """*offer*, with shares that a library enforces."""
    return attrs.evolve(offer, sharing=Sharing(shares=2, enforce=Enforcement.LIBRARY))


def moved(view: View, name: str, vendor: str) -> View:
    """*view*, and the same device of another vendor."""
    device = view.devices[ident(name)]
    other = attrs.evolve(device, id=DeviceId(vendor=vendor, name=name))
    snapshot = attrs.evolve(
        view.snapshot,
        devices=(*view.snapshot.devices, other),
        answered=view.snapshot.answered | {vendor},
    )
    return attrs.evolve(
        view,
        snapshot=snapshot,
        assignments=FrozenMap({**view.assignments, other.id: view.assignments[device.id]}),
        verdicts=FrozenMap({**view.verdicts, other.id: view.verdicts[device.id]}),
    )


def used(name: str, request: str = "r", share: str | None = None, *, admin: bool = False) -> Piece:
    """A piece of an allocation."""
    return Piece(device=ident(name), request=request, share=share, admin=admin)


async def soon(seconds: float = 0.2) -> None:
    """Let everything happen that does not wait longer."""
    await asyncio.sleep(seconds)
