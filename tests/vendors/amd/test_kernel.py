import pytest

from accelkit import Event, FrozenMap, Signal
from accelkit.vendors.amd import kernel

GPU = "0000:05:00.0"


def heard(signal: Signal) -> list[tuple[str | None, str]]:
    return [(e.subject, e.code) for e in kernel.interpret(signal)]


@pytest.mark.parametrize(
    "text,code",
    [
        ("amdgpu: GPU reset begin!", kernel.RESET_BEGUN),
        ("GPU reset begin!. Source:  4", kernel.RESET_BEGUN),
        ("amdgpu: GPU reset succeeded, trying to resume", None),
        ("amdgpu: GPU reset(2) succeeded!", kernel.RESET_DONE),
        ("amdgpu: GPU reset(2) failed", kernel.RESET_FAILED),
        ("amdgpu: GPU Recovery Failed: -19", kernel.RESET_FAILED),
        ("amdgpu: GPU reset end with ret = -62", kernel.RESET_FAILED),
        ("amdgpu: GPU reset end with ret = 0", None),
        ("amdgpu: device lost from bus!", kernel.BUS_LOST),
        (
            "amdgpu: socket: 0 2 uncorrectable hardware errors detected in gfx block",
            kernel.HARDWARE_ERROR,
        ),
        (
            "amdgpu: socket: 0, die: 1, 3 new uncorrectable hardware errors detected in umc block",
            kernel.HARDWARE_ERROR,
        ),
        ("amdgpu: no uncorrectable hardware errors detected", None),
        ("amdgpu: 0 uncorrectable hardware errors detected in umc block", None),
        ("amdgpu: 7 correctable hardware errors detected in umc block", None),
        ("amdgpu: Saved bad pages 256 reaches threshold value 256", kernel.PAGES_EXHAUSTED),
        ("amdgpu: Saved bad pages(26) reaches threshold value(25).", kernel.PAGES_EXHAUSTED),
        ("amdgpu: ERROR: GPU over temperature range(SW CTF) detected!", kernel.TOO_HOT),
        ("amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3", kernel.RING_TIMEOUT),
        ("amdgpu: ring gfx_0.0.0 timeout, but soft recovered", None),
        ("amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24)", kernel.PAGE_FAULT),
        ("amdgpu: a line that nobody has written yet", None),
    ],
)
def test_line_of_the_kernel_log_is_told_of_its_gpu(text: str, code: str | None) -> None:
    signal = Signal(source="kernel", text=f"[ 12.5] amdgpu {GPU}: {text}")

    assert heard(signal) == ([] if code is None else [(GPU, code)])


@pytest.mark.parametrize(
    "text",
    [
        f"[drm] Initialized amdgpu 3.54.0 20150101 for {GPU} on minor 1",
        f"[drm] Initialized amdgpu 3.61.0 for {GPU} on minor 1",
    ],
)
def test_start_of_the_driver_is_told(text: str) -> None:
    assert heard(Signal(source="kernel", text=text)) == [(GPU, kernel.STARTED)]


def test_wedged_gpu_is_told_with_what_would_help() -> None:
    fields = {
        "ACTION": "change",
        "SUBSYSTEM": "drm",
        "DEVNAME": "dri/card1",
        "DEVPATH": f"/devices/pci0000:00/0000:00:01.0/{GPU}/drm/card1",
        "WEDGED": "rebind,bus-reset",
    }
    (event,) = kernel.interpret(Signal(source="uevent", fields=FrozenMap(fields)))

    assert event == Event(
        subject=GPU,
        code=kernel.WEDGED,
        source="uevent",
        data=FrozenMap({"methods": "rebind,bus-reset"}),
    )
    recovered = Signal(source="uevent", fields=FrozenMap({**fields, "WEDGED": "none"}))
    assert heard(recovered) == [(GPU, kernel.WEDGED_RECOVERED)]


def test_driver_that_takes_a_gpu_over_is_told_without_the_log() -> None:
    """Whoever may not read the kernel's log had wedged GPUs until the next boot."""
    fields = {"ACTION": "bind", "SUBSYSTEM": "pci", "DRIVER": "amdgpu", "PCI_SLOT_NAME": GPU}

    assert heard(Signal(source="uevent", fields=FrozenMap(fields))) == [(GPU, kernel.STARTED)]


@pytest.mark.parametrize(
    "fields",
    [
        {"ACTION": "unbind", "SUBSYSTEM": "pci", "DRIVER": "amdgpu", "PCI_SLOT_NAME": GPU},
        {"ACTION": "bind", "SUBSYSTEM": "pci", "DRIVER": "xe", "PCI_SLOT_NAME": GPU},
        {"ACTION": "bind", "SUBSYSTEM": "pci", "DRIVER": "amdgpu", "PCI_SLOT_NAME": "../.."},
        {"WEDGED": "rebind", "SUBSYSTEM": "net", "DEVPATH": f"/devices/{GPU}"},
        {"WEDGED": "rebind", "SUBSYSTEM": "drm", "DEVPATH": "/devices/virtual/drm"},
        {"ACTION": "add", "SUBSYSTEM": "drm"},
        {},
    ],
)
def test_uevent_of_something_else_tells_nothing(fields: dict[str, str]) -> None:
    assert heard(Signal(source="uevent", fields=FrozenMap(fields))) == []


def test_lines_of_other_drivers_tell_nothing() -> None:
    assert heard(Signal(source="kernel", text=f"xe {GPU}: GPU reset begin!")) == []
