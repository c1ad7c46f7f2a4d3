"""What backends see of names that move, and when."""

import asyncio
from pathlib import Path

import attrs
import pytest

from accelkit.agent import names
from accelkit.agent.agent import Agent
from accelkit.core.backend import BackendFactory, NodePort
from accelkit.core.kube import NODES
from accelkit.core.policy import Offer
from accelkit.core.view import View
from tests.agent.api import Api
from tests.agent.claiming import NAME, UID, DraToy, claiming, node, port_of, wish
from tests.agent.toys import (
    Toy,
    ToyBackend,
    codes_of,
    device,
    parts,
    policy,
    ready,
    running,
    until,
    view_of,
)


async def test_name_moves_to_dra_when_the_node_has_none_of_it_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no view in between shows a device in both."""
    monkeypatch.setattr(names, "PERIOD_S", 0.02)
    api, toy = Api(), Toy()
    kubelet = Offer(name="all", resource=NAME)
    moved = Offer(name="all", through="dra", extended_resource=NAME)
    now = [kubelet]
    api.put(NODES, node(4))
    made = claiming(tmp_path, toy, api=api, offers=(kubelet,))
    made = attrs.evolve(
        made,
        backends={**made.backends, "kubelet": BackendFactory(name="kubelet", create=ToyBackend)},
        read_policy=lambda: attrs.evolve(made.policy, offers=tuple(now)),
    )
    async with running(made) as agent:
        await ready(agent)
        seen: list[View] = []
        follow = asyncio.create_task(follow_views(agent, seen))
        now[:] = [moved]
        agent.reload()
        await until(lambda: "shadowed" in codes_of(agent))
        waiting = view_of(agent)
        api.put(NODES, node(0))
        await until(lambda: not view_of(agent).dra_waits)
        follow.cancel()

    assert waiting.dra_waits == {NAME: "shadowed"}
    through_dra = [view for view in seen if "dra" in through(view)]
    assert through_dra
    assert all(NAME in view.dra_waits for view in through_dra[:-1])
    assert not any(through(view) == {"kubelet", "dra"} for view in seen)


async def follow_views(agent: Agent, seen: list[View]) -> None:
    async for view in agent._knowledge.store.views():
        seen.append(view)  # noqa: PERF401 - as they come


def through(view: View) -> set[str]:
    return {given.terms.through for given in view.assignments.values() if given.terms}


async def test_names_are_known_before_anything_is_served(tmp_path: Path) -> None:
    """Else devices of the name would go from a slice at each start, and come back."""
    api, toy = Api(), Toy()
    api.put(NODES, node(0))
    served: list[View] = []

    class Watching(DraToy):
        async def serve(self, node: NodePort) -> None:
            async for view in node.views():
                served.extend([view] if node.answered() else [])

    offer = Offer(name="all", through="dra", extended_resource=NAME)
    made = claiming(tmp_path, toy, api=api, offers=(offer,))
    factory = BackendFactory(name="dra", create=Watching)
    async with running(attrs.evolve(made, backends={"dra": factory})):
        await until(lambda: served)

    assert not served[0].dra_waits
    assert len(served[0].devices) == 2


async def test_kubelet_waits_for_claims_of_the_name(tmp_path: Path) -> None:
    toy = Toy()
    offer = Offer(name="all", through="dra", extended_resource=NAME)
    api = Api()
    api.put(NODES, node(0))
    async with running(claiming(tmp_path, toy, api=api, offers=(offer,))) as agent:
        await ready(agent)
        await port_of(agent).prepare(attrs.evolve(wish(toy), extended=NAME))
    wanted = attrs.evolve(policy(tmp_path), offers=(Offer(name="all", resource=NAME),))
    async with running(parts(tmp_path, toy, wanted=wanted)) as agent:
        await ready(agent)
        await until(lambda: "claims-left" in codes_of(agent))
        waiting = view_of(agent)
        await agent._duties.keeper.release(UID)
        await until(lambda: not view_of(agent).kubelet_waits)
        await until(lambda: "claims-left" not in codes_of(agent))

    assert waiting.kubelet_waits == {NAME: "claims-left"}
    assert waiting.assignments[device("toy", "a")].leaving
    assert through(waiting) == {"dra", "kubelet"}
