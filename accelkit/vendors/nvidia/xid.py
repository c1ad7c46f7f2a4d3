"""XID errors: what each of them asks for. Not here: how they are heard."""

import re
from collections.abc import Iterator
from enum import StrEnum
from types import MappingProxyType

import attrs

from accelkit import Severity

XID_EVENT, DOUBLE_BIT_EVENT = 0x8, 0x2
DRAM_RETIREMENT_EVENT, DRAM_FAILURE_EVENT, FATAL_POISON_EVENT = 0x400, 0x800, 0x2000
UNAVAILABLE_EVENT, RECOVERY_EVENT = 0x4000, 0x8000
EVENTS = MappingProxyType(
    {
        DOUBLE_BIT_EVENT: "ecc-double-bit",
        DRAM_RETIREMENT_EVENT: "dram-retirement",
        DRAM_FAILURE_EVENT: "dram-retirement-failure",
        FATAL_POISON_EVENT: "fatal-poison",
        UNAVAILABLE_EVENT: "gpu-unavailable",
        RECOVERY_EVENT: "recovery-action",
    }
)
"""Event codes by type; XIDs carry their number. Source: nvml.h, nvmlEventType*."""

UNKNOWN_XID = 999
"""What NVML says instead of an XID that it does not know."""


class Action(StrEnum):
    """What an XID asks for."""

    NOTHING = "nothing"
    RESTART_APP = "restart the application"
    RESET = "reset the GPU"
    REBOOT = "reboot the node"
    LOOK = "look into it"


@attrs.frozen(kw_only=True)
class Fault:
    """One XID."""

    action: Action
    severity: Severity
    """While nothing better than the XID itself is known."""


_NUMBERS = MappingProxyType(
    {
        Action.NOTHING: "14 37 38 43 44 63 66 67 92 93 106-108 121 137 141 152 153 157 160 161",
        Action.RESTART_APP: "8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 94 96-105 "
        "126-135 139",
        Action.RESET: "46 62 64 95 109 110 119 120 136 140 143 155 156 158",
        Action.REBOOT: "79 151",
        Action.LOOK: "45 48 54 74 78 144-150 154 159 162-172",
    }
)
"""Source: NVIDIA XID catalog for Ampere and newer, column "Immediate Action", October 2025.

151 asks for a restart of the virtual machine, which is the node. 45, 48, 74, 144 to 150, 154 and
159 depend on what else the GPU says.
"""
_SEVERITIES = MappingProxyType(
    {
        Action.NOTHING: Severity.INFO,
        Action.RESTART_APP: Severity.INFO,
        Action.RESET: Severity.FATAL,
        Action.REBOOT: Severity.FATAL,
        Action.LOOK: Severity.DEGRADED,
    }
)


def _expanded(text: str) -> Iterator[int]:
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


_FAULTS = {
    number: Fault(action=action, severity=_SEVERITIES[action])
    for action, text in _NUMBERS.items()
    for number in _expanded(text)
}


def fault_of(number: int) -> Fault:
    """What XID *number* asks for; one that nobody has described asks to be looked into."""
    return _FAULTS.get(number, Fault(action=Action.LOOK, severity=Severity.DEGRADED))


_CODE = re.compile(r"xid-(\d{1,5})")
_LINE = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)(?: GPU-C?I:\w+){0,2}\): (\d{1,5}),")


def code_of(number: int) -> str:
    """The event's code."""
    return f"xid-{number}"


def number_of(code: str) -> int | None:
    """The XID in an event's code; None: it is another event."""
    found = _CODE.fullmatch(code)
    return None if found is None else int(found[1])


def heard_in(line: str) -> tuple[str, int] | None:
    """PCI address and XID in a line of the kernel log; None: it is about something else.

    Source:
        NVIDIA XID errors guide, "Working with Xid Errors": ``NVRM: Xid (PCI:0000:3b:00): 79, ...``;
        NVIDIA A100 memory error management, of a GPU instance:
        ``NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, ...``
    """
    found = _LINE.search(line)
    if found is None:
        return None
    where = found[1].lower()
    return where if "." in where else f"{where}.0", int(found[2])
