from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from accelkit.agent.figures import show, show_events, show_problems
from accelkit.agent.metrics import Metrics
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Evidence,
    Holder,
    Holding,
    Locality,
    Problem,
    Snapshot,
)
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, Health, HolderKind, Severity
from accelkit.core.view import Assignment, Verdict, View

A = DeviceId(vendor="toy", name="a")
B = DeviceId(vendor="toy", name="b")
NOW = datetime(2027, 1, 1, tzinfo=UTC)
VIEW = View(
    snapshot=Snapshot(
        devices=(
            Device(
                id=A,
                kind="toy",
                product="T 1",
                aliases=frozenset({"UUID-1"}),
                locality=Locality(pci_address="0000:01:00.0", numa_node=0),
            ),
            Device(id=B, kind="toy"),
        )
    ),
    verdicts=FrozenMap(
        {
            A: Verdict(
                health=Health.UNHEALTHY,
                reasons=(Condition(code="on-fire", severity=Severity.FATAL),),
            ),
            B: Verdict(health=Health.HEALTHY),
        }
    ),
    assignments=FrozenMap({A: Assignment(terms=Offer(name="all")), B: Assignment(terms=None)}),
    holdings=(
        Holding(
            device=A,
            share="0",
            through="kubelet",
            holder=Holder(kind=HolderKind.POD, namespace="ns", pod="p", container="c"),
        ),
    ),
    revision="abc",
)


def series(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Label values to value, of one metric."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == name
    }


def test_view_becomes_gauges() -> None:
    metrics = Metrics()

    show(metrics, VIEW)

    assert series(metrics, "accelkit_devices") == {
        ("toy", "toy", "all", "UNHEALTHY", "PRESENT"): 1,
        ("toy", "toy", "", "HEALTHY", "PRESENT"): 1,
    }
    assert set(series(metrics, "accelkit_device_info")) == {
        ("toy/a", "toy", "toy", "T 1", "", "", "all", "0", "0000:01:00.0"),
        ("toy/b", "toy", "toy", "", "", "", "", "", ""),
    }
    health = series(metrics, "accelkit_device_health")
    assert {labels for labels, value in health.items() if value} == {
        ("toy/a", "UNHEALTHY"),
        ("toy/b", "HEALTHY"),
    }
    assert len(health) == 6
    assert series(metrics, "accelkit_device_condition") == {("toy/a", "on-fire", "FATAL"): 1}
    assert series(metrics, "accelkit_device_holder") == {
        ("toy/a", "0", "ns", "p", "c", "", "kubelet"): 1
    }
    assert series(metrics, "accelkit_policy_info") == {("abc",): 1}


def test_series_of_the_view_before_end() -> None:
    metrics = Metrics()
    show(metrics, VIEW)

    show(metrics, View())

    assert series(metrics, "accelkit_device_info") == {}
    assert series(metrics, "accelkit_policy_info") == {("",): 1}


def test_device_whose_verdict_is_not_there_counts_as_unknown() -> None:
    metrics = Metrics()

    show(metrics, View(snapshot=VIEW.snapshot))

    assert series(metrics, "accelkit_devices") == {("toy", "toy", "", "UNKNOWN", "PRESENT"): 2}


def test_problems_are_counted_by_vendor_and_code() -> None:
    metrics = Metrics()
    problems = [Problem(vendor="toy", subject=name, code="x") for name in "ab"]

    show_problems(metrics, [*problems, Problem(code="config-invalid")])

    assert series(metrics, "accelkit_problems") == {("toy", "x"): 2, ("", "config-invalid"): 1}


def test_events_are_counted_by_device_whatever_it_was_called() -> None:
    metrics = Metrics()
    heard = [
        Evidence(vendor="toy", subject=s, code="x", source="l", count=n, first=NOW, last=NOW)
        for s, n in (("a", 1), ("UUID-1", 2), ("0000:01:00.0", 3), ("", 4), ("stranger", 5))
    ]

    show_events(metrics, VIEW, heard)

    assert series(metrics, "accelkit_device_events_total") == {("toy/a", "x"): 6, ("toy", "x"): 9}


def test_what_library_and_kernel_both_tell_counts_once() -> None:
    metrics = Metrics()
    heard = [
        Evidence(vendor="toy", subject=s, code="x", source=by, count=n, first=NOW, last=NOW)
        for s, by, n in (("UUID-1", "library", 2), ("0000:01:00.0", "kernel", 3))
    ]

    show_events(metrics, VIEW, heard)

    assert series(metrics, "accelkit_device_events_total") == {("toy/a", "x"): 3}
