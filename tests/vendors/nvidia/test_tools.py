"""The driver's programs on a simulated machine."""

import pytest

from accelkit import NotThere
from tests.vendors.nvidia.bench import Make

SMI, MODPROBE = "/usr/bin/nvidia-smi", "/usr/bin/nvidia-modprobe"


@pytest.mark.parametrize(
    "arguments,code,said",
    [
        (("compute-policy", "-i", "GPU-none", "--set-timeslice", "1"), 6, "No devices"),
        (("compute-policy", "-i", "UUID", "--set-timeslice", "4"), 2, "Invalid timeslice"),
        (("compute-policy", "-i", "UUID", "--set-timeslice", "long"), 2, "Invalid combination"),
        (("compute-policy", "-i", "UUID", "--set-timeslice", "3"), 0, "Successfully"),
        ((), 2, "Invalid combination"),
    ],
)
def test_smi_ends_with_the_code_of_what_is_wrong(
    bench: Make, arguments: tuple[str, ...], code: int, said: str
) -> None:
    made = bench("h100", 1)
    uuid = made.devices()[0].handle or ""
    done = made.host.run([SMI, *(uuid if a == "UUID" else a for a in arguments)], 5)

    assert done.code == code
    assert said in done.out


@pytest.mark.parametrize("program", [SMI, MODPROBE])
def test_program_says_that_the_driver_is_not_loaded(bench: Make, program: str) -> None:
    made = bench("h100", 1)
    made.do("unload")

    assert made.host.run([program], 5).code != 0


def test_modprobe_refuses_what_it_does_not_know(bench: Make) -> None:
    made = bench("h100", 1)

    assert made.host.run([MODPROBE, "--fly"], 5).code == 1


def test_program_is_where_the_driver_is(bench: Make) -> None:
    made = bench("h100", 1, machine={"driverRoot": "/run/nvidia/driver"})

    with pytest.raises(NotThere):
        made.host.run([SMI], 5)
    assert made.host.under("/run/nvidia/driver").run([SMI], 5).code == 2
