"""What one driver answers to the kubelet about claims. Not here: how the kubelet comes to ask."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

import attrs

from accelkit.backends.dra.claims import Driver, allocation_of, base_names, check_ref, is_uid
from accelkit.backends.dra.node_fetch import ASKED_AGAIN, fetch
from accelkit.backends.dra.node_settings import Patience
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.backends.wire.services import Handler
from accelkit.backends.wire.status import logged, shown
from accelkit.core.allocation import ClaimRef, PodRef, Prepared
from accelkit.core.backend import NodePort
from accelkit.core.errors import AccelkitError, ClaimMismatch, PrepareFailed
from accelkit.core.kube import Json

log = logging.getLogger(__name__)

R = TypeVar("R")


class Companion(Protocol):
    """Something that goes with every prepared claim."""

    async def prepared(self, prepared: Prepared, claim: Json | None) -> Prepared:
        """Do it before the kubelet is answered; may add to the answer.

        Args:
            prepared: What was made usable, now or earlier.
            claim: The ResourceClaim; None: it was prepared before, and not read again.

        Raises:
            AccelkitError: It cannot be done, so the claim is not prepared.
        """
        ...

    async def released(self, uid: str) -> None:
        """Undo it; the claim may be unknown.

        Raises:
            AccelkitError: It cannot be undone yet.
        """
        ...


class Calls:
    """The calls that run."""

    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Return when none runs."""
        await self._idle.wait()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one for as long as the context lasts."""
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()


class _OfAgentError(Exception):
    """What the agent answered; it has counted and told that itself."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _agent() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _OfAgentError(error) from error


@attrs.define(eq=False)
class _Reading:
    """A claim on its way from the API server."""

    task: asyncio.Future[Json]
    unwanted: bool = False
    """It was given back: a kubelet does that in the middle of a call, and never again."""


@attrs.frozen
class _Kind:
    """What is done with claims, in the words of metrics, events and the log."""

    metric: str
    failing: str
    done: str


_PREPARE = _Kind("accelkit_prepare_seconds", "PrepareFailed", "prepared")
_RELEASE = _Kind("accelkit_release_seconds", "ReleaseFailing", "released")


def _about(claim: ClaimRef, pods: Iterable[PodRef], result: object) -> dict[str, object]:
    """What the log can be searched for."""
    of_pods = [f"{pod.namespace}/{pod.name}" for pod in pods]
    answers = result.answers if isinstance(result, Prepared) else ()
    devices = sorted({str(answer.device) for answer in answers})
    return {
        "claim_name": f"{claim.namespace}/{claim.name}",
        **({"pods": of_pods} if of_pods else {}),
        **({"devices": devices} if devices else {}),
    }


class NodeService:
    """Prepares and releases the claims of one driver, each by itself.

    Args:
        driver: Whose claims.
        node: The agent.
        patience: How long things may take.
        companions: What goes with every claim, in order.
    """

    def __init__(
        self,
        driver: Driver,
        node: NodePort,
        patience: Patience,
        companions: Iterable[Companion] = (),
    ) -> None:
        self.calls = Calls()
        self._driver = driver
        self._node = node
        self._patience = patience
        self._companions = tuple(companions)
        self._reading: dict[str, set[_Reading]] = {}
        """Of claims that are being read, by uid."""

    def handlers(self) -> tuple[Handler, ...]:
        """Both calls, in both versions; v1beta1 does not know share ids."""
        return (
            services.unary(services.PREPARE, self._prepare_call(share_ids=True)),
            services.unary(services.PREPARE_BETA, self._prepare_call(share_ids=False)),
            services.unary(services.UNPREPARE, self._unprepare_call),
            services.unary(services.UNPREPARE_BETA, self._unprepare_call),
        )

    def _prepare_call(
        self, *, share_ids: bool
    ) -> Callable[[dra.NodePrepareResourcesRequest], Awaitable[dra.NodePrepareResourcesResponse]]:
        async def one(claim: ClaimRef) -> dra.NodePrepareResourceResponse:
            pods: list[PodRef] = []
            prepared, why = await self._attempt(_PREPARE, self._prepare(claim, pods), claim, pods)
            if prepared is None:
                return dra.NodePrepareResourceResponse(error=why)
            devices = _devices(prepared, self._driver.pool, share_ids=share_ids)
            return dra.NodePrepareResourceResponse(devices=devices)

        async def all_of(
            request: dra.NodePrepareResourcesRequest,
        ) -> dra.NodePrepareResourcesResponse:
            answers = await self._side_by_side(request.claims, one)
            return dra.NodePrepareResourcesResponse(claims=answers)

        return all_of

    async def _unprepare_call(
        self, request: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        async def one(claim: ClaimRef) -> dra.NodeUnprepareResourceResponse:
            entry = self._node.claims().get(claim.uid)
            pods = () if entry is None else entry.pods
            _, why = await self._attempt(_RELEASE, self._release(claim.uid), claim, pods)
            return dra.NodeUnprepareResourceResponse(error=why)

        answers = await self._side_by_side(request.claims, one)
        return dra.NodeUnprepareResourcesResponse(claims=answers)

    async def _side_by_side(
        self, claims: Iterable[dra.Claim], one: Callable[[ClaimRef], Coroutine[object, object, R]]
    ) -> Mapping[str, R]:
        """Exactly one answer for every uid that was asked for.

        A caller that is gone cancels what has not come to the agent yet, and nothing else.
        """
        asked = {
            claim.uid: ClaimRef(uid=claim.uid, namespace=claim.namespace, name=claim.name)
            for claim in claims
        }
        with self.calls.one():
            async with asyncio.TaskGroup() as group:
                tasks = {uid: group.create_task(one(claim)) for uid, claim in asked.items()}
        return {uid: task.result() for uid, task in tasks.items()}

    async def _prepare(self, claim: ClaimRef, pods: list[PodRef]) -> Prepared:
        check_ref(claim)
        tree: Json | None = None
        prepared = await self._node.prepared(claim)
        if prepared is None:
            tree = await self._read(claim)
            allocation = allocation_of(tree, claim, self._driver, self._node.view())
            pods.extend(allocation.pods)
            with _agent():
                prepared = await self._node.prepare(allocation)
        if prepared.claim != claim:
            raise ClaimMismatch(
                f"claim {claim.name}: uid {claim.uid} was prepared for claim "
                f"{prepared.claim.namespace}/{prepared.claim.name}",
                claim=claim.uid,
            )
        vendor = self._driver.vendor
        own = tuple(answer for answer in prepared.answers if answer.device.vendor == vendor)
        if own != prepared.answers:
            prepared = attrs.evolve(prepared, answers=own)
        for companion in self._companions:
            prepared = await companion.prepared(prepared, tree)
        return prepared

    async def _read(self, claim: ClaimRef) -> Json:
        """The claim, unless it is given back meanwhile: the agent does not know it yet.

        Raises:
            ClaimMismatch: It is another one, or was given back.
            PrepareFailed: It cannot be read.
        """
        reading = _Reading(asyncio.ensure_future(fetch(self._node, claim, self._patience)))
        readings = self._reading.setdefault(claim.uid, set())
        readings.add(reading)
        try:
            await asyncio.wait([reading.task])
        finally:
            reading.task.cancel()
            readings.discard(reading)
            if not readings:
                self._reading.pop(claim.uid, None)
        if reading.unwanted:
            raise ClaimMismatch(
                f"claim {claim.name} was given back while it was being read", claim=claim.uid
            )
        return reading.task.result()

    async def _release(self, uid: str) -> None:
        if not is_uid(uid):
            return  # nothing was ever prepared for it
        for reading in self._reading.get(uid, ()):
            reading.unwanted = True
            reading.task.cancel()
        with _agent():
            await self._node.release(uid)
        for companion in self._companions:
            await companion.released(uid)

    async def _attempt(
        self, kind: _Kind, work: Awaitable[R], claim: ClaimRef, pods: Iterable[PodRef]
    ) -> tuple[R | None, str]:
        """What came of *work*, or why nothing did, in words for users."""
        begun = self._node.clock.monotonic()
        fields: dict[str, object] = {"claim": claim.uid, "driver": self._driver.name}
        try:
            async with asyncio.timeout(self._patience.answer_s):
                result = await work
        except _OfAgentError as answered:
            _, why = self._in_words(answered.error, kind, claim)
            log.debug("claim not %s", kind.done, extra={**fields, "reason": why})
        except Exception as error:  # noqa: BLE001 - whatever it is, the other claims go on
            code, why = self._in_words(error, kind, claim)
            took_s = self._node.clock.monotonic() - begun
            self._node.meter.observe(kind.metric, took_s, (self._driver.vendor, code))
            self._node.tell(kind.failing, why, claim=claim, pod=next(iter(pods), None))
            log.warning("claim not %s", kind.done, extra={**fields, "reason": why})
        else:
            took_ms = round((self._node.clock.monotonic() - begun) * 1000)
            log.info(
                "claim %s",
                kind.done,
                extra={**fields, **_about(claim, pods, result), "took_ms": took_ms},
            )
            return result, ""
        return None, why

    def _in_words(self, error: Exception, kind: _Kind, claim: ClaimRef) -> tuple[str, str]:
        """The code and the text of *error*."""
        if isinstance(error, TimeoutError):
            error = PrepareFailed(
                f"claim {claim.name} could not be {kind.done} in {self._patience.answer_s:g} s",
                claim=claim.uid,
                remedy=f"its devices or the API server are slow to answer; {ASKED_AGAIN}",
            )
        if isinstance(error, AccelkitError):
            return error.code, shown(error)
        return "error", logged(error)


def _devices(prepared: Prepared, pool: str, *, share_ids: bool) -> Iterator[dra.Device]:
    for answer in prepared.answers:
        yield dra.Device(
            request_names=base_names(answer.requests),
            pool_name=pool,
            device_name=answer.device.name,
            cdi_device_ids=answer.cdi_ids,
            share_id=answer.share if share_ids else None,
        )
