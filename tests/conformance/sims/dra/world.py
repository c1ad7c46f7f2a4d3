"""A simulated node with its API server, for tests of what the kubelet does about DRA drivers."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from attrs import define, evolve

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.dra.side import Cluster
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import QUICK, Timing
from accelkit.core.kube import CLAIMS, NODES, PODS, Json
from tests.conformance.sims.dra.driver import DRIVER, VERSIONS, Driver

NODE = "node-a"
SWIFT = evolve(
    QUICK,
    wipe_s=0.05,
    wipe_anyway_s=0.05,
    prepare_again_s=0.05,
    unprepare_again_s=0.05,
    create_again_s=0.05,
    health_again_s=0.05,
)
"""Nothing to wait for, but what a test is about."""


@define(eq=False)
class World:
    """Everything that a test looks at."""

    root: Path
    api: ApiSim
    sim: KubeletSim
    stack: AsyncExitStack

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    async def driver(self, *, versions: Sequence[str] = VERSIONS) -> Driver:
        """Serve a driver; whether the kubelet takes it is the test's to see."""
        made = await Driver(self.sim.registry_dir, self.cdi, versions=versions).serve()
        self.stack.push_async_callback(made.close)
        return made

    async def registered(self, *, versions: Sequence[str] = VERSIONS) -> Driver:
        """Serve a driver, and wait until the kubelet has told it that it is taken."""
        made = await self.driver(versions=versions)
        await self.until(lambda: made.told)
        return made

    def claim(self, name: str, *, driver: str = DRIVER) -> str:
        """Make a claim that has a device; its uid."""
        exactly = {"name": "r", "exactly": {"deviceClassName": "acme"}}
        spec = {"devices": {"requests": [exactly]}}
        made = self.api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, "default")
        result = {"request": "r", "driver": driver, "pool": NODE, "device": "d0"}
        self.status(name, allocation={"devices": {"results": [result]}})
        return str(_meta(made)["uid"])

    def status(self, claim: str, **status: object) -> None:
        self.api.patch(CLAIMS, claim, {"status": status}, "default", sub="status")

    def pod(self, name: str, *claims: str, reserved: bool = True, **spec: object) -> None:
        """Make a pod on the node, with *claims* that are there."""
        entries = [{"name": f"e-{claim}", "resourceClaimName": claim} for claim in claims]
        uses = {"claims": [{"name": entry["name"]} for entry in entries]}
        container = {"name": "main", "image": "none", "resources": uses}
        item = {
            "metadata": {"name": name},
            "spec": {
                "containers": [container],
                "resourceClaims": entries,
                **spec,
            },
        }
        self.api.create(PODS, item, "default")
        for claim in claims if reserved else ():
            users = _list(self.api.get(CLAIMS, claim, "default"), "reservedFor")
            uid = _meta(self.api.get(PODS, name, "default"))["uid"]
            self.status(claim, reservedFor=[*users, {"resource": "pods", "name": name, "uid": uid}])
        self.api.patch(PODS, name, {"spec": {"nodeName": NODE}}, "default")

    def running(self, pod: str) -> bool:
        """Whether the kubelet runs a pod."""
        here = [one for one in self.sim.dra.pods.values() if one.id.name == pod]
        return bool(here) and all(c.running for c in here[0].pod.containers)

    async def run(self, name: str, *claims: str, **spec: object) -> None:
        """Make a pod, and wait until it runs."""
        self.pod(name, *claims, reserved=True, **spec)
        await self.until(lambda: self.running(name))

    def delete(self, pod: str, *, force: bool = False) -> None:
        self.api.delete(PODS, pod, "default", grace_s=0 if force else None)

    def there(self, pod: str) -> bool:
        return self.api.has(PODS, pod, "default")

    async def until(self, holds: Callable[[], object]) -> None:
        await self.sim.wait_for(holds, 10.0)


def _meta(item: Json) -> dict[str, object]:
    found = item["metadata"]
    assert isinstance(found, dict)
    return found


def _list(item: Json, name: str) -> list[object]:
    status = item.get("status")
    found = status.get(name) if isinstance(status, dict) else None
    return list(found) if isinstance(found, list) else []


@asynccontextmanager
async def world(
    root: Path, *, release: str = "1.37", kubelet: str = "", timing: Timing = SWIFT
) -> AsyncGenerator[World, None]:
    """A node whose kubelet runs; of another release than the API server, if it says so."""
    (root / "cdi").mkdir()
    async with AsyncExitStack() as stack, ApiSim(release) as api:
        api.create(NODES, {"metadata": {"name": NODE}})
        cluster = Cluster(api=api, node=NODE, cdi=(root / "cdi",))
        async with KubeletSim(
            root / "k", release=kubelet or release, timing=timing, cluster=cluster
        ) as sim:
            yield World(root, api, sim, stack)
