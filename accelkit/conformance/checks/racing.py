"""C: many claims at once. Not here: what calls do to each other within the plugin."""

import asyncio
import threading
from collections.abc import Iterator

from accelkit.conformance.bench import PluginBench, told
from accelkit.conformance.checks.life import of_claim, prepare, prepared, release, released
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import Bed, beds, left_over, tried, words
from accelkit.conformance.faulty import Holding
from accelkit.conformance.keeping import Agent, Node, until
from accelkit.conformance.kinds import Kind, kinds, node_of, plain, whole
from accelkit.conformance.model import Check, Feature
from accelkit.core.allocation import Prepared
from accelkit.core.errors import AccelkitError, AlreadyAllocated, PlaceOccupied
from accelkit.core.model import Device, Placement
from accelkit.core.policy import PartitioningHow
from accelkit.core.vendor import SupportsPartitioning

MANY = 64
ALONE = 3
"""Of them, claims that are compared with what they are when they come alone."""
RACES = 3
SOON_S = 4.0
"""Less than the deadline of edits."""


def many(bench: PluginBench) -> Iterator[str]:
    if bench.subject.vendor.parallel > 1:
        yield from _beside(bench, plain(bench, count=2))
    kind = plain(bench)
    node = node_of(bench, kind, count=MANY)
    node.how = PartitioningHow.NONE
    before = node.seen()

    async def story(agent: Agent) -> list[str]:
        devices = [device.id for device in whole(agent.view)]
        claims = [kind.claim(str(n), device) for n, device in enumerate(devices)]
        await asyncio.gather(*(prepared(agent, claim) for claim in claims))
        together = _files(node)
        for claim in claims[:ALONE]:
            await released(agent, claim)
            await prepared(agent, claim)
        alone = _files(node)
        await asyncio.gather(*(released(agent, claim) for claim in claims))
        return [name for name, content in together.items() if alone[name] != content]

    for name in node.during(story):
        yield f"{name} is another one when {MANY} claims are prepared at once"
    yield from told(f"{MANY} claims at once", left_over(before, node.seen()))


def _beside(bench: PluginBench, kind: Kind) -> Iterator[str]:
    """What is wrong where calls may overlap, and one of them waits for its hardware."""
    hold = Holding(0)
    bench.later(hold.go_on.set)

    async def story(agent: Agent) -> bool:
        hold.begin()
        first = asyncio.create_task(prepared(agent, kind.claim("1")))
        await until(lambda: hold.entered.is_set() or first.done(), bench.patience(SOON_S))
        second = asyncio.create_task(prepared(agent, kind.claim("2", kind.others[0])))
        await asyncio.wait([second], timeout=bench.patience(SOON_S))
        done = second.done()
        hold.go_on.set()
        await asyncio.gather(first, second)
        return done

    if kind.others and not node_of(bench, kind, count=2).during(story, door=hold.door):
        yield f"a claim for {kind.others[0]} waits while the hardware lets {kind.device} wait"


def _files(node: Node) -> dict[str, bytes]:
    """CDI files by name."""
    return {path.name: path.read_bytes() for path in node.cdi.glob("*.json")}


def one_wins(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        yield from of_claim(kind, _one_wins(bench, kind))
    if issubclass(bench.subject.vendor, SupportsPartitioning):
        for bed in beds(bench, count=1):
            for place in bed.some()[:RACES]:
                yield from _raced(bed, place)


def _one_wins(bench: PluginBench, kind: Kind) -> Iterator[str]:
    node = node_of(bench, kind, settled=True)
    before = node.seen()

    async def story(agent: Agent) -> list[Prepared | AccelkitError]:
        async with node.agent() as beside:
            claims = ((agent, "1"), (beside, "2"))
            return await asyncio.gather(*(_outcome(one, kind, uid) for one, uid in claims))

    outcomes = node.during(story)
    won = [one for one in outcomes if isinstance(one, Prepared)]
    if len(won) != 1:
        yield f"of two claims that want it at once {len(won)} have it"
    for one in outcomes:
        if isinstance(one, AccelkitError) and not isinstance(one, AlreadyAllocated):
            yield f"the one of two that does not have it is told: {one}"
    for one in won:
        release(node, kind.claim(one.claim.uid))
    yield from told("two want it at once", left_over(before, node.seen()))
    prepare(node, kind.claim("3"))
    release(node, kind.claim("3"))


async def _outcome(agent: Agent, kind: Kind, uid: str) -> Prepared | AccelkitError:
    try:
        return await agent.prepare(kind.claim(uid))
    except AccelkitError as error:
        return error


def _raced(bed: Bed, place: Placement) -> Iterator[str]:
    """What is wrong when two processes make partitions at once that exclude each other."""
    over = [p for p in bed.free if p != place and set(p.slots) & set(place.slots)]
    if not over:
        return
    both = (place, bed.rig.bench.rng.choice(over))
    begin = threading.Barrier(len(both))
    found: dict[Placement, Device | AccelkitError] = {}

    def make(wanted: Placement) -> None:
        vendor = bed.rig.bench.plugin()
        begin.wait()
        found[wanted] = tried(lambda: bed.create(wanted, vendor))

    threads = [threading.Thread(target=make, args=(wanted,), daemon=True) for wanted in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(bed.rig.bench.patience(30))
    pair = f"{bed.parent.id}: {words(both[0])} and {words(both[1])}, made at once"
    made = [one.id for one in found.values() if isinstance(one, Device)]
    there = bed.parts()
    if len(made) != 1 or [i for i in made if i not in there]:
        yield f"{pair}: {len(made)} are said to be made, and {len(there)} are there"
    for one in found.values():
        if isinstance(one, AccelkitError) and not isinstance(one, PlaceOccupied):
            yield f"{pair}: the other one is refused with {one.code}: {one}"
    for part in there.values():
        bed.destroy(part)


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "C01",
        "As many as 64 claims at once are prepared like one alone.",
        many,
        Feature.MACHINE,
    ),
    in_process(
        "C02",
        "Of two that want one thing at once one has it.",
        one_wins,
        Feature.MACHINE,
    ),
)
