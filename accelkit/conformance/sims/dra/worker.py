"""The life of one pod of an API server on a simulated node. Not here: which pods there are.

Source:
    kubernetes v1.37.2, pkg/kubelet (pod workers); seen on 1.34 to 1.37.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from attrs import define

from accelkit.conformance.sims import admission
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.dra import cdi
from accelkit.conformance.sims.dra.claims import Claims, NotPrepared, until_reachable
from accelkit.conformance.sims.dra.drivers import DriverFault, Drivers
from accelkit.conformance.sims.dra.events import ContainerGot, PrepareFailed
from accelkit.conformance.sims.dra.pods import ClaimPod
from accelkit.conformance.sims.events import ContainerStopped, ContainerWaiting, PodRemoved
from accelkit.conformance.sims.plugins import Plugins
from accelkit.conformance.sims.pods import Container, Phase
from accelkit.conformance.sims.timing import Timing
from accelkit.core.kube import PODS


@define(kw_only=True)
class Means:
    """What the workers of one life of a kubelet share."""

    api: ApiSim
    node: admission.Node
    plugins: Plugins
    drivers: Drivers
    claims: Claims
    timing: Timing
    rng: random.Random
    cdi: Sequence[Path]
    sync: asyncio.Lock
    extended: bool
    """Whether extended resources may be DRA's."""
    status: Callable[[ClaimPod], None]
    """Writes a pod's status."""

    def later(self, seconds: float) -> float:
        """Up to half as long again."""
        return seconds * self.rng.uniform(1.0, 1.5)


async def work(pod: ClaimPod, means: Means) -> None:
    """Run *pod* until it is gone."""
    if pod.pod.phase is Phase.RUNNING:
        await _start(pod, means)
    else:
        await _give_back(pod, means)
        means.status(pod)
    await pod.ending.wait()
    await _end(pod, means)


async def _start(pod: ClaimPod, means: Means) -> None:
    """Go on from where the pod is, unless it ends."""
    if not pod.admitted:
        async with means.sync:
            means.node.pods.by_name[pod.id.name] = pod.pod
            await admission.admit(means.node, means.plugins, pod.pod)
        pod.admitted = True
    if pod.pod.phase is not Phase.RUNNING:
        means.status(pod)
        return
    while not pod.sandbox and not pod.ending.is_set():
        pod.nudge.clear()
        if not await _prepared(pod, means):
            await _sooner(pod, means.later(means.timing.prepare_again_s), pod.nudge.wait())
    while pod.sandbox and not pod.ending.is_set() and not await start_all(pod, means):
        await _sooner(pod, means.timing.create_again_s)
    means.status(pod)


async def _prepared(pod: ClaimPod, means: Means) -> bool:
    """Try once; deleting the pod waits for it, too."""
    names = pod.claim_names(extended=means.extended)
    try:
        pod.known = tuple(await means.claims.prepare(pod.id, names, means.drivers))
    except NotPrepared as error:
        text = f"Failed to prepare dynamic resources: {error}"
        means.node.journal.note(PrepareFailed(pod.id.name, text))
        return False
    pod.sandbox = True
    return True


async def start_all(pod: ClaimPod, means: Means) -> bool:
    """Make the containers that do not run; returns whether all do."""
    for container in pod.pod.containers:
        if not container.running and not container.init:
            await make(pod, container, means)
    return all(c.running or c.init for c in pod.pod.containers)


async def make(pod: ClaimPod, container: Container, means: Means) -> None:
    """Make a container with what its claims give it, as the checkpoint has it."""
    uses = pod.uses(container.name, extended=means.extended)
    names = [name for use in uses for _, device in pod.devices(use) for name in device.cdi]
    try:
        injected = cdi.inject(means.cdi, names)
    except cdi.Unresolvable as error:
        container.waiting = str(error)
        journal = means.node.journal
        reason = "CreateContainerError"
        journal.note(ContainerWaiting(pod.id.name, container.name, reason, str(error)))
        return
    pod.injected[container.name] = injected
    means.node.journal.note(ContainerGot(pod.id.name, container.name, injected))
    await admission.start(means.node, means.plugins, pod.pod, container)


async def _end(pod: ClaimPod, means: Means) -> None:
    await asyncio.sleep(means.timing.stop_s)
    stop(pod, means)
    await _give_back(pod, means)
    await until_reachable(means.api, means.timing.watch_s)
    name, namespace = pod.id.name, pod.id.namespace
    if not pod.gone and means.api.has(PODS, name, namespace):
        means.api.delete(PODS, name, namespace, grace_s=0)
    if means.node.pods.by_name.get(name) is pod.pod:
        del means.node.pods.by_name[name]
    means.node.journal.note(PodRemoved(name, pod.gone))


async def _give_back(pod: ClaimPod, means: Means) -> None:
    """Give the pod's claims back, however often it takes."""
    while pod.id.uid in {uid for one in means.claims.known.values() for uid in one.pods}:
        try:
            await means.claims.unprepare([pod.id.uid], means.drivers)
        except DriverFault:
            await asyncio.sleep(means.later(means.timing.unprepare_again_s))


def stop(pod: ClaimPod, means: Means) -> None:
    """End the processes of all containers."""
    for container in pod.pod.containers:
        if container.running:
            container.running = False
            means.node.journal.note(ContainerStopped(pod.id.name, container.name))


async def _sooner(pod: ClaimPod, seconds: float, *others: Awaitable[object]) -> None:
    """Sleep until *seconds* are over, the pod shall end, or one of *others* is done."""
    waits = [asyncio.ensure_future(one) for one in (pod.ending.wait(), *others)]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
