"""A writer of slices, an agent's double and a simulated API server."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import attrs

from accelkit.backends.dra.document import render
from accelkit.backends.dra.registrations import Registrations
from accelkit.backends.dra.slices import publish
from accelkit.backends.dra.slices_settings import Patience
from accelkit.backends.dra.stored import Stored, read_slice
from accelkit.backends.kube import connect
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import NODES, SLICES, Json, KubePort, Resource
from accelkit.core.policy import DraPolicy, Kube, KubeClient, Paths
from accelkit.core.view import View
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.views import DRIVER, NODE, gpu

QUICK = Patience(
    wipe_s=0.3,
    settle_s=0.05,
    wiped_for_s=20.0,
    repair_s=0.4,
    rivals_for_s=600.0,
    jitter_s=0.0,
    again_s=(0.05, 0.2),
    look_s=0.02,
    idle_s=0.2,
)
PATIENCE_S = 20.0
SEVERAL = [gpu(f"g{n:03}") for n in range(70)]
"""Two slices of them."""


@attrs.define(eq=False)
class World:
    """Everything that a test looks at."""

    sim: ApiSim
    node: NodePortDouble
    registrations: Registrations = attrs.Factory(Registrations)
    policy: DraPolicy = DraPolicy()
    patience: Patience = QUICK
    told: dict[str, tuple[bool, str]] = attrs.Factory(dict)

    def tell(self, driver: str, *, published: bool, detail: str) -> None:
        self.told[driver] = (published, detail)

    def register(self, driver: str = DRIVER) -> None:
        self.registrations.note(driver, self.node.clock.monotonic())

    def stored(self, driver: str = DRIVER) -> list[Stored]:
        """Slices of *driver* by name, as the server has them."""
        found = (read_slice(item) for item in self.sim.items(SLICES))
        return sorted((one for one in found if one.driver == driver), key=lambda one: one.name)

    def devices(self, driver: str = DRIVER) -> list[str]:
        return [d.name for one in self.stored(driver) if one.slice for d in one.slice.devices]

    def taints(self) -> Mapping[str, list[str]]:
        return {
            d.name: [t.key.removeprefix("accelkit.dev/") for t in d.taints]
            for one in self.stored()
            if one.slice
            for d in one.slice.devices
        }

    def writes(self) -> list[str]:
        """Verbs of all requests that changed slices."""
        return [asked.verb for asked in self.sim.journal.writes("resourceslices")]

    def counted(self, metric: str) -> dict[str, int]:
        """Counts of *metric* by the label after the driver, zeros left out."""
        return {
            labels[1]: count
            for (name, labels), count in self.node.meter.counted.items()
            if name == metric and count
        }

    def published(self, driver: str = DRIVER) -> bool:
        return self.told.get(driver, (False, ""))[0]

    async def settled(self, view: View | None = None) -> None:
        """Publish *view* and wait until the server shows it; without one, until all is said."""
        if view is not None:
            self.node.publish(view)
        await self.until(lambda: self.published() and (view is None or self.shows(view)))

    def shows(self, view: View) -> bool:
        """Whether the server has *view*, as one that keeps everything does."""
        pool = render(view, self.policy).pools.get(DRIVER)
        wanted = {d for one in (pool.slices if pool else ()) for d in one.devices}
        stored = self.stored()
        there = {d for one in stored if one.slice for d in one.slice.devices}
        whole = all(one.count == len(stored) for one in stored)
        return wanted == there and whole and len({one.generation for one in stored}) <= 1

    async def until(self, holds: Callable[[], object]) -> None:
        await self.sim.wait_for(holds, PATIENCE_S)

    async def watching(self) -> None:
        """Until the writer has listed, and whatever follows from that is under way."""
        await self.until(lambda: self.sim.watching("resourceslices"))

    def edit(self, number: int, **spec: object) -> None:
        """Change slice *number* as somebody else would."""
        item = self.sim.get(SLICES, self.stored()[number].name)
        self.sim.replace(SLICES, {**item, "spec": {**cast("Json", item["spec"]), **spec}})

    def wipe(self) -> None:
        """Remove all slices, as a kubelet that starts does."""
        for one in self.stored():
            self.sim.delete(SLICES, one.name)


def kube_port(sim: ApiSim, directory: Path) -> KubePort:
    config = directory / "kubeconfig"
    sim.write_kubeconfig(config)
    found = connect(Kube(client=KubeClient.LEAN, config=str(config)))
    assert found is not None
    return found


class Webhook:
    """An API server that puts an attribute of its own into every device, or breaks."""

    def __init__(self, kube: KubePort) -> None:
        self.kube = kube
        self.breaks = 0
        """So many times."""

    def __getattr__(self, name: str) -> object:
        return getattr(self.kube, name)

    async def create(
        self, resource: Resource, item: Json, *, namespace: str = "", dry_run: bool = False
    ) -> Json:
        if dry_run:
            return await self.kube.create(resource, item, namespace=namespace, dry_run=True)
        return await self.kube.create(resource, self._changed(item), namespace=namespace)

    async def replace(
        self, resource: Resource, item: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        changed = self._changed(item)
        return await self.kube.replace(
            resource, changed, namespace=namespace, subresource=subresource
        )

    def _changed(self, item: Json) -> Json:
        if self.breaks:
            self.breaks -= 1
            raise ZeroDivisionError("nobody foresaw this")
        spec = cast("dict[str, list[dict[str, dict[str, object]]]]", item["spec"])
        devices = [
            {**device, "attributes": {**device["attributes"], "rack": {"string": "r1"}}}
            for device in spec["devices"]
        ]
        return {**item, "spec": {**spec, "devices": devices}}


@asynccontextmanager
async def world(
    directory: Path,
    view: View,
    *,
    kubernetes: str = "1.37",
    gates: Mapping[str, bool] | None = None,
    registered: bool = True,
    **fields: object,
) -> AsyncGenerator[World, None]:
    """A server with this node, and an agent that is not publishing yet."""
    async with ApiSim(kubernetes, gates) as sim:
        sim.create(NODES, {"metadata": {"name": NODE}})
        kube = kube_port(sim, directory)
        node = NodePortDouble(paths=Paths(), node=NODE, kube=kube, view=view)
        here = World(sim, node, **fields)  # type: ignore[arg-type]  # of World
        if registered:
            here.register()
        try:
            yield here
        finally:
            await kube.close()


@asynccontextmanager
async def publishing(here: World) -> AsyncGenerator[World, None]:
    """Let slices be written; at the end that is cancelled, as by an agent that ends."""
    task = asyncio.create_task(
        publish(here.node, here.policy, here.registrations, here.tell, here.patience)
    )
    try:
        yield here
    finally:
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, asyncio.CancelledError), ended


def turn(here: World, gate: str, *, on: bool) -> None:
    """Turn a gate of the server, as whoever starts it anew does."""
    object.__setattr__(here.sim.dialect, "gates", {**here.sim.dialect.gates, gate: on})
