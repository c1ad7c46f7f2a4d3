"""Whatever the library answers, nothing of the plugin breaks: it says what it could not know."""

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accelkit import Device, PartitionError, Placement, Setting, SourceError
from accelkit.core.model import contradictions
from accelkit.core.reading import read_inventory
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia import modes
from accelkit.vendors.nvidia.card import card_of
from accelkit.vendors.nvidia.creating import create
from accelkit.vendors.nvidia.destroying import destroy
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Answer, Bench, Liar, Make
from tests.vendors.opened import as_evidence


def failing(code: int) -> Answer:
    return lambda _function, *_args: code


def scribbling(noise: bytes) -> Answer:
    """Answer truly, then overwrite everything that was answered."""

    def lie(function: Answer, *args: object) -> int:
        code = function(*args)
        for arg in args:
            target = getattr(arg, "_obj", arg)
            if isinstance(target, ctypes.Array | ctypes.Structure) or hasattr(arg, "_obj"):
                size = ctypes.sizeof(target)  # type: ignore[arg-type]  # of any C type
                spread = (noise * (size // len(noise) + 1))[:size]
                ctypes.memmove(ctypes.addressof(target), spread, size)  # type: ignore[arg-type]  # the same
        return code

    return lie


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("nvidia", "h100", 2, made)
    for verb in ("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "create-mig gpu-0 3g.40gb 4"):
        set_state(made, verb.split())
    return made


def symbols(made: str) -> list[str]:
    table = MachineHost(made).library("libnvidia-ml.so.1")
    return sorted(name for name in vars(table) if name.startswith("nvml"))


def use_all_of(host: Liar) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Nvidia(NvidiaOptions())
    report = read_inventory(vendor, host)
    assert {p.code for p in report.problems}.isdisjoint({"plugin-bug", "plugin-contract"})
    known = read_inventory(Nvidia(NvidiaOptions()), MachineHost(host._shared.directory)).devices
    answers: list[Callable[[], Iterable[object]]] = [
        partial(vendor.links, host, known),
        partial(vendor.holders, host, known),
        partial(vendor.diagnose, host),
        partial(vendor.listen, host, 0.0),
        *(partial(vendor.conditions, host, device, as_evidence("nvidia", ())) for device in known),
    ]
    for answer in answers:
        with suppress(SourceError):
            list(answer())
    vendor.close()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_error_of_any_function_is_only_an_error_of_the_source(
    directory: str, data: st.DataObject
) -> None:
    lying = data.draw(st.sets(st.sampled_from(symbols(directory)), min_size=1, max_size=4))
    codes = st.sampled_from([1, 2, 3, 4, 6, 7, 9, 10, 13, 15, 16, 21, 25, 26, 999, -1, 1 << 30])
    host = Liar(directory)
    host.lies = {symbol: failing(data.draw(codes)) for symbol in sorted(lying)}

    use_all_of(host)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_rubbish_of_any_function_is_only_an_error_of_the_source(
    directory: str, data: st.DataObject
) -> None:
    lying = data.draw(st.sets(st.sampled_from(symbols(directory)), min_size=1, max_size=3))
    noise = st.binary(min_size=1, max_size=16)
    host = Liar(directory)
    host.lies = {symbol: scribbling(data.draw(noise)) for symbol in sorted(lying)}

    use_all_of(host)


@pytest.mark.parametrize(
    "symbol,noise",
    [
        ("nvmlDeviceGetUUID", b"\0"),
        ("nvmlDeviceGetUUID", b"\xff\xfe"),
        ("nvmlDeviceGetUUID", b"GPU-none\0"),
        ("nvmlDeviceGetName", b"\x07"),
        ("nvmlDeviceGetMinorNumber", b"\xff"),
        ("nvmlDeviceGetMemoryInfo", b"\xff"),
        ("nvmlDeviceGetMemoryInfo", b"\0"),
        ("nvmlDeviceGetGpuInstanceProfileInfoV", b"\xff"),
        ("nvmlDeviceGetGpuInstancePossiblePlacements_v2", b"\x70\0\0\0"),
        ("nvmlGpuInstanceGetInfo", b"\x63\0\0\0"),
    ],
)
def test_gpu_whose_answer_cannot_be_is_not_served(
    directory: str, symbol: str, noise: bytes
) -> None:
    host = Liar(directory)
    host.lies = {symbol: scribbling(noise)}
    report = read_inventory(Nvidia(NvidiaOptions()), host)

    assert "0000:03:00.0" in {p.subject for p in report.problems}
    assert all(isinstance(d, Device) and d.locality.numa_node != 0 for d in report.devices)


@pytest.mark.parametrize(
    "symbol,noise",
    [
        ("nvmlDeviceGetGpuInstanceProfileInfoV", b"\xff"),
        ("nvmlDeviceGetGpuInstancePossiblePlacements_v2", b"\x70\0\0\0"),
    ],
)
def test_gpu_whose_profiles_make_no_sense_can_be_had_whole(
    bench: Make, symbol: str, noise: bytes
) -> None:
    host = Liar(bench("h100", 1).directory)
    host.lies = {symbol: scribbling(noise)}
    (device,) = read_inventory(Nvidia(NvidiaOptions()), host).devices

    assert (device.usable, device.profiles, device.slots) == (True, (), 0)


def test_two_gpus_of_one_uuid_are_one_device_and_one_problem(bench: Make) -> None:
    made: Bench = bench("l4", 2)
    uuid = made.devices()[0].handle
    host = Liar(made.directory)
    host.lies = {"nvmlDeviceGetUUID": scribbling((uuid or "").encode() + b"\0" * 60)}
    report = read_inventory(Nvidia(NvidiaOptions()), host)

    assert len(report.devices) == 1
    assert [(p.subject, p.code) for p in report.problems] == [("0000:04:00.0", "rubbish")]


def test_profiles_of_one_name_are_one_profile(bench: Make) -> None:
    host = Liar(bench("h100", 1).directory)

    def same(function: Answer, *arguments: object) -> int:
        code = function(*arguments)
        if not code:
            arguments[-1]._obj.name = b"1g.10gb"  # type: ignore[attr-defined]  # as ctypes
        return code

    host.lies = {"nvmlDeviceGetGpuInstanceProfileInfoV": same}
    (device,) = read_inventory(Nvidia(NvidiaOptions()), host).devices

    assert [p.name for p in device.profiles] == ["1g.10gb"]


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff", b"\x01\x01\0\0"])
def test_impossible_number_of_gpus_is_no_knowledge_at_all(directory: str, count: bytes) -> None:
    host = Liar(directory)
    host.lies = {"nvmlDeviceGetCount_v2": scribbling(count)}
    report = read_inventory(Nvidia(NvidiaOptions()), host)

    assert (report.answered, [p.code for p in report.problems]) == (False, ["rubbish"])


def test_absurd_number_of_processes_takes_no_memory(bench: Make) -> None:
    """The binding made an array of so many, and the agent was killed for its memory."""
    host = Liar(bench("l4", 1).directory)
    called = []

    def lie(_function: object, _handle: object, count: Any, found: object) -> int:  # type: ignore[explicit-any]  # of ctypes
        called.append(found)
        count._obj.value = 1 << 30
        return 7

    host.lies = {"nvmlDeviceGetGraphicsRunningProcesses_v3": lie}
    vendor = Nvidia(NvidiaOptions())
    devices = read_inventory(vendor, host).devices

    assert list(vendor.holders(host, devices)) == []
    assert called == [None]


def work_on(host: Liar, parent: Device) -> None:
    """Cut, undo it and set what can be set; only errors that the contract knows may come out."""
    nvml = Nvidia(NvidiaOptions()).nvml(host)
    honest = MachineHost(host._shared.directory)
    place = Placement(profile="1g.10gb", start=2, size=1)

    def read_back() -> Device:
        vendor = Nvidia(NvidiaOptions())
        found = (d for d in vendor.discover(honest) if isinstance(d, Device))
        return next(d for d in found if d.placement == place)

    def cut() -> None:
        create(card_of(nvml, parent), place, read_back, undo_s=0.05)

    def uncut() -> None:
        destroy(card_of(nvml, parent), place, 0.05)

    mode = Setting(device=parent.id, key="compute-mode", value="exclusive-process")
    vendor = Nvidia(NvidiaOptions())
    works: list[Callable[[], None]] = [
        cut,
        uncut,
        partial(modes.set_mode, nvml, parent, "whole", 0.05),
        partial(vendor.apply, host, mode),
        partial(vendor.revert, host, mode),
    ]
    for work in works:
        with suppress(SourceError, PartitionError):
            work()
    vendor.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("nvidia", "h100", 1, made)
    return made


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_fails_while_hardware_is_changed_is_a_known_error_and_contradicts_nothing(
    empty: str, data: st.DataObject
) -> None:
    for verb in ("mig gpu-0 off", "mig gpu-0 on", "lag gpu-0 0s"):
        set_state(empty, verb.split())
    (parent,) = Nvidia(NvidiaOptions()).discover(MachineHost(empty))
    assert isinstance(parent, Device)
    lying = data.draw(st.sets(st.sampled_from(symbols(empty)), min_size=1, max_size=3))
    codes = st.sampled_from([0, 2, 3, 6, 13, 15, 16, 19, 23, 999])
    host = Liar(empty)
    host.lies = {
        symbol: failing(data.draw(codes))
        if data.draw(st.booleans())
        else scribbling(data.draw(st.binary(min_size=1, max_size=8)))
        for symbol in sorted(lying)
    }

    work_on(host, parent)
    report = read_inventory(Nvidia(NvidiaOptions()), MachineHost(empty))
    assert report.problems == ()
    assert contradictions(report.devices, (), ()) == ()
