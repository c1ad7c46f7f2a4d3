"""A resource name that moves between the kubelet and DRA and back, under running pods.

With the real backend of the kubelet, a simulated kubelet, and a Node that says what it has.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest

from accelkit.agent import names
from accelkit.agent.agent import Agent, Parts
from accelkit.backends import kubelet as kubelet_backend
from accelkit.backends.holdings import read_holdings
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.backend import BackendFactory
from accelkit.core.kube import NODES
from accelkit.core.policy import Offer
from accelkit.core.view import View
from tests.agent.api import Api
from tests.agent.claiming import NAME, UID, DraToy, node, port_of, wish
from tests.agent.toys import Toy, codes_of, device, parts, policy, ready, running, until, view_of

pytestmark = pytest.mark.slow  # its processes and pauses take seconds

PATIENCE_S = 20.0
KUBELET = Offer(name="all", resource=NAME)
DRA = Offer(name="all", through="dra", extended_resource=NAME)


class Bench:
    """One node: its kubelet, its API server, and the policy of the moment."""

    def __init__(self, tmp_path: Path, kubelet: KubeletSim) -> None:
        self.kubelet = kubelet
        self.api = Api()
        self.toy = Toy()
        self.offer = KUBELET
        self.seen: list[tuple[View, int]] = []
        """Every view, and what the kubelet had then."""
        wanted = policy(tmp_path)
        wanted = attrs.evolve(
            wanted,
            paths=attrs.evolve(wanted.paths, kubelet=str(tmp_path / "kubelet")),
            offers=(self.offer,),
        )
        (factory,) = kubelet_backend.accelkit_backends()
        made = parts(tmp_path, self.toy, wanted=wanted)
        self.parts: Parts = attrs.evolve(
            made,
            backends={"kubelet": factory, "dra": BackendFactory(name="dra", create=DraToy)},
            connect=lambda _count: self.api,
            read_policy=lambda: attrs.evolve(wanted, offers=(self.offer,)),
            holdings=partial(
                read_holdings,
                wanted.paths.pod_resources_socket,
                drivers={"toy.accelkit.dev": "toy"},
            ),
        )

    def move(self, agent: Agent, offer: Offer) -> None:
        self.offer = offer
        agent.reload()

    @property
    def amounts(self) -> tuple[int, int]:
        """Capacity and allocatable of the name."""
        return self.kubelet.amounts().get(NAME, (0, 0))

    async def report(self) -> None:
        """Let the Node say what the kubelet has, as its status does."""
        while True:
            self.api.put(NODES, node(self.amounts[1]))
            await asyncio.sleep(0.005)

    async def follow(self, agent: Agent) -> None:
        async for view in agent._knowledge.store.views():
            self.seen.append((view, self.amounts[1]))


@asynccontextmanager
async def noded(tmp_path: Path) -> AsyncIterator[tuple[Bench, Agent]]:
    async with KubeletSim(tmp_path / "kubelet") as kubelet:
        bench = Bench(tmp_path, kubelet)
        async with running(bench.parts) as agent, asyncio.TaskGroup() as group:
            tasks = [group.create_task(bench.report()), group.create_task(bench.follow(agent))]
            await kubelet.wait_for(lambda: bench.amounts == (2, 2), PATIENCE_S)
            yield bench, agent
            for task in tasks:
                task.cancel()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "PERIOD_S", 0.02)


def free_for_dra(view: View) -> set[str]:
    """Devices that a slice may show for whoever asks for the name."""
    return {
        i.name
        for i, given in view.assignments.items()
        if given.terms is not None and given.terms.through == "dra" and NAME not in view.dra_waits
    }


async def test_name_opens_in_dra_only_when_the_kubelet_has_none_of_it(tmp_path: Path) -> None:
    async with noded(tmp_path) as (bench, agent):
        pod = await bench.kubelet.admit("p", {NAME: 1})
        (held,) = pod.ids()
        await until(lambda: {h.holder.pod for h in view_of(agent).holdings} == {"p"})
        bench.move(agent, DRA)
        await bench.kubelet.wait_for(lambda: bench.amounts[1] == 0, PATIENCE_S)
        await until(lambda: free_for_dra(view_of(agent)))
        free = free_for_dra(view_of(agent))
        running_still = pod.container("main").running
        health = bench.kubelet.device_health("p")
        await bench.kubelet.remove("p")
        await until(lambda: free_for_dra(view_of(agent)) == {"a", "b"})
        opened = [count for view, count in bench.seen if free_for_dra(view)]

    assert free == {"a", "b"} - {held}
    assert running_still
    assert health == {held: "Unhealthy"}
    assert set(opened) == {0}


async def test_kubelet_gets_the_name_back_when_the_last_claim_of_it_is_gone(tmp_path: Path) -> None:
    async with noded(tmp_path) as (bench, agent):
        bench.move(agent, DRA)
        await until(lambda: free_for_dra(view_of(agent)) == {"a", "b"})
        await until(lambda: "dra" in agent._backends.made)
        await ready(agent)
        await port_of(agent).prepare(attrs.evolve(wish(bench.toy), extended=NAME))
        bench.move(agent, KUBELET)
        await until(lambda: "claims-left" in codes_of(agent))
        await until(lambda: view_of(agent).kubelet_waits)
        waiting = (bench.amounts[1], view_of(agent).assignments[device("toy", "a")].leaving)
        await agent._duties.keeper.release(UID)
        await bench.kubelet.wait_for(lambda: bench.amounts == (2, 2), PATIENCE_S)
        pod = await bench.kubelet.admit("p", {NAME: 2})

    assert waiting == (0, True)
    assert pod.container("main").running
