import shutil

import pytest

from accelkit import DeviceNode, Mode, Scope, Version, pci_functions
from accelkit.core.reading import read_inventory
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.board import PRODUCTS
from accelkit.vendors.neuron.vendor import Neuron
from tests.vendors.neuron.bench import CHIPS, Make, Unprivileged

GIB = 1 << 30


def test_chip_is_told_with_its_serial_number_place_and_facts(bench: Make) -> None:
    chip = bench("trn2", 16).chips()[5]

    serial = str(chip.attributes["serial"])
    assert chip.id.name == f"neuron-{serial}"
    assert (chip.kind, chip.product, chip.handle) == ("neuron", "Trainium2", "neuron5")
    assert chip.nodes == (DeviceNode(path="/dev/neuron5"),)
    assert chip.capacity == {"memory": 96 * GIB}
    assert chip.locality.pci_address == "0000:24:00.0"
    assert (chip.locality.pcie_root, chip.locality.numa_node) == ("pci0000:20", 0)
    assert chip.aliases == {serial, "neuron5", "0000:24:00.0"}
    assert chip.attributes == {
        "serial": serial,
        "deviceId": 5,
        "coreCount": 8,
        "logicalNeuronCore": 2,
        "architecture": "NDv3",
        "instanceType": "Trn2",
        "driverVersion": Version(2, 24, 7),
        "topology": "torus",
        "topology_x": 1,
        "topology_y": 1,
        "topology4_id": 1,
        "topology8_id": 0,
    }


def test_cores_of_older_chips_are_partitions_that_nothing_changes(bench: Make) -> None:
    made = bench("inf2", 1)
    (chip,) = made.chips()

    assert chip.usable
    assert chip.modes == (Mode(name="core", cut="core", count=2, disturbs=Scope.VENDOR),)
    assert chip.mode == "core"
    assert [core.id.name for core in made.cores()] == [
        f"{chip.id.name}-core-0",
        f"{chip.id.name}-core-1",
    ]
    core = made.cores()[1]
    assert core.kind == "neuroncore"
    assert core.capacity == {"memory": 16 * GIB}
    assert (core.nodes, core.locality) == (chip.nodes, chip.locality)
    assert "serial" not in core.attributes


def test_cores_of_newer_chips_come_with_the_mode_of_the_host(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    two = [core.id.name for core in made.cores()]
    made.do("lnc 1")
    one = [core.id.name for core in made.cores()]

    assert chip.mode == "lnc2"
    assert {m.name: (m.cut, m.count, m.live, m.disturbs) for m in chip.modes} == {
        "lnc1": ("lnc1", 8, False, Scope.VENDOR),
        "lnc2": ("lnc2", 4, False, Scope.VENDOR),
    }
    assert two == [f"{chip.id.name}-lnc2-{start}" for start in (0, 2, 4, 6)]
    assert one == [f"{chip.id.name}-lnc1-{start}" for start in range(8)]
    assert [core.capacity["memory"] for core in made.cores()] == [12 * GIB] * 8


@pytest.mark.parametrize("product", sorted(PRODUCTS))
@pytest.mark.parametrize("count", [1, 2, 16])
def test_every_machine_is_read_without_a_problem(bench: Make, product: str, count: int) -> None:
    made = bench(product, count)
    report = read_inventory(made.vendor, made.host)

    assert (report.answered, report.problems) == (True, ())
    assert len([d for d in report.devices if d.parent is None]) == count


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_every_attribute_is_declared_with_its_type(bench: Make, product: str) -> None:
    for device in bench(product, 2, {"ultraserver": "00000000000000a1"}).devices():
        types = {key: type(value) for key, value in device.attributes.items()}
        assert types == {key: Neuron.attributes[key] for key in types}


def test_nothing_is_found_on_a_host_without_chips(bench: Make) -> None:
    made = bench("trn1", 1)
    made.do("remove neuron-0", "unload")

    assert made.discover() == []


def test_chips_without_their_driver_are_told_by_their_places(bench: Make) -> None:
    made = bench("trn1", 2)
    made.do("unload")

    assert made.unreadable() == [
        ("0000:03:00.0", "driver-not-ready"),
        ("0000:04:00.0", "driver-not-ready"),
    ]


def test_driver_that_shows_no_chips_is_not_ready(bench: Make) -> None:
    """It unloads itself ten seconds after two chips said that they are the same."""
    made = bench("trn1", 1)
    shutil.rmtree(made.directory + CHIPS)

    assert made.unreadable() == [("0000:03:00.0", "driver-not-ready")]


def test_ids_and_places_stay_when_a_boot_numbers_the_chips_anew(bench: Make) -> None:
    made = bench("trn2", 16)
    before = {chip.id: chip for chip in made.chips()}
    made.do("reboot")
    after = {chip.id: chip for chip in made.chips()}

    assert before.keys() == after.keys()
    assert all(before[i].locality == after[i].locality for i in before)
    assert all(before[i].handle != after[i].handle for i in before)


def test_another_chip_in_the_same_place_is_another_device(bench: Make) -> None:
    made = bench("inf2", 2)
    before = [chip.id for chip in made.chips()]
    made.do("replace neuron-1")
    after = [chip.id for chip in made.chips()]

    assert (before[0], before[1]) == (after[0], before[1])
    assert before[1] != after[1]


def test_chip_whose_firmware_is_silent_is_unreadable_and_the_others_are_there(bench: Make) -> None:
    made = bench("trn1", 16)
    made.do("lose neuron-3")

    assert made.unreadable() == [("neuron3", "unreadable")]
    assert len(made.chips()) == 15
    assert {chip.attributes["topology"] for chip in made.chips()} == {"torus"}


def test_chips_with_one_serial_number_are_not_believed(bench: Make) -> None:
    made = bench("inf2", 3)
    made.put(f"{CHIPS}/neuron2/info/serial_number", "00000000000000AB\n")
    made.put(f"{CHIPS}/neuron0/info/serial_number", "00000000000000ab\n")

    assert made.unreadable() == [("neuron0", "serial-repeated"), ("neuron2", "serial-repeated")]
    assert len(made.chips()) == 1


def test_processes_that_are_not_root_count_folders_of_cores(bench: Make) -> None:
    """core_count is for root only."""
    made = bench("trn2", 16)
    whole = made.chips()
    made.host = Unprivileged(made.directory)

    assert [c.attributes["coreCount"] for c in made.chips()] == [8] * 16
    assert [c.id for c in made.chips()] == [c.id for c in whole]
    assert {c.attributes.get("topology") for c in made.chips()} == {None}


@pytest.mark.parametrize("name", ["device_name", "device_type"])
def test_both_names_of_the_product_file_are_read(bench: Make, name: str) -> None:
    made = bench("inf2", 1)
    made.take(f"{CHIPS}/neuron0/info/architecture/device_name")
    made.put(f"{CHIPS}/neuron0/info/architecture/{name}", "Inferentia2\n")

    assert made.chips()[0].product == "Inferentia2"


def test_chip_that_does_not_say_what_it_is_is_what_its_function_is(bench: Make) -> None:
    made = bench("trn1", 2)
    for index in (0, 1):
        made.take(f"{CHIPS}/neuron{index}/info/architecture/device_name")

    assert [c.product for c in made.chips()] == ["Trainium1"] * 2


def test_chip_of_an_unknown_sort_is_there_without_what_is_not_known(bench: Make) -> None:
    made = bench("trn3", 1)
    made.put(f"{CHIPS}/neuron0/info/architecture/device_name", "Trainium9\n")
    (chip,) = made.chips()

    assert (chip.product, len(made.cores())) == ("Trainium9", 4)
    assert "memory" not in chip.capacity


def test_chip_with_an_unknown_pci_id_is_there_once_its_driver_is(bench: Make) -> None:
    """Seen elsewhere: a plugin that does not run on new instances, for they are not in a list."""
    made = bench("trn2", 2)
    other, *_ = made.chips()
    for address in made.host.names("/sys/bus/pci/devices"):
        made.put(f"/sys/bus/pci/devices/{address}/device", "0x7964\n")

    assert len(pci_functions(made.host, Neuron.hardware)) == 2
    assert other in made.chips()
    made.do("unload")
    for address in made.host.names("/sys/bus/pci/devices"):
        made.put(f"/sys/bus/pci/devices/{address}/device", "0x7964\n")
    # Without the driver nothing says that it is a chip.
    assert made.discover() == []


@pytest.mark.parametrize("name", ["device_name", "arch_type", "instance_type"])
def test_name_that_cannot_be_read_is_left_out(bench: Make, name: str) -> None:
    made = bench("trn1", 2)
    made.fail(f"*/neuron0/info/architecture/{name}")

    assert len(made.chips()) == 2


@pytest.mark.parametrize("count", ["0", "9", "-1", "", "x", "99999999999999999999", "²"])
def test_number_of_cores_that_cannot_be_is_unreadable(bench: Make, count: str) -> None:
    made = bench("inf2", 1)
    made.put(f"{CHIPS}/neuron0/core_count", count)

    assert made.unreadable() == [("neuron0", "unreadable")]


def test_chip_with_another_driver_is_somebody_elses(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("bind neuron-1 vfio-pci")

    assert (len(made.chips()), made.unreadable()) == (1, [])


def test_chip_that_its_driver_does_not_take_is_told_by_its_place(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("bind neuron-1 none")

    assert made.unreadable() == [("0000:04:00.0", "driver-not-ready")]
    assert len(made.chips()) == 1


def test_number_of_the_driver_is_among_the_software(bench: Make) -> None:
    made = bench("trn2", 1, {"driver": "2.26.5.0"})

    assert made.vendor.software(made.host) == {"driver": "2.26.5.0"}
    made.do("unload")
    assert made.vendor.software(made.host) == {}


@pytest.mark.parametrize("text", ["", "no version", "9" * 64, "\x00"])
def test_version_that_is_none_is_left_out(bench: Make, text: str) -> None:
    made = bench("trn2", 1)
    made.put(facts.VERSION, text)

    report = read_inventory(made.vendor, made.host)
    assert report.answered
    assert len(str(report.devices[0].attributes.get("driverVersion", ""))) < 64


def test_host_in_an_ultraserver_says_which(bench: Make) -> None:
    (chip,) = bench("trn2", 1, {"ultraserver": "00000000000000a1"}).chips()

    assert chip.attributes["ultraserverMode"] == "1,4"
    assert chip.attributes["serverId4"] == "00000000000000a1"
    assert chip.attributes["nodeId4"] == 0
    assert "serverId2" not in chip.attributes


@pytest.mark.parametrize("text", ["busy\n", "invalid\n", "4\n", "\n", "-1\n"])
def test_host_that_is_in_no_ultraserver_says_nothing(bench: Make, text: str) -> None:
    made = bench("trn2", 1)
    made.put(f"{facts.CLASS}/ultraserver_mode", text)

    assert "ultraserverMode" not in made.chips()[0].attributes
