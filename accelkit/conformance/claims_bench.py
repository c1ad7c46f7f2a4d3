"""What a check of a DRA driver works with: claims, pods and calls. Not here: what runs."""

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.conformance.calls import called, prepare_request, unprepare_request
from accelkit.conformance.model import Unanswered
from accelkit.conformance.sims.api.values import entries, parts, text
from accelkit.conformance.sims.dra import cdi
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.conformance.sims.dra.claims import ref_of
from accelkit.conformance.sims.dra.events import DriverRegistered, PreparedDevice, PrepareFailed
from accelkit.conformance.sims.dra.pods import ClaimPod
from accelkit.conformance.stage import NAMESPACE
from accelkit.conformance.staged import CALL_S, SOON_S, Offered, Staged
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import CLAIMS, CLASSES, PODS, Json

T = TypeVar("T")

CLASS = "conformance"
USER = "user"
"""The pod that has the claims which no scheduler gave away."""
RUN_S = 20.0
"""Until a pod runs."""


class ClaimsBench(Staged):
    """A driver of claims, with claims, pods and calls.

    Args:
        subject: Whose driver.
        stages: Lends what runs.
        setup: How the driver runs, if a check does not wish for anything else.
    """

    # Claims.

    def name(self, stem: str) -> str:
        """A name that nothing else has or had."""
        return f"{stem}-{next(self.stage.numbers)}"

    def claim(
        self,
        *devices: Offered,
        results: Sequence[Json] = (),
        config: Sequence[Json] = (),
        admin: bool = False,
        request: str = "r",
    ) -> ClaimRef:
        """Make a claim that has been given *devices*, as the scheduler would, for no pod.

        Args:
            devices: One after another for one request.
            results: Further ones as they stand in its status.
            config: Blocks of its allocation.
            admin: With admin access.
            request: The name of the request; with a subrequest as ``main/sub``.
        """
        own = [self.result(d, request=request, admin=admin) for d in devices]
        status = {"allocation": {"devices": {"results": [*own, *results], "config": [*config]}}}
        requests = dict.fromkeys([text(one, "request") for one in (*own, *results)])
        ref = self.unallocated(*requests, admin=admin)
        self.allocate(ref, status)
        return ref

    def unallocated(self, *requests: str, admin: bool = False) -> ClaimRef:
        """A claim that has no devices."""
        asked = [_request(name, admin=admin) for name in requests or ("r",)]
        spec = {"devices": {"requests": asked}}
        item = {"metadata": {"name": self.name("c")}, "spec": spec}
        return ref_of(self.ask(lambda: self.api.create(CLAIMS, item, NAMESPACE)))

    def allocate(self, ref: ClaimRef, status: Json) -> None:
        """Write the status of a claim, and reserve it for a pod that no kubelet runs."""

        def write() -> None:
            if not self.api.has(PODS, USER, NAMESPACE):
                container = {"name": "main", "image": "none"}
                spec = {"containers": [container], "nodeName": "elsewhere"}
                self.api.create(PODS, {"metadata": {"name": USER}, "spec": spec}, NAMESPACE)
            uid = text(self.api.get(PODS, USER, NAMESPACE), "metadata", "uid")
            user = {"resource": "pods", "name": USER, "uid": uid}
            patch = {"status": {"reservedFor": [user], **status}}
            self.api.patch(CLAIMS, ref.name, patch, NAMESPACE, sub="status")

        self.ask(write)

    def result(self, device: Offered, *, request: str = "r", admin: bool = False) -> Json:
        """One device as it stands in an allocation."""
        found: dict[str, object] = {
            "request": request,
            "driver": self.stage.name,
            "pool": device.pool,
            "device": device.name,
        }
        if admin:
            found["adminAccess"] = True
        if device.shareable:
            found["shareID"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
            found["consumedCapacity"] = {
                name: text(value, "requestPolicy", "default") or text(value, "value")
                for name, value in entries(device.item, "capacity")
            }
        return found

    # Calls past the kubelet.

    def endpoint(self) -> Path:
        """The socket of the last registration.

        Raises:
            Unanswered: There was none.
        """
        registered = self.sim.seen(DriverRegistered, driver=self.stage.name)
        if not registered:
            raise Unanswered("it does not register")
        return Path(registered[-1].endpoint)

    def call(
        self,
        method: services.Method[services.Q, services.R],
        request: services.Q,
        timeout_s: float = CALL_S,
        path: Path | None = None,
    ) -> services.R:
        """Call the driver.

        Raises:
            grpc.aio.AioRpcError: It refused, or did not answer in time.
        """
        where = path or self.endpoint()
        return self.stage.do(called(where, method, request, self.patience(timeout_s)))

    def begin(
        self, method: services.Method[services.Q, services.R], request: services.Q
    ) -> "asyncio.Task[services.R]":
        """Call the driver, and come back at once."""
        path = self.endpoint()

        async def start() -> "asyncio.Task[services.R]":
            task = asyncio.create_task(called(path, method, request, self.patience(CALL_S * 2)))
            # Where a check ends before it asks, nobody is to be told of an error any more.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            return task

        return self.stage.do(start())

    def prepare(
        self, *refs: ClaimRef, timeout_s: float = CALL_S, path: Path | None = None
    ) -> Mapping[str, dra.NodePrepareResourceResponse]:
        """The answers by uid.

        Raises:
            grpc.aio.AioRpcError: There is none.
        """
        self._prepared += refs
        answer = self.call(services.PREPARE, prepare_request(refs), timeout_s, path)
        return answer.claims

    def prepared(self, ref: ClaimRef, *, path: Path | None = None) -> tuple[PreparedDevice, ...]:
        """The devices of a claim, which is prepared.

        Raises:
            Unanswered: It is not.
        """
        answer = self.prepare(ref, path=path).get(ref.uid)
        if answer is None or answer.error or not answer.devices:
            why = answer.error or "no device is answered" if answer else "it is not answered for"
            raise Unanswered(f"a claim that is in order is not prepared: {why}")
        return tuple(map(PreparedDevice.of, answer.devices))

    def refusal(self, ref: ClaimRef, *, timeout_s: float = CALL_S) -> str | None:
        """Why a claim is not prepared; None: it is."""
        try:
            answer = self.prepare(ref, timeout_s=timeout_s).get(ref.uid)
        except grpc.aio.AioRpcError as error:
            return error.details() or str(error.code())
        if answer is None:
            return "it is not answered for"
        return answer.error or (None if answer.devices else "no device is answered")

    def attempt(self, ref: ClaimRef, timeout_s: float = 3.0) -> tuple[PreparedDevice, ...] | None:
        """The devices of a claim; None: it is refused, or not answered in time."""
        try:
            answer = self.prepare(ref, timeout_s=timeout_s)[ref.uid]
        except (grpc.aio.AioRpcError, KeyError):
            return None
        return None if answer.error else tuple(map(PreparedDevice.of, answer.devices))

    def outcome(self, call: "asyncio.Task[T]") -> T:
        """What a call that was begun comes to.

        Raises:
            grpc.aio.AioRpcError: It was refused, or not answered in time.
        """

        async def wait() -> T:
            return await call

        return self.stage.do(wait())

    def keep(self, *refs: ClaimRef) -> None:
        """Give these back at the end."""
        self._prepared += refs

    def forget(self, ref: ClaimRef) -> None:
        """Delete a claim, whoever has it."""
        finalizers = {"metadata": {"finalizers": None}}
        self.ask(lambda: self.api.patch(CLAIMS, ref.name, finalizers, NAMESPACE))
        self.ask(lambda: self.api.delete(CLAIMS, ref.name, NAMESPACE))

    def unprepare(self, *refs: ClaimRef, path: Path | None = None) -> Mapping[str, str]:
        """Why claims are not given back, by uid; empty texts: they are.

        Raises:
            grpc.aio.AioRpcError: There is no answer.
        """
        request = unprepare_request(refs)
        answer = self.call(services.UNPREPARE, request, path=path)
        return {uid: one.error for uid, one in answer.claims.items()}

    # What containers get.

    def injected(self, devices: Iterable[PreparedDevice]) -> Injected:
        """What a container gets by these devices.

        Raises:
            Unresolvable: It cannot be made.
        """
        return cdi.inject([self.cdi], [name for device in devices for name in device.cdi])

    def files_of(self, ref: ClaimRef) -> list[Path]:
        """CDI files that speak of a claim."""
        return [
            spec.path
            for spec in cdi.read_specs([self.cdi])
            if ref.uid in spec.path.name or any(ref.uid in name for name in spec.names)
        ]

    # Pods.

    def device_class(self, *config: Json) -> None:
        """Make the class of all devices of the driver."""
        if self.ask(lambda: self.api.has(CLASSES, CLASS)):
            return
        selector = {"cel": {"expression": f'device.driver == "{self.stage.name}"'}}
        spec = {"selectors": [selector], "config": list(config)}
        self.ask(lambda: self.api.create(CLASSES, {"metadata": {"name": CLASS}, "spec": spec}))

    def pod(
        self, *refs: ClaimRef, resources: Mapping[str, int] | None = None, **spec: object
    ) -> str:
        """Make a pod that the scheduler will place; its name.

        Args:
            refs: Its claims.
            resources: Extended resources of its container.
            spec: More of its specification.
        """
        limits = {name: str(count) for name, count in (resources or {}).items()}
        uses = {"claims": [{"name": ref.name} for ref in refs], "limits": limits}
        item = {
            "metadata": {"name": self.name("p")},
            "spec": {
                "containers": [{"name": "main", "image": "none", "resources": uses}],
                "resourceClaims": [
                    {"name": ref.name, "resourceClaimName": ref.name} for ref in refs
                ],
                **spec,
            },
        }
        made = self.ask(lambda: self.api.create(PODS, item, NAMESPACE))
        return text(made, "metadata", "name")

    def wanted(self, count: int = 1, *, config: Sequence[Json] = ()) -> ClaimRef:
        """A claim for *count* devices, which the scheduler will choose."""
        self.device_class()
        exactly = {"deviceClassName": CLASS, "count": count}
        requests = [{"name": "r", "exactly": exactly}]
        spec = {"devices": {"requests": requests, "config": [*config]}}
        item = {"metadata": {"name": self.name("c")}, "spec": spec}
        return ref_of(self.ask(lambda: self.api.create(CLAIMS, item, NAMESPACE)))

    def allocated(self, ref: ClaimRef) -> list[str]:
        """The names of a claim's devices."""
        claim = self.ask(lambda: self.api.get(CLAIMS, ref.name, NAMESPACE))
        results = parts(claim, "status", "allocation", "devices", "results")
        return [text(one, "device") for one in results]

    def find(self, pod: str) -> ClaimPod | None:
        """A pod as the kubelet has it; None: it does not."""
        return next((p for p in tuple(self.sim.dra.pods.values()) if p.id.name == pod), None)

    def find_item(self, pod: str) -> Json:
        """A pod as the API server has it."""
        return self.ask(lambda: self.api.get(PODS, pod, NAMESPACE))

    def running(self, pod: str) -> bool:
        found = self.find(pod)
        return found is not None and all(c.running or c.init for c in found.pod.containers)

    def run(self, *refs: ClaimRef, **how: object) -> str:
        """Make a pod, and wait until it runs; its name.

        Raises:
            Unanswered: It does not.
        """
        name = self.pod(*refs, **how)  # type: ignore[arg-type]  # its own
        if not self.happens(lambda: self.running(name), RUN_S):
            raise Unanswered(f"a pod does not start: {self.why(name)}")
        return name

    def why(self, pod: str) -> str:
        """Why a pod does not run, as far as it is known."""
        failed = [e.message for e in self.sim.seen(PrepareFailed, pod=pod)]
        waiting = [c.waiting for c in found.pod.containers] if (found := self.find(pod)) else []
        unplaced = [text(c, "message") for c in parts(self.find_item(pod), "status", "conditions")]
        return next(filter(None, (*failed[-1:], *waiting, *unplaced)), "nobody says why")

    def delete(self, pod: str, *, force: bool = False) -> None:
        """Delete a pod."""
        grace_s = 0 if force else None
        self.ask(lambda: self.api.delete(PODS, pod, NAMESPACE, grace_s=grace_s))

    def gone(self, pod: str, patience_s: float = SOON_S) -> bool:
        """Whether a pod, and all that the kubelet knows of it, is gone in time."""
        return self.happens(
            lambda: not self.api.has(PODS, pod, NAMESPACE) and self.find(pod) is None, patience_s
        )


def _request(name: str, *, admin: bool) -> Json:
    main, slash, sub = name.partition("/")
    exactly: dict[str, object] = {"deviceClassName": CLASS}
    if slash:
        return {"name": main, "firstAvailable": [{"name": sub, **exactly}]}
    return {"name": main, "exactly": {**exactly, "adminAccess": True} if admin else exactly}


def config_block(driver: str, parameters: Json, *, source: str = "FromClaim") -> Json:
    """A block of configuration as it stands in an allocation."""
    return {"source": source, "opaque": {"driver": driver, "parameters": parameters}}
