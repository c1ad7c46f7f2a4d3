"""A DRA driver as small as it can be, which does exactly what a test tells it to."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra, drahealth, registration as reg
from accelkit.backends.wire.serve import Server, bind, fresh_path

DRIVER = "acme.test"
VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth")


class Driver:
    """Serves at one socket; every call is kept, every answer can be changed."""

    def __init__(self, registry: Path, cdi: Path, *, versions: Iterable[str] = VERSIONS) -> None:
        self.path = fresh_path(registry, DRIVER)
        self.cdi = cdi
        self.info = reg.PluginInfo(type="DRAPlugin", name=DRIVER, supported_versions=list(versions))
        self.errors: dict[str, str] = {}
        """By the name of a claim: why it is refused."""
        self.failure: Exception | None = None
        self.forget: set[str] = set()
        """Names of claims that are not answered for."""
        self.hold: dict[str, asyncio.Event] = {}
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        """Method and names of claims."""
        self.told: list[reg.RegistrationStatus] = []
        self.refuses_notice = False
        self.devices: list[drahealth.DeviceHealth] = []
        self.health_failure: Exception | None = None
        self.streams: list[str] = []
        """Versions of the health service that were opened."""
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._server: Server | None = None

    async def serve(self) -> "Driver":
        self._server = await bind(
            self.path,
            [
                services.unary(services.GET_INFO, self._info),
                services.unary(services.NOTIFY, self._notify),
                services.unary(services.PREPARE, self._prepare),
                services.unary(services.PREPARE_BETA, self._prepare_beta),
                services.unary(services.UNPREPARE, self._unprepare),
                services.unary(services.UNPREPARE_BETA, self._unprepare),
                services.stream(services.WATCH_HEALTH, self._health),
                services.stream(services.WATCH_HEALTH_ALPHA, self._health_alpha),
            ],
        )
        return self

    async def close(self, *, keep_path: bool = False) -> None:
        if self._server is not None:
            await self._server.close(grace_s=0, keep_path=keep_path)
            self._server = None

    def of(self, method: str) -> list[tuple[str, ...]]:
        """The names of claims in each call of *method*."""
        return [names for called, names in self.calls if called == method]

    def tell(self, *devices: drahealth.DeviceHealth) -> None:
        """Send these on every stream."""
        self.devices = list(devices)
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end_streams(self) -> None:
        self._ended.set()
        self.tell()

    def file(self, uid: str) -> Path:
        return self.cdi / f"{uid}.json"

    async def _called(self, method: str, claims: Iterable[dra.Claim]) -> None:
        self.calls.append((method, tuple(claim.name for claim in claims)))
        if method in self.hold:
            await self.hold[method].wait()
        if self.failure is not None:
            raise self.failure

    async def _info(self, _: reg.InfoRequest) -> reg.PluginInfo:
        await self._called("info", ())
        return self.info

    async def _notify(self, status: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        self.told.append(status)
        if self.refuses_notice:
            raise ValueError("not me")
        return reg.RegistrationStatusResponse()

    async def _prepare_beta(
        self, request: dra.NodePrepareResourcesRequest
    ) -> dra.NodePrepareResourcesResponse:
        return await self._prepare(request, method="prepare v1beta1")

    async def _prepare(
        self, request: dra.NodePrepareResourcesRequest, method: str = "prepare"
    ) -> dra.NodePrepareResourcesResponse:
        await self._called(method, request.claims)
        answers = {c.uid: self._one(c) for c in request.claims if c.name not in self.forget}
        return dra.NodePrepareResourcesResponse(claims=answers)

    def _one(self, claim: dra.Claim) -> dra.NodePrepareResourceResponse:
        if claim.name in self.errors:
            return dra.NodePrepareResourceResponse(error=self.errors[claim.name])
        edits = {"env": [f"CLAIM={claim.name}"]}
        spec = {
            "cdiVersion": "0.5.0",
            "kind": f"{DRIVER}/claim",
            "devices": [{"name": claim.uid, "containerEdits": edits}],
        }
        self.file(claim.uid).write_text(json.dumps(spec))
        device = dra.Device(
            request_names=["r"],
            pool_name="node-a",
            device_name="d0",
            cdi_device_ids=[f"{DRIVER}/claim={claim.uid}"],
        )
        return dra.NodePrepareResourceResponse(devices=[device])

    async def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        await self._called("unprepare", request.claims)
        for claim in request.claims:
            self.file(claim.uid).unlink(missing_ok=True)
        return dra.NodeUnprepareResourcesResponse(
            claims={
                c.uid: dra.NodeUnprepareResourceResponse(error=self.errors.get(c.name, ""))
                for c in request.claims
            }
        )

    async def _health(
        self, _: drahealth.NodeWatchResourcesRequest, version: str = "v1"
    ) -> AsyncGenerator[drahealth.NodeWatchResourcesResponse, None]:
        self.streams.append(version)
        if self.health_failure is not None:
            raise self.health_failure
        self._ended.clear()
        while not self._ended.is_set():
            news = self._news
            yield drahealth.NodeWatchResourcesResponse(devices=self.devices)
            await news.wait()

    async def _health_alpha(
        self, request: drahealth.NodeWatchResourcesRequest
    ) -> AsyncGenerator[drahealth.NodeWatchResourcesResponse, None]:
        async for message in self._health(request, "v1alpha1"):
            yield message


def healthy(
    word: int = drahealth.HEALTHY, message: str = "", **more: int
) -> drahealth.DeviceHealth:
    """The word on the one device."""
    return drahealth.DeviceHealth(
        device=drahealth.DeviceIdentifier(pool_name="node-a", device_name="d0"),
        health=word,
        message=message,
        **more,
    )
