"""Lines of the kernel log about Gaudi cards. Not here: what files say of a card.

Source of the texts: Linux 6.12, drivers/accel/habanalabs/common/device.c, habanalabs_drv.c,
gaudi/gaudi.c and gaudi2/gaudi2.c; the driver that is installed separately writes the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import attrs

from accelkit import Condition, Event, Evidence, FrozenMap, Severity

PATTERNS = ("habanalabs ", "habanalabs: ", "accel accel")
"""How lines of the driver begin: it has called its devices in three ways."""


@attrs.frozen(kw_only=True)
class Message:
    """One kind of line."""

    code: str
    pattern: re.Pattern[str]
    severity: Severity
    """While the driver does not use the card again; then FATAL is only DEGRADED."""
    meaning: str


def _message(code: str, pattern: str, severity: Severity, meaning: str) -> Message:
    return Message(code=code, pattern=re.compile(pattern), severity=severity, meaning=meaning)


_FATAL, _DEGRADED, _INFO = Severity.FATAL, Severity.DEGRADED, Severity.INFO
MESSAGES = (
    _message(
        "reset-failed",
        r"Failed to reset! Device is NOT usable",
        _FATAL,
        "A hard reset failed: reload habanalabs, or reboot the node",
    ),
    _message(
        "start-failed",
        r"Failed to initialize (?:accel|hl)\d+\. Device \S+ is NOT usable",
        _FATAL,
        "The driver could not start the card: power the node off and on",
    ),
    _message(
        "errors-repeated",
        r"Consecutive fatal errors, stopping hard reset",
        _FATAL,
        "Resets did not help: the card failed again at once",
    ),
    _message(
        "processes-stuck",
        r"Failed to kill all open processes, stopping hard reset",
        _FATAL,
        "Processes that have the card open could not be ended, so it could not be reset",
    ),
    _message(
        "heartbeat-lost",
        r"Device heartbeat failed!",
        _FATAL,
        "The card's own processor did not answer; the driver resets the card",
    ),
    _message(
        "pcie-error",
        r"PCI (?:frozen|failure) state error detected",
        _DEGRADED,
        "PCIe reported an error that was not corrected",
    ),
    _message(
        "memory-critical",
        r"(?:ECC error detected\..*[ .]critical 1\b|HBM\(\d+\).*Critical\(1\))",
        _FATAL,
        "A memory error that the card cannot go on with; the driver resets it",
    ),
    _message(
        "memory-error",
        r"(?:ECC error detected\.|HBM\(\d+\) MC\(\d+\))",
        _INFO,
        "A memory error that the card could live with",
    ),
    _message(
        "hardware-event",
        r"Received H/W interrupt \d+ \[",
        _INFO,
        "The card reported an event of its hardware",
    ),
)
"""The first that fits counts."""
BY_CODE: Mapping[str, Message] = MappingProxyType({m.code: m for m in MESSAGES})

_LINE = re.compile(r"habanalabs(?: |: )|accel accel\d+: ")
_ADDRESS = re.compile(r"(?<![0-9a-f:.])[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?![0-9a-f])")
_NAME = re.compile(r"\b(?:accel|hl)[0-9]{1,4}\b")
_DETAIL = re.compile(r'\["([\w./ -]{1,60})"\]')


def events_in(line: str) -> Iterator[Event]:
    """What a line of the kernel log says of a card; nothing if it says nothing."""
    if _LINE.search(line) is None:
        return
    message = next((m for m in MESSAGES if m.pattern.search(line)), None)
    where = _ADDRESS.search(line) or _NAME.search(line)
    if message is None or where is None:
        return
    detail = _DETAIL.search(line)
    data = {} if detail is None else {"event": detail[1]}
    yield Event(subject=where[0], code=message.code, source="kernel", data=FrozenMap(data))


def conditions(evidence: Iterable[Evidence], *, usable: bool) -> Iterator[Condition]:
    """What events of this boot still mean; a card has each once, under whatever name.

    Args:
        evidence: Of one card.
        usable: The driver lets programs use it.
    """
    told: dict[str, Condition] = {}
    for heard in evidence:
        message = BY_CODE.get(heard.code)
        if message is None or heard.code in told:
            continue
        severity = _DEGRADED if usable and message.severity is _FATAL else message.severity
        times = f" ({heard.count} times)" if heard.count > 1 else ""
        told[heard.code] = Condition(
            code=heard.code, severity=severity, message=f"{message.meaning}{times}."
        )
    yield from told.values()
