import signal
import subprocess
import sys

import pytest

from accelkit import (
    DriverNotReady,
    PartitionError,
    Placement,
    PlaceOccupied,
    SourceError,
)
from accelkit.core.model import contradictions
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults
from tests.vendors.nvidia.bench import Bench, Make
from tests.vendors.nvidia.cutting import (
    COMPLETE,
    LARGE,
    MAKE,
    SMALL,
    UNMAKE,
    create,
    destroy,
    parts,
    whole,
)


def test_created_partition_is_the_one_that_discovery_finds(cut: Bench) -> None:
    made = create(cut, SMALL)

    assert parts(cut) == [made]
    assert made.usable
    assert made.handle is not None
    assert contradictions(cut.devices(), (), ()) == ()


def test_partition_can_be_given_to_a_container_at_once(cut: Bench) -> None:
    made = create(cut, SMALL)
    paths = [n.path for n in made.nodes if "nvidia-caps" in n.path]

    assert len(paths) == 2
    assert all(cut.host.exists(path) for path in paths)


def test_partition_that_is_there_is_answered_and_not_made_anew(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.fail(MAKE, "error 999")

    assert create(cut, SMALL) == made


def test_several_partitions_lie_side_by_side(cut: Bench) -> None:
    made = [create(cut, SMALL), create(cut, LARGE)]

    assert parts(cut) == sorted(made, key=lambda d: d.id)


def test_place_that_another_partition_overlaps_is_occupied_by_it(cut: Bench) -> None:
    cut.do("create-mig gpu-0 2g.20gb 2")

    with pytest.raises(PlaceOccupied, match=r"2g\.20gb at slot 2"):
        create(cut, SMALL)
    assert [p.profile for p in parts(cut)] == ["2g.20gb"]


def test_place_that_others_took_between_the_look_and_the_call_is_occupied(cut: Bench) -> None:
    parent = whole(cut)
    set_faults(cut.directory, [Fault(call=MAKE, do="create-mig gpu-0 2g.20gb 2")])

    with pytest.raises(PlaceOccupied, match=r"2g\.20gb at slot 2"):
        cut.vendor.create(cut.host, parent, SMALL)
    assert [p.profile for p in parts(cut)] == ["2g.20gb"]


def test_partition_that_others_made_between_the_look_and_the_call_is_not_taken_away(
    cut: Bench,
) -> None:
    parent = whole(cut)
    set_faults(cut.directory, [Fault(call=MAKE, do="create-mig gpu-0 1g.10gb 2")])

    with pytest.raises(PlaceOccupied):
        cut.vendor.create(cut.host, parent, SMALL)
    assert [p.placement for p in parts(cut)] == [SMALL]


def test_place_that_is_cut_further_is_occupied(cut: Bench) -> None:
    cut.do("create-mig gpu-0 3g.40gb 4 split")

    with pytest.raises(PlaceOccupied, match="cut further, into 3"):
        create(cut, LARGE)
    assert [p.placement for p in parts(cut)] == [LARGE]


def test_engines_that_another_partition_has_make_it_fail_without_a_second_try(cut: Bench) -> None:
    cut.do("create-mig gpu-0 1g.10gb+me 0")

    with pytest.raises(PartitionError, match="insufficient resources") as caught:
        create(cut, Placement(profile="1g.10gb+me", start=2, size=1))
    assert (caught.value.code, caught.value.retryable) == ("partition-failed", False)
    assert len(parts(cut)) == 1


@pytest.mark.parametrize(
    "placement",
    [
        Placement(profile="1g.10gb", start=7, size=1),
        Placement(profile="1g.10gb", start=0, size=2),
        Placement(profile="9g.99gb", start=0, size=1),
    ],
)
def test_place_that_the_gpu_does_not_have_is_refused(cut: Bench, placement: Placement) -> None:
    with pytest.raises(PartitionError, match="is no place"):
        create(cut, placement)


@pytest.mark.parametrize("product", ["h100", "l4"])
def test_gpu_that_is_not_in_mig_mode_is_not_cut(bench: Make, product: str) -> None:
    with pytest.raises(PartitionError, match="not in mode mig"):
        create(bench(product, 1), SMALL)


def test_instance_that_was_only_begun_is_completed(cut: Bench) -> None:
    """A process ended between the two halves."""
    cut.do("create-mig gpu-0 1g.10gb 2 bare")

    assert parts(cut)[0].usable is False
    assert create(cut, SMALL).usable


@pytest.mark.parametrize("code", [23, 999, 4, 19])
def test_what_cannot_be_completed_is_undone(cut: Bench, code: int) -> None:
    parent = whole(cut)
    cut.fail(COMPLETE, f"error {code}")

    with pytest.raises((PartitionError, SourceError)):
        cut.vendor.create(cut.host, parent, SMALL)
    assert parts(cut) == []


def test_what_was_begun_before_and_cannot_be_completed_is_undone(cut: Bench) -> None:
    cut.do("create-mig gpu-0 1g.10gb 2 bare")
    cut.fail(COMPLETE, "error 23")

    with pytest.raises(PartitionError, match="cannot be completed"):
        create(cut, SMALL)
    assert parts(cut) == []


def test_what_cannot_be_read_back_is_undone(cut: Bench) -> None:
    parent = whole(cut)
    cut.fail("nvmlDeviceGetName", "error 999")

    with pytest.raises(SourceError):
        cut.vendor.create(cut.host, parent, SMALL)
    set_faults(cut.directory, [])
    assert parts(cut) == []


def test_partition_of_others_stays_when_it_cannot_be_read_back(cut: Bench) -> None:
    cut.do("create-mig gpu-0 1g.10gb 2")
    parent = whole(cut)
    cut.fail("nvmlDeviceGetName", "error 999")

    with pytest.raises(SourceError):
        cut.vendor.create(cut.host, parent, SMALL)
    set_faults(cut.directory, [])
    assert [p.placement for p in parts(cut)] == [SMALL]


def test_failure_that_cannot_be_undone_says_both(cut: Bench) -> None:
    set_faults(
        cut.directory,
        [
            Fault(call=COMPLETE, times=99, do="error 23"),
            Fault(call=UNMAKE, times=99, do="error 19"),
        ],
    )

    with pytest.raises(PartitionError, match=r"completed.*could not be undone.*in use"):
        create(cut, SMALL)


@pytest.mark.parametrize(
    "symbol,said", [(MAKE, "nothing is there"), (COMPLETE, "nothing can run on it")]
)
def test_library_that_says_made_while_nothing_is_there_is_not_believed(
    cut: Bench, symbol: str, said: str
) -> None:
    parent = whole(cut)
    cut.fail(symbol, "error 0")

    with pytest.raises(PartitionError, match=said):
        cut.vendor.create(cut.host, parent, SMALL)
    assert parts(cut) == []


def test_without_the_driver_nothing_is_made(cut: Bench) -> None:
    parent = whole(cut)
    cut.do("unload")

    with pytest.raises(DriverNotReady):
        cut.vendor.create(cut.host, parent, SMALL)


def test_process_that_ends_between_the_halves_leaves_what_the_next_one_completes(
    cut: Bench,
) -> None:
    set_faults(cut.directory, [Fault(call=COMPLETE, do="crash")])
    script = (
        "import sys\n"
        "from accelkit import Placement\n"
        "from accelkit.testing.machine_host import MachineHost\n"
        "from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions\n"
        "host, vendor = MachineHost(sys.argv[1]), Nvidia(NvidiaOptions())\n"
        "parent = next(iter(vendor.discover(host)))\n"
        "vendor.create(host, parent, Placement(profile='1g.10gb', start=2, size=1))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, cut.directory], check=False)
    left = parts(cut)
    set_faults(cut.directory, [])

    assert ended.returncode == -signal.SIGSEGV
    assert [(p.placement, p.usable) for p in left] == [(SMALL, False)]
    assert create(cut, SMALL).usable


def test_partition_that_is_made_anew_is_the_same_device_with_another_handle(cut: Bench) -> None:
    first = create(cut, SMALL)
    destroy(cut, first)
    second = create(cut, SMALL)

    assert first.id == second.id
    assert first.handle != second.handle


def test_device_file_that_the_driver_did_not_make_is_made_by_its_program(cut: Bench) -> None:
    cut.do("no-caps")
    made = create(cut, SMALL)

    assert all(cut.host.exists(n.path) for n in made.nodes)


def test_failure_that_may_pass_leaves_nothing_and_may_be_tried_again(cut: Bench) -> None:
    parent = whole(cut)
    set_faults(cut.directory, [Fault(call=MAKE, do="error 999")])

    with pytest.raises(SourceError) as caught:
        cut.vendor.create(cut.host, parent, SMALL)
    assert caught.value.retryable
    assert create(cut, SMALL).usable


def test_instance_that_can_have_no_compute_instance_is_undone(cut: Bench) -> None:
    parent = whole(cut)
    cut.fail("nvmlGpuInstanceGetComputeInstanceProfileInfo", "error 3")

    with pytest.raises(PartitionError, match="can have no compute instance"):
        cut.vendor.create(cut.host, parent, SMALL)
    assert parts(cut) == []


def test_mode_that_somebody_ends_as_the_partition_is_read_back_is_an_error(cut: Bench) -> None:
    parent = whole(cut)
    set_faults(cut.directory, [Fault(call="nvmlDeviceGetName", do="mig gpu-0 off")])

    with pytest.raises(SourceError, match="not supported"):
        cut.vendor.create(cut.host, parent, SMALL)
    assert parts(cut) == []
