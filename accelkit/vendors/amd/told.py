"""What the kernel tells of simulated GPUs: log lines and uevents. Not here: what it means."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accelkit.testing.machines import State
from accelkit.vendors.amd import facts

if TYPE_CHECKING:
    from accelkit.vendors.amd.machine import AmdMachine

Words = tuple[str, ...]


def told(machine: "AmdMachine", state: State, verb: str, args: Words) -> Iterator[Words]:
    """What it tells when *verb* has led to *state*."""
    loaded = not state.get(machine.vendor, {}).get("unloaded")
    if verb == "ras" and loaded:
        yield from _errors(machine, args)
    if verb in {"load", "unload"}:
        for index, unit in enumerate(machine.units()):
            own = state.get(unit, {})
            if not own.get("removed") and own.get("bound", facts.DRIVER) == facts.DRIVER:
                yield from _driver(machine, state, index, loaded=loaded)


def _errors(machine: "AmdMachine", args: Words) -> Iterator[Words]:
    """Of errors that the hardware counts.

    Source:
        Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, amdgpu_ras_error_print_error_data.
    """
    unit, block, *counts = args
    where = machine.board.place(machine.units().index(unit)).address
    for count, kind in zip(counts, ("uncorrectable", "correctable"), strict=False):
        if int(count):
            text = f"{int(count)} {kind} hardware errors detected in {block} block"
            yield ("kernel", f"amdgpu {where}: amdgpu: {text}")


def _driver(machine: "AmdMachine", state: State, index: int, *, loaded: bool) -> Iterator[Words]:
    """Of a driver that takes a GPU over, or leaves it.

    Source:
        Linux, drivers/base/dd.c, driver_bound and device_unbind_cleanup; drivers/pci/pci-driver.c,
        pci_uevent; drivers/gpu/drm/drm_drv.c, drm_dev_register.
    """
    address = machine.board.place(index).address
    if loaded:
        minor = machine.board.minor(state, index, 0)
        yield ("kernel", f"[drm] Initialized {facts.DRIVER} 3.64.0 for {address} on minor {minor}")
    path = machine.board.folder(index).removeprefix("/sys")
    driver = (f"DRIVER={facts.DRIVER}",) if loaded else ()
    fields = ("SUBSYSTEM=pci", f"PCI_SLOT_NAME={address}", *driver)
    yield ("uevent", "bind" if loaded else "unbind", path, *fields)
