"""What is known of an API server, and for how long."""

from collections.abc import AsyncGenerator
from pathlib import Path

import attrs
import pytest

from accelkit.backends.dra.objects import Owner
from accelkit.backends.dra.pool import Dialect
from accelkit.backends.dra.slices_server import AGAIN_S, Server
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.gates import TAINTS
from accelkit.core.errors import ApiError
from accelkit.core.kube import NODES
from tests.backends.dra.slices_world import kube_port
from tests.backends.dra.views import DRIVER, NODE

BARE = Dialect(taints=False, effect_none=False)


@attrs.frozen
class Asked:
    sim: ApiSim
    server: Server

    async def learn(self, now_s: float) -> int:
        """Learn, and count the questions that it took."""
        before = len(self.sim.journal.asked)
        await self.server.learn(DRIVER, now_s)
        return len(self.sim.journal.asked) - before


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncGenerator[Asked, None]:
    async with ApiSim() as sim:
        sim.create(NODES, {"metadata": {"name": NODE}})
        kube = kube_port(sim, tmp_path)
        yield Asked(sim, Server(kube=kube, node=NODE, lists=False))
        await kube.close()


async def test_server_is_asked_once(asked: Asked) -> None:
    assert await asked.learn(0.0) > 0
    assert await asked.learn(AGAIN_S - 1.0) == 0
    uid = asked.sim.get(NODES, NODE)["metadata"]
    assert asked.server.owner == Owner(name=NODE, uid=uid["uid"])  # type: ignore[index]  # JSON


async def test_server_is_asked_again_after_hours_and_after_it_was_away(asked: Asked) -> None:
    """Somebody may have turned on a gate."""
    await asked.learn(0.0)

    assert await asked.learn(AGAIN_S) > 0
    asked.server.stale = True
    assert await asked.learn(AGAIN_S + 1.0) > 0


async def test_field_that_was_dropped_is_not_sent_for_hours(asked: Asked) -> None:
    await asked.learn(0.0)
    asked.server.drops(["taints", "other"], 10.0)

    assert asked.server.dialect(AGAIN_S) == BARE
    assert asked.server.dialect(AGAIN_S + 10.0) == Dialect()


async def test_dry_run_does_not_bring_back_what_a_write_has_shown(asked: Asked) -> None:
    """The server that answers may be another one than the next."""
    await asked.learn(0.0)
    asked.server.drops(["taints"], 10.0)
    asked.server.stale = True
    await asked.learn(20.0)

    assert asked.server.dialect(20.0) == BARE


async def test_server_of_another_version_begins_anew(asked: Asked) -> None:
    await asked.learn(0.0)
    asked.server.drops(["taints"], 10.0)
    object.__setattr__(asked.sim.dialect, "release", "1.36")
    asked.server.stale = True
    await asked.learn(20.0)

    assert asked.server.dialect(20.0) == Dialect()


async def test_gate_decides_what_is_kept(asked: Asked) -> None:
    object.__setattr__(asked.sim.dialect, "gates", {**asked.sim.dialect.gates, TAINTS: False})
    await asked.learn(0.0)

    assert asked.server.dialect(0.0) == attrs.evolve(BARE, most_taints=4)


async def test_node_that_is_not_there_is_an_error_and_asked_for_again(asked: Asked) -> None:
    asked.sim.delete(NODES, NODE)

    for _ in range(2):
        with pytest.raises(ApiError, match="not found"):
            await asked.learn(0.0)
