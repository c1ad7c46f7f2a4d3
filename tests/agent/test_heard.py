"""What was heard lasts, counts once, and goes when an operator says so."""

from datetime import timedelta

import pytest

from accelkit.agent.heard import MOST_CLEARED, Cleared, Heard, Numbered, Told
from accelkit.core.model import Event, Evidence
from accelkit.core.values import FrozenMap
from tests.core.things import LATER, START


def event(code: str = "xid-79", subject: str | None = "a") -> Event:
    return Event(subject=subject, code=code, source="kernel")


def entry(code: str = "xid-79", count: int = 1, subject: str = "a") -> Evidence:
    return Evidence(
        vendor="toy",
        subject=subject,
        code=code,
        source="kernel",
        count=count,
        first=START,
        last=START,
    )


def counts(heard: Heard) -> dict[str, int]:
    return {e.code: e.count for e in heard.evidence}


def taking(heard: Heard, *numbered: tuple[int, str]) -> Heard:
    for number, code in numbered:
        heard.take("toy", [event(code)], START, at=Numbered("kernel", number))
    return heard


def next_instance(heard: Heard) -> Heard:
    after = Heard()
    after.recall(heard.told)
    return after


def test_lines_that_the_next_instance_reads_again_count_once() -> None:
    first = taking(Heard(), (3, "xid-79"), (7, "xid-79"), (9, "xid-63"))

    second = taking(next_instance(first), (3, "xid-79"), (7, "xid-79"), (9, "xid-63"))

    assert second.told == first.told


def test_vendor_that_hears_later_than_another_hears_nothing_twice() -> None:
    first = taking(Heard(), (3, "xid-79"))
    first.take("other", [event("lost")], START, at=Numbered("kernel", 5))
    first.clear(first.evidence)
    second = next_instance(first)

    second.take("other", [event("lost")], START, at=Numbered("kernel", 5))
    taking(second, (3, "xid-79"))

    assert second.evidence == ()


def test_lines_that_came_while_no_instance_ran_are_heard() -> None:
    second = taking(next_instance(taking(Heard(), (3, "xid-79"))), (3, "xid-79"), (4, "xid-79"))

    assert counts(second) == {"xid-79": 2}


def test_line_whose_meaning_only_the_next_version_knows_is_heard_then() -> None:
    second = taking(next_instance(taking(Heard(), (5, "xid-79"))), (2, "xid-154"), (5, "xid-79"))

    assert counts(second) == {"xid-154": 1, "xid-79": 1}


def test_what_was_cleared_stays_so_when_its_line_is_read_again() -> None:
    first = taking(Heard(), (3, "xid-79"))
    first.clear(first.evidence)

    second = taking(next_instance(first), (3, "xid-79"))
    before = second.evidence
    taking(second, (4, "xid-79"))

    assert before == ()
    assert counts(second) == {"xid-79": 1}


def test_log_that_begins_anew_is_all_news() -> None:
    """As of a simulated machine that was booted."""
    second = taking(next_instance(taking(Heard(), (8, "xid-79"))), (8, "xid-79"))

    taking(second, (0, "xid-79"), (1, "xid-79"))

    assert counts(second) == {"xid-79": 3}


def test_what_libraries_tell_always_counts() -> None:
    second = next_instance(taking(Heard(), (3, "xid-79")))

    second.take("toy", [event()], LATER)

    assert [(e.count, e.last) for e in second.evidence] == [(2, LATER)]


def test_who_follows_takes_over_what_the_leader_heard_and_keeps_its_own() -> None:
    heard = taking(Heard(), (3, "own"))

    news = heard.join(
        Told(evidence=(entry("theirs", 4),), numbers=FrozenMap({"toy/kernel": 2, "uevent": 1}))
    )

    assert news
    assert counts(heard) == {"own": 1, "theirs": 4}
    assert heard.told.numbers == {"toy/kernel": 3, "uevent": 1}


def test_what_both_heard_counts_once() -> None:
    heard = taking(Heard(), (3, "xid-79"), (4, "xid-79"))
    late = Evidence(
        vendor="toy",
        subject="a",
        code="xid-79",
        source="nvml",
        count=1,
        first=START - timedelta(hours=1),
        last=LATER,
    )

    heard.join(Told(evidence=(late,)))

    [found] = heard.evidence
    assert (found.count, found.first, found.last, found.source) == (2, late.first, LATER, "nvml")


def test_the_same_again_is_no_news() -> None:
    heard = taking(Heard(), (3, "xid-79"))

    assert not heard.join(heard.told)


def test_what_the_leader_cleared_is_gone_for_who_follows() -> None:
    leader = taking(Heard(), (3, "xid-79"), (4, "other"))
    follower = taking(Heard(), (3, "xid-79"), (4, "other"))
    leader.clear([e for e in leader.evidence if e.code == "xid-79"])

    follower.join(leader.told)
    again = follower.join(leader.told)
    taking(follower, (5, "xid-79"))
    follower.join(leader.told)

    assert not again
    assert counts(follower) == {"xid-79": 1, "other": 1}
    assert follower.told.clears == 1


def test_only_the_latest_clears_are_told() -> None:
    heard = Heard()
    for number in range(MOST_CLEARED + 3):
        heard.take("toy", [event(f"c{number}")], START)
        heard.clear(heard.evidence)

    assert heard.told.clears == MOST_CLEARED + 3
    assert len(heard.told.cleared) == MOST_CLEARED
    assert heard.told.cleared[-1] == Cleared(vendor="toy", subject="a", code="c258")


@pytest.mark.parametrize("subject,kept", [(None, ""), ("a", "a")])
def test_events_of_the_vendor_as_a_whole_are_cleared_too(subject: str | None, kept: str) -> None:
    heard = Heard()
    heard.take("toy", [event(subject=subject)], START)
    [found] = heard.evidence

    heard.clear([found])

    assert (found.subject, heard.evidence) == (kept, ())


def test_each_source_counts_for_itself() -> None:
    first = taking(Heard(), (8, "xid-79"))
    second = next_instance(first)

    second.take("toy", [event("wedged")], START, at=Numbered("uevent", 3))
    second.take("toy", [event("wedged")], START, at=Numbered("uevent", 4))

    assert counts(second) == {"xid-79": 1, "wedged": 2}
    assert second.told.numbers == {"toy/kernel": 8, "toy/uevent": 4}
