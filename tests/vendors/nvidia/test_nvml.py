import sys
import threading

import pynvml
import pytest

from accelkit import AccessDenied, DriverNotReady, LibraryMissing, SourceError, StartOver
from accelkit.testing.machine_host import MachineHost
from accelkit.vendors.nvidia.nvml import Nvml, NvmlError
from accelkit.vendors.nvidia.reading import count_gpus
from tests.vendors.nvidia.bench import Make


def test_machines_side_by_side_each_have_their_own_library(bench: Make) -> None:
    two, three = (Nvml(bench("h100", count).host, ["/"]) for count in (2, 3))

    assert [count_gpus(two), count_gpus(three), count_gpus(two)] == [2, 3, 2]


def test_threads_on_different_machines_do_not_meet(bench: Make) -> None:
    sessions = {count: Nvml(bench("l4", count).host, ["/"]) for count in (1, 2, 3, 4)}
    found: list[bool] = []

    def ask(count: int) -> None:
        found.extend(count_gpus(sessions[count]) == count for _ in range(50))

    threads = [threading.Thread(target=ask, args=(count,)) for count in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [True] * 200


def test_other_users_of_the_binding_keep_theirs(bench: Make) -> None:
    count_gpus(Nvml(bench("l4", 1).host, ["/"]))

    assert pynvml.nvmlLib is None
    assert sys.modules["pynvml"] is pynvml


def test_symbol_that_one_library_lacks_is_there_in_another(bench: Make) -> None:
    made = bench("l4", 1)
    lacking = Nvml(made.host, ["/"])
    whole = Nvml(MachineHost(made.directory), ["/"])
    del lacking._table.__dict__["nvmlDeviceGetCount_v2"]

    with pytest.raises(NvmlError, match="13"):
        lacking.ask("nvmlDeviceGetCount")
    assert lacking.maybe("nvmlDeviceGetCount") is None
    assert whole.ask("nvmlDeviceGetCount") == 1


def test_call_that_hangs_costs_nobody_else_anything(bench: Make) -> None:
    made = bench("l4", 1)
    nvml = Nvml(made.host, ["/"])
    nvml.ask("nvmlDeviceGetCount")
    made.fail("nvmlSystemGetDriverVersion", "hang 2s", times=1)
    order: list[str] = []

    def hang() -> None:
        nvml.ask("nvmlSystemGetDriverVersion")
        order.append("hung")

    thread = threading.Thread(target=hang)
    thread.start()
    nvml.ask("nvmlDeviceGetCount")
    order.append("asked")
    thread.join()

    assert order == ["asked", "hung"]


@pytest.mark.parametrize("code", [1, 9])
def test_session_that_the_library_forgot_is_opened_again(bench: Make, code: int) -> None:
    made = bench("l4", 1)
    nvml = Nvml(made.host, ["/"])
    nvml.ask("nvmlDeviceGetCount")
    made.fail("nvmlDeviceGetCount_v2", f"error {code}", times=1)

    with pytest.raises(SourceError):
        nvml.ask("nvmlDeviceGetCount")
    assert nvml.ask("nvmlDeviceGetCount") == 1
    assert nvml.generation == 1


def test_late_answer_about_an_old_session_does_not_end_the_new_one(bench: Make) -> None:
    nvml = Nvml(bench("l4", 1).host, ["/"])
    nvml.ask("nvmlDeviceGetCount")
    old = nvml.generation
    nvml.drop(old)
    nvml.ask("nvmlDeviceGetCount")
    nvml.drop(old)

    assert nvml.generation == old + 1


@pytest.mark.parametrize(
    "code,error",
    [
        (9, DriverNotReady),
        (18, StartOver),
        (4, AccessDenied),
        (15, NvmlError),
        (12345, NvmlError),
    ],
)
def test_return_code_becomes_an_error_with_its_family(
    bench: Make, code: int, error: type[SourceError]
) -> None:
    made = bench("l4", 1)
    made.fail("nvmlDeviceGetCount_v2", f"error {code}")

    with pytest.raises(error):
        Nvml(made.host, ["/"]).ask("nvmlDeviceGetCount")


@pytest.mark.parametrize("code", [2, 3, 6, 13, 21, 25, 26])
def test_answer_that_there_is_no_such_thing_is_none(bench: Make, code: int) -> None:
    made = bench("l4", 1)
    made.fail("nvmlDeviceGetCount_v2", f"error {code}")

    assert Nvml(made.host, ["/"]).maybe("nvmlDeviceGetCount") is None


def test_function_that_the_binding_lacks_is_not_found(bench: Make) -> None:
    nvml = Nvml(bench("l4", 1).host, ["/"])

    assert nvml.maybe("nvmlDeviceGetSomethingNew") is None
    with pytest.raises(NvmlError):
        nvml.new("c_nvmlSomethingNew_t")


def test_missing_library_says_where_it_was_looked_for(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("uninstall")

    with pytest.raises(LibraryMissing, match="/run/nvidia/driver is not there") as caught:
        Nvml(made.host, ["/", "/run/nvidia/driver"])
    assert caught.value.remedy


def test_node_whose_gpus_are_all_elsewhere_is_no_error(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("bind gpu-0 vfio-pci")

    assert count_gpus(Nvml(made.host, ["/"])) == 0


def test_nothing_is_read_into_a_variable_that_all_calls_of_the_binding_share(bench: Make) -> None:
    """Of two threads that read module ids at once, both would get the later one."""
    made = bench("h100", 4)
    nvml = Nvml(made.host, ["/"])
    binding = nvml._binding  # of this session's library
    (shared,) = binding.nvmlDeviceGetModuleId.__defaults__
    shared.value = 77

    modules = [device.attributes["moduleId"] for device in made.devices()]

    assert (modules, shared.value) == ([1, 2, 3, 4], 77)
