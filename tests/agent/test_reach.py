from datetime import UTC, datetime

import pytest

from accelkit.agent.metrics import Metrics
from accelkit.agent.problems import Problems
from accelkit.agent.reach import Connect, Count, Reach
from accelkit.core.kube import KubePort
from accelkit.core.policy import Events, EventsEnabled, Policy
from tests.agent.api import Api

KUBELET, DRA = frozenset({"kubelet"}), frozenset({"kubelet", "dra"})


def problems() -> Problems:
    return Problems(lambda: datetime(2026, 1, 1, tzinfo=UTC))


class Ways:
    """Opens the same server again and again, and counts."""

    def __init__(self, api: Api | None) -> None:
        self.api = api
        self.opened = 0

    def connect(self, count: Count) -> KubePort | None:
        self.opened += 1
        count("get", "nodes", "200")
        return self.api


def test_way_is_opened_once_and_only_when_it_is_used() -> None:
    ways = Ways(Api())
    reach = Reach(ways.connect, Metrics(), problems())
    before = ways.opened
    unused = reach.for_agent(KUBELET)
    used = (reach.for_agent(DRA), reach.kube, reach.kube)

    assert (before, unused) == (0, None)
    assert used == (ways.api, ways.api, ways.api)
    assert ways.opened == 1


@pytest.mark.parametrize("connect", [None, Ways(None).connect])
async def test_without_access_nobody_reaches_anything(connect: Connect | None) -> None:
    reach = Reach(connect, Metrics(), problems())
    assert reach.kube is None
    await reach.close()

    assert reach.for_agent(DRA) is None


@pytest.mark.parametrize(
    "enabled, backends, reached",
    [
        (EventsEnabled.AUTO, KUBELET, False),
        (EventsEnabled.AUTO, DRA, True),
        (EventsEnabled.ALWAYS, KUBELET, True),
        (EventsEnabled.NEVER, DRA, False),
    ],
)
def test_events_reach_the_server_as_the_policy_says(
    enabled: EventsEnabled, backends: frozenset[str], *, reached: bool
) -> None:
    reach = Reach(Ways(Api()).connect, Metrics(), problems())
    policy = Policy(events=Events(enabled=enabled))

    assert (reach.for_events(policy, backends) is not None) is reached


async def test_requests_are_counted_and_connections_dropped() -> None:
    api, metrics = Api(), Metrics()
    reach = Reach(Ways(api).connect, metrics, problems())
    assert reach.kube is api
    answered = reach.away
    reach._count("get", "nodes", "error")
    await reach.close()

    assert (answered, reach.away) == (False, True)
    assert api.asked == ["close"]
    text = metrics.text().decode()
    assert 'accelkit_api_requests_total{verb="get",resource="nodes",code="200"} 1' in text
    assert 'accelkit_api_requests_total{verb="get",resource="nodes",code="error"} 1' in text


def test_what_the_server_does_not_answer_and_what_it_refuses_are_problems_until_it_does() -> None:
    noted = problems()
    reach = Reach(None, Metrics(), noted)
    reach._count("list", "resourceslices", "error")
    reach._count("watch", "resourceslices", "error")
    away = [(p.code, p.reason) for p in noted.all]
    reach._count("list", "resourceslices", "401")
    reach._count("create", "resourceslices", "403")
    refused = [(p.code, p.subject, p.remedy) for p in noted.all]
    reach._count("list", "resourceslices", "200")
    reach._count("create", "resourceslices", "409")

    assert away == [("api-away", "the API server gave no answer to watch resourceslices")]
    assert refused == [
        ("api-refuses", "create resourceslices", "grant it in the agent's ClusterRole"),
        (
            "api-refuses",
            "list resourceslices",
            "give the agent a token, or a kubeconfig, that the API server knows",
        ),
    ]
    assert noted.all == ()
