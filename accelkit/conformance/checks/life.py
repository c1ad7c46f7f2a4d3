"""L: what a claim leaves behind, and what it does to others. Not here: ends in the midst of it."""

from collections.abc import Iterable, Iterator
from functools import partial

from accelkit.conformance.bench import PluginBench, told
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import left_over
from accelkit.conformance.keeping import KEPT, Agent, Node, Seen
from accelkit.conformance.kinds import Kind, kinds, node_of
from accelkit.conformance.model import Check, Feature, Unanswered
from accelkit.conformance.mortal import Process
from accelkit.core.allocation import Allocation, Prepared
from accelkit.core.claims import LedgerEntry
from accelkit.core.errors import AccelkitError

TIMES = 10
FOREIGN = "other.example.com-claim_77.json"
"""A CDI file of somebody else's."""


async def prepared(agent: Agent, claim: Allocation) -> Prepared:
    """The answer for a claim that is in order.

    Raises:
        Unanswered: It is not prepared.
    """
    device = claim.pieces[0].device
    try:
        return await agent.prepare(claim)
    except AccelkitError as error:
        raise Unanswered(f"a claim for {device} is not prepared: {error}") from error


async def released(agent: Agent, claim: Allocation) -> None:
    """Give a claim back.

    Raises:
        Unanswered: It is not given back.
    """
    device = claim.pieces[0].device
    try:
        await agent.release(claim.claim.uid)
    except AccelkitError as error:
        raise Unanswered(f"a claim for {device} is not given back: {error}") from error


async def came_and_went(agent: Agent, claim: Allocation) -> None:
    """Prepare a claim, and give it back.

    Raises:
        Unanswered: It is not.
    """
    await prepared(agent, claim)
    await released(agent, claim)


def visit(node: Node, claim: Allocation, process: Process | None = None) -> None:
    """Prepare a claim and give it back, in one process."""
    node.during(partial(came_and_went, claim=claim), process=process)


def prepare(node: Node, claim: Allocation) -> Prepared:
    """Prepare a claim in a process of its own."""
    return node.during(lambda agent: prepared(agent, claim))


def release(node: Node, claim: Allocation) -> None:
    """Give a claim back in a process of its own."""
    node.during(lambda agent: released(agent, claim))


def of_claim(kind: Kind, sentences: Iterable[str]) -> Iterator[str]:
    return told(f"a claim for {kind.what} ({kind.device})", sentences)


def once(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        yield from of_claim(kind, _once(node_of(bench, kind), kind))


def _once(node: Node, kind: Kind) -> Iterator[str]:
    claim = kind.claim()

    async def again(agent: Agent) -> list[Prepared]:
        return [await prepared(agent, claim) for _ in range(TIMES)]

    first, *others = node.during(again)
    seen = node.seen()
    process = Process(node.machine)

    async def later(agent: Agent) -> list[Prepared]:
        answers = await again(agent)
        await _redone(agent, claim.claim.uid)
        return answers

    others += node.during(later, process=process)
    if any(one != first for one in others):
        yield "it is answered otherwise when it is asked for again"
    if process.effects:
        yield f"it is done, and doing it again does something: {process.effects[0]}"
    yield from told("asking for it again", left_over(seen, node.seen()))


async def _redone(agent: Agent, uid: str) -> None:
    """Let the plugin do all that a claim needed once more, as after an end in the midst of it."""
    entry = agent.keeper.entries[uid]
    try:
        for device in entry.create:
            made = await agent.works.find(device)
            if made is None or made.parent is None or made.placement is None:
                raise Unanswered(f"{device} is not there, though its claim is prepared")
            await agent.works.create(agent.view.devices[made.parent], made.placement)
        for setting in entry.settings:
            await agent.works.apply(entry.pieces[0].device.vendor, setting)
    except AccelkitError as error:
        raise Unanswered(f"what is done cannot be done again: {error}") from error


def released_often(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        entry = node.during(partial(_given_back, kind=kind))
        node.during(partial(_undone, entry=entry))
        yield from of_claim(kind, left_over(before, node.seen()))


async def _given_back(agent: Agent, kind: Kind) -> LedgerEntry:
    """The entry of a claim that was prepared, and given back again and again."""
    claim = kind.claim()
    await prepared(agent, claim)
    entry = agent.keeper.entries[claim.claim.uid]
    for _ in range(TIMES):
        await released(agent, claim)
    await released(agent, kind.claim("404"))
    return entry


async def _undone(agent: Agent, entry: LedgerEntry) -> None:
    """Let the plugin undo what is undone."""
    try:
        for _ in range(2):
            for device in entry.create:
                await agent.works.destroy(agent.view.offered[device])
            for setting in entry.settings:
                await agent.works.revert(entry.pieces[0].device.vendor, setting)
    except AccelkitError as error:
        raise Unanswered(f"what is undone cannot be undone again: {error}") from error


def as_before(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        visit(node, kind.claim())
        yield from of_claim(kind, left_over(before, node.seen()))


def by_another(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        prepare(node, kind.claim())
        release(node, kind.claim())
        yield from of_claim(kind, left_over(before, node.seen()))


def gone(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        for feature in (Feature.REMOVE, Feature.UNLOAD):
            if bench.subject.words_for(feature) is not None:
                yield from of_claim(kind, _gone(bench, kind, feature))


def _gone(bench: PluginBench, kind: Kind, feature: Feature) -> Iterator[str]:
    node = node_of(bench, kind)
    before, rig = kept(node.seen()), bench.rigged(node.machine)
    driver = feature is Feature.UNLOAD
    what = "the driver" if driver else "the device"

    async def story(agent: Agent) -> None:
        await prepared(agent, kind.claim())
        rig.do(feature, rig.units()[0])
        if driver:  # else it is given back by a process that has never seen the device
            await agent.look()
            await released(agent, kind.claim())

    try:
        node.during(story)
        if not driver:
            release(node, kind.claim())
    except Unanswered as error:
        yield f"{what} is gone: {error}"
        return
    yield from told(
        f"{what} is gone, and the claim given back", left_over(before, kept(node.seen()))
    )


def kept(seen: Seen) -> Seen:
    """What agents keep of claims."""
    return {path: content for path, content in seen.items() if path.startswith(KEPT)}


def neighbours(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench, count=2):
        if not kind.others:
            continue
        node = node_of(bench, kind, count=2, settled=True)
        prepare(node, kind.claim())
        node.cdi.mkdir(parents=True, exist_ok=True)
        node.cdi.joinpath(FOREIGN).write_text("{}", encoding="utf-8")
        before = node.seen()
        theirs = kind.claim("2", kind.others[0])
        visit(node, theirs)
        yield from told(
            f"a claim for {kind.others[0]} came and went beside one for {kind.device}",
            left_over(before, node.seen()),
        )


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process("L01", "What is prepared again is the same, and done once.", once, Feature.MACHINE),
    in_process(
        "L02",
        "What is given back, or was never there, can be given back again.",
        released_often,
        Feature.MACHINE,
    ),
    in_process("L03", "A claim that came and went leaves nothing.", as_before, Feature.MACHINE),
    in_process(
        "L04",
        "Another process gives back what one has prepared.",
        by_another,
        Feature.MACHINE,
    ),
    in_process(
        "L05",
        "A claim is given back when its device or the driver is gone.",
        gone,
        Feature.MACHINE,
        Feature.REMOVE,
    ),
    in_process(
        "L10",
        "What is done for one claim touches nothing of others.",
        neighbours,
        Feature.MACHINE,
    ),
)
