import attrs

from accelkit import FrozenMap, Sample
from tests.vendors.tpu.bench import Bench, Make

KINDS = ("correctable", "fatal", "nonfatal")


def measured(made: Bench) -> dict[str, dict[str, float]]:
    """Values by device and by metric or kind of error."""
    found: dict[str, dict[str, float]] = {}
    for sample in made.vendor.samples(made.host, made.devices()):
        assert sample.device is not None
        kind = sample.labels.get("type") or sample.metric
        found.setdefault(sample.device.name, {})[kind] = sample.value
    return found


def test_chip_tells_its_memory_and_the_errors_of_its_link(bench: Make) -> None:
    made = bench("v5e", 1)
    made.do("errors tpu-0 7")
    (device,) = made.devices()

    assert [*made.vendor.samples(made.host, (device,))] == [
        Sample(device=device.id, metric="hw_memory_size_bytes", value=float(16 << 30)),
        *(
            Sample(
                device=device.id,
                metric="hw_errors_total",
                value=7.0 if kind == "nonfatal" else 0.0,
                labels=FrozenMap({"type": f"pcie-{kind}"}),
            )
            for kind in ("correctable", "nonfatal", "fatal")
        ),
    ]


def test_errors_of_both_functions_of_a_chip_add_up(bench: Make) -> None:
    made = bench("7x", 1)
    made.do("errors tpu-0 7")

    assert measured(made)["tpu-0000-03-00"]["pcie-nonfatal"] == 14.0


def test_what_the_kernel_does_not_tell_is_left_out(bench: Make) -> None:
    """Seen elsewhere: virtual machines without these files."""
    made = bench("v5e", 1)
    for kind in KINDS:
        made.path(f"/sys/bus/pci/devices/0000:03:00.0/aer_dev_{kind}").unlink()

    assert [*measured(made)["tpu-0000-03-00"]] == ["hw_memory_size_bytes"]


def test_chip_that_is_gone_has_no_errors_to_tell(bench: Make) -> None:
    made = bench("v5e", 1)
    devices = made.devices()
    made.do("lose tpu-0")

    assert [s.metric for s in made.vendor.samples(made.host, devices)] == ["hw_memory_size_bytes"]


def test_memory_that_is_not_known_is_not_zero(bench: Make) -> None:
    made = bench("v5e", 1)
    devices = [attrs.evolve(d, capacity=FrozenMap()) for d in made.devices()]
    made.do("lose tpu-0")

    assert list(made.vendor.samples(made.host, tuple(devices))) == []
