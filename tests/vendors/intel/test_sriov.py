from functools import partial

import pytest

from accelkit import AccessDenied, Device, ModeBusy, PartitionError, Placement, SourceError
from accelkit.core.host import Door
from accelkit.core.model import contradictions
from accelkit.vendors.intel import sriov
from accelkit.vendors.intel.discovery import Offered
from accelkit.vendors.intel.vendor import IntelOptions
from tests.vendors.intel.bench import Bench, Make

GIB = 1 << 30
NUMVFS = "/sys/bus/pci/devices/0000:03:00.0/sriov_numvfs"


def parts_of(made: Bench) -> list[Device]:
    return [d for d in made.devices() if d.parent is not None]


def set_mode(made: Bench, mode: str) -> None:
    made.vendor.set_mode(made.work, made.devices()[0], mode)


def test_numbers_of_virtual_functions_are_modes(bench: Make) -> None:
    device = bench("flex-170", 1).devices()[0]

    assert [(m.name, m.cut, m.count) for m in sorted(device.modes, key=lambda m: m.count)] == [
        ("whole", None, 0),
        ("vfs-1", "vf-of-1", 1),
        ("vfs-2", "vf-of-2", 2),
        ("vfs-4", "vf-of-4", 4),
        ("vfs-8", "vf-of-8", 8),
        ("vfs-16", "vf-of-16", 16),
        ("vfs-31", "vf-of-31", 31),
    ]
    assert (device.mode, device.usable, device.slots) == ("whole", True, 31)
    assert not any(m.live for m in device.modes)


@pytest.mark.parametrize("product", ["arc-a770", "arc-b580"])
def test_gpu_without_virtual_functions_cannot_be_cut(bench: Make, product: str) -> None:
    device = bench(product, 1).devices()[0]

    assert (device.modes, device.profiles, device.slots, device.mode) == ((), (), 0, None)


def test_virtual_functions_are_partitions_named_by_their_place(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 4")
    whole, *parts = made.devices()

    assert (whole.mode, whole.usable) == ("vfs-4", False)
    assert [p.id.name for p in parts] == [f"0000-03-00-0-0xe211-vf4-{n}" for n in range(4)]
    assert {p.parent for p in parts} == {whole.id}
    assert {p.locality for p in parts} == {whole.locality}
    assert [p.handle for p in parts] == [f"0000:03:00.{n}" for n in range(1, 5)]
    assert made.paths(parts[0]) == ["/dev/dri/card1", "/dev/dri/renderD129"]
    assert parts[0].capacity == {"memory": 6 * GIB}
    assert parts[0].attributes["type"] == "vf"
    assert parts[0].attributes["sriov"] is False
    assert contradictions((whole, *parts), (), ()) == ()


def test_virtual_functions_beyond_the_seventh_have_another_device_number(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 31")

    assert parts_of(made)[30].handle == "0000:03:03.7"


def test_quotas_of_the_driver_win_over_an_even_share(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2")
    (made.sysfs() / "sriov_admin/vf1/profile/vram_quota").write_text(f"{4 * GIB}\n")
    (made.sysfs() / "sriov_admin/vf2/profile/vram_quota").write_text("what\n")

    assert [p.capacity["memory"] for p in parts_of(made)] == [4 * GIB, 12 * GIB]


def test_quotas_of_tiles_are_one_amount(bench: Make) -> None:
    made = bench("max-1550", 1, machine={"backport": "1.25.2"})
    made.do("vfs gpu-0 2")
    card = made.sysfs() / "drm/card0/prelim_iov"
    (card / "vf1/gt0/lmem_quota").write_text(f"{8 * GIB}\n")

    assert [p.capacity["memory"] // GIB for p in parts_of(made)] == [8 + 32, 64]


@pytest.mark.parametrize(
    "offered,whole,part",
    [(Offered.VF, False, True), (Offered.PF, True, False), (Offered.BOTH, True, True)],
)
def test_operator_says_what_of_a_gpu_with_virtual_functions_is_offered(
    bench: Make, offered: Offered, *, whole: bool, part: bool
) -> None:
    made = bench("flex-170", 1, IntelOptions(offer=offered))
    made.do("vfs gpu-0 2")

    assert [d.usable for d in made.devices()] == [whole, part, part]


def test_virtual_function_that_a_virtual_machine_has_is_there_and_not_usable(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2", "pass gpu-0 1")

    assert [(p.usable, made.paths(p) != []) for p in parts_of(made)] == [
        (True, True),
        (False, False),
    ]


def test_virtual_function_without_driver_is_told_by_its_name(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("no-autoprobe", "vfs gpu-0 1")

    (problem,) = made.unreadable()
    assert (problem.subject, problem.code) == ("0000-03-00-0-0xe211-vf1-0", "driver-not-ready")
    assert problem.remedy.startswith("write 0000:03:00.1 to /sys/bus/pci/drivers/xe/bind; with")


def test_virtual_function_whose_link_leads_nowhere_is_told(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2")
    (made.sysfs() / "virtfn0").unlink()
    (made.sysfs() / "virtfn1").unlink()
    (made.sysfs() / "virtfn1").symlink_to("virtfn1")

    assert [(u.subject, u.code) for u in made.unreadable()] == [
        ("0000-03-00-0-0xe211-vf2-0", "unreadable"),
        ("0000-03-00-0-0xe211-vf2-1", "unreadable"),
    ]


def test_number_that_somebody_else_chose_is_a_mode_while_it_lasts(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 5")
    whole, *parts = made.devices()

    assert (whole.mode, len(parts)) == ("vfs-5", 5)
    assert contradictions((whole, *parts), (), ()) == ()


@pytest.mark.parametrize("total", ["0", "-1", "", "many", "100000", "\0"])
def test_total_that_makes_no_sense_is_none(bench: Make, total: str) -> None:
    made = bench("flex-170", 1)
    (made.sysfs() / "sriov_totalvfs").write_text(total)

    assert [(d.slots, d.modes) for d in made.devices()] == [(0, ())]


@pytest.mark.parametrize("product", ["flex-170", "arc-pro-b60", "max-1550"])
def test_modes_are_reached_from_every_other(bench: Make, product: str) -> None:
    made = bench(product, 2)
    before = made.devices()
    for mode, count in (("vfs-2", 2), ("vfs-4", 4), ("vfs-4", 4), ("vfs-1", 1)):
        set_mode(made, mode)

        assert (made.devices()[0].mode, len(parts_of(made))) == (mode, count)
    set_mode(made, "whole")

    assert made.devices() == before


@pytest.mark.parametrize("holder", ["hold gpu-0 4711 1", "hold gpu-0 4711", "pass gpu-0 0"])
def test_gpu_in_use_keeps_its_virtual_functions(bench: Make, holder: str) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2", holder)

    with pytest.raises(ModeBusy, match=r"process 4711|0000:03:00\.1 by xe-vfio-pci"):
        set_mode(made, "whole")
    assert len(parts_of(made)) == 2


@pytest.mark.parametrize("mode", ["vfs-3", "vfs-99", "", "cpx"])
def test_mode_that_it_does_not_have_is_refused(bench: Make, mode: str) -> None:
    made = bench("flex-170", 1)

    with pytest.raises(PartitionError, match=r"its modes: .*vfs-31.*whole"):
        set_mode(made, mode)


def test_gpu_that_is_gone_has_no_modes(bench: Make) -> None:
    made = bench("flex-170", 1)
    device = made.devices()[0]
    made.do("lose gpu-0")

    with pytest.raises(PartitionError):
        made.vendor.set_mode(made.work, device, "vfs-2")


def test_virtual_functions_come_back_where_more_do_not_fit(bench: Make) -> None:
    """Quotas that were set by hand leave room for few."""
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2", "room gpu-0 2")

    with pytest.raises(PartitionError, match="did not get 4 virtual functions"):
        set_mode(made, "vfs-4")
    assert made.devices()[0].mode == "vfs-2"


class Stubborn(Door):
    """A kernel that takes numbers and does nothing, or refuses them."""

    def __init__(self, made: Bench, *refused: str) -> None:
        super().__init__(made.work)
        self._refused = refused

    def write(self, path: str, text: str) -> None:
        if text in self._refused:
            raise SourceError(f"{path}: device or resource busy")


def test_mode_that_does_not_come_is_an_error(bench: Make) -> None:
    made = bench("flex-170", 1)

    with pytest.raises(PartitionError, match="it has 0 virtual functions"):
        sriov.set_mode(Stubborn(made), made.devices()[0], "vfs-2", 0.0)


def test_virtual_functions_that_do_not_go_are_busy(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 2")

    with pytest.raises(ModeBusy, match="do not go"):
        sriov.set_mode(Stubborn(made, "0"), made.devices()[0], "whole")


class Closed(Door):
    """A folder that only others may write some numbers into."""

    def __init__(self, made: Bench, refused: str) -> None:
        super().__init__(made.work)
        self._refused = refused

    def write(self, path: str, text: str) -> None:
        if text == self._refused:
            raise AccessDenied(f"{path}: this process may not write it")
        super().write(path, text)


@pytest.mark.parametrize("refused", ["0", "4"])
def test_missing_right_is_told_as_that_and_not_as_somebody_elses_use(
    bench: Make, refused: str
) -> None:
    """Operators were sent to shut down virtual machines, or to look for quotas."""
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 2")

    with pytest.raises(AccessDenied, match="may not write it"):
        sriov.set_mode(Closed(made, refused), made.devices()[0], "vfs-4")
    assert made.devices()[0].mode == "vfs-2"


def test_nothing_is_undone_where_nothing_was_done(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 2")
    refusing = partial(sriov.set_mode, Stubborn(made, "4", "2"), made.devices()[0])

    with pytest.raises(PartitionError, match="did not get 4"):
        refusing("vfs-4")


def test_virtual_functions_without_files_yet_are_waited_for(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("no-nodes")

    with pytest.raises(PartitionError, match="has no device files"):
        sriov.set_mode(made.work, made.devices()[0], "vfs-2", 0.0)


def test_virtual_functions_are_bound_by_hand_where_the_kernel_is_told_so(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("no-autoprobe")
    set_mode(made, "vfs-2")

    assert len(made.unreadable()) == 2


def test_virtual_functions_are_neither_made_nor_unmade_one_by_one(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 2")
    whole, first, _ = made.devices()
    place = Placement(profile="vf-of-4", start=0, size=1)

    assert first.placement is not None
    assert made.vendor.create(made.work, whole, first.placement) == first
    with pytest.raises(PartitionError, match="comes with its mode only"):
        made.vendor.create(made.work, whole, place)
    with pytest.raises(PartitionError, match="goes with the mode"):
        made.vendor.destroy(made.work, first)
    made.do("vfs gpu-0 0")
    made.vendor.destroy(made.work, first)


def test_after_a_reboot_gpus_are_whole_again(bench: Make) -> None:
    made = bench("flex-170", 1)
    made.do("vfs gpu-0 2", "reboot")

    assert [d.mode for d in made.devices()] == ["whole"]
