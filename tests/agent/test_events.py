import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from accelkit.agent import events
from accelkit.agent.events import Events
from accelkit.agent.problems import Problems
from accelkit.core.allocation import ClaimRef, PodRef
from accelkit.core.errors import ApiError
from accelkit.core.kube import EVENTS
from tests.agent.api import Api
from tests.agent.clocks import HeldClock, settled

CLAIM = ClaimRef(uid="c-1", namespace="team", name="claim")
POD = PodRef(uid="p-1", namespace="team", name="trainer")


class Bench:
    """Events that are sent to an API server of the test, on its clock."""

    def __init__(self, per_minute: int = 20) -> None:
        self.api = Api()
        self.clock = HeldClock()
        self.problems = Problems(self.clock.now)
        self.events = Events("n1", lambda: self.api, lambda: per_minute, self.clock, self.problems)
        self.task = asyncio.create_task(self.events.send())

    @property
    def sent(self) -> list[Any]:  # type: ignore[explicit-any]  # trees of JSON
        return self.api.all(EVENTS)

    @property
    def asked(self) -> list[str]:
        return [asked.split()[0] for asked in self.api.asked]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.task.cancel()
    await asyncio.gather(made.task, return_exceptions=True)


async def test_event_about_the_node_is_as_the_api_asks(bench: Bench) -> None:
    bench.events.tell("DeviceLost", "toy/a is gone")
    await settled()

    (event,) = bench.sent
    name = event["metadata"].pop("name")
    assert name.startswith("n1.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "accelkit.dev/agent",
        "reportingInstance": "n1",
        "action": "DeviceLost",
        "reason": "DeviceLost",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
        "note": "toy/a is gone",
        "type": "Warning",
    }


async def test_event_that_quotes_a_user_is_one_printable_line(bench: Bench) -> None:
    bench.events.tell("PrepareFailed", "$.a\x1b[2J\ud800: unknown key\n$.b: missing", claim=CLAIM)
    await settled()

    (event,) = bench.sent
    assert event["note"] == "$.a\ufffd[2J\ufffd: unknown key; $.b: missing"


async def test_event_about_a_pod_or_a_claim_is_in_its_namespace(bench: Bench) -> None:
    bench.events.tell("PrepareFailed", "no", claim=CLAIM, pod=POD)
    bench.events.tell("ReleaseFailing", "busy", claim=CLAIM)
    bench.events.tell("DeviceRecovered", "well", warning=False)
    await settled()

    assert [
        (e["metadata"]["namespace"], e["regarding"]["kind"], e["type"]) for e in bench.sent
    ] == [
        ("team", "Pod", "Warning"),
        ("team", "ResourceClaim", "Warning"),
        ("default", "Node", "Normal"),
    ]
    assert bench.sent[1]["regarding"] == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "namespace": "team",
        "name": "claim",
        "uid": "c-1",
    }


async def test_event_about_a_claim_of_which_only_the_uid_is_known_is_about_the_node(
    bench: Bench,
) -> None:
    nameless = ClaimRef(uid="c-1", namespace="", name="")
    bench.events.tell("LedgerEntryQuarantined", "claim c-1 cannot be read", claim=nameless)
    await settled()

    assert [event["regarding"]["kind"] for event in bench.sent] == ["Node"]


async def test_repeated_event_is_one_object_whose_count_grows_once_a_minute(bench: Bench) -> None:
    for _ in range(5):
        bench.events.tell("PrepareFailed", "no", pod=POD)
        await bench.clock.advance(10.0)
    before = [event.get("series") for event in bench.sent]
    await bench.clock.advance(60.0)
    bench.events.tell("PrepareFailed", "no", pod=POD)
    await bench.clock.advance(60.0)

    assert before == [None]
    assert [event["series"]["count"] for event in bench.sent] == [6]
    assert bench.sent[0]["series"]["lastObservedTime"] == "2030-01-01T00:01:50.000000Z"
    assert bench.asked == ["create", "patch", "patch"]


async def test_repetition_after_a_long_while_is_an_event_of_its_own(bench: Bench) -> None:
    bench.events.tell("DeviceLost", "toy/a is gone")
    await bench.clock.advance(events.SERIES_S + 1.0)
    bench.events.tell("DeviceLost", "toy/a is gone")
    await settled()

    assert len(bench.sent) == 2


async def test_event_that_the_server_has_forgotten_is_made_anew(bench: Bench) -> None:
    bench.events.tell("DeviceLost", "toy/a is gone")
    await settled()
    bench.api.objects.clear()
    bench.events.tell("DeviceLost", "toy/a is gone")
    await bench.clock.advance(61.0)

    assert [event["series"]["count"] for event in bench.sent] == [2]
    assert bench.asked == ["create", "patch", "create"]


async def test_requests_are_limited_and_nothing_told_is_forgotten() -> None:
    bench = Bench(per_minute=3)
    for number in range(7):
        bench.events.tell("DeviceUnhealthy", f"toy/{number} is unhealthy")
    await settled()
    at_once = len(bench.sent)
    await bench.clock.advance(61.0)
    after_a_minute = len(bench.sent)
    await bench.clock.advance(61.0)
    bench.task.cancel()

    assert (at_once, after_a_minute, len(bench.sent)) == (3, 6, 7)
    assert [event["note"][4] for event in bench.sent] == list("0123456")


async def test_events_wait_for_an_api_server_that_is_away(bench: Bench) -> None:
    bench.api.down = True
    bench.events.tell("DeviceLost", "toy/a is gone")
    bench.events.tell("DeviceLost", "toy/a is gone")
    await bench.clock.advance(5.0)
    tries = len(bench.api.asked)
    bench.api.down = False
    await bench.clock.advance(60.0)

    assert tries == 3  # at once, after 1 s and after 3 s
    assert [event["series"]["count"] for event in bench.sent] == [2]
    assert bench.problems.all == ()


async def test_server_that_refuses_events_is_a_problem_until_it_takes_one(bench: Bench) -> None:
    bench.api.refuse = ApiError("events is forbidden", status=403)
    bench.events.tell("DeviceLost", "toy/a is gone")
    await settled()
    noted = [(p.code, p.reason) for p in bench.problems.all]
    bench.api.refuse = None
    bench.events.tell("DeviceLost", "toy/b is gone")
    await settled()

    assert noted == [("events-refused", "the API server does not take events: events is forbidden")]
    assert [event["note"] for event in bench.sent] == ["toy/b is gone"]
    assert bench.problems.all == ()


async def test_event_whose_first_answer_was_lost_is_not_sent_twice(bench: Bench) -> None:
    bench.api.refuse = ApiError("already exists", status=409)
    bench.events.tell("DeviceLost", "toy/a is gone")
    await bench.clock.advance(120.0)

    assert bench.asked == ["create"]
    assert bench.problems.all == ()


async def test_note_is_cut_at_a_character(bench: Bench) -> None:
    bench.events.tell("DeviceLost", "ü" * 1000)
    await settled()

    assert bench.sent[0]["note"] == "ü" * 512


async def test_most_events_that_wait_are_bounded(bench: Bench) -> None:
    bench.api.down = True
    for number in range(events.MOST_SERIES + 40):
        bench.events.tell("DeviceUnhealthy", str(number))

    assert len(bench.events._series) == events.MOST_SERIES


async def test_events_are_only_logged_where_no_api_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = HeldClock()
    api: list[Api] = [Api()]
    told = Events("n1", lambda: api[0] if api else None, lambda: 20, clock, Problems(clock.now))
    told.tell("DeviceLost", "toy/a is gone")
    api.clear()
    task = asyncio.create_task(told.send())
    with caplog.at_level(logging.INFO):
        told.tell("ReleaseFailing", "busy", claim=CLAIM, pod=POD)
    await settled()
    task.cancel()

    record = caplog.records[-1]
    assert (record.message, record.__dict__["reason"]) == ("event", "ReleaseFailing")
    assert (record.__dict__["claim"], record.__dict__["pod"]) == ("team/claim", "team/trainer")
    assert len(told._series) == 1
