"""Measures from vendors to the text that is scraped."""

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from accelkit.agent.measuring import Measuring
from accelkit.agent.metrics import Metrics
from accelkit.agent.problems import Problems
from accelkit.core.allocation import Sample
from accelkit.core.model import Device, Snapshot
from accelkit.core.policy import TelemetryNames
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from tests.agent.clocks import HeldClock
from tests.agent.toys import device

OTEL, DCGM = TelemetryNames.OTEL, TelemetryNames.DCGM
TOY = device("toy", "a")
VIEW = View(snapshot=Snapshot(node="n1", devices=(Device(id=TOY, kind="gpu", product="T"),)))


def power(watts: float, **labels: str) -> Sample:
    return Sample(device=TOY, metric="hw_power_watts", value=watts, labels=FrozenMap(labels))


def written(metrics: Metrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What a scraper reads of measures: labels and value of each series, by name."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            if sample.name.startswith(("hw_", "DCGM_", "accelkit_telemetry")):
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def measuring() -> tuple[Measuring, Problems, HeldClock]:
    clock = HeldClock()
    problems = Problems(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return Measuring(problems, clock), problems, clock


async def test_what_was_measured_last_is_written_with_its_age() -> None:
    kept, _, clock = measuring()
    metrics = Metrics()
    kept.learn("toy", (power(7.0),), VIEW)
    kept.learn("toy", (power(9.0),), VIEW)
    await clock.advance(20.0)

    kept.show(metrics, VIEW, (OTEL,), leading=True)

    assert written(metrics) == {
        "hw_power_watts": [
            ({"device": "toy/a", "vendor": "toy", "product": "T", "profile": ""}, 9.0)
        ],
        "accelkit_telemetry_age_seconds": [({"vendor": "toy"}, 20.0)],
    }


def test_only_who_leads_writes_measures() -> None:
    kept, _, _ = measuring()
    metrics = Metrics()
    kept.learn("toy", (power(7.0),), VIEW)
    kept.show(metrics, VIEW, (OTEL, DCGM), leading=True)
    before = written(metrics)
    kept.show(metrics, VIEW, (OTEL, DCGM), leading=False)

    assert before.keys() == {
        "hw_power_watts",
        "DCGM_FI_DEV_POWER_USAGE",
        "accelkit_telemetry_age_seconds",
    }
    assert written(metrics) == {}


def test_names_are_those_of_the_policy() -> None:
    kept, _, _ = measuring()
    metrics = Metrics()
    kept.learn("toy", (power(7.0),), VIEW)

    kept.show(metrics, VIEW, (DCGM,), leading=True)

    assert written(metrics).keys() == {"DCGM_FI_DEV_POWER_USAGE", "accelkit_telemetry_age_seconds"}


def test_what_is_not_in_the_list_is_a_problem_until_it_is_measured_no_more() -> None:
    kept, problems, _ = measuring()
    kept.learn("toy", (power(7.0, colour="red"),), VIEW)
    noted = [(p.code, p.subject, p.reason) for p in problems.all]
    kept.learn("toy", (power(7.0),), VIEW)

    assert noted == [
        (
            "sample-refused",
            "toy hw_power_watts",
            "toy measures hw_power_watts: colour: it has no such label",
        )
    ]
    assert problems.all == ()
