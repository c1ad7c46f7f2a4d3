"""Devices that recover, and devices that will not stop falling ill."""

from datetime import timedelta

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.damping import (
    FLAPPING,
    NODE_MISSING,
    RECOVERING,
    SERVICE_MISSING,
    forgiven,
)
from accelkit.core.health import assess, judge, next_change
from accelkit.core.model import Condition, Snapshot
from accelkit.core.policy import Flap, HealthPolicy, SeverityOverride
from accelkit.core.units import Seconds
from accelkit.core.values import FrozenMap, Health, Severity, Standing
from accelkit.core.view import Past, Verdict
from tests.core.things import START, fatal, gpu, info, of

USUAL = HealthPolicy()
AT_ONCE = HealthPolicy(recover_after=Seconds(0))
HEALTHY, UNHEALTHY, UNKNOWN = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
ILL, WELL = (fatal(),), ()


def course(
    *looks: tuple[float, tuple[Condition, ...]], policy: HealthPolicy = USUAL
) -> list[Verdict]:
    """The verdict at each look, which is a time and the conditions seen then."""
    verdicts: list[Verdict] = []
    for at_s, told in looks:
        now = START + timedelta(seconds=at_s)
        verdicts.append(assess(told, verdicts[-1] if verdicts else None, at_s, policy, now=now))
    return verdicts


def codes(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.reasons]


def past_of(verdict: Verdict) -> Past:
    assert verdict.past is not None
    return verdict.past


def test_a_fault_that_is_gone_must_stay_away_for_a_while() -> None:
    looks = (0.0, WELL), (5.0, ILL), (10.0, WELL), (69.9, WELL), (70.0, WELL)

    assert [v.health for v in course(*looks)] == [HEALTHY, UNHEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY]


def test_who_waits_for_a_fault_to_stay_away_is_told_what_and_until_when() -> None:
    verdict = course((0.0, ILL), (10.0, (info(),)))[-1]

    assert (codes(verdict), verdict.until) == ([RECOVERING, "warm"], START + timedelta(seconds=70))
    assert verdict.reasons[0].message == "burnt: gone, but not yet for 1m"
    assert verdict.reasons[0].since == START + timedelta(seconds=10)


def test_a_fault_that_comes_back_in_time_starts_the_wait_anew() -> None:
    verdicts = course((0.0, ILL), (10.0, WELL), (50.0, ILL), (60.0, WELL), (119.0, WELL))

    assert verdicts[-1].health is UNHEALTHY
    assert verdicts[-1].since_s == 0.0


def test_a_lasting_fault_has_no_end() -> None:
    verdict = course((0.0, ILL), (500.0, ILL))[-1]

    assert (codes(verdict), verdict.until) == (["burnt"], None)
    assert next_change({of("a"): verdict}, USUAL) is None


def test_without_a_wait_who_is_well_is_healthy_at_once() -> None:
    assert course((0.0, ILL), (1.0, WELL), policy=AT_ONCE)[-1].health is HEALTHY


@pytest.mark.parametrize("code", [NODE_MISSING, SERVICE_MISSING])
def test_what_comes_up_a_moment_later_has_not_to_prove_it(code: str) -> None:
    verdicts = course((0.0, (fatal(code),)), (1.0, WELL))

    assert [v.health for v in verdicts] == [UNHEALTHY, HEALTHY]


@pytest.mark.parametrize("code,held", [(NODE_MISSING, [FLAPPING]), (SERVICE_MISSING, [])])
def test_files_that_come_and_go_are_flapping_and_daemons_are_not(
    code: str, held: list[str]
) -> None:
    verdicts = course(*((float(i), (fatal(code),) if i % 2 else WELL) for i in range(9)))

    assert codes(verdicts[-1]) == held


def test_a_file_that_is_missing_meanwhile_ends_no_wait() -> None:
    verdicts = course((0.0, ILL), (1.0, WELL), (2.0, (fatal(NODE_MISSING),)), (3.0, WELL))

    assert codes(verdicts[-1]) == [RECOVERING]


def test_who_changes_too_often_is_held_and_then_what_it_is() -> None:
    fast = [(60.0 * i, ILL if i % 2 else WELL) for i in range(5)]
    end = 240.0 + USUAL.flap.hold

    verdicts = course(*fast, (end - 1.0, WELL), (end, WELL))

    assert [codes(v) for v in verdicts[-3:]] == [[FLAPPING, RECOVERING], [FLAPPING], []]
    assert verdicts[-3].until == START + timedelta(seconds=end)
    assert verdicts[-1].health is HEALTHY
    assert verdicts[-2].reasons[0].since == START + timedelta(seconds=240)


def test_who_is_ill_at_the_end_of_the_hold_stays_unhealthy() -> None:
    fast = [(60.0 * i, ILL if i % 2 else WELL) for i in range(5)]

    verdicts = course(*fast, (300.0, ILL), (240.0 + USUAL.flap.hold, ILL))

    assert [codes(v) for v in verdicts[-2:]] == [["burnt", FLAPPING], ["burnt"]]


def test_slow_changes_are_no_flapping() -> None:
    slow = [(300.0 * i, ILL if i % 2 else WELL) for i in range(20)]

    assert all(FLAPPING not in codes(v) for v in course(*slow))


def test_who_goes_on_changing_is_held_again() -> None:
    on = [(60.0 * i, ILL if i % 2 else WELL) for i in range(80)]

    verdicts = course(*on, policy=AT_ONCE)

    held = [FLAPPING in codes(v) for v in verdicts]
    assert held.index(True) == 4
    assert all(held[4:])


def test_a_hold_is_as_long_as_the_policy_says_by_now() -> None:
    fast = [(float(i), ILL if i % 2 else WELL) for i in range(5)]
    before = course(*fast)[-1]
    short = HealthPolicy(recover_after=Seconds(0), flap=Flap(hold=Seconds(10)))

    assert assess(WELL, before, 14.0, short).health is HEALTHY


@given(st.lists(st.booleans(), max_size=40), st.booleans())
def test_every_course_ends_in_the_true_state(looks: list[bool], end: bool) -> None:
    verdicts = course(*((7.0 * i, ILL if ill else WELL) for i, ill in enumerate(looks)))
    previous = verdicts[-1] if verdicts else None
    at_s, told = 7.0 * len(looks), ILL if end else WELL

    for _ in range(10):
        previous = assess(told, previous, at_s, USUAL)
        at_s = next_change({of("a"): previous}, USUAL) or at_s

    assert previous == assess(told, None, at_s, USUAL)


def test_a_device_that_is_unknown_meanwhile_stays_held() -> None:
    ill, well = course((0.0, ILL), (10.0, WELL))

    stale = assess(WELL, well, 20.0, USUAL, known=False)
    later = assess(WELL, stale, 70.0, USUAL, known=False)

    assert [v.health for v in (ill, stale, later)] == [UNHEALTHY, UNHEALTHY, UNKNOWN]
    assert not later.overdue


@pytest.mark.parametrize("away_s,since_s", [(10.0, 0.0), (40.0, 140.0)])
def test_what_was_unknown_for_a_moment_is_as_it_was_before(away_s: float, since_s: float) -> None:
    before = assess(WELL, None, 0.0, USUAL, now=START)
    unknown = assess(WELL, before, 100.0, USUAL, known=False)
    last = assess(WELL, unknown, 100.0 + away_s, USUAL, known=False)

    assert assess(WELL, last, 100.0 + away_s, USUAL).since_s == pytest.approx(since_s)


def test_what_was_never_known_before_is_known_since_now() -> None:
    unknown = assess(WELL, None, 1.0, USUAL, known=False)

    assert assess(WELL, unknown, 2.0, USUAL).since_s == 2.0


def test_a_verdict_without_a_past_is_no_change() -> None:
    bare = Verdict(health=UNHEALTHY, reasons=ILL)
    unknown = Verdict(health=UNKNOWN)

    assert assess(WELL, bare, 5.0, USUAL).health is HEALTHY
    assert assess(WELL, unknown, 5.0, USUAL).since_s == 5.0
    assert next_change({of("a"): bare}, USUAL) is None


def test_what_the_operator_allows_has_not_to_prove_that_it_is_gone() -> None:
    allowed = SeverityOverride(vendor="toy", code="burnt", severity=Severity.INFO)
    other = SeverityOverride(vendor="toy", code="note", severity=Severity.FATAL)
    policy = HealthPolicy(overrides=(allowed, other))
    snapshot = Snapshot(devices=(gpu("a", conditions=ILL), gpu("b", vendor="other")))
    before = judge(snapshot, {}, 0.0, USUAL)

    after = judge(snapshot, before, 1.0, policy)

    assert after[of("a")].health is HEALTHY


def test_a_stale_device_with_a_fault_is_no_change() -> None:
    ill = gpu("a", conditions=ILL)
    before = judge(Snapshot(devices=(ill,)), {}, 0.0, USUAL)

    stale = attrs.evolve(ill, standing=Standing.STALE)
    after = judge(Snapshot(devices=(stale,)), before, 5.0, USUAL)

    assert past_of(after[of("a")]).changes == ()


def test_the_next_change_is_the_first_end_of_all() -> None:
    (*_, flapping) = course(*[(float(i), ILL if i % 2 else WELL) for i in range(5)])
    unknown = assess(WELL, None, 50.0, USUAL, known=False)
    verdicts = FrozenMap({of("a"): flapping, of("b"): unknown})

    assert next_change(verdicts, USUAL) == 4.0 + USUAL.recover_after


def test_an_operator_ends_every_hold() -> None:
    (*_, flapping) = course(*[(float(i), ILL if i % 2 else WELL) for i in range(5)])

    cleared = attrs.evolve(flapping, past=forgiven(past_of(flapping)))

    assert assess(WELL, cleared, 5.0, USUAL).health is HEALTHY


@pytest.mark.parametrize(
    "code,left",
    [("burnt", [FLAPPING]), (FLAPPING, [RECOVERING]), ("other", [FLAPPING, RECOVERING])],
)
def test_an_operator_ends_one_hold(code: str, left: list[str]) -> None:
    (*_, flapping) = course(*[(float(i), ILL if i % 2 else WELL) for i in range(5)])

    cleared = attrs.evolve(flapping, past=forgiven(past_of(flapping), code))

    assert codes(assess(WELL, cleared, 5.0, USUAL)) == left


def test_a_fault_that_lasts_is_not_forgiven() -> None:
    ill = course((0.0, WELL), (1.0, ILL))[-1]

    cleared = attrs.evolve(ill, past=forgiven(past_of(ill)))

    assert assess(WELL, cleared, 5.0, USUAL).health is UNHEALTHY
