from datetime import timedelta

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.health import assess, judge, next_change
from accelkit.core.model import Condition, Device, Snapshot
from accelkit.core.policy import Flap, HealthPolicy, SeverityOverride
from accelkit.core.units import Seconds
from accelkit.core.values import Health, Scope, Severity, Standing
from accelkit.core.view import Verdict
from tests.core.things import LATER, START, cut, fatal, gpu, info, of, part

USUAL = HealthPolicy()
UNDAMPED = HealthPolicy(recover_after=Seconds(0))
GRACE = USUAL.grace_for_unknown
HEALTHY, UNHEALTHY, UNKNOWN = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN

conditions = st.lists(
    st.builds(Condition, code=st.sampled_from(["a", "b", "c"]), severity=st.sampled_from(Severity)),
    max_size=3,
)


def healths(*devices: Device, policy: HealthPolicy = USUAL) -> dict[str, Health]:
    verdicts = judge(Snapshot(devices=devices), {}, 0.0, policy)
    return {i.name: verdict.health for i, verdict in verdicts.items()}


def test_a_device_without_conditions_is_healthy() -> None:
    assert assess((), None, 5.0, USUAL, now=START) == Verdict(health=HEALTHY)


@pytest.mark.parametrize(
    "severity,health",
    [(Severity.INFO, HEALTHY), (Severity.DEGRADED, HEALTHY), (Severity.FATAL, UNHEALTHY)],
)
def test_only_a_fatal_condition_makes_a_device_unhealthy(
    severity: Severity, health: Health
) -> None:
    said = Condition(code="xid-79", severity=severity)

    assert assess([said], None, 0.0, USUAL) == Verdict(health=health, reasons=(said,))


def test_a_device_that_cannot_be_asked_is_unknown_and_good_for_a_while() -> None:
    first = assess((), None, 100.0, USUAL, known=False)
    last = assess((), first, 99.5 + GRACE, USUAL, known=False)
    late = assess((), last, 100.0 + GRACE, USUAL, known=False)

    assert [(v.health, v.overdue, v.good) for v in (first, last, late)] == [
        (UNKNOWN, False, True),
        (UNKNOWN, False, True),
        (UNKNOWN, True, False),
    ]


def test_a_fatal_condition_last_seen_stays_while_the_device_cannot_be_asked() -> None:
    assert assess([fatal()], None, 0.0, USUAL, known=False).health is UNHEALTHY


def test_a_verdict_remembers_when_the_health_changed() -> None:
    first = assess([fatal()], None, 1.0, USUAL, now=START)
    same = assess([fatal(), info()], first, 2.0, USUAL, now=LATER)
    other = assess([], same, 3.0, UNDAMPED, now=LATER)

    assert [(v.since_s, v.since) for v in (first, same, other)] == [
        (1.0, START),
        (1.0, START),
        (3.0, LATER),
    ]


@given(conditions, conditions, st.booleans())
def test_whatever_was_before_health_ends_in_the_true_state(
    before: list[Condition], after: list[Condition], known: bool
) -> None:
    previous = assess(before, None, 0.0, USUAL, known=known)

    turned = assess(after, previous, 1.0, USUAL)
    verdict = assess(after, turned, 1.0 + USUAL.recover_after, USUAL)

    assert verdict == assess(after, None, 1000.0, USUAL)


def test_a_fatal_condition_of_one_device_leaves_its_tree_alone() -> None:
    tree = cut("gpu-0"), part("gpu-0", 0, conditions=(fatal(),)), part("gpu-0", 1)

    assert healths(*tree, gpu("gpu-1")) == {
        "gpu-0": HEALTHY,
        "gpu-0-1g-0": UNHEALTHY,
        "gpu-0-1g-1": HEALTHY,
        "gpu-1": HEALTHY,
    }


def test_a_fatal_condition_of_a_whole_device_alone_leaves_its_partitions_alone() -> None:
    tree = cut("gpu-0", conditions=(fatal(),)), part("gpu-0", 0)

    assert healths(*tree) == {"gpu-0": UNHEALTHY, "gpu-0-1g-0": HEALTHY}


@pytest.mark.parametrize("sick", ["gpu-0", "gpu-0-1g-1"])
def test_a_fatal_condition_of_a_tree_reaches_all_of_it_and_no_other(sick: str) -> None:
    burnt = fatal(scope=Scope.TREE)
    devices = [cut("gpu-0"), part("gpu-0", 0), part("gpu-0", 1), gpu("gpu-1")]
    devices = [attrs.evolve(d, conditions=(burnt,)) if d.id.name == sick else d for d in devices]

    verdicts = judge(Snapshot(devices=tuple(devices)), {}, 0.0, USUAL)

    assert {i.name: v.reasons for i, v in verdicts.items()} == {
        "gpu-0": (burnt,),
        "gpu-0-1g-0": (burnt,),
        "gpu-0-1g-1": (burnt,),
        "gpu-1": (),
    }


def test_a_fatal_condition_of_a_vendor_reaches_all_of_its_devices() -> None:
    down = fatal("fabric-down", scope=Scope.VENDOR)

    assert healths(gpu("a", conditions=(down,)), gpu("b"), gpu("c", vendor="other")) == {
        "a": UNHEALTHY,
        "b": UNHEALTHY,
        "c": HEALTHY,
    }


def test_of_several_conditions_with_one_code_the_worst_counts() -> None:
    worst = fatal("row-remap", scope=Scope.TREE)
    mild = Condition(code="row-remap", severity=Severity.INFO)
    tree = cut("gpu-0", conditions=(worst,)), part("gpu-0", 0, conditions=(mild,))

    verdicts = judge(Snapshot(devices=tree), {}, 0.0, USUAL)

    assert verdicts[of("gpu-0-1g-0")].reasons == (worst,)


def test_the_operator_overrides_severities_of_one_vendor() -> None:
    override = SeverityOverride(vendor="toy", code="burnt", severity=Severity.INFO)
    devices = gpu("a", conditions=(fatal(),)), gpu("b", vendor="other", conditions=(fatal(),))

    assert healths(*devices, policy=HealthPolicy(overrides=(override,))) == {
        "a": HEALTHY,
        "b": UNHEALTHY,
    }


def test_stale_devices_are_unknown_and_lost_ones_unhealthy() -> None:
    stale = gpu("a", standing=Standing.STALE)
    lost = gpu("b", standing=Standing.LOST, conditions=(fatal("lost"),))

    assert healths(stale, lost) == {"a": UNKNOWN, "b": UNHEALTHY}


def test_time_changes_first_who_was_unknown_first() -> None:
    verdicts = {
        of("a"): Verdict(health=UNKNOWN, since_s=20.0),
        of("b"): Verdict(health=UNKNOWN, since_s=10.0),
        of("c"): Verdict(health=UNKNOWN, since_s=1.0, overdue=True),
        of("d"): Verdict(health=HEALTHY, since_s=1.0),
    }

    assert next_change(verdicts, USUAL) == 40.0
    assert next_change({}, USUAL) is None


def test_times_alone_do_not_make_verdicts_differ() -> None:
    early = assess((), None, 0.0, USUAL, now=START)

    assert assess((), None, 9.0, USUAL, now=START + timedelta(hours=1)) == early


some_time = st.sampled_from([0.0, 0.1, 1.0, 60.0]).map(Seconds)
policies = st.builds(
    HealthPolicy,
    grace_for_unknown=some_time,
    recover_after=some_time,
    flap=st.builds(Flap, changes=st.integers(0, 2), within=some_time, hold=some_time),
)
looks = st.lists(st.tuples(some_time, conditions, st.booleans()), min_size=1, max_size=8)


@given(policies, looks, st.floats(0, 1e9))
def test_what_was_due_is_over_after_another_look_or_two(
    policy: HealthPolicy, told: list[tuple[Seconds, list[Condition], bool]], start_s: float
) -> None:
    verdict, now_s = None, start_s
    for passed, found, known in told:
        now_s += passed
        for _ in range(3):  # without a hold, flapping begins at one look and ends at the next
            verdict = assess(found, verdict, now_s, policy, known=known)

        assert verdict is not None
        due = next_change({gpu("a").id: verdict}, policy)
        assert due is None or due > now_s
