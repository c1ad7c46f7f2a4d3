"""What the kernel tells of Intel's GPUs: uevents and log lines. Not here: what follows from it."""

import re
from collections.abc import Iterator, Mapping

from accelkit import Event, Signal, Signals
from accelkit.vendors.intel import facts

WEDGED = "wedged"
"""The driver has given the GPU up; it told how to bring it back."""
WEDGED_LOG = "wedged-log"
"""The same, by the kernel log alone."""
RECOVERED = "hang-recovered"
"""The driver has reset the GPU, and goes on."""
HANG = "gpu-hang"
BOUND = "driver-bound"

_ADDRESS = r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_PLACE = re.compile(rf"/{_ADDRESS}/drm/")
_WHERE = re.compile(_ADDRESS)
_LINES = (
    (re.compile(rf"\bxe {_ADDRESS}: .*has declared device .* as wedged"), WEDGED_LOG),
    (re.compile(rf"\bi915 {_ADDRESS}: .*GPU HANG: ecode"), HANG),
)
"""Source: Linux, drivers/gpu/drm/xe/xe_device.c, xe_device_declare_wedged, and
drivers/gpu/drm/i915/i915_gpu_error.c, i915_error_state_store."""

SIGNALS = Signals(
    uevents=("drm", "pci"),
    kernel_log=("has declared device .* as wedged", "GPU HANG: ecode"),
    # Drivers that are loaded or unloaded, and GPUs that are bound or cut.
    files=("/sys/module/i915", "/sys/module/xe", "/dev/dri/*"),
)


def meaning(signal: Signal) -> Iterator[Event]:
    """What a uevent or a line of the kernel log means; nothing where it is about something else."""
    if signal.source == "uevent":
        yield from _of_uevent(signal.fields)
    elif signal.source == "kernel":
        for pattern, code in _LINES:
            if (found := pattern.search(signal.text)) is not None:
                yield Event(subject=found[1], code=code, source="kernel")


def _of_uevent(fields: Mapping[str, str]) -> Iterator[Event]:
    """Of a wedged GPU, and of a driver that takes one over.

    Source:
        Linux, Documentation/gpu/drm-uapi.rst, "Device Wedging"; lib/kobject_uevent.c for SEQNUM,
        which only ever grows.
    """
    match fields.get("SUBSYSTEM"), fields.get("ACTION"):
        case "drm", "change" if methods := fields.get("WEDGED"):
            place = _PLACE.search(fields.get("DEVPATH", ""))
            if place is not None:
                code = RECOVERED if methods == "none" else WEDGED
                yield _event(place[1], code, fields, methods=methods[:100])
        case "pci", "bind" if fields.get("DRIVER") in facts.DRIVERS:
            address = fields.get("PCI_SLOT_NAME", "")
            if _WHERE.fullmatch(address):
                yield _event(address, BOUND, fields)
        case _:
            pass


def _event(subject: str, code: str, fields: Mapping[str, str], **data: str) -> Event:
    number = fields.get("SEQNUM", "")
    known = {"seqnum": number} if re.fullmatch(r"[0-9]{1,19}", number) else {}
    return Event(subject=subject, code=code, source="uevent", data={**known, **data})  # type: ignore[arg-type]  # frozen when it is built
