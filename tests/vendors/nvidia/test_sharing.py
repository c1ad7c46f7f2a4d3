from pathlib import Path

import attrs
import pytest

from accelkit import (
    ContainerEdits,
    Device,
    Divide,
    Edits,
    Enforcement,
    FrozenMap,
    Grant,
    Granted,
    IllegalSet,
    MissingParts,
    Sharing,
)
from accelkit.core.answers import check_edits
from accelkit.core.policy import Bytes
from accelkit.vendors.nvidia.vendor import NvidiaOptions
from tests.vendors.nvidia.bench import Bench, Make

GIB = 1 << 30
FOLDER = "/opt/hami"
SHARED = Sharing(shares=4, divide=Divide.EQUAL, enforce=Enforcement.LIBRARY)
ASKED = Sharing(divide=Divide.REQUESTED, enforce=Enforcement.LIBRARY)
MPS = attrs.evolve(SHARED, enforce=Enforcement.MPS)


@pytest.fixture
def hami(bench: Make) -> Bench:
    """Two L4 on a node with the library."""
    return bench("l4", 2, NvidiaOptions(hami_core=FOLDER), {"hamiCore": FOLDER})


def share(device: Device, amounts: dict[str, int] | None = None, name: str = "0") -> Granted:
    return Granted(device=device, share=name, amounts=FrozenMap(amounts or {}))


def edits(bench: Bench, sharing: Sharing, *granted: Granted, scratch: str | None = None) -> Edits:
    grant = Grant(owner="t", granted=granted, sharing=sharing, scratch=scratch)
    found = bench.vendor.edits(bench.host, grant)
    check_edits(bench.vendor, grant, found)
    return found


def limits(bench: Bench, sharing: Sharing, *granted: Granted) -> dict[str, str]:
    env = edits(bench, sharing, *granted).whole.env
    return {key: value for key, value in env.items() if "LIMIT" in key}


def places(part: ContainerEdits) -> dict[str, str]:
    return {m.container_path: m.host_path for m in part.mounts}


def test_library_enforces_only_where_it_is_installed(bench: Make, hami: Bench) -> None:
    without = bench("l4", 1).devices()[0]
    there = hami.devices()[0]

    assert without.sharing == {Enforcement.NONE, Enforcement.MPS}
    assert there.sharing == {Enforcement.NONE, Enforcement.MPS, Enforcement.LIBRARY}


def test_nothing_enforces_shares_of_partitions(bench: Make) -> None:
    made = bench("h100", 1, NvidiaOptions(hami_core=FOLDER), {"hamiCore": FOLDER})
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
    parent, part = made.devices()

    assert part.sharing == {Enforcement.NONE}
    assert Enforcement.LIBRARY in parent.sharing


def test_library_is_preloaded_from_the_file_that_every_program_reads(hami: Bench) -> None:
    whole = edits(hami, SHARED, share(hami.devices()[0])).whole

    assert places(whole) == {
        f"{FOLDER}/libvgpu.so": f"{FOLDER}/libvgpu.so",
        "/etc/ld.so.preload": f"{FOLDER}/ld.so.preload",
    }
    assert all(m.read_only for m in whole.mounts)


def test_equal_share_is_a_part_of_the_memory_in_whole_units_and_of_the_cores(hami: Bench) -> None:
    device = hami.devices()[0]
    found = limits(hami, SHARED, share(device))

    assert device.capacity["memory"] // 4 // GIB == 5
    assert found == {"CUDA_DEVICE_MEMORY_LIMIT_0": "5120m", "CUDA_DEVICE_SM_LIMIT_0": "25"}


def test_share_that_is_smaller_than_a_unit_is_not_nothing(hami: Bench) -> None:
    sharing = attrs.evolve(SHARED, unit=Bytes(64 * GIB))

    assert limits(hami, sharing, share(hami.devices()[0]))["CUDA_DEVICE_MEMORY_LIMIT_0"] == "5758m"


def test_smallest_share_still_has_a_limit(hami: Bench) -> None:
    sharing = attrs.evolve(SHARED, shares=128)
    found = limits(hami, sharing, share(hami.devices()[0], {"memory": 1}))

    assert found == {"CUDA_DEVICE_MEMORY_LIMIT_0": "1m", "CUDA_DEVICE_SM_LIMIT_0": "1"}


def test_amounts_that_the_scheduler_gave_win_over_equal_parts(hami: Bench) -> None:
    found = limits(hami, SHARED, share(hami.devices()[0], {"memory": 3 * GIB, "cores": 10}))

    assert found == {"CUDA_DEVICE_MEMORY_LIMIT_0": "3072m", "CUDA_DEVICE_SM_LIMIT_0": "10"}


def test_variables_are_numbered_in_the_order_of_the_set(hami: Bench) -> None:
    one, other = hami.devices()
    found = limits(
        hami,
        ASKED,
        share(other, {"memory": 2 * GIB}),
        share(one, {"memory": GIB, "cores": 30}),
    )

    assert found == {
        "CUDA_DEVICE_MEMORY_LIMIT_0": "1024m",
        "CUDA_DEVICE_MEMORY_LIMIT_1": "2048m",
        "CUDA_DEVICE_SM_LIMIT_0": "30",
    }
    env = edits(hami, ASKED, share(other, {"memory": GIB})).whole.env
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_device_without_a_limit_still_has_its_number(hami: Bench) -> None:
    one, other = hami.devices()

    assert limits(hami, ASKED, share(one), share(other, {"memory": GIB})) == {
        "CUDA_DEVICE_MEMORY_LIMIT_1": "1024m"
    }


def test_two_shares_of_one_device_add_up(hami: Bench) -> None:
    device = hami.devices()[0]
    amounts = {"memory": GIB, "cores": 60}

    assert limits(hami, ASKED, share(device, amounts), share(device, amounts, "1")) == {
        "CUDA_DEVICE_MEMORY_LIMIT_0": "2048m"
    }


def test_undivided_shares_have_no_limits(hami: Bench) -> None:
    sharing = attrs.evolve(SHARED, divide=Divide.NONE)

    assert edits(hami, sharing, share(hami.devices()[0])).whole == ContainerEdits()


def test_who_only_looks_has_no_limits(hami: Bench) -> None:
    looking = Granted(device=hami.devices()[0], admin=True)

    assert edits(hami, SHARED, looking).whole == ContainerEdits()


def test_processes_of_a_claim_have_their_counters_in_common(hami: Bench) -> None:
    whole = edits(hami, SHARED, share(hami.devices()[0]), scratch="/run/x/scratch/u").whole
    writable = {m.container_path: m.host_path for m in whole.mounts if not m.read_only}

    assert writable == {"/run/vgpu": "/run/x/scratch/u", "/tmp/vgpulock": "/run/x/scratch/u"}
    assert whole.env["CUDA_DEVICE_MEMORY_SHARED_CACHE"] == "/run/vgpu/cudevshr.cache"


def test_lock_of_all_containers_is_taken_from_the_host_where_it_is_there(hami: Bench) -> None:
    Path(hami.directory, "tmp/vgpulock").mkdir(parents=True)
    whole = edits(hami, SHARED, share(hami.devices()[0])).whole

    assert [m.host_path for m in whole.mounts if not m.read_only] == ["/tmp/vgpulock"]


def test_limits_are_of_the_set_and_not_of_its_devices(hami: Bench) -> None:
    device = hami.devices()[0]
    shared = edits(hami, SHARED, share(device)).each
    alone = edits(hami, Sharing(), Granted(device=device)).each

    assert shared == alone


def test_promise_is_not_kept_without_the_library(bench: Make) -> None:
    made = bench("l4", 1)

    with pytest.raises(MissingParts, match=r"libvgpu\.so") as caught:
        edits(made, SHARED, share(made.devices()[0]))
    assert "hamiCore" in caught.value.remedy


def test_daemon_shares_gpus_since_volta(bench: Make) -> None:
    assert {Enforcement.MPS} <= bench("dgx1", 1).devices()[0].sharing


def test_client_of_the_daemon_finds_it_and_has_its_limits(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("mps gpu-0 on")
    (device,) = made.devices()
    found = edits(made, MPS, share(device))
    part = found.each[device.id]
    pipe = f"/run/accelkit/mps/{device.id.name}/pipe"

    assert part.env.items() >= {
        ("CUDA_MPS_PIPE_DIRECTORY", pipe),
        ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=5120M"),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25"),
        ("NVIDIA_VISIBLE_DEVICES", "void"),
    }
    assert [m.host_path for m in part.mounts if not m.read_only] == [pipe]
    assert found.whole == ContainerEdits()


def test_memory_that_daemon_and_clients_have_in_common_is_mounted_where_it_is_there(
    bench: Make,
) -> None:
    made = bench("l4", 1)
    made.do("mps gpu-0 on")
    (device,) = made.devices()
    folder = f"/run/accelkit/mps/{device.id.name}/shm"
    Path(made.directory + folder).mkdir()
    part = edits(made, MPS, share(device)).each[device.id]

    assert {m.container_path: m.host_path for m in part.mounts}["/dev/shm"] == folder


def test_client_without_limits_finds_the_daemon_alone(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("mps gpu-0 on")
    (device,) = made.devices()
    sharing = attrs.evolve(MPS, divide=Divide.NONE)
    env = edits(made, sharing, share(device)).each[device.id].env

    assert {key for key in env if key.startswith("CUDA")} == {"CUDA_MPS_PIPE_DIRECTORY"}


def test_container_cannot_start_without_the_daemon(bench: Make) -> None:
    made = bench("l4", 1)

    with pytest.raises(MissingParts, match="its MPS daemon is not there"):
        edits(made, MPS, share(made.devices()[0]))


def test_program_is_not_the_client_of_two_daemons(bench: Make) -> None:
    made = bench("l4", 2)
    made.do("mps gpu-0 on", "mps gpu-1 on")
    one, other = made.devices()

    with pytest.raises(IllegalSet, match="an MPS daemon each"):
        edits(made, MPS, share(one), share(other))


def test_several_shares_of_one_gpu_have_one_daemon(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("mps gpu-0 on")
    (device,) = made.devices()
    env = edits(made, MPS, share(device), share(device, name="1")).each[device.id].env

    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "50"


def test_partition_beside_a_shared_gpu_has_no_daemon(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "mps gpu-1 on")
    part = next(d for d in made.devices() if d.parent is not None)
    whole = next(d for d in made.devices() if d.usable and d.parent is None)
    found = edits(made, MPS, share(part), share(whole)).each

    assert "CUDA_MPS_PIPE_DIRECTORY" not in found[part.id].env
    assert "CUDA_MPS_PIPE_DIRECTORY" in found[whole.id].env
