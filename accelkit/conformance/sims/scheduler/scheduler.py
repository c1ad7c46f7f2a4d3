"""A simulated scheduler beside a simulated API server: it gives pods nodes, and claims devices.

It does what was seen of kube-scheduler 1.37 as far as drivers of devices can tell, with what the
claim controller and the taint eviction controller do. Not here: pods' other needs (memory,
affinity, spreading), preemption, and CEL beyond the forms of drivers' classes.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from attrs import frozen

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.kinds import taint_rules
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.gates import BINDING, DEVICE_STATUS, EXTENDED
from accelkit.conformance.sims.scheduler import bindings, extended
from accelkit.conformance.sims.scheduler.allocator import (
    Broken,
    Choice,
    Search,
    Unusable,
)
from accelkit.conformance.sims.scheduler.claims import Claims
from accelkit.conformance.sims.scheduler.eviction import evicted
from accelkit.conformance.sims.scheduler.held import Held
from accelkit.conformance.sims.scheduler.pools import (
    Device,
    DeviceId,
    Json,
    Pool,
    gather,
    reaches,
)
from accelkit.conformance.sims.scheduler.results import allocation
from accelkit.conformance.sims.scheduler.wants import missing_class
from accelkit.conformance.sims.tasks import cancel
from accelkit.core.kube import CLAIMS, CLASSES, NODES, PODS, SLICES

CANNOT_ALLOCATE = "cannot allocate all claims"
_NAME = "default-scheduler"
_PLUGIN = 'running "DynamicResources" filter plugin'


@frozen
class _Placed:
    """Where a pod can go, and what it gets there."""

    node: Json
    claims: Sequence[Json]
    """Those of the pod, with one for its extended resources as the last, if it needs one."""
    choices: Mapping[int, Sequence[Choice]]
    """By the position of a claim that has no devices yet."""
    plan: extended.Plan | None


class SchedulerSim:
    """Schedules the pods of an `ApiSim`, once when asked, or whenever something changes.

    ``async with SchedulerSim(api)`` does it whenever something changes.
    """

    def __init__(self, api: ApiSim, *, seed: int = 0) -> None:
        self.api = api
        self._claims = Claims(api)
        self._rng = random.Random(seed)  # noqa: S311 - a simulation repeats with its seed
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            await cancel(self._task)

    async def _run(self) -> None:
        while True:
            news = self.api.store.news
            self.step()
            if news.is_set():
                await asyncio.sleep(0)  # it changed something itself, or something came meanwhile
            else:
                await news.wait()

    def step(self) -> None:
        """Do all there is to do now.

        Raises:
            UnsupportedCel: A selector has a form that is not simulated.
        """
        self._claims.release(self.api.raws(PODS))
        for pod in self._evicted():
            namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
            self.api.delete(PODS, name, namespace)
        self._claims.release(self.api.raws(PODS))
        for pod in self.api.raws(PODS):
            if _is_open(pod):
                self._schedule(pod)

    def _evicted(self) -> list[Json]:
        return list(evicted(self.api.raws(PODS), self.api.raws(CLAIMS), self._listed()))

    def _listed(self) -> dict[DeviceId, Device]:
        """Every device of a usable pool, for whatever node."""
        pools = [pool for node in self.api.raws(NODES) for pool in self._pools(node)]
        return {device.id: device for pool in pools for device in pool.devices}

    def _pools(self, node: Json) -> list[Pool]:
        version = self.api.dialect.rules_version
        rules = self.api.raws(taint_rules(version)) if version else []
        return gather(self.api.raws(SLICES), node, rules)

    def _classes(self) -> dict[str, Json]:
        return {text(item, "metadata", "name"): item for item in self.api.raws(CLASSES)}

    # One pod.

    def _schedule(self, pod: Json) -> None:
        self._claims.make(pod)
        namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
        pod = self.api.raw(PODS, name, namespace)
        claims = self._claims.of(pod)
        if claims is None:
            self._wait(pod, "waiting for its claims")
            return
        nodes = [node for node in self.api.raws(NODES) if not _closed(node)]
        if missing := missing_class(claims, self._classes()):
            self._wait(pod, f"0/{len(nodes)} nodes are available: {missing}.")
            return
        reasons: list[str] = []
        try:
            for node in nodes:
                found = self._place(pod, node, claims)
                if isinstance(found, _Placed):
                    self._bind(pod, found)
                    return
                reasons.append(found)
        except Broken as error:
            self._wait(pod, f"{_PLUGIN}: {error}", reason="SchedulerError")
            return
        self._wait(pod, _summary(len(nodes), reasons))

    def _place(self, pod: Json, node: Json, claims: Sequence[Json]) -> _Placed | str:
        """What the pod gets on a node; a text: why it cannot go there."""
        classes = self._classes()
        by_devices = extended.by_devices(pod, node, classes, self.api.dialect)
        if "extendedResourceClaimStatus" in part(pod, "status"):
            by_devices = {}  # its claim is among the others
        elif lacking := self._lacking(pod, node, by_devices):
            return f"Insufficient {lacking}"
        plan = extended.plan(pod, by_devices) if by_devices else None
        wanted = [*claims, *([extended.claim(pod, plan)] if plan else [])]
        for claim in claims:
            selector = part(claim, "status", "allocation", "nodeSelector")
            if selector and not reaches({"nodeSelector": selector}, node):
                return CANNOT_ALLOCATE
        open_claims = [i for i, c in enumerate(wanted) if "allocation" not in part(c, "status")]
        search = Search(
            [wanted[i] for i in open_claims],
            self._pools(node),
            Held.by(self.api.raws(CLAIMS)),
            classes,
        )
        try:
            if not search.run():
                return CANNOT_ALLOCATE
        except Unusable as error:
            return str(error)
        choices = dict(zip(open_claims, search.chosen, strict=True))
        return _Placed(node, wanted, choices, plan)

    def _lacking(self, pod: Json, node: Json, by_devices: Mapping[str, str]) -> str:
        """A resource that the node has not enough of, by its device plugins."""
        name = text(node, "metadata", "name")
        for resource, count in extended.wanted(pod).items():
            if resource in by_devices or self._ignored(resource):
                continue
            has = extended.amount_of(node, resource)
            if count + extended.used_by_plugin(self.api.raws(PODS), name, resource) > has:
                return resource
        return ""

    def _ignored(self, resource: str) -> bool:
        """1.34 lets pods pass that name a class; they run without a device."""
        dialect = self.api.dialect
        implicit = resource.startswith(extended.IMPLICIT)
        return implicit and dialect.release == "1.34" and dialect.on(EXTENDED)

    def _bind(self, pod: Json, placed: _Placed) -> None:
        node = text(placed.node, "metadata", "name")
        classes = self._classes()
        for index, claim in enumerate(placed.claims):
            made = None
            if index in placed.choices:
                choices = placed.choices[index]
                made = allocation(claim, choices, classes, node, self._rng)
                made |= self._time()
            if placed.plan and index == len(placed.claims) - 1:
                claim = self._make_extended(pod, claim, placed.plan)  # noqa: PLW2901 - it has a name now
            self._claims.allocate(claim, made, pod)
        waiting = self._unbound(pod)
        if waiting:
            self._wait(pod, waiting)
            return
        namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
        self.api.patch(PODS, name, {"spec": {"nodeName": node}}, namespace)
        fresh = self.api.raw(PODS, name, namespace)
        self._claims.note(fresh, {"conditions": [_condition("True")]})

    def _time(self) -> Object:
        dialect = self.api.dialect
        if not (dialect.on(BINDING) and dialect.on(DEVICE_STATUS)):
            return {}
        return {"allocationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _make_extended(self, pod: Json, claim: Json, plan: extended.Plan) -> Json:
        namespace = text(pod, "metadata", "namespace")
        made = self.api.create(CLAIMS, claim, namespace)
        name = text(made, "metadata", "name")
        status = {"resourceClaimName": name, "requestMappings": list(plan.mappings)}
        self._claims.note(pod, {"extendedResourceClaimStatus": status})
        return self.api.raw(CLAIMS, name, namespace)

    def _unbound(self, pod: Json) -> str:
        """Why the pod has to wait although it has its devices; one that failed gives them back."""
        for claim in self._claims.of(pod) or []:
            outcome = bindings.state(claim)
            if outcome == "failed":
                self._claims.deallocate(claim)
            if outcome:
                return f"binding conditions of {text(claim, 'metadata', 'name')} {outcome}"
        return ""

    def _wait(self, pod: Json, why: str, reason: str = "Unschedulable") -> None:
        """Note that the pod is not scheduled, unless that is known already."""
        condition = _condition("False", reason=reason, message=why)
        known = parts(pod, "status", "conditions")
        if not any(text(one, "message") == why for one in known):
            self._claims.note(pod, {"conditions": [condition]})


def _is_open(pod: Json) -> bool:
    """Whether the pod is to be scheduled, and here."""
    over = text(pod, "spec", "nodeName") or text(pod, "metadata", "deletionTimestamp")
    return not over and text(pod, "spec", "schedulerName") == _NAME


def _closed(node: Json) -> bool:
    return part(node, "spec").get("unschedulable") is True


def _condition(status: str, **more: str) -> Object:
    return {"type": "PodScheduled", "status": status, **more}


def _summary(nodes: int, reasons: Sequence[str]) -> str:
    counted = sorted((f"{reasons.count(reason)} {reason}") for reason in set(reasons))
    return f"0/{nodes} nodes are available: {', '.join(counted) or 'no nodes'}."
