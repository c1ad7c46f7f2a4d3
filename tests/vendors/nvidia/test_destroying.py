import pytest

from accelkit import (
    AccelkitError,
    PartitionError,
    PartitionInUse,
    PlaceOccupied,
    SourceError,
)
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_faults
from accelkit.vendors.nvidia.card import card_of
from accelkit.vendors.nvidia.destroying import destroy as destroy_at
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Bench
from tests.vendors.nvidia.cutting import LARGE, SMALL, create, destroy, parts, whole


def test_destroyed_partition_is_gone_when_the_call_returns(cut: Bench) -> None:
    cut.do("lag gpu-0 200ms")
    before = cut.devices()
    made = create(cut, SMALL)
    destroy(cut, made)

    assert cut.devices() == before
    assert not any(cut.host.exists(n.path) for n in made.nodes if "nvidia-caps" in n.path)


def test_place_is_free_as_soon_as_a_partition_is_destroyed(cut: Bench) -> None:
    cut.do("lag gpu-0 200ms")
    destroy(cut, create(cut, SMALL))

    again = create(cut, SMALL)
    assert parts(cut) == [again]


def test_destroying_what_is_not_there_is_fine(cut: Bench) -> None:
    made = create(cut, SMALL)
    destroy(cut, made)

    destroy(cut, made)
    assert parts(cut) == []


def test_another_profile_in_the_place_of_a_destroyed_one_is_left_alone(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("destroy-mig gpu-0 2", "create-mig gpu-0 2g.20gb 2")

    destroy(cut, made)
    assert [p.profile for p in parts(cut)] == ["2g.20gb"]


def test_neighbours_stay_as_they_are(cut: Bench) -> None:
    kept = create(cut, LARGE)
    destroy(cut, create(cut, SMALL))

    assert parts(cut) == [kept]


@pytest.mark.parametrize("bare", ["bare", "split"])
def test_instance_is_destroyed_with_whatever_parts_it_has(cut: Bench, bare: str) -> None:
    cut.do(f"create-mig gpu-0 3g.40gb 4 {bare}")
    (there,) = parts(cut)
    destroy(cut, there)

    assert parts(cut) == []


def test_partition_in_use_is_not_touched_and_its_processes_are_named(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("hold gpu-0 4711 2", "hold gpu-0 4712 2")

    with pytest.raises(PartitionInUse, match="process 4711, 4712") as caught:
        destroy(cut, made)
    assert caught.value.retryable
    assert parts(cut) == [made]


def test_split_instance_in_use_keeps_all_of_its_parts(cut: Bench) -> None:
    cut.do("create-mig gpu-0 3g.40gb 4 split", "hold gpu-0 4711 4")
    (there,) = parts(cut)

    with pytest.raises(PartitionInUse, match="4711"):
        destroy(cut, there)
    with pytest.raises(PlaceOccupied, match="into 3"):
        create(cut, LARGE)


def test_holder_that_shows_no_process_is_still_a_holder(cut: Bench) -> None:
    """Seen elsewhere: monitoring agents block the destruction, and nothing shows them."""
    made = create(cut, SMALL)
    cut.do("hold gpu-0 hidden 2")

    with pytest.raises(PartitionInUse, match="no list of processes shows"):
        destroy(cut, made)
    cut.do("free gpu-0")
    destroy(cut, made)
    assert parts(cut) == []


def test_partition_that_does_not_go_is_reported(cut: Bench) -> None:
    cut.do("lag gpu-0 1h")
    made = create(cut, SMALL)

    with pytest.raises(PartitionInUse, match="still there"):
        destroy_at(card_of(cut.vendor.nvml(cut.host), made), SMALL, 0.1)


@pytest.mark.parametrize("verb", ["unload", "lose gpu-0", "remove gpu-0", "bind gpu-0 vfio-pci"])
def test_destroying_succeeds_when_the_gpu_or_the_driver_is_gone(cut: Bench, verb: str) -> None:
    made = create(cut, SMALL)
    cut.do(verb)

    destroy(cut, made)
    destroy(cut, made)


def test_destroying_succeeds_when_the_driver_was_uninstalled(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("unload", "uninstall")
    fresh = Nvidia(NvidiaOptions())

    fresh.destroy(MachineHost(cut.directory), made)


def test_library_that_is_not_found_while_the_driver_runs_proves_nothing(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("uninstall")

    with pytest.raises(SourceError):
        Nvidia(NvidiaOptions()).destroy(MachineHost(cut.directory), made)


def test_gpu_that_cannot_be_asked_proves_nothing(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("error gpu-0 999")

    with pytest.raises(SourceError):
        destroy(cut, made)


def test_partition_is_gone_with_the_mode(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("mig gpu-0 off")

    destroy(cut, made)
    assert whole(cut).usable


def test_whole_gpu_is_not_destroyed(cut: Bench) -> None:
    with pytest.raises(PartitionError, match="is no partition"):
        destroy(cut, whole(cut))


@pytest.mark.parametrize(
    "symbol",
    [
        "nvmlDeviceGetHandleByUUID",
        "nvmlDeviceGetGpuInstances",
        "nvmlGpuInstanceGetInfo",
        "nvmlDeviceGetGpuInstanceById",
        "nvmlComputeInstanceDestroy",
        "nvmlGpuInstanceDestroy",
    ],
)
def test_destruction_that_fails_once_succeeds_when_it_is_asked_again(
    cut: Bench, symbol: str
) -> None:
    made = create(cut, SMALL)
    set_faults(cut.directory, [Fault(call=symbol, do="error 999")])
    with pytest.raises(AccelkitError):
        destroy(cut, made)

    destroy(cut, made)
    assert parts(cut) == []


@pytest.mark.parametrize(
    "call",
    ["nvmlDeviceGetGpuInstanceById", "nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy"],
)
def test_partition_that_others_unmake_at_the_same_time_is_gone(cut: Bench, call: str) -> None:
    made = create(cut, SMALL)
    set_faults(cut.directory, [Fault(call=call, do="destroy-mig gpu-0 2")])

    destroy(cut, made)
    assert parts(cut) == []


def test_driver_refuses_where_processes_cannot_be_listed(cut: Bench) -> None:
    made = create(cut, SMALL)
    cut.do("hold gpu-0 4711 2")
    cut.fail("nvmlDeviceGetComputeRunningProcesses_v3", "error 999")

    with pytest.raises(PartitionInUse, match="no list of processes shows"):
        destroy(cut, made)
