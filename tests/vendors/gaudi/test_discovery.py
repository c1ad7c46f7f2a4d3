import pytest

from accelkit import Device, DeviceNode, Unreadable, Version
from accelkit.vendors.gaudi.machine import PRODUCTS
from tests.vendors.gaudi.bench import Make
from tests.vendors.gaudi.doors import NoCard, Said


def test_card_says_what_its_files_say(bench: Make) -> None:
    device = bench("gaudi2").devices()[0]

    assert device.id.name == "0000-03-00-0-0x1020"
    assert (device.kind, device.product) == ("gaudi", "Gaudi2")
    assert device.nodes == (
        DeviceNode(path="/dev/accel/accel0"),
        DeviceNode(path="/dev/accel/accel_controlD0"),
        DeviceNode(path="/dev/infiniband/uverbs0"),
    )
    assert device.attributes == {
        "moduleId": 0,
        "deviceType": "GAUDI2",
        "formFactor": "OAM",
        "firmwareVersion": "hl-gaudi2-1.22.0-fw-60.1.0",
        "driverVersion": Version(1, 22, 0, "ee698fb"),
    }
    assert device.capacity == {"memory": 96 << 30}
    assert device.locality.pci_address == "0000:03:00.0"
    assert device.locality.numa_node == 0
    assert device.sharing == frozenset()


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_product_is_found_whole(bench: Make, product: str) -> None:
    made = bench(product)

    assert len(made.devices()) == 8
    assert made.unreadable() == []
    assert sorted(map(str, made.modules())) == [*"01234567"]


def test_nodes_get_other_numbers_with_a_boot_and_devices_keep_their_names(bench: Make) -> None:
    made = bench()
    before = made.devices()
    made.do("reboot")
    after = made.devices()

    assert [d.id for d in before] == [d.id for d in after]
    assert [d.attributes for d in before] == [d.attributes for d in after]
    assert [d.handle for d in before] != [d.handle for d in after]


@pytest.mark.parametrize(
    "layout, node, control",
    [
        ("virtual", "/dev/accel/accel1", "/dev/accel/accel_controlD1"),
        ("hl", "/dev/hl1", "/dev/hl_controlD1"),
    ],
)
def test_older_drivers_show_the_card_elsewhere(
    bench: Make, layout: str, node: str, control: str
) -> None:
    made = bench("gaudi2", machine={"layout": layout})
    old, new = made.devices(), bench("gaudi2").devices()

    assert [d.attributes for d in old] == [d.attributes for d in new]
    assert [n.path for n in old[1].nodes][:2] == [node, control]
    assert made.severities(old[1]) == {}
    made.do("status gaudi-1 disabled")
    assert "disabled" in made.severities(old[1])


def test_card_without_driver_is_not_ready(bench: Make) -> None:
    made = bench(count=2)
    made.do("unload")

    assert {(u.subject, u.code, u.remedy) for u in made.unreadable()} == {
        ("0000:03:00.0", "driver-not-ready", "modprobe habanalabs"),
        ("0000:04:00.0", "driver-not-ready", "modprobe habanalabs"),
    }


def test_card_of_a_virtual_machine_is_not_ours(bench: Make) -> None:
    made = bench(count=2)
    made.do("bind gaudi-0 vfio-pci")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:04:00.0"]
    assert made.unreadable() == []


def test_card_at_an_unknown_driver_is_told(bench: Make) -> None:
    made = bench(count=1)
    made.do("bind gaudi-0 acme")

    assert made.unreadable() == [
        Unreadable(
            subject="0000:03:00.0",
            code="driver-not-ready",
            reason="it is bound to acme",
            remedy="bind it to habanalabs",
        )
    ]


def test_card_without_its_node_waits_for_it(bench: Make) -> None:
    made = bench(count=2)
    made.do("no-nodes")

    assert {u.code for u in made.unreadable()} == {"node-missing"}
    made.do("nodes")
    assert len(made.devices()) == 2


def test_card_without_rdma_is_there_all_the_same(bench: Make) -> None:
    made = bench(count=1)
    made.do("no-verbs")

    assert [n.path for n in made.devices()[0].nodes] == [
        "/dev/accel/accel0",
        "/dev/accel/accel_controlD0",
    ]


def test_card_that_does_not_tell_its_module_is_there_all_the_same(bench: Make) -> None:
    made = bench(count=2)
    made.do("module gaudi-0 none")

    assert made.modules() == [None, 1]


def test_module_that_is_rubbish_makes_one_card_unreadable(bench: Make) -> None:
    made = bench(count=2)
    made.do("rubbish gaudi-1 module_id")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:03:00.0"]
    assert [(u.subject, u.code) for u in made.unreadable()] == [("0000:04:00.0", "source-failed")]


@pytest.mark.parametrize("file", ["device_type", "driver_ver", "fw_os_ver"])
def test_text_that_is_rubbish_is_as_if_it_were_not_there(bench: Make, file: str) -> None:
    made = bench(count=1)
    whole = made.devices()[0]
    made.do(f"rubbish gaudi-0 {file}")
    spoilt = made.devices()[0]

    assert spoilt.id == whole.id
    assert spoilt.attributes.items() < whole.attributes.items() or file == "driver_ver"


def test_version_of_the_driver_is_told(bench: Make) -> None:
    made = bench(count=1, machine={"driver": "1.18.0-95323a5"})

    assert made.vendor.software(made.host) == {"driver": "1.18.0-95323a5"}
    assert made.devices()[0].attributes["driverVersion"] == Version(1, 18, 0, "95323a5")


def test_card_that_falls_away_changes_nothing_of_the_others(bench: Make) -> None:
    made = bench()
    before = made.devices()
    made.do("remove gaudi-2")

    assert made.devices() == (*before[:2], *before[3:])


def test_numa_node_that_the_firmware_does_not_name_is_unknown(bench: Make) -> None:
    made = bench(count=1)
    (device,) = made.vendor.discover(Said(made.host, {"numa_node": "-1"}))

    assert isinstance(device, Device)
    assert device.locality.numa_node is None


def test_card_of_a_generation_that_is_not_known_is_there_without_memory(bench: Make) -> None:
    made = bench("gaudi2", 1)
    door = Said(made.host, {"device": "0x1077", "device_type": "GAUDI4"})
    (device,) = made.vendor.discover(door)

    assert isinstance(device, Device)
    assert (device.id.name, device.product) == ("0000-03-00-0-0x1077", "GAUDI4")
    assert device.capacity == {}


def test_other_function_of_the_maker_is_no_card(bench: Make) -> None:
    made = bench("gaudi2", 1)

    assert (
        list(made.vendor.discover(Said(made.host, {"device": "0x2000", "class": "0x028000"}))) == []
    )


def test_card_that_the_driver_could_not_start_is_told(bench: Make) -> None:
    made = bench(count=1)
    (found,) = made.vendor.discover(NoCard(made.host))

    assert isinstance(found, Unreadable)
    assert (found.code, found.reason) == (
        "driver-not-ready",
        "habanalabs is bound, and shows no accelerator",
    )


def test_two_names_for_one_card_are_a_contradiction(bench: Make) -> None:
    made = bench(count=1)
    (found,) = made.vendor.discover(NoCard(made.host, "accel3", "accel4"))

    assert isinstance(found, Unreadable)
    assert "accel3 and accel4" in found.reason
