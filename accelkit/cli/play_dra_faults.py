"""What goes wrong in the story of claims, and that nothing is lost. Not here: the rest of it."""

import time
from collections.abc import AsyncIterator, Mapping

from accelkit.cli.play_dra_acts import (
    claim_object,
    lose,
    on_disk,
    pod_object,
    removed,
    restore,
    run,
    taints,
    uids,
)
from accelkit.cli.play_dra_stage import DRIVER, NAMESPACE, DraStage
from accelkit.cli.play_stage import NotSeen
from accelkit.cli.play_story import Line, took
from accelkit.cli.play_words import short
from accelkit.conformance.sims.dra.events import UnprepareAnswered
from accelkit.conformance.sims.events import ContainerStopped
from accelkit.core.kube import PODS
from accelkit.core.view import View

SHARING = ("infer-a", "infer-b")


async def crash(stage: DraStage) -> AsyncIterator[Line]:
    """The agent is killed while a pod has a partition, and the pod goes meanwhile."""
    claim = claim_object("batch", "parts", profile="3g.40gb")
    ran = await run(stage, pod_object("batch", claim="batch"), claim)
    yield Line("pod", f"batch has {short(ran.device)}", at=ran.running)
    slices, before, pid = uids(stage), _restarts(stage), stage.pid
    await stage.kill_agent()
    said = ", ".join(f"{name} {state}" for name, state in sorted(on_disk(stage).items()))
    yield Line("fault", f"kill -9 {pid}; written down is: {said}", good=False)
    stage.api.delete(PODS, "batch", NAMESPACE)
    await stage.seen(lambda: stage.sim.seen(ContainerStopped, pod="batch"), "batch ends")
    if not stage.api.has(PODS, "batch", NAMESPACE):
        raise NotSeen("batch is gone though nobody could give its claim back")
    yield Line("pod", "batch is deleted: its container ends, the pod waits for the driver")
    again = time.monotonic()
    await stage.start_agent()
    gone = await removed(stage, "batch")
    answers = stage.sim.seen(UnprepareAnswered, driver=DRIVER)
    if not answers or answers[-1].error:
        raise NotSeen("batch: its claim was not given back")
    yield Line(
        "agent",
        f"process {stage.pid} gave its claim back, {took(again, gone)} after its start",
        at=gone,
    )
    await stage.told(lambda view: _without(view, ran.device), f"a view without {short(ran.device)}")
    yield Line("hardware", "its partition is gone")
    if uids(stage) != slices:
        raise NotSeen("the slices are not those of the agent that was killed")
    yield Line("slices", "are the same objects as before")
    if _restarts(stage) != before:
        raise NotSeen(f"the crash disturbed {' or '.join(SHARING)}")
    yield Line("pod", f"{' and '.join(SHARING)} run on, and were not started again")


def _restarts(stage: DraStage) -> Mapping[str, int]:
    """Of the pods that run on."""
    containers = {name: stage.sim.pods[name].container("main") for name in SHARING}
    return {name: one.restarts for name, one in containers.items() if one.running}


def _without(view: View, name: str) -> bool | None:
    return all(device.id.name != name for device in view.snapshot.devices) or None


async def lost(stage: DraStage) -> AsyncIterator[Line]:
    """A GPU falls off the bus while pods share it."""
    device = _shared(stage)
    begun = lose(stage)
    yield Line("fault", f"{short(device)} falls off the bus (XID 79)", good=False, at=begun)
    found = await stage.seen(lambda: taints(stage, device), f"a taint on {short(device)}")
    said = f"nobody else gets it, {took(begun, time.monotonic())} after:"
    yield Line("slices", said, (f"taint {', '.join(found)}",))
    for pod in SHARING:
        why = await stage.seen(lambda pod=pod: _unhealthy(stage, pod), f"{pod} is told")  # type: ignore[misc]  # mypy knows no types of defaults
        yield Line("pod", f"{pod}: allocatedResourcesStatus Unhealthy:", (why,), good=False)


async def back(stage: DraStage) -> AsyncIterator[Line]:
    """The GPU comes back."""
    device = _shared(stage)
    begun = restore(stage)
    yield Line("repair", f"{short(device)} is back (no event: the next read sees it)", at=begun)
    await stage.seen(lambda: not taints(stage, device), f"no taint on {short(device)}")
    yield Line("slices", f"others may have it again, {took(begun, time.monotonic())} after")
    await stage.seen(lambda: not any(_unhealthy(stage, pod) for pod in SHARING), "Healthy pods")
    yield Line("pod", f"{' and '.join(SHARING)}: allocatedResourcesStatus Healthy")


def _shared(stage: DraStage) -> str:
    """The device that pods share."""
    (devices,) = stage.sim.dra.pod(SHARING[0]).known[0].devices.values()
    return devices[0].device


def _unhealthy(stage: DraStage, pod: str) -> str:
    """What the pod's status says of a device that is not Healthy; empty: all are."""
    health = stage.sim.dra.device_health(pod).values()
    return next((why for word, why in health if word != "Healthy"), "")
