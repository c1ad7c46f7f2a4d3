"""L and C: claims whose hardware fails, hangs or is let go. Not here: agents that end."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial

from accelkit.conformance.bench import PluginBench, aside, told
from accelkit.conformance.checks.life import of_claim, prepared, release, released, visit
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import left_over
from accelkit.conformance.faulty import Holding, Numbered, Refusing, Steps
from accelkit.conformance.keeping import Agent, Node, until
from accelkit.conformance.kinds import Kind, kinds, known, node_of
from accelkit.conformance.model import Check, Feature
from accelkit.core.allocation import Prepared
from accelkit.core.errors import AccelkitError, PluginError

SOON_S = 20.0
HURRY = 0.01
"""Of the deadlines of the plugin's calls, where one is to overrun its own."""
_LOOK_S = 0.005
_BESIDE_S = 0.2
"""For what a plugin started beside its calls."""
_CLOSE_S = 1.0


def _steps(bench: PluginBench, kind: Kind) -> Steps:
    """The calls that the plugin makes until a claim is prepared, in a process of its own."""

    def walk() -> Steps:
        node = node_of(bench, kind, settled=True)
        steps = Steps(node.machine)

        async def story(agent: Agent) -> None:
            steps.begin()
            await prepared(agent, kind.claim())

        node.during(story, door=steps.door)
        return steps

    return known(bench, f"steps for {kind.what}", walk)


def nothing_left(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        steps = _steps(bench, kind)
        node = node_of(bench, kind, settled=True)
        for number in sorted({*(steps.changing or (0,)), steps.count - 1}):
            yield from of_claim(kind, _failed(node, kind, number))


def _failed(node: Node, kind: Kind, number: int) -> Iterator[str]:
    before, broken = node.seen(), Refusing(number)
    outcome = node.during(lambda agent: _outcome(agent, kind, broken), door=broken.door)
    what = f"{broken.refused or 'a call'} fails"
    if isinstance(outcome, PluginError):
        yield f"{what}, and that is no typed refusal: {outcome}"
    if isinstance(outcome, Prepared):
        release(node, kind.claim())
    yield from told(what, left_over(before, node.seen()))
    visit(node, kind.claim())
    yield from told(f"{what}, and works the next time", left_over(before, node.seen()))


async def _outcome(agent: Agent, kind: Kind, calls: Numbered) -> Prepared | AccelkitError:
    calls.begin()
    try:
        return await agent.prepare(kind.claim())
    except AccelkitError as error:
        return error


def closed_meanwhile(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        steps = _steps(bench, kind)
        node = node_of(bench, kind, settled=True)
        hold = Holding((*steps.changing, 0)[0])
        bench.later(hold.go_on.set)
        before = node.seen()
        found = node.during(
            partial(_closed, bench=bench, kind=kind, hold=hold),
            door=hold.door,
        )
        yield from of_claim(kind, found)
        release(node, kind.claim())
        yield from of_claim(kind, left_over(before, node.seen()))


async def _closed(agent: Agent, bench: PluginBench, kind: Kind, hold: Holding) -> list[str]:
    """What is wrong when the plugin is closed while it prepares a claim."""
    running = asyncio.create_task(_outcome(agent, kind, hold))
    await until(lambda: hold.entered.is_set() or running.done(), bench.patience(SOON_S))
    closes = threading.Event()

    def close() -> None:
        closes.set()
        agent.vendor.close()

    closing = asyncio.create_task(asyncio.to_thread(aside, close, bench.patience(SOON_S)))
    await until(closes.is_set, bench.patience(SOON_S))
    await until(closing.done, _CLOSE_S)  # it may also wait for what is prepared
    hold.go_on.set()
    ended, said = await closing
    outcome = await running
    wrong = [] if ended else ["the plugin's close does not come back while a call is under way"]
    if isinstance(said, BaseException):
        wrong.append(f"the plugin's close fails while a call is under way: {said}")
    if isinstance(outcome, PluginError):
        wrong.append(f"the plugin is closed meanwhile, and a call fails in no typed way: {outcome}")
    return wrong


def given_up(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        steps = _steps(bench, kind)
        number = (*steps.changing, 0)[0]
        for cancel in (False, True):
            node, hold = node_of(bench, kind, settled=True), Holding(number)
            bench.later(hold.go_on.set)
            before = node.seen()
            story = _cancelled if cancel else _overrun
            found = node.during(
                partial(story, bench=bench, kind=kind, hold=hold),
                door=hold.door,
            )
            yield from of_claim(kind, found)
            how = "nobody waits for it any more" if cancel else "a call has overrun its deadline"
            yield from of_claim(kind, told(how, left_over(before, node.seen())))


async def _overrun(agent: Agent, bench: PluginBench, kind: Kind, hold: Holding) -> list[str]:
    """What is wrong when a call of the plugin comes back long after its deadline."""
    agent.source.lanes.scale = HURRY
    outcome = await _outcome(agent, kind, hold)
    wrong = []
    if isinstance(outcome, Prepared):
        wrong.append("it is prepared, though a call for it has not come back")
    elif isinstance(outcome, PluginError):
        wrong.append(f"a call takes too long, and that is no typed refusal: {outcome}")
    agent.source.lanes.scale = 1.0
    hold.go_on.set()
    end = time.monotonic() + bench.patience(SOON_S)
    while agent.keeper.entries and time.monotonic() < end:
        await asyncio.sleep(_LOOK_S)
        await agent.pass_time()
    await _idle(bench, agent)
    await asyncio.sleep(_BESIDE_S)
    if agent.keeper.entries:
        wrong.append("what a call did after its deadline is not undone when it is over")
    return wrong


async def _cancelled(agent: Agent, bench: PluginBench, kind: Kind, hold: Holding) -> list[str]:
    """What is wrong when who asked does not wait for the answer, and gives the claim back."""
    asking = asyncio.create_task(_outcome(agent, kind, hold))
    await until(lambda: hold.entered.is_set() or asking.done(), bench.patience(SOON_S))
    asking.cancel()
    giving = asyncio.create_task(released(agent, kind.claim()))
    await asyncio.sleep(_LOOK_S)
    hold.go_on.set()
    await giving
    await _idle(bench, agent)
    return []


async def _idle(bench: PluginBench, agent: Agent) -> None:
    """Return when the plugin works at nothing any more."""
    lanes = agent.source.lanes.all
    await until(lambda: not any(lane.busy for lane in lanes), bench.patience(SOON_S))


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "L07",
        "A plugin may be closed while it prepares a claim.",
        closed_meanwhile,
        Feature.MACHINE,
    ),
    in_process(
        "L08",
        "A claim that could not be prepared leaves nothing.",
        nothing_left,
        Feature.MACHINE,
    ),
    in_process(
        "C06",
        "A call that nobody waits for any more does nothing that stays.",
        given_up,
        Feature.MACHINE,
    ),
)
