import pytest

from accelkit import Sample
from accelkit.core.samples import believed
from tests.vendors.nvidia.bench import Bench, Make


def told(made: Bench) -> dict[tuple[str, str, str], float]:
    """Value by device, metric and own label."""
    samples: list[Sample] = list(made.vendor.samples(made.host, made.devices()))
    _, wrong = believed(samples, {d.id: d for d in made.devices()})
    assert wrong == {}
    return {
        (s.device.name, s.metric, next(iter(s.labels.values()), "")): s.value
        for s in samples
        if s.device is not None
    }


def test_gpus_are_measured_whether_somebody_uses_them_or_not(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("hold gpu-1 4711")
    idle, busy = (d.id.name for d in made.devices())

    found = told(made)

    used = [found[n, "hw_gpu_utilization_ratio", "general"] for n in (idle, busy)]
    assert used == [0.0, 0.9]
    assert [found[n, "hw_memory_usage_bytes", ""] for n in (idle, busy)] == [0.0, 2.0**30]
    assert found[idle, "hw_memory_size_bytes", ""] == 81465 * 2.0**20
    assert found[idle, "hw_temperature_celsius", "gpu"] == 33.0
    assert [found[busy, f"hw_power_{k}watts", ""] for k in ("", "limit_")] == [520.0, 700.0]
    assert found[idle, "hw_energy_joules_total", ""] == 3600.0
    clocks = [found[busy, "hw_frequency_hertz", k] for k in ("compute", "memory")]
    assert clocks == [1.98e9, 2.619e9]
    assert found[busy, "hw_errors_total", "pcie-replay"] == 0.0


def test_memory_has_a_sensor_of_its_own_where_the_gpu_has_one(bench: Make) -> None:
    with_one, without = (told(bench(product, 1)) for product in ("h100", "l4"))

    warm, cold = (
        {own: value for (_, metric, own), value in found.items() if "celsius" in metric}
        for found in (with_one, without)
    )
    assert warm == {"gpu": 33.0, "memory": 43.0}
    assert cold == {"gpu": 33.0}


@pytest.mark.parametrize(
    "symbol, code",
    [("nvmlDeviceGetTemperature", "error 26"), ("nvmlDeviceGetTemperatureV", "error 13")],
)
def test_temperature_is_told_whichever_function_the_driver_has(
    bench: Make, symbol: str, code: str
) -> None:
    """The older one is deprecated since CUDA 13."""
    made = bench("h100", 1)
    (device,) = made.devices()
    made.fail(symbol, code)

    assert told(made)[device.id.name, "hw_temperature_celsius", "gpu"] == 33.0


def test_errors_are_counted_by_type(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("ecc gpu-0 3")
    (device,) = made.devices()

    found = told(made)

    kinds = [found[device.id.name, "hw_errors_total", k] for k in ("corrected", "uncorrected")]
    assert kinds == [0.0, 3.0]


def test_partition_has_its_memory_and_its_gpu_all_else(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "hold gpu-0 9 0")
    gpu, part = (d.id.name for d in made.devices())

    found = told(made)

    assert {metric for name, metric, _ in found if name == part} == {
        "hw_memory_usage_bytes",
        "hw_memory_size_bytes",
    }
    assert found[part, "hw_memory_usage_bytes", ""] == 2.0**30
    assert found[part, "hw_memory_size_bytes", ""] == 9984 * 2.0**20
    assert (gpu, "hw_gpu_utilization_ratio", "general") not in found
    assert (gpu, "hw_power_watts", "") in found


def test_gpu_that_cannot_be_asked_costs_the_others_nothing(bench: Make) -> None:
    made = bench("h100", 2)
    devices = made.devices()
    made.do("lose gpu-0")

    samples = made.vendor.samples(made.host, devices)

    assert {s.device for s in samples} == {devices[1].id}


@pytest.mark.parametrize(
    "function, metric",
    [
        ("nvmlDeviceGetPowerUsage", "hw_power_watts"),
        ("nvmlDeviceGetUtilizationRates", "hw_gpu_utilization_ratio"),
        ("nvmlDeviceGetMemoryInfo", "hw_memory_usage_bytes"),
    ],
)
def test_what_a_driver_does_not_tell_is_left_out_and_is_not_zero(
    bench: Make, function: str, metric: str
) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.fail(function, "error 3")

    found = {
        (s.metric, s.labels.get("task", "general"))
        for s in made.vendor.samples(made.host, (device,))
    }

    assert (metric, "general") not in found
    assert ("hw_temperature_celsius", "general") in found
