"""What lines of the kernel log say about chips. Not here: what follows from it."""

import re
from collections.abc import Iterator
from types import MappingProxyType

from accelkit import Event, Severity, Signal

PATTERNS = ("vfio-pci ", "AER: ")
"""What a line has that may be about a chip."""

_ADDRESS = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_BUS_ERROR = r"PCIe Bus Error: severity=Uncorrect\w+"
_LINES = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (rf"vfio-pci {_ADDRESS}: not ready \d+ms after .{{1,40}}; giving up", "reset-failed"),
        (rf"vfio-pci {_ADDRESS}: Unable to change power state .{{1,80}}inaccessible", "power-lost"),
        (rf"vfio-pci {_ADDRESS}: {_BUS_ERROR} \(Fatal\)", "pcie-fatal"),
        (rf"vfio-pci {_ADDRESS}: {_BUS_ERROR} \(Non-Fatal\)", "pcie-error"),
        (rf"AER: .{{0,80}}Uncorrect\w+ \(Fatal\).{{1,40}} {_ADDRESS}", "pcie-fatal"),
        (rf"AER: .{{0,80}}Uncorrect\w+ \(Non-Fatal\).{{1,40}} {_ADDRESS}", "pcie-error"),
    )
)  # fmt: skip
"""Source: Linux 6.8, drivers/pci/pci.c (pci_dev_wait, pci_power_up), drivers/pci/pcie/aer.c
(aer_print_error, aer_print_port_info). Errors that were corrected say nothing about a chip."""

SEVERITIES = MappingProxyType(
    {
        "reset-failed": Severity.FATAL,
        "power-lost": Severity.FATAL,
        # The kernel resets the link after these, and the chip may well go on.
        "pcie-fatal": Severity.DEGRADED,
        "pcie-error": Severity.INFO,
    }
)
"""Of conditions that are heard; a reboot ends them, or `accelkit health clear`."""


def heard(signal: Signal) -> Iterator[Event]:
    """What a kernel notice says about a chip; most say nothing."""
    for pattern, code in _LINES:
        if (match := pattern.search(signal.text)) is not None:
            yield Event(subject=match["address"], code=code, source="kernel")
            return
