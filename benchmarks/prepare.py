"""Claims prepared and released by the keeper, with the sim vendor in its lanes; in process.

Files are on tmpfs where there is one, as in a run directory, and synced as there.
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.disk import HostDisk
from accelkit.agent.keeper import Keeper
from accelkit.agent.ledger import Ledger
from accelkit.agent.sources import Source
from accelkit.agent.works import Works
from accelkit.core.allocation import Allocation, ClaimRef, Piece, PodRef
from accelkit.core.clock import RealClock
from accelkit.core.model import Device, Snapshot
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import FrozenMap, Health
from accelkit.core.vendor import NoOptions
from accelkit.core.view import Assignment, Verdict, View
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import simulate
from accelkit.vendors.sim.vendor import Sim
from benchmarks.rows import Judge, Row
from benchmarks.usage import usage

DRIVER, BOOT = "sim.accelkit.dev", "boot"
CLAIMS, LOADED, DEVICES = 200, 256, 100
CYCLES = 10_000
OFFER = Offer(name="dra", through="dra", sharing=Sharing())


@attrs.frozen
class Node:
    """Where claims are kept, and what they are of."""

    directory: Path
    source: Source
    view: View

    def keeper(self) -> Keeper:
        """As an agent that starts has it."""
        clock, disk = RealClock(), HostDisk()
        return Keeper(
            ledger=Ledger(self.directory / "run", BOOT, writer="1.0", clock=clock, disk=disk),
            files=ClaimFiles(self.directory / "cdi", disk=disk),
            hardware=Works({self.source.name: self.source}, lambda: self.view),
            view=lambda: self.view,
            clock=clock,
            drivers=lambda: (DRIVER,),
            give_up_after_s=lambda: 600.0,
            changed=lambda: None,
            tell=_tell,
            observe=lambda _metric, _seconds, _labels: None,
        )

    def claim(self, number: int) -> Allocation:
        device = self.view.snapshot.devices[number % len(self.view.snapshot.devices)].id
        share = f"share-{number}"
        return Allocation(
            claim=ClaimRef(uid=f"{number:x}", namespace="default", name=f"claim-{number}"),
            driver=DRIVER,
            pieces=(Piece(device=device, request="gpu", share=share),),
        )


def _tell(
    reason: str,
    text: str,
    *,
    claim: ClaimRef | None = None,
    pod: PodRef | None = None,
    warning: bool = True,
) -> None:
    raise AssertionError((reason, text, claim, pod, warning))


@contextmanager
def _node() -> Iterator[Node]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="ak-", dir=memory if memory.is_dir() else None
    ) as directory:
        machine = f"{directory}/machine"
        simulate("sim", None, DEVICES, machine)
        host, vendor = open_host(machine), Sim(NoOptions())
        devices = tuple(d for d in vendor.discover(host) if isinstance(d, Device))
        view = View(
            snapshot=Snapshot(devices=devices, answered=frozenset({"sim"})),
            verdicts=FrozenMap((d.id, Verdict(health=Health.HEALTHY)) for d in devices),
            assignments=FrozenMap((d.id, Assignment(terms=OFFER)) for d in devices),
        )
        source = Source(vendor, host, 1.0, RealClock())
        yield Node(Path(directory), source, view)
        source.close()


def measure(rounds: int) -> Iterator[Row]:
    gc.collect()
    gc.freeze()  # as the agent does after its start
    with _node() as node:
        yield from asyncio.run(_measured(node, rounds))
    gc.unfreeze()


async def _measured(node: Node, rounds: int) -> list[Row]:
    keeper = node.keeper()
    await keeper.load()
    for number in range(10):  # the first calls are slower
        await keeper.prepare(node.claim(number))
        await keeper.release(node.claim(number).claim.uid)
    return [
        *await _one_by_one(keeper, node, rounds),
        *await _taken(keeper, node, rounds),
        *await _together(keeper, node, rounds),
        *await _loaded(node, rounds),
        *await _for_long(keeper, node),
    ]


async def _one_by_one(keeper: Keeper, node: Node, rounds: int) -> list[Row]:
    prepared, again, known, released = [], [], [], []
    for _ in range(rounds):
        claims = [node.claim(n) for n in range(CLAIMS)]
        for claim in claims:
            prepared.append(await _timed(partial(keeper.prepare, claim)))
            again.append(await _timed(partial(keeper.prepare, claim)))
            known.append(await _timed(partial(keeper.prepared, claim.claim)))
        released += [await _timed(partial(keeper.release, claim.claim.uid)) for claim in claims]
    return [
        Row(what="prepare, nothing to create", values=prepared, budget=2),
        Row(what="prepare, nothing to create", values=prepared, budget=5, judge=Judge.P99),
        Row(what="prepare again", values=again, budget=1, judge=Judge.P99),
        Row(what="answer of a claim that is ready", values=known, budget=1, judge=Judge.P99),
        Row(what="release", values=released, budget=3, judge=Judge.P99),
    ]


async def _taken(keeper: Keeper, node: Node, rounds: int) -> list[Row]:
    """Processor time, all threads together: others on the machine at most double it."""
    prepared, released = [], []
    claims = [node.claim(n) for n in range(CLAIMS)]
    for _ in range(rounds):
        begun = time.process_time()
        for claim in claims:
            await keeper.prepare(claim)
        between = time.process_time()
        for claim in claims:
            await keeper.release(claim.claim.uid)
        prepared.append((between - begun) * 1000 / CLAIMS)
        released.append((time.process_time() - between) * 1000 / CLAIMS)
    return [
        Row(what="CPU of a prepare", values=prepared),
        Row(what="CPU of a release", values=released),
    ]


async def _together(keeper: Keeper, node: Node, rounds: int) -> list[Row]:
    prepared, released = [], []
    claims = [node.claim(n) for n in range(100)]
    for _ in range(rounds):
        prepared.append(await _timed(lambda: asyncio.gather(*(keeper.prepare(c) for c in claims))))
        released.append(
            await _timed(lambda: asyncio.gather(*(keeper.release(c.claim.uid) for c in claims)))
        )
    return [
        Row(what="prepare 100 claims at once", values=prepared, budget=150),
        Row(what="release 100 claims at once", values=released),
    ]


async def _loaded(node: Node, rounds: int) -> list[Row]:
    keeper = node.keeper()
    await keeper.load()
    claims = [node.claim(n) for n in range(LOADED)]
    await asyncio.gather(*(keeper.prepare(claim) for claim in claims))
    loads = [await _timed(node.keeper().load) for _ in range(rounds)]
    looks = [await _timed(keeper.mend) for _ in range(rounds * 10)]
    for claim in claims:
        await keeper.release(claim.claim.uid)
    return [
        Row(what=f"ledger load, {LOADED} claims", values=loads, budget=40),
        Row(what=f"look at the files of {LOADED} claims", values=looks, budget=5),
    ]


async def _for_long(keeper: Keeper, node: Node) -> list[Row]:
    """Growth over many claims, after a tenth of them: caches fill."""
    for number in range(CYCLES // 10):
        await _cycle(keeper, node, number)
    before = usage(os.getpid())
    for number in range(CYCLES):
        await _cycle(keeper, node, number)
    gc.collect()
    after = usage(os.getpid())
    cycles = f"{CYCLES} claims prepared and released"
    return [
        Row(
            what=f"memory, {cycles}",
            values=[after.anonymous_mb - before.anonymous_mb],
            unit="MB",
            budget=1,
        ),
        Row(
            what=f"files and threads, {cycles}",
            values=[after.files - before.files + after.threads - before.threads],
            unit="",
            budget=0,
        ),
    ]


async def _cycle(keeper: Keeper, node: Node, number: int) -> None:
    await keeper.prepare(node.claim(number))
    await keeper.release(node.claim(number).claim.uid)


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000
