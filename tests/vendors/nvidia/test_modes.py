from typing import Any

import pytest

from accelkit import (
    DriverNotReady,
    ModeBusy,
    NeedsReset,
    PartitionError,
    SourceError,
)
from accelkit.vendors.nvidia import facts, modes
from tests.vendors.nvidia.bench import Answer, Bench, Liar, Make
from tests.vendors.nvidia.cutting import whole

SET = "nvmlDeviceSetMigMode"


def set_mode(bench: Bench, mode: str) -> None:
    bench.vendor.set_mode(bench.host, whole(bench), mode)


def codes(bench: Bench) -> set[str]:
    return set(bench.codes(whole(bench)))


@pytest.mark.parametrize("product", ["h100", "h200", "b200", "rtx-pro-6000"])
def test_mode_of_hopper_and_newer_is_set_at_once(bench: Make, product: str) -> None:
    made = bench(product, 1)
    set_mode(made, "mig")
    there = whole(made)
    set_mode(made, "whole")

    assert (there.mode, there.usable) == ("mig", False)
    assert (whole(made).mode, whole(made).usable) == ("whole", True)


@pytest.mark.parametrize("product", ["h100", "a100-40"])
@pytest.mark.parametrize("mode", ["mig", "whole"])
def test_mode_that_is_set_is_not_set_again(bench: Make, product: str, mode: str) -> None:
    made = bench(product, 1)
    made.do(f"mig gpu-0 {'on' if mode == 'mig' else 'off'}")
    made.fail(SET, "error 999")

    set_mode(made, mode)
    assert whole(made).mode == mode


@pytest.mark.parametrize("product", ["a100-40", "a100-80", "a30"])
def test_mode_of_ampere_needs_a_reset_and_nothing_is_left_pending(
    bench: Make, product: str
) -> None:
    made = bench(product, 1)

    with pytest.raises(NeedsReset, match="only with a reset"):
        set_mode(made, "mig")
    assert [m.live for m in whole(made).modes] == [False, False]
    assert codes(made) == set()


def test_mode_of_ampere_that_somebody_set_comes_with_the_reset(bench: Make) -> None:
    made = bench("a100-40", 1)
    nvml = made.vendor.nvml(made.host)
    handle = nvml.ask("nvmlDeviceGetHandleByIndex", 0)
    status = nvml.ask(SET, handle, 1)
    pending, mode = codes(made), whole(made).mode
    made.do("reset gpu-0")

    assert (status, pending, mode) == (16, {"mig-pending"}, "whole")
    assert (whole(made).mode, codes(made)) == ("mig", set())


def test_mode_of_ampere_that_somebody_set_comes_with_the_boot(bench: Make) -> None:
    made = bench("a100-40", 1)
    nvml = made.vendor.nvml(made.host)
    nvml.ask(SET, nvml.ask("nvmlDeviceGetHandleByIndex", 0), 1)
    made.do("reboot")

    assert whole(made).mode == "mig"


def test_mode_of_hopper_ends_with_the_boot(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "reboot")

    assert whole(made).mode == "whole"


def test_guest_that_has_parts_of_gpus_cannot_change_their_mode(bench: Make) -> None:
    made = bench("h100", 1, machine={"guest": "vgpu"})

    with pytest.raises(NeedsReset):
        set_mode(made, "mig")
    assert [m.live for m in whole(made).modes] == [False, False]


def test_gpu_with_partitions_stays_in_its_mode_and_they_stay(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 2")
    before = made.devices()

    with pytest.raises(ModeBusy, match=r"1g\.10gb at slot 2") as caught:
        set_mode(made, "whole")
    assert caught.value.retryable
    assert made.devices() == before


def test_gpu_in_use_stays_in_its_mode_and_its_processes_are_named(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("hold gpu-0 4711")

    with pytest.raises(ModeBusy, match="process 4711"):
        set_mode(made, "mig")
    made.do("free gpu-0")
    set_mode(made, "mig")
    assert whole(made).mode == "mig"


def test_holder_that_shows_no_process_keeps_the_mode_and_nothing_is_left_pending(
    bench: Make,
) -> None:
    made = bench("h100", 1)
    made.do("hold gpu-0 hidden")

    with pytest.raises(ModeBusy, match="no list of processes shows"):
        set_mode(made, "mig")
    assert (whole(made).mode, codes(made)) == ("whole", set())


@pytest.mark.parametrize("product,mode", [("h100", "cpx"), ("l4", "mig"), ("l4", "whole")])
def test_mode_that_the_gpu_does_not_have_is_refused(bench: Make, product: str, mode: str) -> None:
    with pytest.raises(PartitionError, match=f"has no mode {mode}"):
        set_mode(bench(product, 1), mode)


def test_other_gpus_keep_their_mode(bench: Make) -> None:
    made = bench("h100", 2)
    set_mode(made, "mig")

    assert [d.mode for d in made.devices()] == ["mig", "whole"]


@pytest.mark.parametrize(
    "code,error", [(19, ModeBusy), (16, NeedsReset), (3, PartitionError), (999, SourceError)]
)
def test_refusal_of_the_driver_says_what_it_is_about(
    bench: Make, code: int, error: type[Exception]
) -> None:
    made = bench("h100", 1)
    made.fail(SET, f"error {code}")

    with pytest.raises(error):
        set_mode(made, "mig")


def test_without_the_driver_no_mode_is_set(bench: Make) -> None:
    made = bench("h100", 1)
    device = whole(made)
    made.do("unload")

    with pytest.raises(DriverNotReady):
        made.vendor.set_mode(made.host, device, "mig")


def liar(bench: Bench, status: int) -> tuple[Liar, list[int]]:
    """A library that says of the first mode that it is set, with *status*; and what it was told."""
    told: list[int] = []

    def lie(_function: Answer, _handle: object, mode: int, activation: Any) -> int:  # type: ignore[explicit-any]  # as ctypes
        activation._obj.value = 0 if told else status
        told.append(mode)
        return 0

    host = Liar(bench.directory)
    host.lies = {SET: lie}
    return host, told


@pytest.mark.parametrize("status,error", [(16, NeedsReset), (19, ModeBusy), (17, PartitionError)])
def test_mode_that_did_not_come_is_taken_back(
    bench: Make, status: int, error: type[Exception]
) -> None:
    """Virtual machines may not reset their GPUs: the mode would come with the next boot."""
    made = bench("h100", 1)
    host, told = liar(made, status)

    with pytest.raises(error):
        made.vendor.set_mode(host, whole(made), "mig")
    assert told == [1, 0]


def test_mode_that_never_comes_is_an_error(bench: Make) -> None:
    made = bench("h100", 1)
    host, _ = liar(made, 0)

    with pytest.raises(PartitionError, match=r"not in mode mig 0\.1 s after"):
        modes.set_mode(made.vendor.nvml(host), whole(made), "mig", 0.1)


def test_gpu_that_is_away_while_its_mode_comes_is_waited_for(bench: Make) -> None:
    made = bench("h100", 1)
    device, looks = whole(made), iter([facts.GPU_IS_LOST, facts.UNINITIALIZED, facts.NOT_FOUND])
    lies: dict[str, Answer] = {}

    def coming(function: Answer, *arguments: object) -> int:
        code = function(*arguments)
        lies["nvmlDeviceGetHandleByUUID"] = away
        return code

    def away(function: Answer, *arguments: object) -> int:
        return next(looks, None) or function(*arguments)

    host = Liar(made.directory)
    host.lies, lies[SET] = lies, coming
    made.vendor.set_mode(host, device, "mig")

    assert next(looks, None) is None
    assert whole(made).mode == "mig"
