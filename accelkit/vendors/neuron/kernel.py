"""What the kernel log says about chips. Not here: what is wrong with a chip now."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from accelkit import Event, FrozenMap, Severity, dns_label
from accelkit.vendors.neuron.chips import word_of

MARK = "NEURON_HW_ERR="
HARDWARE: Mapping[str, tuple[str, Severity]] = MappingProxyType(
    {
        "SRAM_UNCORRECTABLE_ERROR": ("sram-uncorrectable-error", Severity.FATAL),
        "NC_UNCORRECTABLE_ERROR": ("nc-uncorrectable-error", Severity.FATAL),
        "HBM_UNCORRECTABLE_ERROR": ("hbm-uncorrectable-error", Severity.FATAL),
        "DMA_ERROR": ("dma-error", Severity.FATAL),
        "HANG_ON_COLLECTIVES": ("hang-on-collectives", Severity.FATAL),
    }
)
"""Codes and severities. The maker's node problem detector takes each for permanent, and ends the
instance. Source: Neuron documentation, Neuron Runtime troubleshooting and node problem detector."""
OTHER = "hardware-error-other"
"""Code of an error that is not known here."""
CODES = (*(code for code, _ in HARDWARE.values()), OTHER)
DUPLICATE = "duplicate-routing-id"
"""Two chips say that they are the same one: the driver unloads itself after 10 s.
Source: neuron_pci_handle_dup_routing_id in neuron_dhal_v2.c."""
PATTERNS = (MARK, "duplicate routing id")

_ERROR = re.compile(r"NEURON_HW_ERR=([A-Z0-9_]{1,48})", re.ASCII)
_FIELD = re.compile(r"\b(nd-id|nc-id|serial-num|action)=([0-9A-Za-z_-]{1,40})", re.ASCII)
"""As in: NEURON_HW_ERR=DMA_ERROR instance-id=i-0 hostname=h nd-id=0 nc-id=0 serial-num=1
action=TERMINATE_INSTANCE. Source: Neuron documentation, Neuron Runtime troubleshooting."""


def heard_in(text: str) -> Event | None:
    """The event that a line of the kernel log tells of; None: none of a chip."""
    if (found := _ERROR.search(text)) is not None:
        fields = dict(_FIELD.findall(text[found.end() :]))
        code, _ = HARDWARE.get(found[1], (OTHER, None))
        data = {"error": found[1]} | {
            name: fields[key]
            for name, key in (("core", "nc-id"), ("action", "action"))
            if key in fields
        }
        return Event(subject=_subject(fields), code=code, source="kernel", data=FrozenMap(data))
    if "duplicate routing id" in text and "found" in text:
        return Event(subject=None, code=DUPLICATE, source="kernel")
    return None


def _subject(fields: Mapping[str, str]) -> str | None:
    """The serial number, which outlives the number; None: the line names no chip."""
    serial, number = fields.get("serial-num", ""), fields.get("nd-id", "")
    if serial.strip("0") and serial.isalnum():
        return dns_label(f"neuron-{serial}")
    return word_of(int(number)) if number.isdecimal() and len(number) <= 3 else None
