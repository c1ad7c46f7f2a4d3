"""Whole amounts as Kubernetes writes them. Not here: fractions, which no request fits."""

from accelkit.core.units import Bytes, format_quantity, parse_quantity

_DECIMAL = tuple((suffix, 1000**power) for power, suffix in reversed([*enumerate("kMGTPE", 1)]))


def written(amount: int) -> str:
    """*amount* as the server writes it: 80Gi, 96k, 7.

    Source:
        k8s.io/apimachinery/pkg/api/resource: quantities are kept in canonical form, the one with
        the largest suffix that needs no fraction.
    """
    binary = format_quantity(Bytes(amount))
    if not binary.isdigit():
        return binary
    for suffix, factor in _DECIMAL:
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return binary


def read(text: object) -> int:
    """The amount that *text* says.

    Raises:
        ValueError: It is no whole amount.
    """
    if not isinstance(text, str):
        raise TypeError(f"an amount is a text, found {text!r}")
    return parse_quantity(text)
