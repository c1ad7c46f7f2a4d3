"""Events as an API server takes them: through a real client, to a simulated server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accelkit.agent import events
from accelkit.agent.events import Events
from accelkit.agent.problems import Problems
from accelkit.backends.kube import connect
from accelkit.conformance.sims.api.direct import NAMESPACES
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.allocation import ClaimRef, PodRef
from accelkit.core.clock import RealClock
from accelkit.core.kube import EVENTS, Json
from accelkit.core.policy import Kube, KubeClient

PATIENCE_S = 20.0


class Bench:
    def __init__(self, sim: ApiSim, directory: Path) -> None:
        self.sim = sim
        sim.write_kubeconfig(directory / "kubeconfig")
        kube = Kube(client=KubeClient.LEAN, config=str(directory / "kubeconfig"))
        self.kube = connect(kube)
        self.problems = Problems(RealClock().now)
        clock = RealClock()
        self.events = Events("n1", lambda: self.kube, lambda: 20, clock, self.problems)

    async def received(self, count: int) -> list[Json]:
        """All events, once there are so many."""

        def all_of() -> list[Json]:
            return [*self.sim.items(EVENTS, "default"), *self.sim.items(EVENTS, "team")]

        await self.sim.wait_for(lambda: len(all_of()) >= count or self.problems.all, PATIENCE_S)
        assert self.problems.all == ()
        return all_of()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with ApiSim() as sim:
        sim.create(NAMESPACES, {"metadata": {"name": "team"}})
        made = Bench(sim, tmp_path)
        sending = asyncio.create_task(made.events.send())
        yield made
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert made.kube is not None
        await made.kube.close()


async def test_every_kind_of_event_is_taken(bench: Bench) -> None:
    claim = ClaimRef(uid="c-1", namespace="team", name="claim")
    pod = PodRef(uid="p-1", namespace="team", name="trainer")
    bench.events.tell("DeviceLost", "ü" * 900)
    bench.events.tell("PrepareFailed", "no", claim=claim, pod=pod)
    bench.events.tell("ReleaseFailing", "busy", claim=claim)
    bench.events.tell("DeviceRecovered", "well", warning=False)

    found = await bench.received(4)

    assert sorted(str(event["reason"]) for event in found) == [
        "DeviceLost",
        "DeviceRecovered",
        "PrepareFailed",
        "ReleaseFailing",
    ]


async def test_repetition_is_taken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "REPEAT_S", 0.0)
    bench.events.tell("DeviceLost", "toy/a is gone")
    await bench.received(1)
    bench.events.tell("DeviceLost", "toy/a is gone")

    def counted() -> object:
        (event,) = bench.sim.items(EVENTS, "default")
        series = event.get("series")
        return isinstance(series, dict) and series.get("count") == 2

    await bench.sim.wait_for(lambda: counted() or bench.problems.all, PATIENCE_S)

    assert bench.problems.all == ()
    assert counted()


async def test_event_for_a_namespace_that_is_gone_is_dropped(bench: Bench) -> None:
    gone = PodRef(uid="p-1", namespace="gone", name="trainer")
    bench.events.tell("PrepareFailed", "no", pod=gone)
    bench.events.tell("DeviceLost", "toy/a is gone")

    assert [event["reason"] for event in await bench.received(1)] == ["DeviceLost"]
