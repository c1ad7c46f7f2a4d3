"""How much of a shareable device a share takes. Not here: how much is left.

Source:
    k8s.io/dynamic-resource-allocation v0.37.2,
    structured/internal/incubating/consumable_capacity.go.
"""

from collections.abc import Mapping
from fractions import Fraction

from accelkit.conformance.sims.api.quantity import amount, canonical
from accelkit.conformance.sims.api.values import part, text, texts
from accelkit.conformance.sims.scheduler.pools import Json

Amounts = Mapping[str, Fraction]


def consumed(asked: Mapping[str, str], capacities: Mapping[str, Json]) -> Amounts | None:
    """What is taken of each capacity; None: what is asked for cannot be had of this device.

    Keys are compared as they are written; a key that the device lacks cannot be had.
    """
    if asked.keys() - capacities.keys():
        return None
    taken = {name: _rounded(asked.get(name), found) for name, found in capacities.items()}
    if any(_refused(taken[name], found) for name, found in capacities.items()):
        return None
    return taken


def fits(taken: Amounts, used: Amounts, capacities: Mapping[str, Json]) -> bool:
    """Whether *taken* is left beside what is *used*."""
    return all(
        taken[name] + used.get(name, 0) <= amount(text(found, "value"))
        for name, found in capacities.items()
    )


def _rounded(asked: str | None, capacity: Json) -> Fraction:
    policy = part(capacity, "requestPolicy")
    if asked is None:
        return amount(text(policy, "default") or text(capacity, "value"))
    wanted, valid = amount(asked), part(policy, "validRange")
    if low := text(valid, "min"):
        return _up_in_range(wanted, amount(low), text(valid, "step"))
    values = [amount(value) for value in texts(policy, "validValues")]
    return next((value for value in values if wanted <= value), wanted)


def _up_in_range(wanted: Fraction, low: Fraction, step: str) -> Fraction:
    if wanted < low:
        return low
    if not step:
        return wanted
    # In whole numbers: fractions of a step count as one, so that they never fit by default.
    size, first = _whole(amount(step)), _whole(low)
    steps = -(-(_whole(wanted) - first) // size)
    return Fraction(first + size * steps)


def _whole(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _refused(taken: Fraction, capacity: Json) -> bool:
    policy = part(capacity, "requestPolicy")
    if not policy or ("default" in policy and taken == amount(text(policy, "default"))):
        return False
    valid = part(policy, "validRange")
    if valid:
        above = "max" in valid and taken > amount(text(valid, "max"))
        low, step = _whole(amount(text(valid, "min"))), text(valid, "step")
        return above or bool(step and (_whole(taken) - low) % _whole(amount(step)))
    values = [amount(value) for value in texts(policy, "validValues")]
    return bool(values) and taken not in values


def written(value: Fraction, like: str) -> str:
    """*value* as a quantity in the manner of *like*."""
    if value.denominator != 1:
        return canonical(f"{value.numerator * 1000 // value.denominator}m")
    if like.endswith("i") and value.numerator % 1024 == 0 and value:
        return canonical(f"{value.numerator // 1024}Ki")
    return canonical(str(value.numerator))
