from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError, SourceError
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.machines import Part
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.intel.machine import IntelMachine
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.intel.bench import Make

NUMVFS = "/sys/bus/pci/devices/0000:03:00.0/sriov_numvfs"


@pytest.mark.parametrize(
    "verb",
    [
        "bind gpu-0",
        "health gpu-0",
        "throttle gpu-0 boredom",
        "heat gpu-0 much",
        "wedge gpu-0",
        "wedge gpu-0 pray",
        "vfs gpu-0",
        "vfs gpu-0 25",
        "vfs gpu-0 -1",
        "pass gpu-0 0",
        "hold gpu-0",
        "hold gpu-0 me",
        "hold gpu-0 4711 0",
        "room gpu-0",
        "rubbish gpu-0",
        "rubbish gpu-0 ../../etc/passwd",
        "rubbish gpu-0 gpu_helth",
        "lose gpu-7",
        "lose",
    ],
)
def test_verb_with_wrong_words_is_refused_and_changes_nothing(bench: Make, verb: str) -> None:
    made = bench("arc-pro-b60", 1)
    before = made.devices()

    with pytest.raises(ConfigError):
        made.do(verb)
    assert made.devices() == before


def test_health_is_shown_by_products_that_have_it(bench: Make) -> None:
    with pytest.raises(ConfigError, match="shows its health"):
        bench("arc-b580", 1).do("health gpu-0 critical")


@pytest.mark.parametrize("text", ["25", "-1", "two", ""])
def test_number_that_cannot_be_is_refused_by_the_kernel(bench: Make, text: str) -> None:
    made = bench("arc-pro-b60", 1)

    with pytest.raises(SourceError, match="out of range"):
        made.work.write(NUMVFS, text)


def test_number_is_changed_by_way_of_none_only(bench: Make) -> None:
    """So does the kernel: device or resource busy."""
    made = bench("arc-pro-b60", 1)
    made.work.write(NUMVFS, "2")

    with pytest.raises(SourceError, match="busy"):
        made.work.write(NUMVFS, "4")
    made.work.write(NUMVFS, "2")
    made.work.write(NUMVFS, "0")
    made.work.write(NUMVFS, "4")
    assert len(made.devices()) == 5


def test_virtual_functions_in_use_stay(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2", "hold gpu-0 4711 1")

    with pytest.raises(SourceError, match="busy"):
        made.work.write(NUMVFS, "0")
    assert made.work.read("/proc/4711/comm") == "python3"


def test_other_files_are_only_kept(bench: Make) -> None:
    made = bench("arc-b580", 1)
    path = "/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon3/power1_max"
    made.work.write(path, "1000000\n")

    assert made.work.read(path) == "1000000"


def test_every_boot_gives_cards_other_numbers(bench: Make) -> None:
    made = bench("arc-b580", 3)
    seen = []
    for _ in range(3):
        seen.append([made.paths(d)[0] for d in made.devices()])
        made.do("reboot")

    assert len({tuple(cards) for cards in seen}) == 3


def test_driver_that_is_loaded_anew_numbers_cards_otherwise_and_has_no_virtual_functions(
    bench: Make,
) -> None:
    made = bench("arc-pro-b60", 2)
    made.do("vfs gpu-1 2")
    before = [made.paths(d)[0] for d in made.devices() if d.parent is None]

    made.do("unload", "load")

    assert len(made.devices()) == 2
    assert [made.paths(d)[0] for d in made.devices()] == before[::-1]


@pytest.mark.parametrize("verb, told", [("vfs gpu-0 2", 2), ("vfs gpu-0 0", 0)])
def test_driver_that_takes_virtual_functions_over_is_told(verb: str, told: int) -> None:
    """One that was wedged stayed so when all were made anew."""
    machine = IntelMachine(Part(vendor="intel", product="arc-pro-b60", count=1))
    state = machine.verb({}, verb.split(maxsplit=1)[0], tuple(verb.split()[1:]))
    uevents = list(machine.says(state, "vfs", tuple(verb.split()[1:])))

    assert [words[:2] for words in uevents] == [("uevent", "bind")] * told
    assert [words[-1] for words in uevents] == [
        f"PCI_SLOT_NAME=0000:03:00.{n}" for n in range(1, told + 1)
    ]


def test_rubbish_stays_until_it_is_restored(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("rubbish gpu-0 sriov_totalvfs", "rubbish gpu-0 gpu_health")

    assert made.devices()[0].modes == ()
    assert "gpu-health-unknown" in made.codes(made.devices()[0])
    made.do("restore gpu-0")
    assert made.codes(made.devices()[0]) == {}


def test_node_can_have_gpus_of_two_makers(tmp_path: Path) -> None:
    directory = str(tmp_path)
    simulate("nvidia", "l4", 2, directory)
    simulate("intel", "flex-170", 2, directory)
    set_state(directory, ["vfs", "gpu-2", "2"])
    found = list(Intel(IntelOptions()).discover(MachineHost(directory)))

    assert len(found) == 4
