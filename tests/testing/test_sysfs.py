import pytest

from accelkit.core.errors import PluginContractError
from accelkit.core.values import FrozenMap
from accelkit.testing.machines import File, Link, Part
from accelkit.testing.pasted import LIKE, Told, Unit
from accelkit.testing.sysfs import KERNEL, common_tree, part_place, pci_function, pci_place
from accelkit.testing.trees import gather


def test_no_two_positions_have_one_place() -> None:
    places = [pci_place(position, position, 256) for position in range(256)]

    assert len({place.address for place in places}) == 256
    assert not {p.address for p in places} & {bridge for p in places for bridge in p.above}


def test_neighbours_share_a_switch_and_halves_a_numa_node() -> None:
    places = [pci_place(8 + index, index, 4) for index in range(4)]

    assert [p.root for p in places] == ["pci0000:40", "pci0000:40", "pci0000:50", "pci0000:50"]
    assert places[0].above[:2] == places[1].above[:2]
    assert places[0].above[2] != places[1].above[2]
    assert [p.numa for p in places] == [0, 0, 1, 1]


@pytest.mark.parametrize("index", [-1, 2])
def test_a_unit_that_the_part_does_not_have_has_no_place(index: int) -> None:
    with pytest.raises(PluginContractError, match=f"unit {index} of 2, counted from 0") as caught:
        part_place(Part(vendor="acme", product="one", count=2), index)

    assert "attrs.evolve(place, address=...)" in caught.value.remedy


def test_a_function_without_driver_has_no_link_to_one() -> None:
    place = pci_place(0, 0, 1)

    tree = gather(pci_function(place, vendor=0x10DE, device=0x2330, pci_class=0x030200))

    folder = f"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/{place.address}"
    assert tree == {
        f"/sys/bus/pci/devices/{place.address}": Link(
            path=f"/sys/bus/pci/devices/{place.address}", target=folder
        ),
        f"{folder}/class": File(path=f"{folder}/class", content="0x030200\n"),
        f"{folder}/device": File(path=f"{folder}/device", content="0x2330\n"),
        f"{folder}/numa_node": File(path=f"{folder}/numa_node", content="0\n"),
        f"{folder}/vendor": File(path=f"{folder}/vendor", content="0x10de\n"),
    }


def test_every_machine_has_a_kernel() -> None:
    path = "/proc/sys/kernel/osrelease"

    assert gather(common_tree())[path] == File(path=path, content=f"{KERNEL}\n", mode=0o444)


def test_what_is_told_of_a_place_goes_before_what_is_made_up() -> None:
    units = (
        Unit(address="0001:5e:00.0", numa=3),
        Unit(address="0001:5f:00.0", root="pci0001:40"),
        Unit(),
    )
    options = FrozenMap({LIKE: Told(units=units).dump()})
    part = Part(vendor="sim", product="basic", count=3, options=options)

    places = [part_place(part, index) for index in range(3)]

    assert [p.address for p in places] == ["0001:5e:00.0", "0001:5f:00.0", "0000:13:00.0"]
    assert [p.root for p in places] == ["pci0001:00", "pci0001:40", "pci0000:10"]
    assert [p.numa for p in places] == [3, 0, 1]
    assert places[1].above == ()
