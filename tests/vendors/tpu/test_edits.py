import pytest

from accelkit import ContainerEdits, DeviceNode, IllegalSet, MissingParts
from accelkit.vendors.tpu.vendor import TpuOptions
from tests.vendors.opened import grant
from tests.vendors.tpu.bench import Make


def test_each_chip_brings_its_own_files_and_the_shared_one(bench: Make) -> None:
    made = bench("v5e", 4)
    devices = made.devices()

    assert made.edits(0, 1).each == {
        devices[0].id: ContainerEdits(
            nodes=[DeviceNode(path="/dev/vfio/6"), DeviceNode(path="/dev/vfio/vfio")]
        ),
        devices[1].id: ContainerEdits(
            nodes=[DeviceNode(path="/dev/vfio/7"), DeviceNode(path="/dev/vfio/vfio")]
        ),
    }


def test_chip_of_two_functions_brings_both_files(bench: Make) -> None:
    (edits,) = bench("7x", 4).edits(2).each.values()

    assert [n.path for n in edits.nodes] == ["/dev/vfio/11", "/dev/vfio/12", "/dev/vfio/vfio"]


def test_set_is_described_once(bench: Make) -> None:
    env = bench("v5e", 8).env(4, 5, 6, 7)

    assert env["TPU_VISIBLE_CHIPS"] == "4,5,6,7"
    assert env["TPU_TOPOLOGY"] == "2x2"
    assert env["WORKLOAD_NIC_PREFERRED_NUMA"] == "1"


def test_all_chips_of_a_worker_are_its_part_of_the_slice(bench: Make) -> None:
    env = bench("v6e", 4, topology="4x8").env(0, 1, 2, 3)

    assert (env["TPU_TOPOLOGY"], env["TPU_HOST_BOUNDS"]) == ("4x8", "2,4,1")
    assert "TPU_WORKER_ID" not in env


def test_two_shares_of_one_chip_are_one_chip(bench: Make) -> None:
    made = bench("v5e", 4)
    device = made.devices()[0]

    assert made.vendor.edits(made.host, grant(device, device)) == made.edits(0)


def test_nothing_needs_nothing(bench: Make) -> None:
    made = bench("v5e", 4)

    assert not made.vendor.edits(made.host, grant()).whole


@pytest.mark.parametrize("positions", [(0, 1, 2), (0, 1, 2, 3, 4)])
def test_set_that_no_block_can_be_is_refused(bench: Make, positions: tuple[int, ...]) -> None:
    with pytest.raises(IllegalSet, match="cannot use"):
        bench("v5e", 8).edits(*positions)


def test_chip_without_its_file_is_refused(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("hide tpu-1")

    with pytest.raises(MissingParts, match="tpu-0000-04-00: /dev/vfio/7 is not there"):
        made.edits(1)


def test_slice_that_nobody_knows_is_refused(bench: Make) -> None:
    """Seen elsewhere: a guess of 2x2 for whatever was there."""
    made = bench("v5e", 4)
    made.do("metadata none")

    with pytest.raises(MissingParts, match="topology is not known") as caught:
        made.edits(0)

    assert caught.value.remedy.startswith("set topology")


def test_operator_can_say_what_the_host_does_not(bench: Make) -> None:
    made = bench("v5e", 4, TpuOptions(topology="2x4"))
    made.do("metadata none")

    assert made.env(0, 1, 2, 3)["TPU_HOST_BOUNDS"] == "1,2,1"


def test_chip_that_is_left_alone_is_numbered_as_the_host_has_it_now(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("lose tpu-0")

    assert made.env(2)["TPU_VISIBLE_CHIPS"] == "2"


def test_worker_with_a_chip_gone_is_refused(bench: Make) -> None:
    made = bench("v5e", 4, topology="4x4")
    made.do("lose tpu-0")

    with pytest.raises(MissingParts, match="3 of 4 chips of this worker are there"):
        made.edits(0)


@pytest.mark.parametrize("verb", ["bind tpu-0 none", "rubbish tpu-0"])
def test_worker_with_a_chip_that_cannot_be_used_is_refused(bench: Make, verb: str) -> None:
    """Two of the others got a slice of their own, of which their job knew nothing."""
    made = bench("v5e", 4, topology="4x4")
    made.do(verb)

    for positions in ((0,), (0, 1), (0, 1, 2)):
        with pytest.raises(MissingParts, match="a chip of this worker cannot be used"):
            made.edits(*positions)


def test_chip_that_went_after_it_was_chosen_is_refused(bench: Make) -> None:
    made = bench("v5e", 4)
    device = made.devices()[1]
    made.do("lose tpu-1")

    with pytest.raises(MissingParts, match=r"0000:04:00\.0 is no TPU any more"):
        made.vendor.edits(made.host, grant(device))


def test_chip_that_lost_its_driver_after_it_was_chosen_is_refused(bench: Make) -> None:
    made = bench("v5e", 4)
    device = made.devices()[1]
    made.do("bind tpu-1 none")

    with pytest.raises(MissingParts, match="no driver is bound"):
        made.vendor.edits(made.host, grant(device))


def test_file_that_belongs_to_something_else_by_now_is_not_given(bench: Make) -> None:
    """Groups are numbered anew, so that an old number is another chip's, or a disk's."""
    made = bench("v5e", 4)
    device = made.devices()[3]
    made.do("reboot")
    assert made.host.exists("/dev/vfio/10")

    with pytest.raises(MissingParts, match="/dev/vfio/10 is not its own any more"):
        made.vendor.edits(made.host, grant(device))


def test_file_that_changed_after_discovery_is_believed(bench: Make) -> None:
    made = bench("v5e", 4)
    devices = made.devices()
    made.path("/etc/tpu/tpu-env").write_text("TOPOLOGY: 'rubbish'\n")

    with pytest.raises(MissingParts, match="'rubbish' is none"):
        made.vendor.edits(made.host, grant(*devices))
