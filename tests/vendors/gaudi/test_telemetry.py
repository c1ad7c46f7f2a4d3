import pytest

from accelkit import SourceError
from accelkit.core.telemetry import BY_NAME, DEVICE_LABELS
from tests.vendors.gaudi.bench import Bench, Make
from tests.vendors.gaudi.doors import Said

ERRORS = "RxErr 0\nTOTAL_ERR_COR 7\n"


def metrics(made: Bench, said: dict[str, str | SourceError] | None = None) -> dict[str, float]:
    devices = made.devices()
    samples = made.vendor.samples(Said(made.host, said or {}), devices)
    return {" ".join([s.metric, *s.labels.values()]): s.value for s in samples}


def test_card_is_measured_in_base_units(bench: Make) -> None:
    assert metrics(bench("gaudi2", 1), {"aer_dev_correctable": ERRORS}) == {
        "hw_memory_size_bytes": 96 << 30,
        "hw_temperature_celsius temp1": 35.0,
        "hw_power_watts": 90.0,
        "hw_power_limit_watts": 600.0,
        "hw_frequency_hertz compute": 1_650_000_000,
        "hw_errors_total pcie-correctable": 7,
    }


def test_measures_have_the_names_and_labels_of_the_standard(bench: Make) -> None:
    made = bench(count=1)
    door = Said(made.host, {"aer_dev_correctable": ERRORS})

    for sample in made.vendor.samples(door, made.devices()):
        assert {*sample.labels} == {*BY_NAME[sample.metric].labels} - {*DEVICE_LABELS}


def test_card_in_reset_is_measured_as_far_as_it_answers(bench: Make) -> None:
    away = SourceError("No such device", operation="read")
    found = metrics(
        bench(count=1),
        dict.fromkeys(("temp1_input", "power1_input", "clk_cur_freq_mhz", "max_power"), away),
    )

    assert found == {"hw_memory_size_bytes": 128 << 30}


@pytest.mark.parametrize("said", ["", "hot", "nan", "1e400", "-99999999", "9" * 400])
def test_nonsense_is_not_measured(bench: Make, said: str) -> None:
    found = metrics(
        bench(count=1),
        {
            "temp1_input": said,
            "power1_input": said,
            "clk_cur_freq_mhz": said,
            "max_power": said,
            "aer_dev_fatal": f"TOTAL_ERR_FATAL {said}",
        },
    )

    assert found.keys() <= {"hw_memory_size_bytes", "hw_errors_total pcie-fatal"}
    assert all(value < 1 << 54 for value in found.values())


def test_card_that_is_gone_has_no_measures_but_its_size(bench: Make) -> None:
    made = bench(count=1)
    devices = made.devices()
    made.do("remove gaudi-0")

    assert [s.metric for s in made.vendor.samples(made.host, devices)] == ["hw_memory_size_bytes"]
