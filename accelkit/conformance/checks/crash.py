"""CR: agents that end, are there twice, or find another boot. Not here: the record by itself."""

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial

from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.life import (
    came_and_went,
    kept,
    of_claim,
    prepare,
    prepared,
    release,
    released,
    visit,
)
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import fresh, left_over, set_mode
from accelkit.conformance.keeping import Agent, Node, Seen
from accelkit.conformance.kinds import Kind, kinds, node_of
from accelkit.conformance.model import Badge, Check, Feature, Unanswered
from accelkit.conformance.mortal import Crash, Process
from accelkit.core.allocation import Prepared
from accelkit.core.errors import AccelkitError
from accelkit.core.working import create_partition
from accelkit.testing.simulate import set_state

SECONDS = 120
"""In which a release that goes on by itself is over."""


def _ends(node: Node, kind: Kind, after: int, *, releasing: bool) -> str:
    """Let a process end right after one of its changes; which change that was."""
    process = Process(node.machine, ends_after=after)
    do = came_and_went if releasing else prepared
    with contextlib.suppress(Crash):
        node.during(lambda agent: do(agent, kind.claim()), process=process)
    return process.effects[-1]


def _effects(node: Node, kind: Kind) -> list[str]:
    """What a process that does not end changes until a claim is prepared."""
    process = Process(node.machine)
    node.during(lambda agent: prepared(agent, kind.claim()), process=process)
    return process.effects


def while_preparing(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind)
        first, begin = node.record, node.seen()
        effects = _effects(node, kind)
        answer = prepare(node, kind.claim())
        release(node, kind.claim())
        rest = node.seen()
        for number in range(1, len(effects) + 1):
            for again in _ways(effects[number - 1], number):
                node.restore(first)
                at = f"ended when {_ends(node, kind, number, releasing=False)}"
                try:
                    wrong = _goes_on(node, kind, answer, again=again)
                except Unanswered as error:
                    yield from of_claim(kind, [f"{at}: {error}"])
                    return
                after = node.seen()
                if after != begin:  # what it did not come to set, such as a mode, is as it was
                    wrong += left_over(rest, after)
                yield from of_claim(kind, told(at, wrong))


def _ways(effect: str, number: int) -> list[bool]:
    """Whether the kubelet asks again after an end; both, where hardware was changed."""
    written = effect.endswith((" is written", " is removed"))
    return [number % 2 == 0] if written else [True, False]


def _goes_on(node: Node, kind: Kind, answer: Prepared, *, again: bool) -> list[str]:
    """What is wrong when the next process is asked for a claim, or to give it back at once."""

    async def story(agent: Agent) -> list[str]:
        wrong = []
        if again and await prepared(agent, kind.claim()) != answer:
            wrong.append("it is answered otherwise than without an end")
        await released(agent, kind.claim())
        return wrong

    return node.during(story)


def while_releasing(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        first = len(_effects(node, kind))
        release(node, kind.claim())
        process = Process(node.machine)
        visit(node, kind.claim(), process)
        for number in range(first + 1, len(process.effects) + 1):
            at = f"ended when {_ends(node, kind, number, releasing=True)}"
            try:
                node.during(_left_alone if number % 2 else partial(_asked, kind=kind))
            except Unanswered as error:
                yield from of_claim(kind, [f"{at}: {error}"])
                return
            yield from of_claim(kind, told(at, left_over(before, node.seen())))


async def _left_alone(agent: Agent) -> None:
    """Go on by itself with what is half undone; give back what is not."""
    for _ in range(SECONDS):
        await agent.pass_time()
        await agent.keeper.settle()
        if not agent.keeper.entries:
            return
    for entry in list(agent.keeper.entries.values()):
        raise Unanswered(f"the claim stays {entry.state}")


async def _asked(agent: Agent, kind: Kind) -> None:
    await released(agent, kind.claim())
    await came_and_went(agent, kind.claim("2"))


def other_boot(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        yield from of_claim(kind, _other_boot(bench, kind))


def _other_boot(bench: PluginBench, kind: Kind) -> Iterator[str]:
    node = node_of(bench, kind)
    rig = bench.rigged(node.machine)
    answer = prepare(node, kind.claim())
    set_state(node.machine, ("reboot",))
    there = fresh(rig).keys()

    async def story(agent: Agent) -> bool:
        if agent.keeper.entries:
            raise Unanswered("a claim of an earlier boot is taken for one of this boot")
        return await prepared(agent, kind.claim()) == answer

    if not node.during(story):
        yield "it is answered otherwise after a boot"
    release(node, kind.claim())
    if left := sorted(fresh(rig).keys() ^ there):
        yield f"{left[0]} is not as it was after the boot"
    yield from told("it is given back after a boot", left_over({}, kept(node.seen())))


def nothing_believed(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind)
        prepare(node, kind.claim())
        set_state(node.machine, ("reboot",))
        _by_a_stranger(bench.rigged(node.machine), kind)
        before = _hardware(node.seen())
        node.during(_reconciled)
        yield from of_claim(kind, left_over({}, kept(node.seen())))
        yield from of_claim(kind, left_over(before, _hardware(node.seen())))


def _by_a_stranger(rig: Rig, kind: Kind) -> None:
    """Let somebody have the partition that a claim had in an earlier boot."""
    if kind.placement is None:
        return
    for device in fresh(rig).values():
        if device.id == kind.root:
            if kind.mode is not None and device.mode != kind.mode:
                set_mode(rig, device, kind.mode)
            parent = fresh(rig)[device.id]
            create_partition(rig.vendor, rig.host, parent, kind.placement)


async def _reconciled(agent: Agent) -> None:
    """See twice what nobody needs any more, as an agent does now and then."""
    for _ in range(2):
        await agent.keeper.reconcile((), ())


def _hardware(seen: Seen) -> Seen:
    ours = kept(seen)
    return {path: content for path, content in seen.items() if path not in ours}


def same_name(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        prepare(node, kind.claim("1", name="claim"))
        node.during(partial(_replaced, kind=kind))
        release(node, kind.claim("2", name="claim"))
        yield from of_claim(kind, left_over(before, node.seen()))


async def _replaced(agent: Agent, kind: Kind) -> None:
    """Prepare a claim while the one of that name is given back that was there before."""
    old, new = kind.claim("1", name="claim"), kind.claim("2", name="claim")
    giving = asyncio.create_task(released(agent, old))
    while not giving.done():
        with contextlib.suppress(AccelkitError):  # it is asked for again, as by the kubelet
            await agent.prepare(new)
            break
    await giving
    await prepared(agent, new)


def gone_claims(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        prepare(node, kind.claim())

        async def story(agent: Agent, uid: str = kind.claim().claim.uid) -> None:
            for _ in range(2):
                await agent.keeper.reconcile((uid,), ())

        node.during(story)
        yield from of_claim(kind, left_over(before, node.seen()))


def two_instances(bench: PluginBench) -> Iterator[str]:
    for kind in kinds(bench):
        node = node_of(bench, kind, settled=True)
        before = node.seen()
        alone = _done(_effects(node, kind))
        release(node, kind.claim())
        found = node.during(partial(_both, node=node, kind=kind, alone=alone))
        yield from of_claim(kind, found)
        yield from of_claim(kind, left_over(before, node.seen()))


def _done(effects: list[str]) -> list[str]:
    """Of all changes those of the hardware."""
    return [e for e in effects if not e.endswith((" is written", " is removed"))]


async def _both(agent: Agent, node: Node, kind: Kind, alone: list[str]) -> list[str]:
    """What is wrong when two agents are asked at once for a claim, and one to give it back."""
    async with node.agent() as beside:
        agents = (agent, beside)
        one, other = await asyncio.gather(*(prepared(a, kind.claim()) for a in agents))
        done = [effect for a in agents for effect in _done(a.process.effects)]
        await released(beside, kind.claim())
        await released(agent, kind.claim())
    wrong = ["two agents that are asked at once answer differently"] if one != other else []
    if done != alone:
        wrong.append(f"two agents that are asked at once do {done}, and one alone does {alone}")
    return wrong


_BADGE = (Badge.AGENT,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "CR01",
        "An end at any moment of preparing a claim is made good by the next process.",
        while_preparing,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR02",
        "An end at any moment of giving a claim back is made good by the next process.",
        while_releasing,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR07",
        "After a boot claims are prepared anew.",
        other_boot,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR08",
        "A claim with the name of another one that is given back is prepared.",
        same_name,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR09",
        "What was prepared for a claim that is gone is undone.",
        gone_claims,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR10",
        "Two instances that are asked at once do it once.",
        two_instances,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "CR12",
        "After a boot nothing of an earlier one is believed, and nothing is undone.",
        nothing_believed,
        Feature.MACHINE,
        badges=_BADGE,
    ),
)
