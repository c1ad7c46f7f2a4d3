"""What can be done on the stage of the play of claims, and what is waited for then.

Not here: the story.
"""

import asyncio
import json
import time
from collections.abc import Mapping

import attrs

from accelkit.cli.asking import Agent
from accelkit.cli.play_dra_stage import DRIVER, NAMESPACE, DraStage
from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.conformance.sims.dra.events import ContainerGot, PrepareAnswered
from accelkit.conformance.sims.events import PodRemoved
from accelkit.core.claims import LedgerEntry
from accelkit.core.kube import CLAIMS, PODS, SLICES, Json
from accelkit.testing.simulate import set_state


@attrs.frozen(kw_only=True)
class Ran:
    """A pod that was made, and runs."""

    name: str
    begun: float
    """When it was made."""
    prepared: float
    """When the driver had answered."""
    running: float
    device: str
    """Of the first result of its claim."""
    got: Injected
    """By its container."""


def claim_object(name: str, of: str, *, profile: str = "", **amounts: str) -> Json:
    """A claim of one device of the class *of*: of a *profile*, or of *amounts*."""
    exactly: dict[str, object] = {"deviceClassName": of}
    if profile:
        expression = f'device.attributes["{DRIVER}"].profile == "{profile}"'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    if amounts:
        exactly["capacity"] = {"requests": amounts}
    requests = [{"name": "gpu", "exactly": exactly}]
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}


def pod_object(name: str, *, claim: str = "", resource: str = "") -> Json:
    """A pod with a claim, or with one of an extended resource."""
    uses: dict[str, object] = {"claims": [{"name": "gpu"}]} if claim else {}
    if resource:
        uses = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    spec: dict[str, object] = {
        "containers": [{"name": "main", "image": "example.com/main", "resources": uses}]
    }
    if claim:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return {"metadata": {"name": name}, "spec": spec}


def make(stage: DraStage, pod: Json, claim: Json | None) -> None:
    """Let a pod come, with a claim of its own if it has one."""
    if claim is not None:
        stage.api.create(CLAIMS, claim, NAMESPACE)
    stage.api.create(PODS, pod, NAMESPACE)


async def run(stage: DraStage, pod: Json, claim: Json | None = None) -> Ran:
    """The same; the pod must run."""
    name = text(pod, "metadata", "name")
    begun = time.monotonic()
    make(stage, pod, claim)
    got = (await stage.seen(lambda: stage.sim.seen(ContainerGot, pod=name), f"{name} runs"))[-1]
    answered = stage.sim.seen(PrepareAnswered, pod=name)[-1]
    (devices,) = answered.devices.values()
    return Ran(
        name=name,
        begun=begun,
        prepared=answered.at,
        running=got.at,
        device=devices[0].device,
        got=got.injected,
    )


async def remove(stage: DraStage, pod: str) -> tuple[float, float]:
    """Delete a pod; returns when, and when its claims were given back and it was gone."""
    begun = time.monotonic()
    stage.api.delete(PODS, pod, NAMESPACE)
    return begun, await removed(stage, pod)


async def removed(stage: DraStage, pod: str) -> float:
    """When the pod was gone."""
    return (await stage.seen(lambda: stage.sim.seen(PodRemoved, pod=pod), f"{pod} is gone"))[-1].at


def result(stage: DraStage, claim: str) -> Json:
    """What the scheduler gave a claim of one device."""
    (found,) = parts(
        stage.api.raw(CLAIMS, claim, NAMESPACE), "status", "allocation", "devices", "results"
    )
    return found


def status(stage: DraStage, pod: str) -> Json:
    return part(stage.api.raw(PODS, pod, NAMESPACE), "status")


def taints(stage: DraStage, device: str) -> list[str]:
    """Of a device as it is published: keys and effects of those that keep pods away."""
    return [
        f"{text(taint, 'key')}:{text(taint, 'effect')}"
        for one in stage.api.raws(SLICES)
        for found in parts(one, "spec", "devices")
        if text(found, "name") == device
        for taint in parts(found, "taints")
        if text(taint, "effect") != "None"
    ]


def uids(stage: DraStage) -> frozenset[str]:
    """Of the slices: others, if they are made anew."""
    return frozenset(text(one, "metadata", "uid") for one in stage.api.raws(SLICES))


async def ledger(stage: DraStage) -> Mapping[str, LedgerEntry]:
    """What the agent wrote down, by the name of the claim."""
    entries = await asyncio.to_thread(Agent(str(stage.root / "run")).claims)
    return {entry.claim.name: entry for entry in entries}


def on_disk(stage: DraStage) -> Mapping[str, str]:
    """The same without an agent: the state of each claim by name."""
    found = (json.loads(file.read_bytes()) for file in (stage.root / "run").glob("*/claims/*.json"))
    return {entry["claim"]["name"]: entry["state"] for entry in found}


def lose(stage: DraStage) -> float:
    """Let the last GPU, which is shared, be lost; returns when."""
    begun = time.monotonic()
    set_state(stage.machine, ["lose", "gpu-3"])
    set_state(stage.machine, ["xid", "gpu-3", "79"])
    return begun


def restore(stage: DraStage) -> float:
    """Let it come back."""
    begun = time.monotonic()
    set_state(stage.machine, ["restore", "gpu-3"])
    return begun
