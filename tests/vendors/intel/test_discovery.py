from pathlib import Path

import pytest

from accelkit import Unreadable, Version
from accelkit.core.model import contradictions
from accelkit.core.real_host import RealHost
from accelkit.vendors.intel.products import PRODUCTS
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.intel.bench import Bench, Make

GIB = 1 << 30


def wrong(found: list[Unreadable]) -> list[tuple[str, str]]:
    return [(u.subject, u.code) for u in found]


def test_gpu_is_told_with_place_and_facts(bench: Make) -> None:
    device = bench("flex-170", 2).devices()[1]

    assert device.id.name == "0000-04-00-0-0x56c0"
    assert (device.kind, device.product) == ("i915", "Intel Flex 170")
    assert device.capacity == {"memory": 16 * GIB}
    assert device.locality.pci_address == "0000:04:00.0"
    assert (device.locality.pcie_root, device.locality.numa_node) == ("pci0000:00", 1)
    assert [n.path for n in device.nodes] == ["/dev/dri/card1", "/dev/dri/renderD129"]
    assert device.aliases == {"0000:04:00.0"}
    assert device.attributes == {
        "family": "Data Center Flex",
        "driver": "i915",
        "type": "gpu",
        "pciId": "0x56c0",
        "pciAddress": "0000:04:00.0",
        "sriov": True,
        "integrated": False,
        "tiles": 1,
        "driverVersion": Version(7, 3, 0),
    }


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_product_is_found_without_contradiction(bench: Make, product: str) -> None:
    made = bench(product, 4)
    devices = made.devices()

    assert len(devices) == 4
    assert contradictions(devices, (), ()) == ()
    assert {d.capacity["memory"] for d in devices} == {PRODUCTS[product].memory}
    assert {d.attributes["tiles"] for d in devices} == {PRODUCTS[product].tiles}
    assert all(type(v) is Intel.attributes[k] for d in devices for k, v in d.attributes.items())


@pytest.mark.parametrize("product,driver", [("arc-b580", "xe"), ("arc-a770", "i915")])
def test_resources_are_called_by_their_driver(bench: Make, product: str, driver: str) -> None:
    """So that pods that ask for gpu.intel.com/xe and gpu.intel.com/i915 find them."""
    made = bench(product, 1)

    assert (made.vendor.domain, made.devices()[0].kind) == ("gpu.intel.com", driver)


def test_driver_is_what_is_bound_and_not_what_the_model_has_by_default(bench: Make) -> None:
    (device,) = bench("flex-170", 1, machine={"driver": "xe"}).devices()

    assert (device.kind, device.attributes["driver"]) == ("xe", "xe")
    assert device.id.name == "0000-03-00-0-0x56c0"


@pytest.mark.parametrize("beside", ["bmc", "integrated"])
def test_names_do_not_depend_on_numbers_of_cards(bench: Make, beside: str) -> None:
    """Another display controller shifts them, and so does each boot."""
    plain, shifted = bench("arc-a770", 2), bench("arc-a770", 2, machine={"beside": beside})
    before = [d.id for d in plain.devices()]
    shifted.do("reboot")
    after = {d.id: d for d in shifted.devices()}

    assert [shifted.paths(after[i])[0] for i in before] == ["/dev/dri/card2", "/dev/dri/card1"]
    assert [after[i].locality.numa_node for i in before] == [0, 1]


def test_more_gpus_than_classic_minors_are_all_found(bench: Make) -> None:
    made = bench("arc-b580", 66)
    devices = made.devices()

    assert len({path for d in devices for path in made.paths(d)}) == 132
    assert all(made.work.exists(path) for d in devices for path in made.paths(d))


def test_integrated_gpu_has_no_memory_of_its_own(bench: Make) -> None:
    made = bench("arc-a770", 1, machine={"beside": "integrated"})
    device = made.devices()[0]

    assert device.product == "Intel Raptor Lake-P"
    assert "memory" not in device.capacity
    assert device.attributes["integrated"] is True
    assert made.conditions(device) == []
    assert list(made.vendor.samples(made.host, (device,))) == []


def test_host_without_intel_gpus_is_silent(tmp_path: Path) -> None:
    assert list(Intel(IntelOptions()).discover(RealHost(str(tmp_path)))) == []


def test_gpu_without_driver_is_not_ready_and_says_what_to_do(bench: Make) -> None:
    made = bench("arc-b580", 2)
    made.do("unload")
    first, second = made.unreadable()

    assert wrong([first, second]) == [
        ("0000:03:00.0", "driver-not-ready"),
        ("0000:04:00.0", "driver-not-ready"),
    ]
    assert "xe.force_probe=e20b" in first.remedy
    assert made.devices() == ()


def test_gpu_that_a_loaded_driver_does_not_have_is_to_be_bound(bench: Make) -> None:
    """To load a driver that is loaded was said to be the way."""
    made = bench("arc-b580", 1)
    made.do("bind gpu-0 none")
    (problem,) = made.unreadable()

    assert problem.remedy.startswith("write 0000:03:00.0 to /sys/bus/pci/drivers/xe/bind; ")


def test_driver_that_shows_no_cards_is_not_ready(bench: Make) -> None:
    """Seen with a driver that was loaded and left /sys/class/drm empty."""
    made = bench("arc-b580", 2)
    for file in sorted(made.sysfs().glob("drm/**/*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()

    assert wrong(made.unreadable()) == [("0000:03:00.0", "driver-not-ready")]
    assert "shows no device files" in made.unreadable()[0].reason
    assert len(made.devices()) == 1


def test_gpu_that_is_bound_to_another_driver_is_told(bench: Make) -> None:
    made = bench("arc-b580", 1)
    made.do("bind gpu-0 nouveau")

    assert [u.reason for u in made.unreadable()] == ["it is bound to nouveau"]


@pytest.mark.parametrize("driver", ["vfio-pci", "xe-vfio-pci"])
def test_gpu_that_a_virtual_machine_has_is_not_ours(bench: Make, driver: str) -> None:
    made = bench("arc-b580", 2)
    made.do(f"bind gpu-0 {driver}")

    assert [d.id.name for d in made.devices()] == ["0000-04-00-0-0xe20b"]
    assert made.unreadable() == []


def test_gpu_with_damaged_firmware_is_told(bench: Make) -> None:
    made = bench("arc-b580", 2)
    made.do("wedge gpu-0 vendor-specific", "reboot")

    assert wrong(made.unreadable()) == [("0000:03:00.0", "survivability-mode")]


def test_model_that_nobody_has_listed_is_served(bench: Make) -> None:
    made = bench("arc-b580", 1)
    (made.sysfs() / "device").write_text("0xeeee\n")
    (device,) = made.devices()

    assert (device.product, device.id.name) == ("Intel GPU eeee", "0000-03-00-0-0xeeee")
    assert device.capacity == {}


def set_window(made: Bench, size: int) -> None:
    file = made.sysfs() / "resource"
    lines = file.read_text().splitlines()
    lines[2] = f"0x{1 << 40:016x} 0x{(1 << 40) + size - 1:016x} 0x000000000014220c"
    file.write_text("\n".join(lines))


@pytest.mark.parametrize(
    "product,window,memory",
    [
        ("arc-a770", 16 * GIB, 16 * GIB),
        ("arc-a770", 8 * GIB, 8 * GIB),
        ("arc-a770", 256 << 20, 8 * GIB),
        ("arc-a770", 2 * GIB, 2 * GIB),
        ("arc-b580", 16 * GIB, 12 * GIB),
    ],
)
def test_memory_is_never_more_than_the_board_can_have(
    bench: Make, product: str, window: int, memory: int
) -> None:
    """Models come with several sizes, and a virtual machine has a part: the window tells."""
    made = bench(product, 1)
    set_window(made, window)

    assert made.devices()[0].capacity == {"memory": memory}


@pytest.mark.parametrize("text", ["", "\0", "a b c\n" * 7, "0x1 0x1 0x0\n" * 7, "0x5 0x1\n" * 3])
def test_window_that_makes_no_sense_says_nothing(bench: Make, text: str) -> None:
    made = bench("arc-a770", 1)
    (made.sysfs() / "resource").write_text(text)

    assert made.devices()[0].capacity == {"memory": 8 * GIB}


def test_driver_of_intels_packages_says_how_much_memory_there_is(bench: Make) -> None:
    made = bench("max-1550", 1, machine={"backport": "1.25.2"})
    set_window(made, 256 << 20)
    (device,) = made.devices()

    assert device.capacity == {"memory": 128 * GIB}
    assert device.attributes["driverVersion"] == Version(1, 25, 2)
    assert made.vendor.software(made.host) == {"kernel": "7.3.0", "i915": "1.25.2"}


def test_memory_that_no_amount_can_be_costs_no_other_gpu(bench: Make) -> None:
    """It was a fault of the plugin as a whole."""
    made = bench("max-1550", 2, machine={"backport": "1.25.2"})
    (file,) = made.sysfs().glob("drm/card*/lmem_total_bytes")
    file.write_text("9" * 19)

    assert [device.capacity["memory"] for device in made.devices()] == [128 * GIB] * 2
