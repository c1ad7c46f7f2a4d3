"""What can be done on the stage of the play, and what is waited for then. Not here: the story."""

import time
from collections.abc import Mapping

from accelkit.cli.play_stage import GPUS, SMALL, NotSeen, Stage
from accelkit.cli.play_words import short
from accelkit.conformance.sims import events
from accelkit.conformance.sims.pods import Phase, Pod
from accelkit.core.model import Device
from accelkit.core.view import View
from accelkit.testing.simulate import set_state

GPU = "nvidia.com/gpu"
SHARE = "sim.accelkit.dev/accel"
OFFERED: Mapping[str, int] = {GPU: GPUS, SHARE: 2 * SMALL}
"""What the policy makes of the machine."""


async def allocatable(
    stage: Stage, amounts: Mapping[str, int], since: float
) -> list[events.StatusChanged]:
    """The changes of the node's status since then that say *amounts*."""

    def changes() -> list[events.StatusChanged] | None:
        found = {
            e.resource: e
            for e in stage.sim.seen(events.StatusChanged)
            if e.at >= since and e.allocatable == str(amounts.get(e.resource))
        }
        return [*found.values()] if found.keys() == amounts.keys() else None

    wanted = ", ".join(f"{number} of {resource}" for resource, number in amounts.items())
    return await stage.seen(changes, f"allocatable {wanted}")


async def admitted(stage: Stage, name: str, resource: str, size: int) -> tuple[Pod, float]:
    """Let a pod come, which must run."""
    begun = time.monotonic()
    pod = await stage.sim.admit(name, {resource: size})
    if pod.phase is not Phase.RUNNING or not pod.container("main").running:
        reason = pod.message or pod.container("main").waiting
        raise NotSeen(f"{name}: the pod does not run: {reason}")
    return pod, begun


async def lose(stage: Stage, name: str) -> tuple[float, events.Listed]:
    """Let a GPU be lost; returns when, and the list in which the kubelet saw it."""
    unit = _unit(stage, name)
    begun = time.monotonic()
    set_state(stage.machine, ["lose", unit])
    set_state(stage.machine, ["xid", unit, "79"])
    return begun, await _list_with(stage, name, begun, healthy=False)


async def restore(stage: Stage, name: str) -> tuple[float, events.Listed]:
    """Let a GPU come back; returns the same."""
    begun = time.monotonic()
    set_state(stage.machine, ["restore", _unit(stage, name)])
    return begun, await _list_with(stage, name, begun, healthy=True)


def _unit(stage: Stage, name: str) -> str:
    """What the machine calls a GPU: units are numbered in the order of their PCI addresses."""
    assert stage.view is not None
    places = {gpu.id.name: gpu.locality.pci_address or "" for gpu in gpus(stage.view)}
    return f"gpu-{sorted(places.values()).index(places[name])}"


def gpus(view: View) -> list[Device]:
    return [device for device in view.snapshot.devices if device.id.vendor == "nvidia"]


async def _list_with(stage: Stage, name: str, since: float, *, healthy: bool) -> events.Listed:
    wanted = GPUS if healthy else GPUS - 1

    def listed() -> events.Listed | None:
        for event in stage.sim.seen(events.Listed, resource=GPU):
            states = {device.id: device.healthy for device in event.devices}
            if event.at >= since and states.get(name) is healthy and sum(states.values()) == wanted:
                return event
        return None

    state = "Healthy" if healthy else "Unhealthy"
    return await stage.seen(listed, f"a list with {short(name)} {state}")
