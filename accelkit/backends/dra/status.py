"""Says in the status of a claim that its devices are ready. Not here: making them so."""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.claims_tree import items, mapping, text
from accelkit.backends.dra.node_settings import Patience
from accelkit.core.allocation import Answer, Prepared
from accelkit.core.backend import NodePort
from accelkit.core.errors import ApiError, BackendError, TransportError
from accelkit.core.kube import CLAIMS, Json, KubePort

log = logging.getLogger(__name__)

PROBLEM = "status-devices"
REMEDY = (
    "let the agent's service account update resourceclaims/status, and "
    "associated-node:update resourceclaims/driver"
)
CONFLICT = 409
GONE = 404


class StatusDevices:
    """Writes ``status.devices`` of claims after they were prepared, one claim at a time.

    Nothing waits for it: a status that cannot be written is a problem, and the claim is fine.
    """

    def __init__(self, driver: Driver, node: NodePort, patience: Patience) -> None:
        self._driver = driver
        self._node = node
        self._patience = patience
        self._coming: asyncio.Queue[Prepared] = asyncio.Queue()

    async def prepared(self, prepared: Prepared, claim: Json | None) -> Prepared:
        """Note what has to be written; of a claim that was ready before, it has been."""
        if claim is not None:
            self._coming.put_nowait(prepared)
        return prepared

    async def released(self, uid: str) -> None:
        """Nothing: what was written goes with the allocation."""

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            prepared = await self._coming.get()
            kube = self._node.kube
            if kube is not None:
                await self._until_written(kube, prepared)

    async def _until_written(self, kube: KubePort, prepared: Prepared) -> None:
        pause, longest = self._patience.again_s
        while prepared.claim.uid in self._node.claims():
            try:
                await self._write(kube, prepared)
            except (ApiError, TransportError) as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    return
                if not isinstance(error, ApiError) or error.status != CONFLICT:
                    self._failed(prepared, error)
                if isinstance(error, ApiError) and error.status in {403, 422}:
                    return
            else:
                self._node.solved(PROBLEM, self._driver.name)
                return
            await self._node.clock.sleep(pause)
            pause = min(2 * pause, longest)

    async def _write(self, kube: KubePort, prepared: Prepared) -> None:
        claim = prepared.claim
        found = await kube.get(CLAIMS, claim.name, namespace=claim.namespace)
        if text(found, "metadata", "uid") != claim.uid:
            return
        now = self._node.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        fresh = with_ready(found, self._driver, prepared.answers, now)
        if fresh != found:
            await kube.replace(CLAIMS, fresh, namespace=claim.namespace, subresource="status")

    def _failed(self, prepared: Prepared, error: BackendError) -> None:
        log.warning(
            "status of claim not written",
            extra={"claim": prepared.claim.uid, "reason": str(error)},
        )
        self._node.problem(
            PROBLEM,
            self._driver.name,
            f"the status of claim {prepared.claim.name} cannot be written: {error}",
            REMEDY,
        )


def with_ready(claim: Json, driver: Driver, answers: Iterable[Answer], now: str) -> Json:
    """*claim* with an entry for each device of *driver*; those of others stay as they are.

    Args:
        claim: The ResourceClaim.
        driver: Its entries are replaced.
        answers: What was prepared.
        now: RFC 3339; for devices that were not ready before.
    """
    status = mapping(claim, "status")
    before = {_key(entry): entry for entry in items(status, "devices")}
    others = [e for e in items(status, "devices") if text(e, "driver") != driver.name]
    ours = {}
    for answer in answers:
        entry = {"driver": driver.name, "pool": driver.pool, "device": answer.device.name}
        if answer.share is not None:
            entry["shareID"] = answer.share
        key = _key(entry)
        ours[key] = before[key] if _is_ready(before.get(key)) else {**entry, **_ready(now)}
    return {**claim, "status": {**status, "devices": [*others, *ours.values()]}}


def _key(entry: object) -> tuple[str, ...]:
    return tuple(text(entry, name) for name in ("driver", "pool", "device", "shareID"))


def _is_ready(entry: object) -> bool:
    return any(
        (text(c, "type"), text(c, "status")) == ("Ready", "True")
        for c in items(entry, "conditions")
    )


def _ready(now: str) -> Mapping[str, object]:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "the device can be used",
        "lastTransitionTime": now,
    }
    return {"conditions": [condition]}
