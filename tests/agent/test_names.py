import asyncio
from collections.abc import AsyncIterator

import attrs
import pytest

from accelkit.agent import names
from accelkit.agent.names import Names, NodeFacts, facts_of
from accelkit.agent.problems import Problems
from accelkit.core.allocation import ClaimRef
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import ApiError
from accelkit.core.kube import NODES, KubePort
from accelkit.core.model import Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap
from accelkit.core.view import Assignment, View
from tests.agent.api import Api
from tests.agent.clocks import HeldClock, settled
from tests.core.things import gpu, of

NAME = "example.com/gpu"
DRA = Offer(name="dra", through="dra", extended_resource=NAME)
KUBELET = Offer(name="kubelet", resource=NAME)


def offering(*offers: Offer, leaving: bool = False) -> View:
    """A view in which each of *offers* has one device."""
    given = {of(f"gpu-{n}"): Assignment(terms=o, leaving=leaving) for n, o in enumerate(offers)}
    return View(
        snapshot=Snapshot(devices=tuple(gpu(i.name) for i in given)),
        assignments=FrozenMap(given),
        offers=offers,
    )


def node(version: str = "v1.37.2", **allocatable: str) -> dict[str, object]:
    return {
        "metadata": {"name": "n1"},
        "status": {
            "nodeInfo": {"kubeletVersion": version},
            "allocatable": {"cpu": "8", "memory": "1Ki", **allocatable},
        },
    }


def entry(extended: str | None = NAME, state: EntryState = EntryState.READY) -> LedgerEntry:
    claim = ClaimRef(uid="1", namespace="team", name="pod-extended")
    return LedgerEntry(state=state, claim=claim, driver="d", pieces=(), extended=extended)


class Bench:
    """Names on a node of the test, with its clock."""

    def __init__(self) -> None:
        self.api = Api()
        self.kube: KubePort | None = self.api
        self.clock = HeldClock()
        self.problems = Problems(self.clock.now)
        self.entries: dict[str, LedgerEntry] = {}
        self.changes = 0
        self.names = Names(
            "n1", lambda: self.kube, lambda: self.entries, self.clock, self.problems, self._change
        )
        self.task = asyncio.create_task(self.names.watch())

    def _change(self) -> None:
        self.changes += 1

    async def seen(self, view: View) -> View:
        """*view*, once it was seen and the node was looked at."""
        self.names.follow(view)
        await settled()
        amended = self.names.amend(view)
        self.names.follow(amended)
        return amended

    @property
    def told(self) -> dict[str, str]:
        return {p.code: p.reason for p in self.problems.all}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.task.cancel()
    await asyncio.gather(made.task, return_exceptions=True)


async def test_name_that_only_dra_has_does_not_wait(bench: Bench) -> None:
    bench.api.put(NODES, node())
    view = await bench.seen(offering(DRA))

    assert not view.dra_waits
    assert not view.kubelet_waits
    assert bench.told == {}
    assert bench.changes == 1


async def test_name_waits_until_the_node_was_seen(bench: Bench) -> None:
    """What it said before the name was DRA's is no answer: it may have been the kubelet's since."""
    other = attrs.evolve(DRA, extended_resource="example.com/other")
    bench.api.put(NODES, node())
    await bench.seen(offering(other))
    first = bench.names.amend(offering(DRA))
    settled_at_first = bench.names.settled(first)
    after = await bench.seen(first)

    assert first.dra_waits == {NAME: "node-unknown"}
    assert after.dra_waits == {}
    assert (settled_at_first, bench.names.settled(after)) == (False, True)


async def test_name_waits_while_the_node_has_it_from_a_device_plugin(bench: Bench) -> None:
    bench.api.put(NODES, node(**{NAME: "4"}))
    shadowed = await bench.seen(offering(DRA))
    told = bench.told
    bench.api.put(NODES, node(**{NAME: "0"}))
    await bench.clock.advance(names.PERIOD_S)
    after = await bench.seen(offering(DRA))

    assert shadowed.dra_waits == {NAME: "shadowed"}
    assert told == {
        "shadowed": f"{NAME}: the node still has 4 from a device plugin, and pods get those first"
    }
    assert not after.dra_waits
    assert bench.told == {}
    assert bench.changes == 2


@pytest.mark.parametrize(
    "version, waits",
    [
        ("v1.35.9", True),
        ("v1.36.0-rc.1+k3s", False),
        ("v1.36.1", False),
        ("v2.0.0", False),
        ("odd", False),
    ],
)
async def test_kubelet_that_is_too_old_for_the_name_keeps_it_out_of_dra(
    bench: Bench, version: str, waits: bool
) -> None:
    bench.api.put(NODES, node(version))
    view = await bench.seen(offering(DRA))

    assert view.dra_waits == ({NAME: "kubelet-too-old"} if waits else {})
    assert ("kubelet-too-old" in bench.told) is waits


async def test_name_that_the_kubelet_is_to_have_as_well_waits(bench: Bench) -> None:
    bench.api.put(NODES, node())
    view = await bench.seen(offering(DRA, KUBELET))

    assert view.dra_waits == {NAME: "name-in-both"}
    assert bench.told.keys() == {"name-in-both"}


async def test_kubelet_waits_for_the_last_claim_of_the_name(bench: Bench) -> None:
    bench.entries = {"1": entry(), "2": entry("a/b,example.com/gpu"), "3": entry(None)}
    waiting = await bench.seen(offering(KUBELET))
    told = bench.told
    bench.entries = {"1": entry(state=EntryState.STUCK), "2": entry("a/b")}
    after = await bench.seen(offering(KUBELET))

    assert waiting.kubelet_waits == {NAME: "claims-left"}
    assert told == {
        "claims-left": f"{NAME}: its devices stay Unhealthy in the kubelet while claims made for "
        "it are left: team/pod-extended, team/pod-extended"
    }
    assert not after.kubelet_waits
    assert bench.told == {}


async def test_devices_that_leave_an_offer_do_not_count_for_its_name(bench: Bench) -> None:
    bench.api.put(NODES, node(**{NAME: "4"}))
    bench.entries = {"1": entry()}
    view = await bench.seen(offering(DRA, KUBELET, leaving=True))

    assert not view.dra_waits
    assert not view.kubelet_waits


async def test_node_is_looked_at_only_while_a_name_needs_it(bench: Bench) -> None:
    bench.api.put(NODES, node())
    plain = offering(Offer(name="plain", through="dra"), KUBELET)
    await bench.seen(plain)
    await bench.clock.advance(60.0)
    before = list(bench.api.asked)
    await bench.seen(offering(DRA))
    await bench.clock.advance(30.0)
    during = len(bench.api.asked)
    await bench.seen(plain)
    await bench.clock.advance(60.0)

    assert before == []
    assert during == 4
    assert len(bench.api.asked) == 4


async def test_node_that_cannot_be_read_is_a_problem_and_new_names_wait(bench: Bench) -> None:
    bench.api.refuse = ApiError("nodes is forbidden", status=403)
    waiting = await bench.seen(offering(DRA))
    settled_at_once = bench.names.settled(waiting)
    told = bench.told
    await bench.clock.advance(names.FIRST_S)
    settled_later = bench.names.settled(waiting)
    bench.api.refuse = None
    bench.api.put(NODES, node())
    await bench.clock.advance(names.PERIOD_S)
    after = await bench.seen(offering(DRA))

    assert waiting.dra_waits == {NAME: "node-unknown"}
    assert told == {
        "node-unknown": "node n1 cannot be read: nodes is forbidden; until it can, "
        f"{NAME} is not offered through DRA"
    }
    assert (settled_at_once, settled_later) == (False, True)
    assert not after.dra_waits
    assert bench.told == {}


async def test_what_was_known_stays_while_the_api_server_is_away(bench: Bench) -> None:
    bench.api.put(NODES, node())
    await bench.seen(offering(DRA))
    bench.api.down = True
    await bench.clock.advance(names.PERIOD_S)
    away = await bench.seen(offering(DRA))
    told = bench.told
    await bench.seen(offering(KUBELET))
    await bench.clock.advance(names.PERIOD_S)

    assert away.dra_waits == {}
    assert told == {"node-unknown": "node n1 cannot be read: the API server is away"}
    assert bench.told == {}


async def test_without_api_access_the_name_waits_and_says_why(bench: Bench) -> None:
    bench.kube = None
    view = await bench.seen(offering(DRA))

    assert view.dra_waits == {NAME: "node-unknown"}
    assert [(p.code, p.remedy) for p in bench.problems.all] == [
        ("node-unknown", "set $.kube.config")
    ]


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"status": None},
        {"status": {"allocatable": [], "nodeInfo": 7}},
        {"status": {"allocatable": {NAME: "odd", "cpu": "8"}}},
    ],
)
def test_node_that_says_oddly_says_nothing(told: dict[str, object]) -> None:
    facts = facts_of(told)

    assert facts == NodeFacts("", FrozenMap())
    assert not facts.old
