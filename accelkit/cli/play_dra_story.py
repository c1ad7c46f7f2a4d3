"""The story that the play tells of claims: each line of it is something that was seen to happen.

Not here: how lines are shown, what they happen on, and what goes wrong in it.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import cycle

from accelkit.backends.extended.document import class_object, render
from accelkit.cli.play_dra_acts import (
    Ran,
    claim_object,
    ledger,
    make,
    pod_object,
    remove,
    result,
    run,
    status,
)
from accelkit.cli.play_dra_faults import back, crash, lost
from accelkit.cli.play_dra_stage import DRIVER, GPUS, NAMESPACE, DraStage, stage
from accelkit.cli.play_stage import AGAIN_S, RELEASE, NotSeen
from accelkit.cli.play_story import Line, Play, took
from accelkit.cli.play_words import injected, short
from accelkit.cli.showing import counted
from accelkit.conformance.sims.api.values import number, part, parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered
from accelkit.core.kube import CLASSES, PODS, SLICES, Json
from accelkit.core.model import Problem
from accelkit.core.policy import DraPolicy
from accelkit.core.view import View

GPU = "nvidia.com/gpu"
MISSING = "class-missing"
OFFERS = {"parts", "shared", "whole"}


async def _scene(stage: DraStage) -> AsyncIterator[Line]:
    """The machine, the cluster and the policy are there."""
    yield Line("machine", f"simulated: {GPUS} H100 with NVSwitch", (stage.machine,))
    yield Line(
        "cluster",
        f"simulated: API server, scheduler and kubelet of Kubernetes {RELEASE}",
        (stage.api.url, str(stage.sim.registry_dir)),
    )
    yield Line("policy", str(stage.policy), tuple(stage.policy.read_text().splitlines()))


async def _start(stage: DraStage) -> AsyncIterator[Line]:
    """An agent starts, is registered as a driver, and publishes its devices."""
    begun = time.monotonic()
    await stage.start_agent()
    yield Line("agent", f"accelkit agent --policy {stage.policy.name} is process {stage.pid}")
    came = await stage.seen(
        lambda: stage.sim.seen(DriverRegistered, driver=DRIVER), f"registration of {DRIVER}"
    )
    said = f"{DRIVER}, {took(begun, came[0].at)} after its start"
    yield Line("registered", said, at=came[0].at)
    await stage.seen(lambda: _complete(stage), "slices of all GPUs")
    at = time.monotonic()
    yield Line("slices", f"published {took(begun, at)} after its start:", (*_what(stage),), at=at)


def _complete(stage: DraStage) -> bool:
    slices = stage.api.raws(SLICES)
    counts = {number(part(one, "spec", "pool"), "resourceSliceCount") for one in slices}
    offers = {offer for one in slices for offer in _offers(one)}
    return counts == {len(slices)} and offers == OFFERS


def _offers(one: Json) -> Counter[str]:
    """How many devices of which offer are in a slice."""
    devices = parts(one, "spec", "devices")
    return Counter(text(device, "attributes", "offer", "string") for device in devices)


def _what(stage: DraStage) -> Iterator[str]:
    """What is in the slices."""
    for one in stage.api.raws(SLICES):
        if sets := parts(one, "spec", "sharedCounters"):
            yield f"{counted(len(sets), 'counter set')}, which partitions of one GPU compete for"
        for offer, many in _offers(one).items():
            yield f"{counted(many, 'device')} of offer {offer}"


async def _classes(stage: DraStage) -> AsyncIterator[Line]:
    """An administrator makes the class that nvidia.com/gpu needs."""

    async def missing() -> Problem | None:
        return next((one for one in await stage.problems() if one.code == MISSING), None)

    async def there() -> bool | None:
        return await missing() is None or None

    problem = await stage.asked(missing, f"problem {MISSING}")
    yield Line("agent", problem.reason, (f"remedy: {problem.remedy}",), good=False)
    view = await stage.told(lambda view: view, "the agent's view")
    for one in render(view, DraPolicy()).values():
        stage.api.create(CLASSES, class_object(one))
        yield Line("class", f"{one.name}: pods that ask for {one.resource} get its devices")
    await stage.asked(there, f"no problem {MISSING}")
    yield Line("agent", "has nothing to say any more")


async def _cut(stage: DraStage) -> AsyncIterator[Line]:
    """A claim gets a partition that is made for it."""
    before = await stage.told(lambda view: view, "the agent's view")
    claim = claim_object("train", "parts", profile="2g.20gb")
    ran = await run(stage, pod_object("train", claim="train"), claim)
    if any(device.name == ran.device for device in before.devices):
        raise NotSeen(f"train: {short(ran.device)} was there already")
    yield Line(
        "pod",
        f"train asked for a 2g.20gb, and runs after {took(ran.begun, ran.running)}",
        at=ran.running,
    )
    yield Line("claim", f"the scheduler chose {short(ran.device)}, which was not there yet")
    entry = (await ledger(stage))["train"]
    steps = ", ".join(f"{step} {ms:.0f} ms" for step, ms in entry.trace)
    yield Line("prepared", f"the agent made it: {steps}")
    mode = await stage.told(lambda view: _made(view, ran.device), f"{short(ran.device)} in a view")
    yield Line("hardware", f"the GPU is in mode {mode}, and has one partition")
    yield Line("container", "train/main was given:", injected(ran.got))


def _made(view: View, name: str) -> str | None:
    """The mode of the GPU of a partition that is there."""
    found = next((one for one in view.snapshot.devices if one.id.name == name), None)
    return None if found is None else view.devices[found.root].mode


async def _uncut(stage: DraStage) -> AsyncIterator[Line]:
    """The partition is gone after its pod."""
    begun, gone = await remove(stage, "train")
    yield Line("pod", f"train is deleted, and gone after {took(begun, gone)}", at=gone)
    await stage.told(_whole, "a view without partitions")
    yield Line("hardware", "no partition is left")


def _whole(view: View) -> bool | None:
    return all(device.parent is None for device in view.snapshot.devices) or None


async def _shares(stage: DraStage) -> AsyncIterator[Line]:
    """Two pods share one GPU, each with the memory that it asked for; a third finds none."""
    devices = set()
    for name, memory, cores in (("infer-a", "30Gi", "30"), ("infer-b", "40Gi", "40")):
        claim = claim_object(name, "shared", memory=memory, cores=cores)
        ran = await run(stage, pod_object(name, claim=name), claim)
        devices.add(ran.device)
        after = took(ran.begun, ran.running)
        yield Line("pod", f"{name} asked for {memory}, and runs after {after}", at=ran.running)
        yield Line("claim", _share(stage, name))
    if len(devices) != 1:
        raise NotSeen("infer-a and infer-b are not on one GPU")
    pod = pod_object("infer-c", claim="infer-c")
    make(stage, pod, claim_object("infer-c", "shared", memory="20Gi", cores="20"))
    why = await stage.seen(lambda: _waits(stage, "infer-c"), "infer-c waits")
    said = "infer-c asked for 20Gi, which is not left, and waits:"
    yield Line("pod", said, (why,), good=False)
    stage.api.delete(PODS, "infer-c", NAMESPACE)


def _share(stage: DraStage, claim: str) -> str:
    found = result(stage, claim)
    amounts = part(found, "consumedCapacity")
    said = ", ".join(f"{key} {value}" for key, value in sorted(amounts.items()))
    return f"{claim} has of {short(text(found, 'device'))}: {said}"


def _waits(stage: DraStage, pod: str) -> str:
    """Why a pod is not scheduled; empty: it is not known yet."""
    conditions = parts(status(stage, pod), "conditions")
    return next((text(one, "message") for one in conditions), "")


async def _extended(stage: DraStage) -> AsyncIterator[Line]:
    """A pod that asks for nvidia.com/gpu, as of a device plugin, is served by a claim."""
    ran: Ran = await run(stage, pod_object("legacy", resource=GPU))
    claim = text(status(stage, "legacy"), "extendedResourceClaimStatus", "resourceClaimName")
    if not claim:
        raise NotSeen("legacy: no claim was made for its extended resource")
    after = took(ran.begun, ran.running)
    yield Line("pod", f"legacy asked for 1 {GPU}, and runs after {after}", at=ran.running)
    yield Line("claim", f"the scheduler made {claim} for it: {short(ran.device)}")
    yield Line("container", "legacy/main was given:", injected(ran.got))


async def _end(stage: DraStage) -> AsyncIterator[Line]:
    """The agent ends when it is asked to; claims and slices stay."""
    begun = time.monotonic()
    code = await stage.stop_agent()
    if code != 0:
        raise NotSeen(f"the agent ended with {code} after SIGTERM")
    ended = took(begun, time.monotonic())
    yield Line("agent", f"{signal.SIGTERM.name}: ended with {code} after {ended}")
    if not _complete(stage):
        raise NotSeen("its slices are gone")
    yield Line("slices", "stay, and so do pods and what they have")


async def _go_on(stage: DraStage) -> AsyncIterator[Line]:
    """Partitions come and go."""
    for turn, profile in enumerate(cycle(("1g.10gb", "3g.40gb", "2g.20gb")), 1):
        name = f"job-{turn}"
        await asyncio.sleep(AGAIN_S)
        claim = claim_object(name, "parts", profile=profile)
        ran = await run(stage, pod_object(name, claim=name), claim)
        after = took(ran.begun, ran.running)
        yield Line("pod", f"{name} has {short(ran.device)} after {after}", at=ran.running)
        await asyncio.sleep(AGAIN_S)
        begun, gone = await remove(stage, name)
        yield Line("pod", f"{name} is gone after {took(begun, gone)}", at=gone)


STORY = (_scene, _start, _classes, _cut, _uncut, _shares, crash, lost, back, _extended)
ENDING = (_end,)
PLAY = Play(stage=stage, story=STORY, ending=ENDING, after="partitions come and go", go_on=_go_on)
