"""Quantities: what they amount to, and how a server writes them. Not here: where they stand.

Source:
    k8s.io/apimachinery v0.37.2, pkg/api/resource/quantity.go, ParseQuantity and CanonicalizeBytes.
"""

import re
from fractions import Fraction

_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE = re.compile(
    r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)"
)
_EXPONENT = re.compile(r"[eE](?P<power>[+-]?[0-9]+)")
_NANO = Fraction(1, 10**9)
_LARGEST = 2**63 - 1
BAD_SHAPE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
BAD_SUFFIX = "unable to parse quantity's suffix"


def amount(text: str) -> Fraction:
    """What a quantity amounts to.

    Raises:
        ValueError: It is none; the text is a server's.
    """
    return _read(text)[0]


def canonical(text: str) -> str:
    """*text* as a server stores it: ``1024Mi`` is ``1Gi``, ``0.5`` is ``500m``.

    Raises:
        ValueError: It is no quantity.
    """
    value, style, as_it_is = _read(text)
    if as_it_is:
        return text
    if not value:
        return "0"
    if style == "binary" and abs(value) >= 1024 and value.denominator == 1:
        return _shortest(value.numerator, 1024, [*_binary_steps()])
    return _decimal(value, exponents=style == "exponent")


def _read(text: str) -> tuple[Fraction, str, bool]:
    found = _SHAPE.fullmatch(text)
    if not found or not text:
        raise ValueError(BAD_SHAPE)
    suffix = found["suffix"]
    whole, part = found["whole"] or "0", found["part"] or ""
    number = Fraction(int(whole + part), 10 ** len(part))
    number = -number if found["sign"] == "-" else number
    if suffix in _BINARY:
        power = _BINARY[suffix]
        fast = not part and 14 - len(whole) - power * 3 // 10 >= 0
        value = min(number * 2**power, Fraction(_LARGEST))
        return _rounded(value), "binary", fast and int(whole) % 8 != 0
    exponent = _EXPONENT.fullmatch(suffix)
    if suffix in _DECIMAL:
        power = _DECIMAL[suffix]
    elif exponent:
        power = int(exponent["power"])
    else:
        raise ValueError(BAD_SUFFIX)
    scale, digits = power - len(part), whole + part
    fast = len(digits) <= 18 and scale >= -9
    same = fast and not scale % 3 and not digits.endswith("000") and digits[0] != "0"
    style = "exponent" if exponent else "decimal"
    return _rounded(number * Fraction(10) ** power), style, same or text == "0"


def _rounded(value: Fraction) -> Fraction:
    """*value* in whole billionths, away from zero."""
    units = abs(value) / _NANO
    rounded = -(-units.numerator // units.denominator) * _NANO
    return rounded if value >= 0 else -rounded


def _binary_steps() -> list[str]:
    return ["", *_BINARY]


def _shortest(value: int, factor: int, suffixes: list[str]) -> str:
    at = 0
    while value % factor == 0 and at + 1 < len(suffixes):
        value //= factor
        at += 1
    return f"{value}{suffixes[at]}"


def _decimal(value: Fraction, *, exponents: bool) -> str:
    if not exponents:
        units = value / _NANO
        return _shortest(units.numerator, 1000, list(_DECIMAL))
    power = 0
    while value.denominator != 1:
        value, power = value * 1000, power - 3
    whole = value.numerator
    while whole % 1000 == 0:
        whole, power = whole // 1000, power + 3
    return f"{whole}e{power}" if power else str(whole)
