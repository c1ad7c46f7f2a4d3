"""Durations and amounts as people write them. Not here: which fields hold them."""

import re
from decimal import Decimal
from typing import NewType

Seconds = NewType("Seconds", float)
"""Written as a number and one of ms, s, m, h."""
Bytes = NewType("Bytes", int)
"""Written as a Kubernetes quantity of whole bytes."""

DURATION_PATTERN = r"[0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h)"
QUANTITY_PATTERN = r"[0-9]{1,19}(\.[0-9]{1,9})?([KMGTPE]i|[kMGTPE]|[eE][0-9]{1,2})?"
BYTES_LIMIT = 2**63 - 1
"""Kubernetes keeps amounts as signed 64-bit integers."""

# Longest first, so that what is written is as short as it can be.
_UNITS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
# Source: k8s.io/apimachinery/pkg/api/resource/suffix.go.
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}
_DURATION = re.compile(rf"(?P<number>[0-9.]+)(?P<unit>{'|'.join(_UNITS)})")
_QUANTITY = re.compile(r"(?P<number>[0-9.]+)(?P<suffix>.*)")


def parse_duration(text: str) -> Seconds:
    """Read ``30s``, ``500ms``, ``1.5h``.

    Raises:
        ValueError: *text* is not a duration.
    """
    found = re.fullmatch(DURATION_PATTERN, text, re.ASCII) and _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"expected a duration such as 30s, 500ms or 10m, found {text!r}")
    return Seconds(float(Decimal(found["number"]) * _UNITS[found["unit"]]))


def format_duration(seconds: Seconds) -> str:
    """*seconds* in the largest unit that needs no fraction, else in milliseconds."""
    exact = Decimal(repr(float(seconds)))
    if not exact:
        return "0s"
    unit = next((u for u, length in _UNITS.items() if not exact % length), "ms")
    return f"{(exact / _UNITS[unit]).normalize():f}{unit}"


def parse_quantity(text: str) -> Bytes:
    """Read a Kubernetes quantity of whole bytes: ``80Gi``, ``1.5Gi``, ``2e9``, ``512``.

    Raises:
        ValueError: *text* is not a quantity, not whole, or more than 64 bits hold.
    """
    found = re.fullmatch(QUANTITY_PATTERN, text, re.ASCII) and _QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(f"expected an amount such as 16Gi or 500M, found {text!r}")
    suffix = found["suffix"]
    if suffix[:1] in {"e", "E"} and suffix[1:].isdigit():
        factor = 10 ** int(suffix[1:])
    else:
        factor = {"": 1, **_BINARY, **_DECIMAL}[suffix]
    amount = Decimal(found["number"]) * factor
    if amount != int(amount):
        raise ValueError(f"expected whole bytes, found {text!r}")
    return checked_bytes(int(amount))


def checked_bytes(amount: int) -> Bytes:
    """*amount*, if it is one.

    Raises:
        ValueError: Negative, or more than 64 bits hold.
    """
    if not 0 <= amount <= BYTES_LIMIT:
        raise ValueError("expected an amount from 0 to 2^63-1 bytes")
    return Bytes(amount)


def format_quantity(amount: Bytes) -> str:
    """*amount* with the largest binary suffix that needs no fraction."""
    for suffix, factor in reversed(_BINARY.items()):
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)
