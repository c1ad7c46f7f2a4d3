"""What the driver's files measure."""

from accelkit import Sample
from tests.vendors.neuron.bench import CHIPS, Bench, Make

GIB = 1 << 30


def samples(made: Bench, metric: str) -> list[float]:
    return [s.value for s in measured(made) if s.metric == metric]


def measured(made: Bench) -> list[Sample]:
    return list(made.vendor.samples(made.host, made.devices()))


def test_memory_of_chips_and_logical_cores_is_what_is_used_now(bench: Make) -> None:
    """The driver calls it total; present is the size of the last change."""
    made = bench("trn2", 1)
    made.do("use neuron-0 2 1000", "use neuron-0 3 24")
    made.put(f"{CHIPS}/neuron0/neuron_core2/stats/memory_usage/device_mem/present", "7\n")

    assert samples(made, "hw_memory_usage_bytes") == [1024, 0, 1024, 0, 0]
    assert samples(made, "hw_memory_size_bytes") == [96 * GIB] + [24 * GIB] * 4


def test_errors_of_memory_are_counted_by_sort(bench: Make) -> None:
    made = bench("inf2", 1)
    made.do("ecc neuron-0 sram 1", "ecc neuron-0 repairable 4")
    found = {s.labels["type"]: s.value for s in measured(made) if s.metric == "hw_errors_total"}

    assert found == {"sram-uncorrected": 1, "memory-uncorrected": 0, "memory-repairable": 4}


def test_nothing_but_chips_and_cores_is_measured(bench: Make) -> None:
    """Seen: measures of the host that are those of the container."""
    made = bench("trn2", 2)
    found = measured(made)

    assert {sample.device for sample in found} == {device.id for device in made.devices()}
    assert {sample.metric for sample in found} == {
        "hw_memory_usage_bytes",
        "hw_memory_size_bytes",
        "hw_errors_total",
    }


def test_what_a_driver_does_not_tell_is_absent_and_not_zero(bench: Make) -> None:
    made = bench("inf2", 1)
    for name in ("total", "present", "peak"):
        made.take(f"{CHIPS}/neuron0/neuron_core1/stats/memory_usage/device_mem/{name}")

    assert samples(made, "hw_memory_usage_bytes") == [0.0]


def test_chip_that_does_not_answer_costs_only_itself(bench: Make) -> None:
    made = bench("inf2", 2)
    devices = made.devices()
    made.do("lose neuron-0")
    found = {s.device for s in made.vendor.samples(made.host, devices)}

    assert found == {d.id for d in devices if d.handle == "neuron1"}
