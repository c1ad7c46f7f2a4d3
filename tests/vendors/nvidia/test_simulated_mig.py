"""The simulated NVML refuses and answers as the driver does, whoever calls it."""

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from accelkit.testing.machine_host import MachineHost
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Handle, Nvml, NvmlError
from tests.vendors.nvidia.bench import Bench, Make

SMALL, SMALL_ME, HALF, WHOLE = 19, 20, 9, 0
"""Driver's ids of profiles on H100."""


@pytest.fixture
def cut(bench: Make) -> Bench:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "lag gpu-0 0s")
    return made


def session(bench: Bench) -> tuple[Nvml, Handle]:
    nvml = Nvml(MachineHost(bench.directory), ("/",))
    return nvml, nvml.ask("nvmlDeviceGetHandleByIndex", 0)


def create(nvml: Nvml, gpu: Handle, profile: int, start: int | None = None, size: int = 1) -> int:
    """The id of a new GPU instance."""
    if start is None:
        made = nvml.ask("nvmlDeviceCreateGpuInstance", gpu, profile)
    else:
        place = nvml.array("c_nvmlGpuInstancePlacement_t", 1)[0]
        place.start, place.size = start, size
        made = nvml.ask(
            "nvmlDeviceCreateGpuInstanceWithPlacement", gpu, profile, ctypes.byref(place)
        )
    return int(nvml.ask("nvmlGpuInstanceGetInfo", made).id)


def instance(nvml: Nvml, gpu: Handle, gi: int) -> Handle:
    return nvml.ask("nvmlDeviceGetGpuInstanceById", gpu, gi)


def compute(nvml: Nvml, gpu: Handle, gi: int, profile: int = 0) -> Handle:
    return nvml.ask("nvmlGpuInstanceCreateComputeInstance", instance(nvml, gpu, gi), profile)


def refused(nvml: Nvml, function: str, *arguments: object) -> int:
    with pytest.raises(NvmlError) as caught:
        nvml.ask(function, *arguments)
    return caught.value.value


def test_ids_of_instances_are_those_of_hardware(cut: Bench) -> None:
    nvml, gpu = session(cut)

    assert [create(nvml, gpu, SMALL, start) for start in range(7)] == [7, 8, 9, 10, 11, 12, 13]


def test_larger_instances_have_smaller_ids(cut: Bench) -> None:
    nvml, gpu = session(cut)
    halves = [create(nvml, gpu, HALF, start, 4) for start in (0, 4)]
    for gi in halves:
        nvml.ask("nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))

    assert (halves, create(nvml, gpu, WHOLE, 0, 8)) == ([1, 2], 0)


def test_right_to_an_instance_has_the_minor_of_hardware(cut: Bench) -> None:
    """As in the mapping file of the driver: gpu0/gi7/access 66, gpu0/gi7/ci0/access 67."""
    nvml, gpu = session(cut)
    compute(nvml, gpu, create(nvml, gpu, SMALL, 0))
    folder = "/proc/driver/nvidia/capabilities/gpu0/mig/gi7"

    assert "DeviceFileMinor: 66" in cut.host.read(f"{folder}/access")
    assert "DeviceFileMinor: 67" in cut.host.read(f"{folder}/ci0/access")
    assert cut.host.names("/dev/nvidia-caps") == ("nvidia-cap66", "nvidia-cap67")


def test_place_is_chosen_where_none_is_asked_for(cut: Bench) -> None:
    nvml, gpu = session(cut)
    made = [create(nvml, gpu, HALF) for _ in range(2)]

    assert len(set(made)) == 2
    assert refused(nvml, "nvmlDeviceCreateGpuInstance", gpu, HALF) == facts.INSUFFICIENT_RESOURCES


@pytest.mark.parametrize(
    "profile,start,size,code",
    [
        (SMALL, 7, 1, facts.INVALID_ARGUMENT),
        (SMALL, 0, 2, facts.INVALID_ARGUMENT),
        (99, 0, 1, facts.NOT_SUPPORTED),
        (SMALL, 4, 1, facts.INSUFFICIENT_RESOURCES),
        (SMALL, 0, 1, 0),
    ],
)
def test_place_is_refused_with_the_code_of_the_driver(
    cut: Bench, profile: int, start: int, size: int, code: int
) -> None:
    nvml, gpu = session(cut)
    create(nvml, gpu, HALF, 4, 4)
    try:
        create(nvml, gpu, profile, start, size)
        found = 0
    except NvmlError as error:
        found = error.value

    assert found == code


def test_gpu_that_is_not_in_mig_mode_has_no_instances(bench: Make) -> None:
    nvml, gpu = session(bench("h100", 1))

    assert refused(nvml, "nvmlDeviceCreateGpuInstance", gpu, SMALL) == facts.NOT_SUPPORTED
    assert refused(nvml, "nvmlDeviceGetGpuInstanceById", gpu, 7) == facts.NOT_SUPPORTED


def test_room_that_is_left_is_told_for_each_profile(cut: Bench) -> None:
    nvml, gpu = session(cut)

    def left() -> list[int]:
        function = "nvmlDeviceGetGpuInstanceRemainingCapacity"
        return [int(nvml.ask(function, gpu, p)) for p in (SMALL, SMALL_ME, HALF, WHOLE)]

    empty = left()
    create(nvml, gpu, HALF, 4, 4)
    assert (empty, left()) == ([7, 1, 2, 1], [4, 1, 1, 0])


def test_instance_with_parts_is_in_use(cut: Bench) -> None:
    nvml, gpu = session(cut)
    gi = create(nvml, gpu, SMALL, 0)
    part = compute(nvml, gpu, gi)
    code = refused(nvml, "nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))
    nvml.ask("nvmlComputeInstanceDestroy", part)
    nvml.ask("nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))

    assert code == facts.IN_USE
    assert refused(nvml, "nvmlDeviceGetGpuInstanceById", gpu, gi) == facts.NOT_FOUND


def test_handle_is_invalid_after_its_instance_is_destroyed(cut: Bench) -> None:
    nvml, gpu = session(cut)
    gi = create(nvml, gpu, SMALL, 0)
    whole, part = instance(nvml, gpu, gi), compute(nvml, gpu, gi)
    nvml.ask("nvmlComputeInstanceDestroy", part)
    nvml.ask("nvmlGpuInstanceDestroy", whole)

    for function, handle in (
        ("nvmlComputeInstanceDestroy", part),
        ("nvmlComputeInstanceGetInfo_v2", part),
        ("nvmlGpuInstanceGetInfo", whole),
        ("nvmlGpuInstanceDestroy", whole),
    ):
        assert refused(nvml, function, handle) == facts.INVALID_ARGUMENT


def test_compute_instances_share_the_slices_of_their_instance(cut: Bench) -> None:
    nvml, gpu = session(cut)
    gi = create(nvml, gpu, HALF, 0, 4)
    infos = [
        nvml.ask("nvmlComputeInstanceGetInfo_v2", compute(nvml, gpu, gi, profile))
        for profile in (1, 0)
    ]
    full = refused(nvml, "nvmlGpuInstanceCreateComputeInstance", instance(nvml, gpu, gi), 0)
    wrong = refused(nvml, "nvmlGpuInstanceCreateComputeInstance", instance(nvml, gpu, gi), 4)

    assert [(i.id, i.profileId) for i in infos] == [(0, 1), (1, 0)]
    assert (full, wrong) == (facts.INSUFFICIENT_RESOURCES, facts.INVALID_ARGUMENT)


def test_each_compute_instance_is_a_mig_device_of_its_own(cut: Bench) -> None:
    nvml, gpu = session(cut)
    gi = create(nvml, gpu, HALF, 4, 4)
    for _ in range(3):
        compute(nvml, gpu, gi)
    devices = [nvml.maybe("nvmlDeviceGetMigDeviceHandleByIndex", gpu, i) for i in range(7)]
    there = [d for d in devices if d is not None]

    assert [d is not None for d in devices] == [False] * 4 + [True] * 3
    assert len({nvml.ask("nvmlDeviceGetUUID", d) for d in there}) == 3
    assert [nvml.ask("nvmlDeviceGetComputeInstanceId", d) for d in there] == [0, 1, 2]
    assert all(nvml.ask("nvmlDeviceIsMigDeviceHandle", d).value for d in there)
    parents = [nvml.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", d) for d in there]
    uuids = {nvml.ask("nvmlDeviceGetUUID", p) for p in parents}
    assert uuids == {nvml.ask("nvmlDeviceGetUUID", gpu)}


def test_destroyed_instance_lingers_with_its_slots_until_its_time_is_over(cut: Bench) -> None:
    cut.do("lag gpu-0 1h")
    nvml, gpu = session(cut)
    gi = create(nvml, gpu, SMALL, 0)
    nvml.ask("nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))
    nvml.ask("nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))

    with pytest.raises(NvmlError, match="insufficient resources"):
        create(nvml, gpu, SMALL, 0)
    assert (
        refused(nvml, "nvmlGpuInstanceCreateComputeInstance", instance(nvml, gpu, gi), 0)
        == facts.INVALID_ARGUMENT
    )
    assert len(cut.host.names("/dev/nvidia-caps")) == 1


def test_instance_that_lingered_is_gone_for_every_process_at_once(cut: Bench) -> None:
    cut.do("lag gpu-0 50ms")
    nvml, gpu = session(cut)
    other, other_gpu = session(cut)
    gi = create(nvml, gpu, SMALL, 0)
    nvml.ask("nvmlGpuInstanceDestroy", instance(nvml, gpu, gi))
    end = time.monotonic() + 10
    while nvml.maybe("nvmlDeviceGetGpuInstanceById", gpu, gi) is not None:
        assert time.monotonic() < end

    assert other.maybe("nvmlDeviceGetGpuInstanceById", other_gpu, gi) is None
    assert cut.host.names("/dev/nvidia-caps") == ()


def test_same_history_gives_the_same_uuids(bench: Make) -> None:
    found = []
    for _ in range(2):
        made = bench("h100", 1)
        made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "destroy-mig gpu-0 0")
        made.do("create-mig gpu-0 1g.10gb 0", "create-mig gpu-0 3g.40gb 4 split")
        found.append([d.handle for d in made.devices()])

    assert found[0] == found[1]


def test_place_has_its_first_uuid_again_after_a_boot(cut: Bench) -> None:
    handles = []
    for verb in ("destroy-mig gpu-0 0", "reboot", "destroy-mig gpu-0 0"):
        cut.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
        handles.append(cut.devices()[1].handle)
        cut.do(verb)

    assert handles[0] == handles[2] != handles[1]


def test_instances_are_made_one_at_a_time_whoever_makes_them(cut: Bench) -> None:
    def make(_number: int) -> int | None:
        nvml, gpu = session(cut)
        try:
            return create(nvml, gpu, SMALL)
        except NvmlError:
            return None

    with ThreadPoolExecutor(9) as pool:
        made = list(pool.map(make, range(9)))

    assert sorted(gi for gi in made if gi is not None) == [7, 8, 9, 10, 11, 12, 13]
    assert made.count(None) == 2


def test_place_is_had_by_one_of_those_who_want_it(cut: Bench) -> None:
    def make(_number: int) -> bool:
        nvml, gpu = session(cut)
        try:
            create(nvml, gpu, SMALL, 3)
        except NvmlError as error:
            return error.value != facts.INSUFFICIENT_RESOURCES
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(make, range(4))) == 1


def test_cutting_survives_in_the_directory_and_not_in_the_process(cut: Bench) -> None:
    nvml, gpu = session(cut)
    compute(nvml, gpu, create(nvml, gpu, SMALL, 5))

    (part,) = [d for d in cut.devices() if d.parent is not None]
    assert part.placement is not None
    assert part.placement.start == 5
