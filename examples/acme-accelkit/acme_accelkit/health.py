"""What is wrong with a card: what its file says now, and what the kernel has said."""

import re
from collections.abc import Iterable

from accelkit import (
    Condition,
    Device,
    Event,
    Evidence,
    Host,
    Severity,
    Signal,
    Signals,
    SupportsHealth,
    SupportsSignals,
    Vendor,
)
from acme_accelkit.files import file_of

_CODE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_RESET = re.compile(r"acme ([0-9a-f:.]{12,16}): watchdog: card was reset", re.ASCII)
RESET = "watchdog-reset"


class Health(Vendor, SupportsHealth, SupportsSignals):
    """Faults end when the file no longer has them; a reset is told once, and stays until a boot."""

    signals = Signals(kernel_log=("acme ",), uevents=("pci",), files=("/dev/acme*",))

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for fault in host.read(file_of(device, "faults")).split():
            code, _, severity = fault.partition(":")
            if severity in Severity.__members__ and re.fullmatch(_CODE, code):
                yield Condition(code=code, severity=Severity[severity])
        if resets := sum(told.count for told in evidence if told.code == RESET):
            text = f"The card's watchdog has reset it, {resets} times since the boot"
            yield Condition(code=RESET, severity=Severity.DEGRADED, message=text)

    def interpret(self, signal: Signal) -> Iterable[Event]:
        if (found := _RESET.search(signal.text)) is not None:
            yield Event(subject=found[1], code=RESET, source="kernel")
