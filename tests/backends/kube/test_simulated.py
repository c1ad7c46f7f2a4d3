"""Both clients against the simulated API server: the suite that runs on real ones, too."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from accelkit.backends.kube.objects import Objects
from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.errors import ApiError
from accelkit.core.kube import CLAIMS, SLICES, ChangeKind
from tests.backends.kube.behaviour import Behaviour, slice_of, version_of
from tests.backends.kube.clients import Clients
from tests.backends.kube.scripted import kubeconfig, until

ADMINS = tuple(User(name=f"admin-{n}", token=f"token-{n}", everything=True) for n in (1, 2))
NOBODY = User(name="nobody", token="nobody's")


class SimulatedServer:
    """One that a test may disturb."""

    def __init__(self, sim: ApiSim) -> None:
        self.sim = sim

    def kubeconfig(self, folder: Path) -> Path:
        found = folder / "admin.kubeconfig"
        self.sim.write_kubeconfig(found, ADMINS[0])
        return found

    def tokens(self) -> tuple[str, str]:
        return ADMINS[0].token, ADMINS[1].token

    def with_token_file(self, folder: Path, file: Path) -> Path:
        return kubeconfig(folder, self.sim.url, user={"tokenFile": str(file)})

    async def stop(self) -> None:
        await self.sim.stop()

    async def start(self) -> None:
        await self.sim.start()

    def expire(self) -> None:
        self.sim.expire()


@pytest.fixture
async def server() -> AsyncGenerator[SimulatedServer, None]:
    async with ApiSim(users=[*ADMINS, NOBODY], bookmark_s=0.2) as sim:
        yield SimulatedServer(sim)


class TestSimulatedServer(Behaviour):
    """All of it, and what only simulations can be asked for."""

    async def test_a_watch_brings_bookmarks_and_ends_when_it_said(
        self, server: SimulatedServer, clients: Clients, tmp_path: Path
    ) -> None:
        kube = clients.dial(server.kubeconfig(tmp_path), watch_s=2)
        begun = await kube.list(SLICES)

        changes = [change async for change in kube.watch(SLICES, version=begun.version)]

        assert {change.kind for change in changes} == {ChangeKind.BOOKMARK}
        assert version_of(changes[-1].item) >= begun.version

    async def test_rights_that_are_missing_are_told(
        self, server: SimulatedServer, clients: Clients, tmp_path: Path
    ) -> None:
        file = tmp_path / "nobody.kubeconfig"
        server.sim.write_kubeconfig(file, NOBODY)
        kube = clients.dial(file)

        assert not await kube.can_i("update", CLAIMS, namespace="default")
        with pytest.raises(ApiError) as caught:
            await kube.list(SLICES)
        assert caught.value.status == 403
        assert caught.value.remedy == "grant list on resourceslices to our account"

    async def test_a_server_that_throttles_is_waited_for(
        self, server: SimulatedServer, kube: Objects, clients: Clients, driver: str
    ) -> None:
        server.sim.faults.throttle(retry_s=1)

        await kube.create(SLICES, slice_of(f"{driver}-a", driver))

        assert clients.counted["create", "resourceslices", "429"] == 1
        assert clients.counted["create", "resourceslices", "201"] == 1

    async def test_a_watch_that_is_left_ends_at_the_server(
        self, server: SimulatedServer, kube: Objects, driver: str
    ) -> None:
        begun = await kube.list(SLICES)
        await kube.create(SLICES, slice_of(f"{driver}-a", driver))
        changes = kube.watch(SLICES, version=begun.version)
        await anext(changes)
        assert server.sim.watching() == 1

        await changes.aclose()

        await until(lambda: server.sim.watching() == 0)

    async def test_parameters_of_a_claim_come_back_to_the_server_as_they_were(
        self, server: SimulatedServer, kube: Objects
    ) -> None:
        parameters = {"name": "größer <1>", "n": 1.0}
        opaque = {"driver": "d.test", "parameters": parameters}
        asked = {"name": "r", "exactly": {"deviceClassName": "c"}}
        made = server.sim.create(
            CLAIMS,
            {
                "metadata": {"name": "a"},
                "spec": {"devices": {"requests": [asked], "config": [{"opaque": opaque}]}},
            },
            "default",
        )
        device = {"driver": "d.test", "pool": "p", "device": "d"}
        config = [{"source": "FromClaim", "opaque": opaque}]
        allocation = {"devices": {"results": [{**device, "request": "r"}], "config": config}}
        server.sim.replace(CLAIMS, {**made, "status": {"allocation": allocation}}, sub="status")

        found = await kube.get(CLAIMS, "a", namespace="default")
        assert isinstance(found["status"], Mapping)
        fresh = {**found, "status": {**found["status"], "devices": [device]}}
        written = await kube.replace(CLAIMS, fresh, namespace="default", subresource="status")

        reported = {**device, "conditions": None}
        assert written["status"] == {"allocation": allocation, "devices": [reported]}
