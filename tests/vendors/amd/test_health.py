import pytest

from accelkit import AccessDenied, Event, Host, Scope, Severity, SourceError
from accelkit.core.host import READ_LIMIT, Door
from accelkit.vendors.amd import kernel
from accelkit.vendors.amd.health import CONDITIONS
from accelkit.vendors.amd.products import PRODUCTS
from tests.vendors.amd.bench import Bench, Make

FATAL, DEGRADED, INFO = Severity.FATAL, Severity.DEGRADED, Severity.INFO
ADDRESS = "0000:03:00.0"


def heard(code: str) -> Event:
    return Event(subject=ADDRESS, code=code, source="kernel")


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_sound_gpu_has_no_conditions(bench: Make, product: str) -> None:
    made = bench(product, 1)

    assert made.codes(made.devices()[0]) == {}


@pytest.mark.parametrize(
    "verb,code,severity,scope",
    [
        ("lose gpu-0", "gpu-lost", FATAL, Scope.TREE),
        ("ras gpu-0 umc 1", "ecc-uncorrected", FATAL, Scope.TREE),
        ("ras gpu-0 gfx 0 3", "ecc-corrected", INFO, Scope.DEVICE),
        ("pages gpu-0 RR", "pages-retired", INFO, Scope.DEVICE),
        ("pages gpu-0 P", "pages-pending", DEGRADED, Scope.DEVICE),
        ("pages gpu-0 F", "pages-failed", DEGRADED, Scope.DEVICE),
        ("heat gpu-0 100", "thermal-slowdown", DEGRADED, Scope.DEVICE),
        ("narrow gpu-0 8", "pcie-degraded", DEGRADED, Scope.DEVICE),
    ],
)
def test_fault_is_told_while_it_lasts(
    bench: Make, verb: str, code: str, severity: Severity, scope: Scope
) -> None:
    made = bench("mi300x", 2)
    first, second = made.devices()
    made.do(verb)
    told = made.conditions(first)
    made.do("restore gpu-0")

    assert {c: (t.severity, t.scope) for c, t in told.items()} == {code: (severity, scope)}
    assert made.codes(second) == {}
    assert made.codes(first) == {}


def test_heat_beyond_the_emergency_is_fatal(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("heat gpu-0 106")
    told = made.conditions(made.devices()[0])

    assert told["thermal-emergency"].severity is FATAL
    assert told["thermal-emergency"].message.endswith(" (junction 106 °C).")
    assert told["thermal-slowdown"].message.endswith(" (mem 101 °C).")


def test_gpu_with_as_many_bad_pages_as_may_be_is_to_be_replaced(bench: Make) -> None:
    made = bench("mi210", 1)
    made.do("pages gpu-0 RRR")
    path = "/sys/module/amdgpu/parameters/bad_page_threshold"
    found = []
    for threshold in ("3", "4", "-1", "nonsense"):
        made.put(path, f"{threshold}\n")
        found.append([*made.codes(made.devices()[0])])

    assert found == [["pages-exhausted"], *3 * [["pages-retired"]]]


def test_deferred_errors_of_newer_kernels_are_told(bench: Make) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()
    made.put(made.function(device, "ras/umc_err_count"), "ue: 0\nce: 0\nde: 2\n")

    assert made.codes(device) == {"ecc-deferred": DEGRADED}


def test_sleeping_gpu_is_not_woken(bench: Make) -> None:
    """Seen elsewhere: a sleeping Radeon counts a million errors whenever it is asked."""
    made = bench("mi210", 1)
    (device,) = made.devices()
    made.do("ras gpu-0 umc 1048560 1048560")
    made.put(made.function(device, "power/runtime_status"), "suspended\n")

    assert made.codes(device) == {}
    assert list(made.vendor.samples(made.host, (device,))) == []


def test_gpu_that_sleeps_is_not_cured_of_what_the_kernel_told(bench: Make) -> None:
    """A wedged Radeon was well as soon as it had nothing to do."""
    made = bench("rx7900", 1)
    (device,) = made.devices()
    address = device.locality.pci_address or ""
    made.put(made.function(device, "power/runtime_status"), "suspended\n")
    wedged = Event(subject=address, code=kernel.WEDGED, source="uevent")
    begun = Event(subject=address, code=kernel.RESET_BEGUN, source="kernel")

    assert made.codes(device, wedged, begun) == {"wedged": Severity.FATAL}


@pytest.mark.parametrize("width", ["0", "63", "nonsense", ""])
def test_lanes_that_no_link_has_say_nothing(bench: Make, width: str) -> None:
    made = bench("mi210", 1)
    (device,) = made.devices()
    made.put(made.function(device, "current_link_width"), width)

    assert made.codes(device) == {}


def test_block_that_does_not_answer_has_no_errors(bench: Make) -> None:
    made = bench("mi210", 1)
    (device,) = made.devices()
    made.put(made.function(device, "ras/umc_err_count"), "Query currently inaccessible\n")

    assert made.codes(device) == {}


def test_gpu_that_is_gone_is_unknown(bench: Make) -> None:
    made = bench("mi210", 2)
    first = made.devices()[0]
    made.do("remove gpu-0")

    with pytest.raises(SourceError, match="vendor"):
        made.codes(first)


def test_missing_source_is_not_unhealthy(bench: Make) -> None:
    """Seen elsewhere: no data from an exporter was taken for a defect."""
    made = bench("mi210", 1)
    (device,) = made.devices()
    for name in ("config", "ras/umc_err_count", "max_link_width", "gpu_busy_percent"):
        made.do(f"hide gpu-0 {name}")

    assert made.codes(device) == {}


def test_partition_tells_only_what_is_its_own(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX", "ras gpu-0 umc 1")
    whole, first, second = made.devices()

    assert made.codes(whole) == {"ecc-uncorrected": FATAL}
    assert (made.codes(first), made.codes(second)) == ({}, {})


def test_partition_whose_device_file_the_driver_dropped_is_unhealthy(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 CPX")
    last = made.parts()[-1]
    made.do("minors 7")

    assert made.codes(last) == {"render-node-missing": FATAL}
    assert made.codes(made.wholes()[0]) == {"partitions-missing": DEGRADED}
    assert made.conditions(made.wholes()[0])["partitions-missing"].message.endswith(
        " (7 of 8 partitions)."
    )


@pytest.mark.parametrize(
    "events,codes",
    [
        ([kernel.RESET_FAILED], {"reset-failed": FATAL}),
        ([kernel.RESET_FAILED, kernel.RESET_DONE], {}),
        ([kernel.RESET_DONE, kernel.RESET_FAILED], {"reset-failed": FATAL}),
        ([kernel.WEDGED], {"wedged": FATAL}),
        ([kernel.WEDGED, kernel.STARTED], {}),
        ([kernel.BUS_LOST], {"gpu-lost": FATAL}),
        ([kernel.PAGES_EXHAUSTED], {"pages-exhausted": FATAL}),
        ([kernel.HARDWARE_ERROR], {"hardware-error": DEGRADED}),
        ([kernel.RING_TIMEOUT], {"ring-timeout": INFO}),
        ([kernel.PAGE_FAULT], {"page-fault": INFO}),
        ([kernel.WEDGED_RECOVERED], {"wedged-recovered": INFO}),
        ([kernel.TOO_HOT], {"too-hot": INFO}),
        ([kernel.RESET_BEGUN], {}),
        ([kernel.STARTED], {}),
        (["something-new"], {}),
    ],
)
def test_event_counts_until_a_cure_is_heard(
    bench: Make, events: list[str], codes: dict[str, Severity]
) -> None:
    made = bench("mi210", 1)

    assert made.codes(made.devices()[0], *(heard(code) for code in events)) == codes


def test_event_of_another_gpu_is_not_its_own(bench: Make) -> None:
    made = bench("mi210", 2)
    second = made.devices()[1]

    assert made.codes(second, heard(kernel.WEDGED)) == {}


class Resetting(Door):
    """The driver does not read its sensors now."""

    def __init__(self, host: Host, error: SourceError) -> None:
        super().__init__(host)
        self.error = error

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        if path.endswith("/gpu_busy_percent"):
            raise self.error
        return super().read(path, limit)


@pytest.mark.parametrize(
    "error,codes",
    [
        (AccessDenied("this process may not read it"), {"resetting": FATAL}),
        (SourceError("cannot read it: Device or resource busy"), {"resetting": FATAL}),
        (SourceError("cannot read it: Operation not supported"), {}),
    ],
)
def test_reset_goes_on_while_the_driver_does_not_read_the_hardware(
    bench: Make, error: SourceError, codes: dict[str, Severity]
) -> None:
    made = bench("mi210", 1)
    (device,) = made.devices()
    during = Bench(made.directory, Resetting(made.host, error), made.vendor)

    assert during.codes(device, heard(kernel.RESET_BEGUN)) == codes
    assert during.codes(device) == {}
    assert made.codes(device, heard(kernel.RESET_BEGUN)) == {}


def test_every_condition_is_explained() -> None:
    assert all(CONDITIONS.values())
    assert set(kernel.EVENTS) >= {kernel.RESET_BEGUN, kernel.STARTED}
