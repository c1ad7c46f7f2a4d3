import logging
from datetime import UTC, datetime, timedelta

import pytest

from accelkit.agent.problems import Problems

START = datetime(2027, 1, 1, tzinfo=UTC)


def noted() -> tuple[Problems, list[datetime]]:
    times = [START + timedelta(seconds=n) for n in range(10)]
    return Problems(lambda: times.pop(0)), times


def test_problem_is_kept_until_it_is_solved() -> None:
    problems, _ = noted()
    problems.note("kubelet", "no-socket", "/x", "it is not there", "make it")

    (kept,) = problems.all
    assert (kept.code, kept.subject, kept.reason, kept.remedy, kept.since) == (
        "no-socket",
        "/x",
        "it is not there",
        "make it",
        START,
    )
    problems.solve("kubelet", "no-socket", "/x")
    problems.solve("kubelet", "no-socket", "/x")
    assert problems.all == ()


def test_same_problem_replaces_and_keeps_its_time() -> None:
    problems, _ = noted()

    problems.note("kubelet", "x", "s", "first")
    problems.note("kubelet", "x", "s", "second")

    assert [(p.reason, p.since) for p in problems.all] == [("second", START)]


def test_same_problem_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    problems, _ = noted()

    with caplog.at_level(logging.INFO):
        for _ in range(3):
            problems.note("kubelet", "x", "s", "why")
        problems.solve("kubelet", "x", "s")

    assert [record.message for record in caplog.records] == ["problem noted", "problem solved"]


def test_nobody_solves_the_problem_of_another() -> None:
    problems, _ = noted()
    problems.note("kubelet", "x", "s", "why")

    problems.solve("agent", "x", "s")

    assert len(problems.all) == 1
