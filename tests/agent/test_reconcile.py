"""Claims that nobody releases, with an API server in memory."""

from pathlib import Path

import attrs

from accelkit.core.errors import TransportError
from accelkit.core.kube import CLAIMS
from accelkit.core.model import Holder, Holding
from accelkit.core.policy import Seconds
from accelkit.core.values import HolderKind
from accelkit.core.view import View
from tests.agent.api import Api
from tests.agent.claiming import CLAIM, UID, claiming, port_of, wish
from tests.agent.toys import Toy, codes_of, device, policy, ready, running, until, view_of


async def test_claim_that_the_api_server_does_not_have_is_released(tmp_path: Path) -> None:
    toy, api = Toy(), Api()
    quick = attrs.evolve(policy(tmp_path).read, reconcile=Seconds(0.02))
    others = [attrs.evolve(CLAIM, uid=UID[:-1] + str(n), name=f"c{n}") for n in (1, 2)]
    for n, claim in enumerate(others):
        meta = {"name": claim.name, "namespace": "team", "uid": claim.uid if n else "another"}
        api.put(CLAIMS, {"metadata": meta})
    toy.names = ("a", "b", "c")
    async with running(claiming(tmp_path, toy, api=api, read=quick)) as agent:
        await ready(agent)
        port = port_of(agent)
        api.down = True
        await port.prepare(wish(toy, "a"))  # not there at all
        await port.prepare(wish(toy, "b", others[0]))  # another claim has its name
        await port.prepare(wish(toy, "c", others[1]))
        await until(lambda: len(api.asked) > 3)
        away = set(port.claims())
        api.down = False
        await until(lambda: port.claims().keys() == {others[1].uid})
        asked = len(api.asked)
        await until(lambda: len(api.asked) > asked + 3)
        left = set(port.claims())

    assert away == {UID, others[0].uid, others[1].uid}
    assert left == {others[1].uid}


async def test_claim_that_a_pod_uses_is_kept_whatever_the_api_server_says(tmp_path: Path) -> None:
    toy, api = Toy(), Api()
    quick = attrs.evolve(policy(tmp_path).read, reconcile=Seconds(0.02))
    holder = Holder(kind=HolderKind.CLAIM, namespace="team", claim="trainer-gpu", pod="p")
    used = [Holding(device=device("toy", "a"), through="dra", holder=holder)]
    up = [True]

    async def read(_view: View) -> tuple[Holding, ...]:
        if not up:
            raise TransportError("no kubelet")
        return tuple(used)

    made = claiming(tmp_path, toy, api=api, read=quick)
    async with running(attrs.evolve(made, holdings=read)) as agent:
        await ready(agent)
        port = port_of(agent)
        await port.prepare(wish(toy))
        await until(lambda: api.asked.count("get resourceclaims trainer-gpu") > 3)
        kept = set(port.claims())
        (holding,) = view_of(agent).holdings
        up.clear()
        used.clear()
        asked = len(api.asked)
        await until(lambda: "holders-unknown" in codes_of(agent))
        await until(lambda: agent._knowledge.store.view.holdings)
        unknown = set(port.claims())
        up.append(True)
        await until(lambda: not port.claims())

    assert kept == unknown == {UID}
    assert holding.holder == attrs.evolve(holder, uid=UID)
    assert asked < len(api.asked)
