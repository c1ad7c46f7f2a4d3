"""What a server refuses in a capacity's request policy. Not here: other fields of a device."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.refusals import (
    Cause,
    Crashed,
    denied,
    repeated,
    required,
    too_many_items,
    wrong,
)
from accelkit.conformance.sims.api.values import part, text, texts
from accelkit.conformance.sims.gates import FRACTIONS, Dialect

OPTIONS = 10
_LARGEST = 2**63 - 1


def capacity(path: str, found: Object, dialect: Dialect, *, shareable: bool) -> Iterator[Cause]:
    """A capacity of a device that can be allocated once, or several times."""
    if "requestPolicy" not in found:
        return
    path = f"{path}.requestPolicy"
    policy = part(found, "requestPolicy")
    if not shareable:
        yield denied(path, "allowMultipleAllocations must be true")
        return
    values, has_range = texts(policy, "validValues"), "validRange" in policy
    if values and has_range:
        what = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" '
            "at the same time"
        )
        yield denied(path, what)
        return
    if not values and not has_range:
        return
    if not text(policy, "default"):
        kind = "validValues" if values else "validRange"
        yield required(f"{path}.default", f"required when {kind} is defined")
    elif values:
        yield from _options(f"{path}.validValues", policy, text(found, "value"))
    else:
        yield from _range(f"{path}.validRange", policy, text(found, "value"), dialect)


def _options(path: str, policy: Object, whole: str) -> Iterator[Cause]:
    values = texts(policy, "validValues")
    for index, (one, other) in enumerate(pairwise(values), 1):
        if amount(one) > amount(other):
            yield wrong(f"{path}[{index}]", other, "values must be sorted in ascending order")
    looked_at = values if len(values) <= OPTIONS else []
    if len(values) > OPTIONS:
        yield too_many_items(path, len(values), OPTIONS)
    seen: set[Fraction] = set()
    for index, value in enumerate(looked_at):
        if amount(value) > amount(whole):
            yield wrong(f"{path}[{index}]", value, f"option is larger than capacity value: {whole}")
        if amount(value) in seen:
            yield repeated(f"{path}[{index}]", value)
        seen.add(amount(value))
    if amount(text(policy, "default")) not in seen:
        what = "default value is not valid according to the requestPolicy"
        yield wrong(path, text(policy, "default"), what)


def _range(path: str, policy: Object, whole: str, dialect: Dialect) -> Iterator[Cause]:
    valid, default = part(policy, "validRange"), text(policy, "default")
    low, high, step = (text(valid, name) for name in ("min", "max", "step"))
    if not low:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    yield from _bounds(path, (default, low, high), whole)
    if not step:
        return
    if not dialect.limits.steps_checked and not amount(step):
        raise Crashed("a step of 0 was divided by")
    if dialect.limits.steps_checked and amount(step) <= 0:
        yield wrong(f"{path}.step", step, "must be greater than zero")
        return
    if amount(low) + amount(step) > amount(whole):
        reached = _sum(low, step)
        what = f"one step {reached} is larger than capacity value: {whole}"
        yield wrong(f"{path}.step", step, what)
    named = {"default": default, "min": low, "max": high, "step": step}
    checked = {name: value for name, value in named.items() if value}
    unsafe = list(_beyond(path, checked)) if dialect.limits.steps_checked else []
    yield from unsafe
    if not unsafe:
        yield from _steps(path, (default, high), (low, step), dialect)


def _bounds(path: str, values: tuple[str, str, str], whole: str) -> Iterator[Cause]:
    default, low, high = values
    if amount(low) > amount(whole):
        yield wrong(f"{path}.min", low, f"min is larger than capacity value: {whole}")
    if amount(default) < amount(low):
        yield wrong(f"{path}.default", default, f"default is less than min: {low}")
    if not high:
        return
    if amount(low) > amount(high):
        yield wrong(f"{path}.max", low, f"min is larger than max: {high}")
    if amount(high) > amount(whole):
        yield wrong(f"{path}.max", high, f"max is larger than capacity value: {whole}")
    if amount(default) > amount(high):
        yield wrong(f"{path}.default", default, f"default is more than max: {high}")


def _sum(one: str, other: str) -> str:
    total = amount(one) + amount(other)
    return str(total.numerator) if total.denominator == 1 else f"{float(total):g}"


def _beyond(path: str, named: dict[str, str]) -> Iterator[Cause]:
    for name, value in named.items():
        if amount(value) < 0:
            yield wrong(f"{path}.{name}", value, "must be greater than or equal to 0")
        elif amount(value) > _LARGEST:
            yield wrong(f"{path}.{name}", value, f"must not be larger than {_LARGEST}")


def _steps(
    path: str, values: tuple[str, str], grid: tuple[str, str], dialect: Dialect
) -> Iterator[Cause]:
    """Whole steps: a server that reckons in integers rounds fractions up before it divides."""
    low, step = grid
    fractions = dialect.on(FRACTIONS)

    def reckoned(value: str) -> Fraction:
        exact = amount(value)
        return exact if fractions else Fraction(-(-exact.numerator // exact.denominator))

    for value in filter(None, values):
        if (reckoned(value) - reckoned(low)) % reckoned(step):
            what = f"value is not a multiple of a given step ({step}) from ({low})"
            yield wrong(f"{path}.step", value, what)
