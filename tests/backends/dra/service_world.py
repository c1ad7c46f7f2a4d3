"""A driver's node service at a real socket, an API server that is a dict, and claims."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import attrs
import grpc.aio

from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.claims_tree import mapping, text
from accelkit.backends.dra.node import Companion, NodeService
from accelkit.backends.dra.node_settings import Patience
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.backends.wire.serve import bind, dial
from accelkit.core.errors import ApiError, BackendError
from accelkit.core.kube import CLAIMS, Json, KubePort, Resource
from accelkit.core.model import DeviceId
from accelkit.core.policy import Paths
from accelkit.testing.node_port import NodePortDouble

DRIVER = "acme.accelkit.dev"
POOL = "node-a"
ACME = Driver(name=DRIVER, vendor="acme", pool=POOL)
SHARE = "33333333-3333-4333-8333-333333333333"
QUICK = Patience(
    claim_s=0.5,
    answer_s=5.0,
    again_s=(0.01, 0.05),
    look_s=0.02,
    bind_again_s=(0.02, 0.1),
    silent_s=0.3,
    drain_s=5.0,
    health_s=0.3,
)


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def ident(name: str) -> DeviceId:
    return DeviceId(vendor="acme", name=name)


def result(device: str = "gpu-0", request: str = "gpu", **fields: object) -> Json:
    """One allocated device; of our driver and pool unless told otherwise."""
    return {"request": request, "driver": DRIVER, "pool": POOL, "device": device, **fields}


def block(
    parameters: object, *requests: str, source: str = "FromClaim", driver: str = DRIVER
) -> Json:
    """A configuration block as it stands in an allocation."""
    told: dict[str, object] = {
        "source": source,
        "opaque": {"driver": driver, "parameters": parameters},
    }
    return {**told, "requests": list(requests)} if requests else told


def claim(
    number: int,
    *results: Json,
    name: str = "",
    config: Sequence[Json] = (),
    annotations: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """A ResourceClaim with these results, or with one device."""
    devices = {"results": list(results or (result(),)), "config": list(config)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name or f"c{number}",
            "namespace": "default",
            "uid": uid(number),
            "resourceVersion": "1",
            "annotations": annotations or {},
        },
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "acme"}}]}
        },
        "status": {
            "allocation": {"devices": devices},
            "reservedFor": [{"resource": "pods", "name": f"p{number}", "uid": uid(100 + number)}],
        },
    }


@attrs.define(eq=False)
class KubeDouble:
    """Claims in a dict, and whatever is wrong with reaching them."""

    claims: dict[str, Json] = attrs.Factory(dict)
    """By name: a copy is answered, as from a wire."""
    failing: BackendError | None = None
    refusing: list[BackendError] = attrs.Factory(list)
    """What the next writes meet."""
    asked: list[str] = attrs.Factory(list)
    written: list[str] = attrs.Factory(list)
    reading: Callable[[str], object] = lambda _name: None
    """Called before a claim is answered; what it returns is awaited if it can be."""

    def put(self, *claims: Mapping[str, object]) -> None:
        for one in claims:
            metadata = one["metadata"]
            assert isinstance(metadata, dict)
            self.claims[metadata["name"]] = one

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Json:
        assert (resource, namespace) == (CLAIMS, "default")
        self.asked.append(name)
        waiting = self.reading(name)
        if asyncio.iscoroutine(waiting):
            await waiting
        if self.failing is not None:
            raise self.failing
        if name not in self.claims:
            raise ApiError(f'resourceclaims "{name}" not found', status=404)
        found: Json = json.loads(json.dumps(self.claims[name]))
        return found

    async def replace(
        self, resource: Resource, item: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        assert (resource, namespace, subresource) == (CLAIMS, "default", "status")
        if self.refusing:
            raise self.refusing.pop(0)
        metadata = mapping(item, "metadata")
        name, version = text(metadata, "name"), text(metadata, "resourceVersion")
        if text(self.claims[name], "metadata", "resourceVersion") != version:
            raise ApiError("the object has been modified", status=409)
        self.claims[name] = {**item, "metadata": {**metadata, "resourceVersion": f"{version}1"}}
        self.written.append(name)
        return self.claims[name]

    @property
    def port(self) -> KubePort:
        """Itself; nobody asks it for more than claims."""
        return cast("KubePort", self)


@attrs.frozen(eq=False)
class World:
    """Everything that a test looks at."""

    node: NodePortDouble
    kube: KubeDouble
    service: NodeService
    channel: grpc.aio.Channel

    async def prepare(
        self, *claims: dra.Claim, beta: bool = False
    ) -> Mapping[str, dra.NodePrepareResourceResponse]:
        return await prepare(self.channel, *claims, beta=beta)

    async def unprepare(
        self, *claims: dra.Claim, beta: bool = False
    ) -> Mapping[str, dra.NodeUnprepareResourceResponse]:
        method = services.UNPREPARE_BETA if beta else services.UNPREPARE
        request = dra.NodeUnprepareResourcesRequest(claims=claims)
        return (await services.call(self.channel, method, request, timeout_s=20)).claims

    async def prepare_one(self, number: int = 1) -> dra.NodePrepareResourceResponse:
        return (await self.prepare(asked(number)))[uid(number)]

    async def refusal(self, number: int = 1) -> str:
        """Why the claim is not prepared."""
        answer = await self.prepare_one(number)
        assert not answer.devices
        return answer.error


async def prepare(
    channel: grpc.aio.Channel, *claims: dra.Claim, beta: bool = False
) -> Mapping[str, dra.NodePrepareResourceResponse]:
    """One call, as the kubelet makes it."""
    method = services.PREPARE_BETA if beta else services.PREPARE
    request = dra.NodePrepareResourcesRequest(claims=claims)
    return (await services.call(channel, method, request, timeout_s=20)).claims


def asked(number: int, *, name: str = "", namespace: str = "default") -> dra.Claim:
    return dra.Claim(namespace=namespace, name=name or f"c{number}", uid=uid(number))


def node_double(root: Path, kube: KubeDouble) -> NodePortDouble:
    paths = Paths(kubelet=str(root / "k"), cdi=str(root / "cdi"), run=str(root / "run"))
    return NodePortDouble(paths=paths, kube=kube.port)


@asynccontextmanager
async def serving(
    root: Path,
    *claims: Mapping[str, object],
    patience: Patience = QUICK,
    companions: Callable[[NodePortDouble], Iterable[Companion]] = lambda _node: (),
) -> AsyncGenerator[World, None]:
    """A node service that answers at a socket, with *claims* at the API server."""
    kube = KubeDouble()
    kube.put(*claims)
    node = node_double(root, kube)
    service = NodeService(ACME, node, patience, companions(node))
    path = root / "acme.sock"
    async with await bind(path, service.handlers()), dial(path) as channel:
        yield World(node, kube, service, channel)
