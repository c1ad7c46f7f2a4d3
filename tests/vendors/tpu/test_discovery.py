from pathlib import Path

import pytest

from accelkit import DeviceNode, Locality, SourceError
from accelkit.core.real_host import RealHost
from accelkit.testing.sysfs import pci_place
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions
from tests.vendors.tpu.bench import Make

GIB = 1 << 30
PROMISE_S = 0.05


def test_chip_is_known_by_its_place(bench: Make) -> None:
    made = bench("v6e", 8)

    assert [d.id.name for d in made.devices()][:3] == [
        "tpu-0000-03-00",
        "tpu-0000-04-00",
        "tpu-0000-13-00",
    ]
    assert made.devices()[0].aliases == {"0000:03:00.0"}


def test_chip_says_what_it_is_and_which_slice_it_is_in(bench: Make) -> None:
    device = bench("v5p", 4, topology="4x4x4", worker="7").devices()[1]

    assert (device.kind, device.product) == ("tpu", "TPU v5p")
    assert device.capacity == {"memory": 95 * GIB}
    assert device.attributes == {
        "generation": "v5p",
        "index": 1,
        "coresPerChip": 1,
        "acceleratorType": "v5p-128",
        "topology": "4x4x4",
        "chipsPerHost": 4,
        "hosts": 16,
        "workerId": 7,
    }


def test_chip_hangs_where_the_kernel_says(bench: Make) -> None:
    devices = bench("v5e", 8).devices()
    place = pci_place(5, 5, 8)

    assert devices[5].locality == Locality(
        pci_address=place.address, pcie_root=place.root, numa_node=1, near_nodes=(1,)
    )
    assert [d.locality.numa_node for d in devices] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_chip_of_two_functions_has_both_groups(bench: Make) -> None:
    device = bench("7x", 4).devices()[0]

    assert device.aliases == {"0000:03:00.0", "0000:03:00.1"}
    assert device.nodes == (
        DeviceNode(path="/dev/vfio/6"),
        DeviceNode(path="/dev/vfio/7"),
        DeviceNode(path="/dev/vfio/vfio"),
    )
    assert device.attributes["coresPerChip"] == 2


def test_older_chip_has_its_accel_node(bench: Make) -> None:
    device = bench("v4", 4).devices()[3]

    assert (device.nodes, device.handle) == ((DeviceNode(path="/dev/accel3"),), "accel3")


@pytest.mark.parametrize("product", ["v5e", "v4"])
def test_chip_without_driver_is_not_ready(bench: Make, product: str) -> None:
    made = bench(product, 4)
    made.do("bind tpu-1 none")

    assert made.unreadable() == {"tpu-0000-04-00": "driver-not-ready"}
    assert len(made.devices()) == 3


def test_chip_keeps_its_name_when_groups_are_numbered_anew(bench: Make) -> None:
    made = bench("v5e", 4)
    before = made.devices()
    made.do("reboot")
    after = made.devices()

    assert [d.id for d in after] == [d.id for d in before]
    assert all(a.nodes != b.nodes for a, b in zip(after, before, strict=True))


def test_host_without_tpus_has_none_and_says_nothing(tmp_path: Path) -> None:
    vendor, host = Tpu(TpuOptions()), RealHost(str(tmp_path))

    assert list(vendor.discover(host)) == []
    assert vendor.software(host) == {}


def test_versions_are_those_of_the_drivers(bench: Make) -> None:
    found = {p: bench(p, 1) for p in ("v5e", "v4")}
    said = {p: {*made.vendor.software(made.host)} for p, made in found.items()}

    assert said == {"v5e": {"kernel", "vfio-pci"}, "v4": {"kernel", "accel"}}


def test_chip_that_is_gone_cannot_be_asked(bench: Make) -> None:
    made = bench("v5e", 4)
    device = made.devices()[2]
    made.do("lose tpu-2")

    with pytest.raises(SourceError, match=r"0000:13:00\.0 is no TPU any more"):
        made.conditions(device)


@pytest.mark.parametrize("said", [None, "", "nonsense", "0xffff"])
def test_subsystem_is_asked_only_where_generations_share_an_id(
    bench: Make, said: str | None
) -> None:
    made = bench("v6e", 4)
    before = made.devices()
    for function in sorted(made.path("/sys/bus/pci/devices").iterdir()):
        file = function.resolve() / "subsystem_device"
        if said is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(said)

    assert made.devices() == before
