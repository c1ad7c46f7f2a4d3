import pytest

from accelkit import Event, Severity, SourceError
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults
from accelkit.vendors.tpu.health import CONDITIONS
from tests.vendors.tpu.bench import Bench, Make

DEGRADED, FATAL, INFO = Severity.DEGRADED, Severity.FATAL, Severity.INFO


def codes(made: Bench, *verbs: str) -> dict[str, Severity]:
    """Of the first chip, as it was known before the verbs."""
    device = made.devices()[0]
    made.do(*verbs)
    return made.codes(device)


@pytest.mark.parametrize("product", ["v5e", "v6e", "v5p", "7x", "v4"])
def test_nothing_is_wrong_with_a_healthy_chip(bench: Make, product: str) -> None:
    made = bench(product, 4)

    assert [made.codes(device) for device in made.devices()] == [{}] * 4


@pytest.mark.parametrize(
    "product,verb,expected",
    [
        ("v5e", "hide tpu-0", {"node-missing": FATAL}),
        ("v4", "hide tpu-0", {"node-missing": FATAL}),
        ("v5e", "bind tpu-0 none", {"not-ready": FATAL}),
        ("v5e", "unload", {"not-ready": FATAL}),
        ("v4", "unload", {"not-ready": FATAL}),
        ("7x", "halve tpu-0", {"not-ready": FATAL}),
        ("v5e", "rubbish tpu-0", {"not-ready": FATAL}),
        ("v5e", "share tpu-0", {"group-shared": FATAL}),
        ("v5e", "narrow tpu-0", {"link-narrow": DEGRADED}),
        ("v4", "status tpu-0 DEAD", {"chip-dead": FATAL}),
        ("v4", "status tpu-0 LAMED", {"chip-lamed": DEGRADED}),
        ("v4", "status tpu-0 DRIVER_EXITING", {"driver-leaving": FATAL}),
        ("v4", "status tpu-0 ALIVE", {}),
        ("v5e", "hide tpu-1", {}),
    ],
)
def test_fault_has_its_condition_and_reaches_its_chip_only(
    bench: Make, product: str, verb: str, expected: dict[str, Severity]
) -> None:
    made = bench(product, 2)
    *_, other = made.devices()

    assert codes(made, verb) == expected
    if "tpu-1" not in verb and verb != "unload":
        assert made.codes(other) == {}


@pytest.mark.parametrize(
    "verb", ["hide tpu-0", "bind tpu-0 none", "share tpu-0", "narrow tpu-0", "lose tpu-0"]
)
def test_chip_is_well_again_when_its_fault_is_gone(bench: Make, verb: str) -> None:
    made = bench("v5e", 2)
    device = made.devices()[0]
    made.do(verb, "restore tpu-0")

    assert made.codes(device) == {}


def test_missing_files_are_named(bench: Make) -> None:
    made = bench("7x", 4)
    device = made.devices()[0]
    made.do("hide tpu-0")

    assert [c.message for c in made.conditions(device)] == ["/dev/vfio/6, /dev/vfio/7 is not there"]


def test_stranger_in_a_group_is_named(bench: Make) -> None:
    made = bench("v5e", 2)
    device = made.devices()[0]
    made.do("share tpu-0")

    assert [c.message for c in made.conditions(device)] == [
        "its IOMMU group has 0000:03:00.7 (gve), too"
    ]


@pytest.mark.parametrize(
    "topology,severity", [("2x2", DEGRADED), ("4x4", FATAL)], ids=["alone", "worker"]
)
def test_chips_that_are_missing_matter_to_those_that_are_left(
    bench: Make, topology: str, severity: Severity
) -> None:
    made = bench("v5e", 4, topology=topology)
    made.do("lose tpu-3")

    assert made.codes(made.devices()[0]) == {"chips-missing": severity}


@pytest.mark.parametrize(
    "topology,codes", [("2x2", {}), ("4x4", {"chips-missing": FATAL})], ids=["alone", "worker"]
)
def test_chip_without_driver_makes_the_others_of_a_worker_useless(
    bench: Make, topology: str, codes: dict[str, Severity]
) -> None:
    """A worker's part of its slice is used as a whole, or not at all."""
    made = bench("v5e", 4, topology=topology)
    made.do("bind tpu-3 none")

    assert [made.codes(device) for device in made.devices()] == [codes] * 3


def test_slice_that_nobody_knows_is_said(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("metadata none")

    assert made.codes(made.devices()[0]) == {"slice-unknown": FATAL}


def test_width_that_is_no_number_says_nothing(bench: Make) -> None:
    made = bench("v5e", 1)
    device = made.devices()[0]
    for text in ("Unknown\n", "255\n", "0\n", "9" * 5000, "²\n", ""):
        made.path("/sys/bus/pci/devices/0000:03:00.0/current_link_width").write_text(text)

        assert made.codes(device) == {}


def test_driver_that_says_no_status_is_believed_to_be_well(bench: Make) -> None:
    made = bench("v4", 1)
    made.path("/sys/bus/pci/devices/0000:03:00.0/accel/accel0/status").unlink()

    assert made.codes(made.devices()[0]) == {}


@pytest.mark.parametrize(
    "code,severity",
    [
        ("reset-failed", FATAL),
        ("power-lost", FATAL),
        ("pcie-fatal", DEGRADED),
        ("pcie-error", INFO),
    ],
)
def test_what_the_kernel_said_stays(bench: Make, code: str, severity: Severity) -> None:
    made = bench("v5e", 2)
    one, other = made.devices()
    events = [Event(subject="0000:03:00.0", code=code, source="kernel")] * 2

    assert made.codes(one, events) == {code: severity}
    assert made.conditions(one, events)[0].message.endswith("(2 times)")
    assert made.codes(other, events) == {}


def test_event_that_is_not_known_changes_nothing(bench: Make) -> None:
    made = bench("v5e", 1)
    device = made.devices()[0]

    assert made.codes(device, [Event(subject=device.id.name, code="new", source="x")]) == {}


def test_event_of_the_second_function_is_the_chips(bench: Make) -> None:
    made = bench("7x", 1)
    event = Event(subject="0000:03:00.1", code="power-lost", source="kernel")

    assert made.codes(made.devices()[0], [event]) == {"power-lost": FATAL}


def test_chip_that_cannot_be_read_is_not_called_ill(bench: Make) -> None:
    made = bench("v5e", 1)
    device = made.devices()[0]
    made.path("/sys/bus/pci/devices/0000:03:00.0/device").write_bytes(b"\xff\xfe\n")

    with pytest.raises(SourceError):
        made.conditions(device)


def test_every_condition_says_what_it_means() -> None:
    assert all(text.endswith(".") and len(text) < 100 for text in CONDITIONS.values())


def test_link_that_cannot_be_read_says_nothing_against_a_chip(bench: Make) -> None:
    """Not to know it would take the chip from everybody after a while."""
    made = bench("v6e", 4)
    set_faults(made.directory, [Fault(read="*_link_width", times=9, do="error EIO")])

    assert [made.codes(device) for device in made.devices()] == [{}] * 4
