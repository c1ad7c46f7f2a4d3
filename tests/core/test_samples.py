"""What of measures is written."""

import math

import pytest

from accelkit.core.allocation import Sample
from accelkit.core.model import Device, DeviceId, Placement
from accelkit.core.samples import Measured, believed, series_of
from accelkit.core.telemetry import MEASURES
from accelkit.core.values import FrozenMap
from tests.core.things import gpu, of

WARM = "hw_temperature_celsius"


def sample(metric: str = WARM, value: float = 40.0, name: str = "a", **labels: str) -> Sample:
    return Sample(device=of(name), metric=metric, value=value, labels=FrozenMap(labels))


def known(*devices: Device) -> dict[DeviceId, Device]:
    return {d.id: d for d in devices or (gpu("a"),)}


def test_measures_are_kept_with_their_labels_in_the_order_of_the_list() -> None:
    io = sample("hw_gpu_io_bytes_total", 7.0, direction="in", link="3")

    kept, wrong = believed([sample(sensor="gpu"), sample("hw_power_watts", 9.0), io], known())

    assert wrong == {}
    assert kept == (
        Measured(of("a"), WARM, ("gpu",), 40.0),
        Measured(of("a"), "hw_power_watts", (), 9.0),
        Measured(of("a"), "hw_gpu_io_bytes_total", ("3", "in"), 7.0),
    )


def test_of_a_series_that_is_given_twice_the_last_one_counts() -> None:
    kept, _ = believed([sample(value=40.0), sample(value=41.0)], known())

    assert [one.value for one in kept] == [41.0]


@pytest.mark.parametrize("device", [None, of("gone")])
def test_what_is_of_no_device_is_left_out(device: object) -> None:
    lost = Sample(device=device, metric=WARM, value=1.0)  # type: ignore[arg-type]  # both kinds

    assert believed([lost], known()) == ((), {})


@pytest.mark.parametrize(
    "wrong, why",
    [
        (sample("power"), "it is not in the list of metrics"),
        (sample(place="gpu", colour="red"), "colour, place: it has no such label"),
        (sample(sensor="x" * 129), "a label is longer than 128 characters"),
        (sample(value=math.nan), "nan is no measure"),
        (sample(value=math.inf), "inf is no measure"),
        (sample("hw_errors_total", -1.0), "-1.0 is no count"),
    ],
)
def test_what_is_not_in_the_list_is_told_and_costs_nothing_else(wrong: Sample, why: str) -> None:
    kept, told = believed([wrong, sample("hw_power_watts", 9.0)], known())

    assert told == {wrong.metric: why}
    assert [one.metric for one in kept] == ["hw_power_watts"]


def test_less_than_nothing_is_fine_for_what_is_no_count() -> None:
    assert [one.value for one in believed([sample(value=-4.0)], known())[0]] == [-4.0]


def test_series_name_the_device_and_what_it_is() -> None:
    part = gpu("a-p", parent=of("a"), placement=Placement(profile="1g", start=0, size=1))
    measured, _ = believed([sample(sensor="gpu"), sample(name="a-p")], known(gpu("a"), part))

    found = series_of(measured, known(gpu("a", product="H"), part))

    assert found[WARM] == {
        ("toy/a", "toy", "H", "", "gpu"): 40.0,
        ("toy/a-p", "toy", part.product or "", "1g", ""): 40.0,
    }
    assert found.keys() == {metric.name for metric in MEASURES}


def test_devices_that_are_gone_have_no_series() -> None:
    measured, _ = believed([sample()], known())

    assert not any(series_of(measured, {}).values())
