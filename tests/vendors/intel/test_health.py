import pytest

from accelkit import (
    AccessDenied,
    Condition,
    Device,
    Event,
    FrozenMap,
    NotThere,
    Scope,
    Severity,
    Signal,
    SourceError,
)
from accelkit.core.host import Door
from accelkit.vendors.intel import health
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.intel.bench import Bench, Make
from tests.vendors.opened import as_evidence

FATAL, DEGRADED, INFO = Severity.FATAL, Severity.DEGRADED, Severity.INFO
ADDRESS = "0000:03:00.0"
DRM = f"/devices/pci0000:00/0000:00:01.0/{ADDRESS}/drm/card0"


def uevent(**fields: str) -> Signal:
    return Signal(source="uevent", fields=FrozenMap(fields))


def wedged(methods: str, number: int = 100, path: str = DRM) -> Signal:
    """What the kernel sends, field by field."""
    return uevent(
        ACTION="change",
        DEVPATH=path,
        SUBSYSTEM="drm",
        DEVTYPE="drm_minor",
        DEVNAME="dri/card0",
        WEDGED=methods,
        SEQNUM=str(number),
    )


def bound(number: int, driver: str = "xe") -> Signal:
    return uevent(
        ACTION="bind",
        DEVPATH=f"/devices/pci0000:00/0000:00:01.0/{ADDRESS}",
        SUBSYSTEM="pci",
        DRIVER=driver,
        PCI_SLOT_NAME=ADDRESS,
        SEQNUM=str(number),
    )


def kernel(text: str) -> Signal:
    return Signal(source="kernel", text=text)


def heard(made: Bench, *signals: Signal) -> list[Event]:
    return [event for signal in signals for event in made.vendor.interpret(signal)]


def codes(made: Bench, *signals: Signal) -> dict[str, Severity]:
    return made.codes(made.devices()[0], *heard(made, *signals))


@pytest.mark.parametrize("product", ["flex-170", "max-1550", "arc-a770", "arc-b580", "arc-pro-b60"])
def test_gpu_that_is_well_has_no_conditions(bench: Make, product: str) -> None:
    made = bench(product, 1)

    assert made.conditions(made.devices()[0]) == []


@pytest.mark.parametrize(
    "verb,expected",
    [
        ("health gpu-0 warning", {"gpu-health-warning": DEGRADED}),
        ("health gpu-0 critical", {"gpu-health-critical": FATAL}),
        ("health gpu-0 gone-fishing", {"gpu-health-unknown": INFO}),
        ("throttle gpu-0 thermal pl1", {"thermal-throttle": DEGRADED, "power-throttle": INFO}),
        ("heat gpu-0 98", {"hot": DEGRADED}),
        ("heat gpu-0 97", {}),
        ("fall gpu-0", {"bus-lost": FATAL}),
        ("wedge gpu-0 rebind", {"devcoredump": INFO}),
    ],
)
def test_what_files_show_is_a_condition_until_it_has_ended(
    bench: Make, verb: str, expected: dict[str, Severity]
) -> None:
    """98 °C of the package are 100 °C of the memory beside it."""
    made = bench("arc-pro-b60", 2)
    device, other = made.devices()
    made.do(verb)

    assert made.codes(device) == expected
    assert made.codes(other) == {}
    made.do("restore gpu-0")
    assert made.codes(device) == {}


@pytest.mark.parametrize("product", ["flex-170", "arc-b580"])
def test_both_drivers_say_why_a_gpu_is_slow(bench: Make, product: str) -> None:
    made = bench(product, 1)
    made.do("throttle gpu-0 prochot vr_tdc")
    heat, power = made.conditions(made.devices()[0])

    assert (heat.code, heat.message) == ("thermal-throttle", "reasons: prochot")
    assert (power.code, power.message) == ("power-throttle", "reasons: vr_tdc")


def test_gpu_whose_firmware_is_damaged_while_it_runs_is_not_healthy(bench: Make) -> None:
    made = bench("arc-b580", 1)
    device = made.devices()[0]
    made.do("wedge gpu-0 vendor-specific")

    assert made.codes(device)["survivability-mode"] is FATAL


def test_sleeping_gpu_is_not_woken(bench: Make) -> None:
    """Reading sensors or registers of a suspended GPU would let it run for nothing."""
    made = bench("arc-b580", 1)
    device = made.devices()[0]
    made.do("throttle gpu-0 thermal", "sleep gpu-0")
    read: list[str] = []

    class Noting(Door):
        def read(self, path: str, limit: int = 1 << 20) -> str:
            read.append(path.rpartition("/")[2])
            return super().read(path, limit)

    assert list(made.vendor.conditions(Noting(made.host), device, ())) == []
    assert read == ["runtime_status"]
    assert made.samples() == []


@pytest.mark.parametrize("methods", ["rebind", "rebind,bus-reset", "bus-reset", "vendor-specific"])
def test_wedged_gpu_is_not_healthy_and_says_how_to_bring_it_back(bench: Make, methods: str) -> None:
    made = bench("arc-b580", 1)
    (condition,) = made.conditions(made.devices()[0], *heard(made, wedged(methods)))

    assert (condition.code, condition.severity, condition.scope) == ("wedged", FATAL, Scope.TREE)
    assert all(health._WAYS[method] in condition.message for method in methods.split(","))


def test_wedged_gpu_that_the_driver_has_recovered_is_only_told(bench: Make) -> None:
    made = bench("arc-b580", 1)
    (condition,) = made.conditions(made.devices()[0], *heard(made, wedged("none"), wedged("none")))

    assert (condition.code, condition.severity) == ("hang-recovered", INFO)
    assert "2 times" in condition.message


def test_binding_its_driver_again_ends_what_was_wedged(bench: Make) -> None:
    """By the kernel's own numbers: no clock decides what came first."""
    made = bench("arc-b580", 1)

    assert codes(made, wedged("rebind", 100), bound(101)) == {}
    assert codes(made, bound(99), wedged("rebind", 100)) == {"wedged": FATAL}
    assert codes(made, wedged("rebind", 100), bound(101), wedged("rebind", 105)) == {
        "wedged": FATAL
    }
    assert codes(made, wedged("rebind", 100), bound(101, "nouveau")) == {"wedged": FATAL}
    assert codes(made, wedged("rebind", 9), bound(10)) == {}


def test_recovery_that_came_later_does_not_hide_a_wedged_gpu(bench: Make) -> None:
    made = bench("arc-b580", 1)

    assert codes(made, wedged("rebind"), wedged("none", 101)) == {
        "wedged": FATAL,
        "hang-recovered": INFO,
    }


def test_kernels_that_send_no_uevent_tell_it_in_their_log(bench: Make) -> None:
    made = bench("arc-b580", 1)
    line = kernel(
        f"xe {ADDRESS}: [drm] *ERROR* CRITICAL: Xe has declared device {ADDRESS} as wedged."
    )

    assert codes(made, line) == {"wedged": FATAL}
    assert codes(made, line, wedged("rebind", 100), bound(101)) == {}


def test_hang_of_a_program_is_told_and_harmless(bench: Make) -> None:
    made = bench("flex-170", 1)
    line = kernel(f"i915 {ADDRESS}: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [4711]")

    assert codes(made, line) == {"gpu-hang": INFO}


@pytest.mark.parametrize(
    "signal",
    [
        kernel("i915: loading"),
        kernel("nvidia 0000:03:00.0: GPU HANG: ecode 12"),
        wedged(""),
        wedged("rebind", path="/devices/virtual/drm/card0"),
        uevent(ACTION="change", SUBSYSTEM="drm", HOTPLUG="1", DEVPATH=DRM),
        uevent(ACTION="bind", SUBSYSTEM="pci", DRIVER="xe", PCI_SLOT_NAME="../../etc"),
        uevent(ACTION="add", SUBSYSTEM="pci", DRIVER="xe", PCI_SLOT_NAME=ADDRESS),
        uevent(),
        Signal(source="udev", fields=FrozenMap({"SUBSYSTEM": "drm", "WEDGED": "rebind"})),
    ],
)
def test_other_signals_mean_nothing(signal: Signal) -> None:
    assert list(Intel(IntelOptions()).interpret(signal)) == []


def test_number_of_a_uevent_that_makes_no_sense_ends_nothing(bench: Make) -> None:
    made = bench("arc-b580", 1)
    strange = uevent(**{**bound(1).fields, "SEQNUM": "soon"})

    assert codes(made, wedged("rebind"), strange) == {"wedged": FATAL}


def test_virtual_function_has_what_the_kernel_told_of_it(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2", "throttle gpu-0 thermal")
    whole, first, second = made.devices()
    path = DRM.replace("03:00.0", "03:00.1")
    events = heard(made, wedged("rebind", path=path))

    assert made.codes(whole, *events) == {"thermal-throttle": DEGRADED}
    assert made.codes(first, *events) == {"wedged": FATAL}
    assert made.codes(second, *events) == {}


@pytest.mark.parametrize("in_log", [True, False])
def test_virtual_function_that_is_wedged_is_so_alone(bench: Make, *, in_log: bool) -> None:
    """Its GPU, and whoever had another virtual function of it, were unhealthy, too."""
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2")
    address = ADDRESS.replace("00.0", "00.1")
    line = f"xe {address}: [drm] *ERROR* CRITICAL: Xe has declared device {address} as wedged."
    signal = kernel(line) if in_log else wedged("rebind", path=DRM.replace("03:00.0", "03:00.1"))
    whole, first, _ = made.devices()

    (alone,) = made.conditions(first, *heard(made, signal))
    assert (alone.code, alone.scope) == ("wedged", Scope.DEVICE)
    (all_of_it,) = made.conditions(whole, *heard(made, wedged("rebind")))
    assert (all_of_it.code, all_of_it.scope) == ("wedged", Scope.TREE)


def test_evidence_of_other_gpus_says_nothing_about_this_one(bench: Make) -> None:
    made = bench("arc-b580", 2)
    first, second = made.devices()
    kept = as_evidence("intel", heard(made, wedged("rebind")))

    assert [c.code for c in made.vendor.conditions(made.host, first, kept)] == ["wedged"]
    assert list(made.vendor.conditions(made.host, second, kept)) == []


def test_gpu_that_is_gone_cannot_be_asked(bench: Make) -> None:
    made = bench("arc-b580", 1)
    device = made.devices()[0]
    made.do("lose gpu-0")

    with pytest.raises(NotThere):
        made.conditions(device)


@pytest.mark.parametrize("file", ["gpu_health", "config", "temp2_input", "status"])
def test_file_that_may_not_be_read_makes_health_unknown(bench: Make, file: str) -> None:
    made = bench("arc-pro-b60", 1)
    device: Device = made.devices()[0]

    class Denied(Door):
        def read(self, path: str, limit: int = 1 << 20) -> str:
            if path.endswith(f"/{file}"):
                raise AccessDenied(path)
            return super().read(path, limit)

        def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
            if path.endswith(f"/{file}"):
                raise AccessDenied(path)
            return super().read_bytes(path, limit)

    with pytest.raises(SourceError):
        list(made.vendor.conditions(Denied(made.host), device, ()))


def test_every_condition_has_a_meaning_in_words(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    device = made.devices()[0]
    made.do("throttle gpu-0 thermal pl1", "heat gpu-0 120", "health gpu-0 critical")
    found: list[Condition] = made.conditions(device, *heard(made, wedged("rebind")))

    assert {c.code for c in found} <= set(health.CONDITIONS)
    assert all(c.message for c in found)
