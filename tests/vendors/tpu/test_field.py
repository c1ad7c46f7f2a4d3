"""What has gone wrong with TPUs in the field, where no other file tells of it."""

import pytest

from tests.vendors.tpu.bench import Bench, Make


def unlink(made: Bench, name: str) -> None:
    """Take a file of the second chip's function away."""
    folder = made.path("/sys/bus/pci/devices/0000:04:00.0").resolve()
    (folder / name).rename(folder / f".{name}")


def test_group_is_found_among_all_groups_where_the_chip_has_no_link(bench: Make) -> None:
    """Seen elsewhere: one route to the facts, which some images lacked."""
    made = bench("v5e", 4)
    before = made.devices()
    unlink(made, "iommu_group")

    assert made.devices() == before


def test_accel_node_is_found_by_its_class_where_the_chip_has_no_folder(bench: Make) -> None:
    made = bench("v4", 4)
    before = made.devices()
    home = made.path("/sys/class/accel/accel1")
    home.unlink()
    home.mkdir()
    (home / "device").symlink_to("../../../bus/pci/devices/0000:04:00.0")
    unlink(made, "accel")

    assert made.devices() == before
    assert made.codes(before[1]) == {}


def test_class_that_has_other_makers_devices_is_no_chip(bench: Make) -> None:
    made = bench("v4", 2)
    for name in ("accel7", "accel_controlD7", "render"):
        made.path(f"/sys/class/accel/{name}").mkdir()
    unlink(made, "accel")
    made.path("/sys/class/accel/accel1").unlink()

    assert made.unreadable() == {"tpu-0000-04-00": "driver-not-ready"}


def test_chips_count_from_zero_and_the_shared_file_is_none(bench: Make) -> None:
    """Seen elsewhere: seven of eight chips, the first with number 1."""
    devices = bench("v6e", 8).devices()

    assert [d.attributes["index"] for d in devices] == [*range(8)]
    assert "vfio" not in {d.handle for d in devices}


def test_groups_of_disks_and_network_cards_are_no_chips(bench: Make) -> None:
    """Seen elsewhere: every group counted."""
    made = bench("v5e", 4)
    groups = [n for n in made.host.names("/dev/vfio") if n.isdecimal()]

    assert (len(groups), len(made.devices())) == (6, 4)


@pytest.mark.parametrize("mode", ["full", "ambiguous"])
@pytest.mark.parametrize("count,hosts", [(8, 1), (4, 2)])
def test_host_of_four_and_of_eight_are_told_apart(
    bench: Make, mode: str, count: int, hosts: int
) -> None:
    """Seen elsewhere: 2x4 taken for one host, or for two, whatever it was."""
    made = bench("v6e", count, topology="2x4")
    made.do(f"metadata {mode}")

    assert {d.attributes["hosts"] for d in made.devices()} == {hosts}


@pytest.mark.parametrize("product,cores", [("7x", 2), ("v6e", 1), ("v5p", 1)])
def test_resource_counts_chips_and_says_how_many_cores_each_has(
    bench: Make, product: str, cores: int
) -> None:
    """Seen elsewhere: twice the chips that there are."""
    devices = bench(product, 4).devices()

    assert [d.attributes["coresPerChip"] for d in devices] == [cores] * 4


@pytest.mark.parametrize("product,count", [("v5e", 1), ("v6e", 8), ("v4", 4), ("v5p", 4)])
def test_chips_are_counted(bench: Make, product: str, count: int) -> None:
    """Seen elsewhere: four, whatever was there."""
    assert len(bench(product, count).devices()) == count
