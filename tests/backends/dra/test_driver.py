"""Whole drivers: a kubelet that calls them, an API server that keeps slices and claims."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import attrs

from accelkit.backends.dra.backend import create
from accelkit.backends.dra.claims_tree import at, items, text
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.kube import CLAIMS, NODES, SLICES
from accelkit.core.policy import Backends, DraPolicy, Offer, Policy
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.service_world import (
    DRIVER,
    POOL,
    QUICK,
    KubeDouble,
    asked,
    ident,
    node_double,
    prepare,
    result,
    uid,
)
from tests.backends.dra.slices_world import kube_port
from tests.backends.dra.test_health import gpu, view_of
from tests.backends.dra.watching import register, sockets_in, until

ALL = Offer(name="all", through="dra")


@attrs.frozen(eq=False)
class World:
    """A driver, its agent and its API server."""

    sim: ApiSim
    node: NodePortDouble
    registry: Path

    async def registered(self) -> Path:
        """The driver's socket, once the kubelet has accepted it."""
        await until(lambda: self.registry.exists() and sockets_in(self.registry))
        (path,) = sockets_in(self.registry)
        await register(path)
        return path

    def claim(self, name: str, **fields: object) -> dra.Claim:
        """Let the server have an allocated claim, and name it as the kubelet does."""
        spec = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "acme"}}]}
        made = self.sim.create(
            CLAIMS,
            {"metadata": {"name": name}, "spec": {"devices": spec, **fields}},
            "default",
        )
        allocation = {"devices": {"results": [result()]}}
        self.sim.patch(
            CLAIMS, name, {"status": {"allocation": allocation}}, namespace="default", sub="status"
        )
        return dra.Claim(namespace="default", name=name, uid=text(made, "metadata", "uid"))

    def devices(self) -> list[str]:
        """Names of the devices in slices."""
        return [
            text(device, "name")
            for item in self.sim.items(SLICES)
            for device in items(item, "spec", "devices")
        ]


@asynccontextmanager
async def serving(
    root: Path,
    view: View,
    told: DraPolicy = DraPolicy(),  # noqa: B008 - a frozen value
    *,
    reachable: bool = True,
    prepared: Mapping[str, LedgerEntry] = MappingProxyType({}),
) -> AsyncGenerator[World, None]:
    registry = root / "k" / "plugins_registry"
    registry.mkdir(parents=True)
    async with ApiSim() as sim:
        sim.create(NODES, {"metadata": {"name": POOL}})
        node = node_double(root, KubeDouble())
        kube = kube_port(sim, root)
        node.kube = kube if reachable else None
        node.publish(view)
        node.entries.update(prepared)
        policy = Policy(paths=node.paths, backends=Backends(dra=told))
        task = asyncio.create_task(create(policy, QUICK).serve(node))
        try:
            yield World(sim, node, registry)
        finally:
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]
            await kube.close()
            assert isinstance(ended, asyncio.CancelledError), ended


def answered(*names: str) -> View:
    """A view of these GPUs, whose vendor has answered."""
    view = view_of(*map(gpu, names))
    snapshot = attrs.evolve(view.snapshot, node=POOL, answered=frozenset({"acme"}))
    return attrs.evolve(
        view, snapshot=snapshot, offers=(ALL,), domains=FrozenMap({"acme": "acme.test"})
    )


async def test_devices_are_published_once_the_kubelet_has_accepted_the_driver(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, answered("gpu-0")) as here:
        await until(lambda: here.node.statuses)
        before = here.node.statuses[-1]
        await here.registered()
        await until(lambda: here.node.statuses[-1].published)

        assert (before.registered, before.published) == (False, False)
        assert DRIVER in before.detail
        assert here.devices() == ["gpu-0"]
        assert here.node.statuses[-1].registered
        assert here.node.statuses[-1].detail == "1 of 1 drivers registered"


async def test_claim_is_read_and_its_status_written(tmp_path: Path) -> None:
    async with serving(tmp_path, answered("gpu-0"), DraPolicy(status_devices=True)) as here:
        path = await here.registered()
        asked = here.claim("c1")
        async with dial(path) as channel:
            answers = await prepare(channel, asked)
        await until(lambda: at(here.sim.get(CLAIMS, "c1", "default"), "status", "devices"))
        (entry,) = items(here.sim.get(CLAIMS, "c1", "default"), "status", "devices")

        assert [d.device_name for d in answers[asked.uid].devices] == ["gpu-0"]
        assert text(entry, "device") == "gpu-0"
        assert here.node.problems == {}


async def test_driver_answers_for_prepared_claims_while_the_api_server_is_away(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, answered("gpu-0")) as here:
        path = await here.registered()
        known, new = here.claim("c1"), here.claim("c2")
        async with dial(path) as channel:
            first = await prepare(channel, known)
            await here.sim.stop()
            again = await prepare(channel, known, new)

        assert again[known.uid] == first[known.uid]
        assert again[new.uid].error.startswith("claim c2 could not be read for 0.5 s: ")


async def test_sockets_come_up_and_say_why_nothing_is_published(tmp_path: Path) -> None:
    async with serving(tmp_path, answered("gpu-0"), reachable=False) as here:
        await here.registered()
        await until(lambda: "no API server" in here.node.statuses[-1].detail)

        assert here.node.statuses[-1].registered
        assert not here.node.statuses[-1].published


async def test_metadata_says_what_the_slice_says(tmp_path: Path) -> None:
    async with serving(tmp_path, answered("gpu-0"), DraPolicy(metadata=True)) as here:
        path = await here.registered()
        await until(here.devices)
        asked = here.claim("c1")
        async with dial(path) as channel:
            answers = await prepare(channel, asked)
        (file,) = (tmp_path / "run").rglob("gpu.json")

        published = at(next(items(here.sim.items(SLICES)[0], "spec", "devices")), "attributes")
        told = next(items(next(items(json.loads(file.read_text()), "requests")), "devices"))
        assert at(told, "attributes") == published
        assert [n.partition("=")[0] for n in answers[asked.uid].devices[0].cdi_device_ids] == [
            f"{DRIVER}/claim",
            f"{DRIVER}/metadata",
        ]


async def test_claims_of_a_driver_that_was_renamed_are_given_back_by_its_old_name(
    tmp_path: Path,
) -> None:
    """The kubelet asks nobody else, and without an answer their pods never end."""
    entry = LedgerEntry(
        state=EntryState.READY,
        claim=ClaimRef(uid=uid(1), namespace="default", name="c1"),
        driver=DRIVER,
        pieces=(Piece(device=ident("gpu-0")),),
    )
    told = DraPolicy(drivers=FrozenMap({"acme": "gpu.corp.example"}))
    view = answered("gpu-0", "gpu-1")
    async with serving(tmp_path, view, told, prepared={entry.claim.uid: entry}) as here:
        await until(lambda: here.registry.exists() and len(sockets_in(here.registry)) == 2)
        old, new = sockets_in(here.registry)
        names = [(await register(path)).name for path in (old, new)]
        await until(lambda: sorted(here.devices()) == ["gpu-0", "gpu-1"])
        request = dra.NodeUnprepareResourcesRequest(claims=[asked(1)])
        async with dial(old) as channel:
            answer = await services.call(channel, services.UNPREPARE, request, timeout_s=20)

        assert names == [DRIVER, "gpu.corp.example"]
        assert answer.claims[uid(1)].error == ""
        assert dict(here.node.claims()) == {}
