"""What devices of a claim must have in common, or must not. Not here: anything else of claims."""

from collections.abc import Iterable, Sequence

from accelkit.conformance.sims.api.values import text, texts
from accelkit.conformance.sims.scheduler.pools import Device, Json

Chosen = tuple[str, Device]
"""The full name of a request and a device for it."""


def hold(constraints: Iterable[Json], chosen: Sequence[Chosen], more: Chosen) -> bool:
    """Whether *more* may join the devices that are *chosen*."""
    return all(_holds(constraint, chosen, more) for constraint in constraints)


def _holds(constraint: Json, chosen: Sequence[Chosen], more: Chosen) -> bool:
    names = texts(constraint, "requests")
    if not _applies(names, more):
        return True
    match = text(constraint, "matchAttribute")
    attribute = match or text(constraint, "distinctAttribute")
    found = _value(more[1], attribute)
    if found is None:
        return False
    others = [
        _value(device, attribute) for name, device in chosen if _applies(names, (name, device))
    ]
    # An int is not a string of the same digits, nor is 1 true.
    same = [type(other) is type(found) and other == found for other in others]
    return all(same) if match else not any(same)


def _applies(names: Sequence[str], one: Chosen) -> bool:
    """A constraint on ``main`` is one on ``main/sub``, too."""
    return not names or one[0] in names or one[0].partition("/")[0] in names


def _value(device: Device, attribute: str) -> str | int | bool | None:
    domain, _, name = attribute.rpartition("/")
    return device.attribute(domain, name)
