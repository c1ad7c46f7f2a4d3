"""The story that the play tells: each line of it is something that was seen to happen.

Not here: how lines are shown, and what they happen on.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from itertools import cycle
from typing import Generic, TypeAlias, TypeVar

import attrs

from accelkit.cli.play_acts import (
    GPU,
    OFFERED,
    SHARE,
    admitted,
    allocatable,
    gpus,
    lose,
    restore,
)
from accelkit.cli.play_stage import AGAIN_S, GPUS, RELEASE, SMALL, NotSeen, Stage, stage
from accelkit.cli.play_words import choice, given, kinds, short
from accelkit.cli.showing import counted
from accelkit.conformance.sims import events
from accelkit.conformance.sims.pods import Phase
from accelkit.core.policy import Offer
from accelkit.core.view import View


@attrs.frozen
class Line:
    """One thing that happened."""

    topic: str
    text: str
    details: tuple[str, ...] = ()
    good: bool = attrs.field(default=True, kw_only=True)
    at: float = attrs.field(factory=time.monotonic, kw_only=True)
    """Seconds on the monotonic clock."""


S = TypeVar("S", bound=Stage)
Step: TypeAlias = Callable[[S], AsyncIterator[Line]]


@attrs.frozen(kw_only=True)
class Play(Generic[S]):
    """All that is told on one stage."""

    stage: Callable[[], AbstractAsyncContextManager[S]]
    story: tuple[Step[S], ...]
    ending: tuple[Step[S], ...]
    after: str
    """What happens after the story, until somebody ends it."""
    go_on: Step[S]


def took(begun: float, at: float) -> str:
    return f"{(at - begun) * 1000:.0f} ms"


async def _scene(stage: Stage) -> AsyncIterator[Line]:
    """The machine, the policy and the kubelet are there."""
    yield Line(
        "machine",
        f"simulated: {GPUS} H100 with NVSwitch, {SMALL} of the vendor sim",
        (stage.machine,),
    )
    yield Line("kubelet", f"simulated: Kubernetes {RELEASE}", (str(stage.sim.socket),))
    yield Line("policy", str(stage.policy), tuple(stage.policy.read_text().splitlines()))


async def _start(stage: Stage) -> AsyncIterator[Line]:
    """An agent starts, and finds, offers and registers all devices."""
    begun = time.monotonic()
    await stage.start_agent()
    yield Line("agent", f"accelkit agent --policy {stage.policy.name} is process {stage.pid}")
    found = [*await _found(stage, begun), *await _registered(stage)]
    for change in await allocatable(stage, OFFERED, begun):
        text = f"{change.resource}: allocatable {change.allocatable}"
        found.append(Line("status", text, at=change.at))
    for line in sorted(found, key=lambda line: line.at):
        yield line


async def _found(stage: Stage, begun: float) -> list[Line]:
    """Each vendor's devices and their offer, in the order in which the agent has them."""
    lines: list[Line] = []
    missing = {"nvidia": GPUS, "sim": SMALL}

    def complete(view: View) -> tuple[str, Offer, View] | None:
        for vendor, number in missing.items():
            terms = [a.terms for i, a in view.assignments.items() if i.vendor == vendor]
            if len(terms) == number and terms[0] is not None and {*terms} == {terms[0]}:
                return vendor, terms[0], view
        return None

    while missing:
        wanted = " and ".join(f"{number} of {vendor}" for vendor, number in missing.items())
        vendor, offer, view = await stage.told(complete, f"devices, {wanted}, each in its offer")
        del missing[vendor]
        at, found = _taken(view), [d for d in view.snapshot.devices if d.id.vendor == vendor]
        text = f"{vendor}: found {took(begun, at)} after the agent's start:"
        lines.append(Line("devices", text, kinds(found), at=at))
        shares = offer.sharing.shares
        each = f", {shares} shares each" if shares > 1 else ""
        text = f"{offer.name}: {counted(len(found), 'device')} of {vendor}{each}"
        lines.append(Line("offer", text, at=at))
    return lines


def _taken(view: View) -> float:
    """When the agent took the view's snapshot, on the monotonic clock."""
    taken_at = view.snapshot.taken_at
    assert taken_at is not None
    return time.monotonic() - (datetime.now(UTC) - taken_at).total_seconds()


async def _registered(stage: Stage) -> list[Line]:
    def registered() -> list[events.Registered] | None:
        found = {event.resource: event for event in stage.sim.seen(events.Registered)}
        return [*found.values()] if found.keys() == OFFERED.keys() else None

    return [
        Line(
            "registered",
            f"{came.resource}, "
            + ("kubelet.sock" if came.by == "socket" else "found in plugins_registry"),
            at=came.at,
        )
        for came in await stage.seen(registered, f"registration of {' and '.join(OFFERED)}")
    ]


async def _four(stage: Stage) -> AsyncIterator[Line]:
    """A pod asks for four GPUs and gets those that are nearest to each other."""
    pod, begun = await admitted(stage, "train", GPU, 4)
    asked = stage.sim.seen(events.PreferredAsked, resource=GPU, size=4)
    if not asked or {*(asked[-1].answer or ())} != {*pod.ids()}:
        raise NotSeen("train: the kubelet did not take what the agent prefers")
    got = stage.sim.seen(events.Allocated, pod=pod.name)[-1]
    view = await stage.told(lambda view: view, "the agent's view")
    names = " ".join(short(name) for name in sorted(got.ids))
    yield Line(
        "pod",
        f"train asked for 4 {GPU}, has them after {took(begun, got.at)}:",
        (names,),
        at=got.at,
    )
    yield Line("why", *choice(view, GPU, asked[-1].available, pod.ids()))
    yield Line("container", "train/main was given:", given(got.answer))


async def _shares(stage: Stage) -> AsyncIterator[Line]:
    """Two pods share what may be shared, each on a device of its own while there is one."""
    used = set()
    for name in ("infer-a", "infer-b"):
        pod, _ = await admitted(stage, name, SHARE, 1)
        got = stage.sim.seen(events.Allocated, pod=name)[-1]
        used.add(pod.ids()[0].partition("::")[0])
        text = f"{name} asked for 1 {SHARE}: {pod.ids()[0]}"
        yield Line("pod", text, given(got.answer), at=got.at)
    if len(used) != SMALL:
        raise NotSeen("the shares of infer-a and infer-b are not on two devices")


async def _refused(stage: Stage) -> AsyncIterator[Line]:
    """A pod that asks for more than there is left is refused."""
    pod = await stage.sim.admit("big", {GPU: 5})
    failed = stage.sim.seen(events.PodFailed, pod="big")
    if pod.phase is not Phase.FAILED or not failed:
        raise NotSeen("big: it asked for 5 GPUs while 4 were left, and was not refused")
    words = failed[-1].message.partition("due to ")[2].partition(", which")[0]
    yield Line(
        "pod", f"big asked for 5 {GPU} and is refused:", (words,), good=False, at=failed[-1].at
    )
    await stage.sim.remove("big")


async def _lost(stage: Stage) -> AsyncIterator[Line]:
    """A GPU that a pod holds falls off the bus."""
    name = min(stage.sim.pods["train"].ids())
    begun, listed = await lose(stage, name)
    text = f"{short(name)} of pod train falls off the bus (XID 79)"
    yield Line("fault", text, good=False, at=begun)
    yield Line(
        "kubelet",
        f"{GPUS - 1} of {GPUS} are healthy in the agent's list, {took(begun, listed.at)} after",
        at=listed.at,
    )
    (change,) = await allocatable(stage, {GPU: GPUS - 1}, begun)
    text = f"{GPU}: allocatable {GPUS} → {change.allocatable}, {took(begun, change.at)} after"
    yield Line("status", text, at=change.at)

    def judged(view: View) -> str | None:
        verdict = next(v for i, v in view.verdicts.items() if i.name == name)
        return None if verdict.good else ", ".join(reason.code for reason in verdict.reasons)

    codes = await stage.told(judged, f"a reason for {short(name)}")
    yield Line("agent", f"says why: {codes}")
    if stage.sim.device_health("train").get(name) != "Unhealthy":
        raise NotSeen("the device is not Unhealthy in train's status")
    yield Line("pod", f"train: allocatedResourcesStatus {short(name)} Unhealthy", good=False)


async def _back(stage: Stage) -> AsyncIterator[Line]:
    """The GPU comes back."""
    name = min(stage.sim.pods["train"].ids())
    begun, listed = await restore(stage, name)
    (change,) = await allocatable(stage, {GPU: GPUS}, begun)
    yield Line("repair", f"{short(name)} is back (no event: the next read sees it)", at=begun)
    yield Line(
        "kubelet", f"{GPUS} of {GPUS} are healthy, {took(begun, listed.at)} after", at=listed.at
    )
    yield Line("status", f"{GPU}: allocatable {change.allocatable}", at=change.at)
    if stage.sim.device_health("train").get(name) != "Healthy":
        raise NotSeen("the device is not Healthy in train's status")
    yield Line("pod", f"train: allocatedResourcesStatus {short(name)} Healthy")


async def _crash(stage: Stage) -> AsyncIterator[Line]:
    """The agent is killed and comes again; pods do not notice."""
    pid, begun = stage.pid, time.monotonic()
    await stage.kill_agent()
    gone = await allocatable(stage, dict.fromkeys(OFFERED, 0), begun)
    yield Line("fault", f"kill -9 {pid}: allocatable 0 of everything", good=False, at=gone[-1].at)
    again = time.monotonic()
    await stage.start_agent()
    back = await allocatable(stage, OFFERED, again)
    after = took(again, max(change.at for change in back))
    yield Line("agent", f"process {stage.pid}: all allocatable {after} after its start")
    pods = stage.sim.pods.values()
    disturbed = [
        p.name for p in pods if not p.container("main").running or p.container("main").restarts
    ]
    if disturbed:
        raise NotSeen(f"the crash disturbed {', '.join(disturbed)}")
    names = ", ".join(pod.name for pod in pods)
    yield Line("pod", f"{names}: run on, 0 restarts")
    held = sum(len(pod.ids()) for pod in pods)
    await stage.told(
        lambda view: len(view.holdings) == held, f"{held} holdings in the agent's view"
    )
    yield Line("agent", f"asked the kubelet: {held} are held, as before")


async def _end(stage: Stage) -> AsyncIterator[Line]:
    """The agent ends when it is asked to."""
    begun = time.monotonic()
    code = await stage.stop_agent()
    if code != 0:
        raise NotSeen(f"the agent ended with {code} after SIGTERM")
    yield Line(
        "agent", f"{signal.SIGTERM.name}: ended with {code} after {took(begun, time.monotonic())}"
    )


async def _go_on(stage: Stage) -> AsyncIterator[Line]:
    """GPUs come and go."""
    assert stage.view is not None
    for name in cycle([gpu.id.name for gpu in gpus(stage.view)]):
        for change, what in ((lose, "is lost"), (restore, "is back")):
            await asyncio.sleep(AGAIN_S)
            begun, listed = await change(stage, name)
            healthy = sum(device.healthy for device in listed.devices)
            text = f"{short(name)} {what}: {healthy} {GPU} are healthy after "
            topic = "fault" if change is lose else "repair"
            yield Line(topic, text + took(begun, listed.at), good=change is restore)


STORY = (_scene, _start, _four, _shares, _refused, _lost, _back, _crash)
ENDING = (_end,)
PLAY = Play(stage=stage, story=STORY, ending=ENDING, after="GPUs come and go", go_on=_go_on)


def title(step: Step[S]) -> str:
    """What *step* shows, as a sentence."""
    assert step.__doc__ is not None
    return step.__doc__.removesuffix(".")
