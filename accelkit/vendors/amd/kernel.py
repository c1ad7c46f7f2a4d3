"""What the kernel's messages about GPUs mean. Not here: what becomes of a GPU by them."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from accelkit import Event, FrozenMap, Signal
from accelkit.vendors.amd import facts

RESET_BEGUN, RESET_DONE, RESET_FAILED = "reset-begun", "reset-done", "reset-failed"
BUS_LOST, WEDGED, WEDGED_RECOVERED = "bus-lost", "wedged", "wedged-recovered"
HARDWARE_ERROR, PAGES_EXHAUSTED, TOO_HOT = "hardware-error", "pages-exhausted", "too-hot"
RING_TIMEOUT, PAGE_FAULT, STARTED = "ring-timeout", "page-fault", "driver-started"

EVENTS: Mapping[str, str] = MappingProxyType(
    {
        RESET_BEGUN: "The driver resets the GPU.",
        RESET_DONE: "A reset is over, and the GPU works again.",
        RESET_FAILED: "A reset did not help.",
        BUS_LOST: "The GPU does not answer on PCIe any more.",
        WEDGED: "The driver asks for a recovery that it cannot make itself.",
        WEDGED_RECOVERED: "The driver has recovered the GPU; programs on it were ended.",
        HARDWARE_ERROR: "The hardware reported errors that it could not correct.",
        PAGES_EXHAUSTED: "So many pages of memory are defective that the GPU must be replaced.",
        TOO_HOT: "The GPU was hotter than it may be.",
        RING_TIMEOUT: "A program's work on the GPU did not end.",
        PAGE_FAULT: "A program used memory of the GPU that is not its own.",
        STARTED: "The driver has started the GPU.",
    }
)
"""Codes of all events, each with what it means."""

_PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_LINE = re.compile(rf"amdgpu (?P<address>{_PCI}): (?:amdgpu: )?(?P<text>.*)")
_STARTED = re.compile(rf"Initialized amdgpu \S+(?: \d+)? for (?P<address>{_PCI}) ")
_TEXTS = (
    # Source: Linux, drivers/gpu/drm/amd/amdgpu: amdgpu_device.c, amdgpu_job.c, amdgpu_ras.c,
    # amdgpu_ras_eeprom.c, gmc_v9_0.c; drivers/gpu/drm/amd/pm/swsmu/smu11/smu_v11_0.c.
    (re.compile(r"GPU reset begin!"), RESET_BEGUN),
    # "GPU reset succeeded, trying to resume" is in the middle of it.
    (re.compile(r"GPU reset\(\d+\) succeeded"), RESET_DONE),
    (re.compile(r"GPU reset\(\d+\) failed|GPU Recovery Failed|end with ret = -"), RESET_FAILED),
    (re.compile(r"device lost from bus"), BUS_LOST),
    # Without a number it says that there are none.
    (re.compile(r"\b[1-9]\d* (?:new )?uncorrectable hardware errors detected"), HARDWARE_ERROR),
    (re.compile(r"Saved bad pages\W*\d+\W* reaches threshold"), PAGES_EXHAUSTED),
    (re.compile(r"GPU over temperature range"), TOO_HOT),
    (re.compile(r"ring \S+ timeout(?!, but soft recovered)"), RING_TIMEOUT),
    (re.compile(r"\[\w*hub\d*\].* page fault"), PAGE_FAULT),
)
_RECOVERED = "none"
"""Linux, Documentation/gpu/drm-uapi.rst, device wedging."""


def interpret(signal: Signal) -> Iterator[Event]:
    """Events of a kernel-log line or a uevent; of what nobody knows none."""
    if (methods := signal.fields.get("WEDGED")) is not None:
        yield from _wedged(signal, methods)
        return
    if signal.source == "uevent":
        yield from _bound(signal.fields)
        return
    if (started := _STARTED.search(signal.text)) is not None:
        yield Event(subject=started["address"], code=STARTED, source="kernel")
        return
    line = _LINE.search(signal.text)
    if line is None:
        return
    for pattern, code in _TEXTS:
        if pattern.search(line["text"]):
            yield Event(subject=line["address"], code=code, source="kernel")
            return


def _bound(fields: Mapping[str, str]) -> Iterator[Event]:
    """The driver has taken over a GPU, which the kernel's log tells, too: not all may read that.

    Source:
        Linux, drivers/base/dd.c, driver_bound; drivers/pci/pci-driver.c, pci_uevent.
    """
    what = (fields.get("SUBSYSTEM"), fields.get("ACTION"), fields.get("DRIVER"))
    address = fields.get("PCI_SLOT_NAME", "")
    if what == ("pci", "bind", facts.DRIVER) and re.fullmatch(_PCI, address):
        yield Event(subject=address, code=STARTED, source="uevent")


def _wedged(signal: Signal, methods: str) -> Iterator[Event]:
    if signal.fields.get("SUBSYSTEM", "drm") != "drm":
        return
    places = re.findall(_PCI, signal.fields.get("DEVPATH", signal.subject or ""))
    if places:
        recovered = methods == _RECOVERED
        yield Event(
            subject=places[-1],
            code=WEDGED_RECOVERED if recovered else WEDGED,
            source="uevent",
            data=FrozenMap({"methods": methods[:64]}),
        )
