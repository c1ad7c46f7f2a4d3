from pathlib import Path

import attrs
import pytest

from accelkit import (
    Device,
    DriverNotReady,
    Enforcement,
    Grant,
    Granted,
    NotThere,
    Setting,
    Sharing,
    SourceError,
    Timeslice,
)
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults
from tests.vendors.nvidia.bench import Bench, Make

LONG = Sharing(shares=4, timeslice=Timeslice.LONG)
MPS = Sharing(shares=4, enforce=Enforcement.MPS)


def needs(bench: Bench, sharing: Sharing, *, admin: bool = False) -> list[Setting]:
    granted = [Granted(device=d, admin=admin) for d in bench.devices()]
    return list(bench.vendor.needs(bench.host, Grant(owner="t", granted=granted, sharing=sharing)))


def slice_of(device: Device, value: str = "long") -> Setting:
    return Setting(device=device.id, key="timeslice", value=value)


def mode_of(device: Device) -> Setting:
    return Setting(device=device.id, key="compute-mode", value="exclusive-process")


def state(bench: Bench, unit: str = "gpu-0") -> dict[str, object]:
    return bench.state(unit, "timeslice", "compute")


def compute_mode(bench: Bench) -> int:
    nvml = bench.vendor.nvml(bench.host)
    handle = nvml.ask("nvmlDeviceGetHandleByIndex", 0)
    return int(nvml.ask("nvmlDeviceGetComputeMode", handle))


def test_time_slices_are_needed_of_every_gpu_that_has_them(bench: Make) -> None:
    made = bench("h100", 2)

    assert needs(made, LONG) == [slice_of(d) for d in made.devices()]
    assert needs(made, attrs.evolve(LONG, timeslice=Timeslice.DEFAULT)) == []


def test_time_slices_are_needed_once_whatever_the_shares(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    granted = [Granted(device=device, share=str(i)) for i in range(2)]
    grant = Grant(owner="t", granted=granted, sharing=LONG)

    assert set(made.vendor.needs(made.host, grant)) == {slice_of(device)}


def test_partitions_have_no_settings(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
    parts = [Granted(device=d) for d in made.devices() if d.parent is not None]

    for sharing in (LONG, MPS):
        grant = Grant(owner="t", granted=parts, sharing=sharing)
        assert list(made.vendor.needs(made.host, grant)) == []


def test_daemon_needs_the_gpu_for_itself(bench: Make) -> None:
    made = bench("h100", 1)

    assert needs(made, MPS) == [mode_of(d) for d in made.devices()]


def test_who_only_looks_needs_nothing(bench: Make) -> None:
    assert needs(bench("h100", 1), LONG, admin=True) == []


@pytest.mark.parametrize("value,number", [("short", 1), ("medium", 2), ("long", 3)])
def test_time_slice_is_set_on_its_gpu_alone(bench: Make, value: str, number: int) -> None:
    made = bench("h100", 2)
    made.vendor.apply(made.host, slice_of(made.devices()[1], value))

    assert [state(made, unit) for unit in ("gpu-0", "gpu-1")] == [{}, {"timeslice": number}]


def test_compute_mode_is_set_on_its_gpu(bench: Make) -> None:
    made = bench("h100", 1)
    made.vendor.apply(made.host, mode_of(made.devices()[0]))

    assert compute_mode(made) == 3


def test_settings_are_made_and_undone_as_often_as_one_likes(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    wanted = [slice_of(device), mode_of(device)]
    for setting in wanted * 2:
        made.vendor.apply(made.host, setting)
    there = state(made)
    for setting in wanted * 2:
        made.vendor.revert(made.host, setting)

    assert (there, state(made)) == ({"timeslice": 3, "compute": 3}, {})


def test_settings_are_made_through_a_driver_in_a_container(bench: Make) -> None:
    made = bench("h100", 1, machine={"driverRoot": "/run/nvidia/driver"})
    made.vendor.apply(made.host, slice_of(made.devices()[0]))

    assert state(made) == {"timeslice": 3}


@pytest.mark.parametrize("verb", ["unload", "lose gpu-0", "remove gpu-0", "bind gpu-0 vfio-pci"])
def test_undoing_succeeds_when_the_gpu_or_the_driver_is_gone(bench: Make, verb: str) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    for setting in (slice_of(device), mode_of(device)):
        made.vendor.apply(made.host, setting)
    made.do(verb)

    for setting in (slice_of(device), mode_of(device)):
        made.vendor.revert(made.host, setting)


def test_undoing_succeeds_on_a_gpu_that_cannot_have_the_setting(bench: Make) -> None:
    """Seen elsewhere: a time slice that is not supported kept claims from being released."""
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("mig gpu-0 on")
    set_faults(made.directory, [Fault(call="nvmlDeviceSetComputeMode", times=9, do="error 3")])

    made.vendor.revert(made.host, slice_of(device))
    made.vendor.revert(made.host, mode_of(device))
    assert state(made) == {}


def test_time_slice_that_cannot_be_set_is_an_error(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("mig gpu-0 on")

    with pytest.raises(SourceError, match="Not Supported"):
        made.vendor.apply(made.host, slice_of(device))


def test_compute_mode_that_the_driver_did_not_set_is_an_error(bench: Make) -> None:
    made = bench("h100", 1)
    made.fail("nvmlDeviceSetComputeMode", "error 0")

    with pytest.raises(SourceError, match="but it shows 0"):
        made.vendor.apply(made.host, mode_of(made.devices()[0]))


def test_node_without_the_program_cannot_set_time_slices(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    Path(made.directory, "usr/bin/nvidia-smi").unlink()

    with pytest.raises(NotThere, match="nvidia-smi is in no program folder"):
        made.vendor.apply(made.host, slice_of(device))


def test_without_the_driver_nothing_is_set(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("unload")

    with pytest.raises(SourceError):
        made.vendor.apply(made.host, slice_of(device))
    with pytest.raises(DriverNotReady):
        made.vendor.apply(made.host, mode_of(device))


def test_gpu_that_cannot_be_asked_is_no_gpu_that_is_gone(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("error gpu-0 999")

    for setting in (slice_of(device), mode_of(device)):
        with pytest.raises(SourceError):
            made.vendor.revert(made.host, setting)


@pytest.mark.parametrize("key,value", [("voltage", "high"), ("timeslice", "eternal")])
def test_setting_that_is_none_is_refused(bench: Make, key: str, value: str) -> None:
    made = bench("h100", 1)
    setting = Setting(device=made.devices()[0].id, key=key, value=value)

    with pytest.raises(SourceError, match="no setting of a GPU"):
        made.vendor.apply(made.host, setting)


def test_setting_of_nothing_is_refused(bench: Make) -> None:
    made = bench("h100", 1)

    with pytest.raises(SourceError, match="no setting of a GPU"):
        made.vendor.revert(made.host, Setting(device=None, key="timeslice", value="long"))


def test_settings_end_with_the_boot(bench: Make) -> None:
    made = bench("h100", 1)
    made.vendor.apply(made.host, slice_of(made.devices()[0]))
    made.do("reboot")

    assert state(made) == {}
