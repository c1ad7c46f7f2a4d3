import pytest

from accelkit import AccessDenied
from accelkit.core.host import READ_LIMIT, Door
from accelkit.core.telemetry import BY_NAME, DEVICE_LABELS
from accelkit.vendors.amd.products import PRODUCTS
from tests.vendors.amd.bench import Bench, Make


def samples(made: Bench) -> dict[tuple[str, str, str], float]:
    """Values by the position of the device, metric and labels."""
    devices = made.devices()
    names = {d.id: str(n) for n, d in enumerate(devices)}
    return {
        (names[s.device], s.metric, ",".join(s.labels.values())): s.value
        for s in made.vendor.samples(made.host, devices)
        if s.device is not None
    }


def test_gpu_measures_under_standard_names(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("busy gpu-0 40", "fill gpu-0 1000000", "ras gpu-0 umc 1 2", "ras gpu-0 gfx 3 4")

    assert samples(made) == {
        ("0", "hw_gpu_utilization_ratio", "general"): 0.4,
        ("0", "hw_gpu_utilization_ratio", "memory"): 0.2,
        ("0", "hw_memory_usage_bytes", ""): 1000000,
        ("0", "hw_memory_size_bytes", ""): 206141652992,
        ("0", "hw_temperature_celsius", "junction"): 45.0,
        ("0", "hw_temperature_celsius", "memory"): 40.0,
        ("0", "hw_power_watts", ""): 140.0,
        ("0", "hw_power_limit_watts", ""): 750.0,
        ("0", "hw_frequency_hertz", "compute"): 2100000000,
        ("0", "hw_errors_total", "uncorrected"): 4,
        ("0", "hw_errors_total", "corrected"): 6,
        ("0", "hw_errors_total", "pcie-replay"): 0,
    }


def test_partition_measures_its_memory(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX", "fill gpu-0 4096")
    found = samples(made)

    for part in ("1", "2"):
        assert found[part, "hw_memory_usage_bytes", ""] == 2048
        assert found[part, "hw_memory_size_bytes", ""] == 206141652992 // 2


def test_what_is_absent_is_not_zero(bench: Make) -> None:
    made = bench("rx7900", 1)
    gone = ("gpu_busy_percent", "mem_busy_percent", "mem_info_vram_used", "pcie_replay_count")
    for name in gone:
        made.do(f"hide gpu-0 {name}")
    for name in ("average", "cap"):
        made.do(f"hide gpu-0 hwmon/hwmon0/power1_{name}")
    metrics = {metric for _, metric, _ in samples(made)}

    assert metrics == {"hw_memory_size_bytes", "hw_temperature_celsius", "hw_frequency_hertz"}


def test_sensor_that_answers_nonsense_is_left_out(bench: Make) -> None:
    made = bench("rx7900", 1)
    made.do("busy gpu-0 400")
    (device,) = made.devices()
    made.put(made.function(device, "hwmon/hwmon0/temp2_input"), "-1000\n")
    metrics = [(metric, label) for _, metric, label in samples(made)]

    assert ("hw_gpu_utilization_ratio", "general") not in metrics
    assert ("hw_temperature_celsius", "junction") not in metrics
    assert ("hw_temperature_celsius", "memory") in metrics


def test_gpu_whose_sensors_cannot_be_listed_costs_no_other(bench: Make) -> None:
    """Nothing was measured at all."""
    made = bench("mi300x", 2)
    first, second = made.devices()
    closed = made.function(first, "hwmon")

    class Closed(Door):
        def names(self, path: str) -> tuple[str, ...]:
            if path == closed:
                raise AccessDenied(f"{path}: this process may not list it")
            return super().names(path)

    found = {s.device for s in made.vendor.samples(Closed(made.host), (first, second))}

    assert found == {second.id}


def test_partition_whose_use_cannot_be_read_has_its_size_all_the_same(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX")
    part = made.parts()[0]

    class Closed(Door):
        def read(self, path: str, limit: int = READ_LIMIT) -> str:
            if path.endswith("/used_memory"):
                raise AccessDenied(f"{path}: this process may not read it")
            return super().read(path, limit)

    told = [s.metric for s in made.vendor.samples(Closed(made.host), (part,))]

    assert told == ["hw_memory_size_bytes"]


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_measures_are_those_that_are_exported(bench: Make, product: str) -> None:
    made = bench(product, 1)
    for sample in made.vendor.samples(made.host, made.devices()):
        assert {*sample.labels} == {*BY_NAME[sample.metric].labels} - {*DEVICE_LABELS}
