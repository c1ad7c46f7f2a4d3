"""How a simulated kubelet admits pods and starts their containers. Not here: sockets."""

import random
from collections.abc import Awaitable
from typing import TypeVar

from attrs import frozen

from accelkit.conformance.sims import choosing
from accelkit.conformance.sims.choosing import Policy, Rejected
from accelkit.conformance.sims.devices import Devices
from accelkit.conformance.sims.events import (
    Allocated,
    ContainerStarted,
    ContainerWaiting,
    Journal,
    PodFailed,
)
from accelkit.conformance.sims.plugins import PluginFault, Plugins
from accelkit.conformance.sims.pods import Container, Held, Phase, Pod, Pods

_T = TypeVar("_T")


@frozen
class Node:
    """What does not change over a kubelet's restarts."""

    devices: Devices
    pods: Pods
    journal: Journal
    rng: random.Random
    policy: Policy
    numa_nodes: tuple[int, ...]


@frozen
class _Want:
    pod: str
    container: str
    resource: str
    size: int
    reusable: frozenset[str]


async def admit(node: Node, plugins: Plugins, pod: Pod) -> None:
    """Allocate for every container, init ones first; none is started yet.

    What finished init containers held is used again by those after them.
    """
    reusable: dict[str, set[str]] = {}
    try:
        for container in pod.containers:
            for resource, size in container.wants.items():
                pool = reusable.setdefault(resource, set())
                want = _Want(pod.name, container.name, resource, size, frozenset(pool))
                held = await _allocate(node, plugins, want)
                container.held[resource] = held
                # A later init container may use them too, an app container keeps them.
                pool |= held.ids
                if not container.init:
                    pool -= held.ids
    except Rejected as error:
        fail(node, pod, error)


async def start_all(node: Node, plugins: Plugins, pod: Pod) -> None:
    """Start the containers that are not running, if the pod still is to run."""
    for container in pod.containers:
        wanted = pod.phase is Phase.RUNNING and not pod.deleted and not pod.by_worker
        if wanted and not container.init and not container.running:
            await start(node, plugins, pod, container)


def admit_again(node: Node) -> None:
    """Admit every pod as a kubelet does that has just started, oldest first.

    Containers that run are left alone; one that is down must find all its devices healthy.
    """
    for pod in list(node.pods.active()):
        for container in pod.containers:
            if container.init or container.running:
                continue
            try:
                for resource, held in container.held.items():
                    choosing.check_held(resource, node.devices.listings.get(resource), held.ids)
            except Rejected as error:
                fail(node, pod, error)
                break
            container.restarts += 1


async def start(node: Node, plugins: Plugins, pod: Pod, container: Container) -> None:
    """Start a container with the answers it has; its devices are not asked about."""
    try:
        for resource, held in container.held.items():
            await plugins.pre_start(resource, sorted(held.ids))
    except PluginFault as error:
        container.waiting = str(error)
        node.journal.note(
            ContainerWaiting(pod.name, container.name, "CreateContainerConfigError", str(error))
        )
        return
    container.running, container.waiting = True, ""
    answers = tuple(held.answer for held in container.held.values())
    node.journal.note(ContainerStarted(pod.name, container.name, container.restarts, answers))


def fail(node: Node, pod: Pod, error: Rejected) -> None:
    """End a pod for good; what it held is free."""
    pod.phase, pod.reason, pod.message = Phase.FAILED, error.reason, str(error)
    for container in pod.containers:
        container.running = False
    node.journal.note(PodFailed(pod.name, pod.reason, pod.message))


async def _allocate(node: Node, plugins: Plugins, want: _Want) -> Held:
    listing = node.devices.listings.get(want.resource)
    if listing is None:
        raise Rejected(
            f"Pod was rejected: Node didn't have enough resource: {want.resource}, "
            f"requested: {want.size}, used: 0, capacity: 0",
            f"OutOf{want.resource}",
        )
    used = node.pods.used(want.resource)
    affinity = choosing.affinity_of(
        listing,
        size=want.size,
        available=listing.healthy - used,
        reusable=want.reusable,
        host=node.numa_nodes,
        policy=node.policy,
    )
    planned = choosing.plan(
        want.resource,
        listing,
        size=want.size,
        used=used,
        reusable=want.reusable,
        affinity=affinity,
        rng=node.rng,
    )
    preferred: tuple[str, ...] = ()
    if planned.ask:
        available, must = _mixed(node, planned.ask), sorted(planned.taken)
        preferred = await _asked(plugins.preferred(want.resource, available, must, want.size))
    ids = _mixed(node, choosing.complete(planned, preferred, node.rng))
    answer = await _asked(plugins.allocate(want.resource, ids))
    node.journal.note(Allocated(want.pod, want.container, want.resource, ids, answer))
    return Held(tuple(listing.known[ident] for ident in sorted(ids)), answer)


async def _asked(call: Awaitable[_T]) -> _T:
    try:
        return await call
    except PluginFault as error:
        raise Rejected(choosing.because(str(error))) from error


def _mixed(node: Node, ids: frozenset[str]) -> tuple[str, ...]:
    """Put *ids* in no order, as a Go map does."""
    return tuple(node.rng.sample(sorted(ids), len(ids)))
