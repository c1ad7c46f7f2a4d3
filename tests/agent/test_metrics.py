import math
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from accelkit.agent.metrics import Metrics
from accelkit.core.errors import PluginContractError
from accelkit.core.telemetry import BUCKETS_S, METRICS, Metric, MetricType

COUNTER = Metric(name="c_total", type=MetricType.COUNTER, labels=("who",), help="Counts.")
PLAIN = Metric(name="p_total", type=MetricType.COUNTER, help="Counts without labels.")
GAUGE = Metric(name="g", type=MetricType.GAUGE, labels=("a", "b"), help="Shows.")
INFO = Metric(name="i_info", type=MetricType.INFO, labels=("version",), help="Tells.")
LATENCY = Metric(name="l_seconds", type=MetricType.HISTOGRAM, labels=("who",), help="Lasts.")


def metrics() -> Metrics:
    return Metrics((COUNTER, PLAIN, GAUGE, INFO, LATENCY))


def samples(made: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What the reference parser reads."""
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(made.text().decode())
        for sample in family.samples
    }


def test_counter_adds_up() -> None:
    made = metrics()

    made.count("c_total", ("x",))
    made.count("c_total", ("x",), 2)

    assert samples(made)["c_total", (("who", "x"),)] == 3


def test_counter_without_labels_begins_at_zero() -> None:
    assert samples(metrics()) == {("p_total", ()): 0}


def test_gauge_shows_the_last_value() -> None:
    made = metrics()

    made.set("g", 1, ("x", "y"))
    made.set("g", 0.25, ("x", "y"))

    assert samples(made)["g", (("a", "x"), ("b", "y"))] == 0.25


def test_info_is_a_gauge_that_is_one() -> None:
    made = metrics()

    made.set("i_info", 1, ("1.2.3",))

    assert samples(made)["i_info", (("version", "1.2.3"),)] == 1
    assert b"# TYPE i_info gauge\n" in made.text()


def test_replaced_series_end() -> None:
    made = metrics()
    made.replace("g", {("x", "1"): 1.0, ("y", "2"): 1.0})
    before = samples(made)

    made.replace("g", {("y", "2"): 7.0})

    assert ("g", (("a", "x"), ("b", "1"))) in before
    assert samples(made) == {("p_total", ()): 0, ("g", (("a", "y"), ("b", "2"))): 7}


def test_names_of_series_that_ended_are_forgotten() -> None:
    made = metrics()
    for n in range(500):
        made.replace("g", {("x", str(n)): 1.0})
        made.text()

    assert len(made._plain["g"]._prefixes) < 200


def test_histogram_counts_into_cumulative_buckets() -> None:
    made = metrics()
    for seconds in (0.0005, 0.001, 0.3, 100.0):
        made.observe("l_seconds", seconds, ("x",))
    found = samples(made)

    def bucket(bound: str) -> float:
        return found["l_seconds_bucket", (("who", "x"), ("le", bound))]

    assert [bucket(b) for b in ("0.001", "0.25", "0.5", "60", "+Inf")] == [2, 2, 3, 3, 4]
    assert found["l_seconds_count", (("who", "x"),)] == 4
    assert found["l_seconds_sum", (("who", "x"),)] == pytest.approx(100.3015)
    assert sum(name == "l_seconds_bucket" for name, _ in found) == len(BUCKETS_S) + 1


@pytest.mark.parametrize("value", ['quo"te', "back\\slash", "new\nline", "ünï", "", "a,b={}"])
def test_any_label_value_survives_the_parser(value: str) -> None:
    made = metrics()

    made.count("c_total", (value,))

    assert samples(made)["c_total", (("who", value),)] == 1


def test_what_is_not_utf_8_costs_only_its_characters() -> None:
    made = metrics()

    made.count("c_total", ("bad\udcff\x00name",))

    assert samples(made)["c_total", (("who", "bad\ufffd\ufffdname"),)] == 1


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300, -0.5, 2.0**53])
def test_any_number_survives_the_parser(value: float) -> None:
    made = metrics()

    made.set("g", value, ("x", "y"))

    assert samples(made)["g", (("a", "x"), ("b", "y"))] == value


def test_not_a_number_is_written_as_such() -> None:
    made = metrics()

    made.set("g", float("nan"), ("x", "y"))

    assert math.isnan(samples(made)["g", (("a", "x"), ("b", "y"))])


def test_collectors_run_before_each_text() -> None:
    made = metrics()
    made.collect_with(lambda: made.count("p_total"))

    made.text()

    assert samples(made)["p_total", ()] == 2


@pytest.mark.parametrize(
    "name, labels, text",
    [
        ("nope", (), "nope is not a counter in the list"),
        ("g", ("x", "y"), "g is not a counter"),
        ("c_total", (), re.escape("c_total has the labels who, not []")),
        ("p_total", ("x",), "p_total has the labels none"),
    ],
)
def test_count_of_what_is_not_in_the_list_is_refused(
    name: str, labels: tuple[str, ...], text: str
) -> None:
    with pytest.raises(PluginContractError, match=text):
        metrics().count(name, labels)


def test_other_kinds_are_refused_alike() -> None:
    made = metrics()

    with pytest.raises(PluginContractError, match="c_total is not a gauge or info"):
        made.set("c_total", 1, ("x",))
    with pytest.raises(PluginContractError, match="c_total is not a histogram"):
        made.observe("c_total", 1, ("x",))
    with pytest.raises(PluginContractError, match="g has the labels a, b"):
        made.replace("g", {("x",): 1.0})
    with pytest.raises(PluginContractError, match="l_seconds is not a gauge"):
        made.replace("l_seconds", {("x",): 1.0})


def test_the_list_is_written_with_help_and_type_and_no_series_twice() -> None:
    text = Metrics().text().decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]

    assert sorted(names) == sorted(metric.name for metric in METRICS)
    assert len(set(names)) == len(names)
    assert text.endswith("\n")


def test_the_list_keeps_to_the_conventions_of_names() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"accelkit_[a-z_]+", metric.name)
        assert (metric.type is MetricType.COUNTER) == metric.name.endswith("_total")
        assert (metric.type is MetricType.INFO) == metric.name.endswith("_info")
        assert (metric.unit == "seconds") == metric.name.endswith("_seconds")
        assert "le" not in metric.labels
