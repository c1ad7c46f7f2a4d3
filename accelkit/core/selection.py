"""Which devices an operator's words mean. Not here: what is done with them."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from accelkit.core.attributes import as_text
from accelkit.core.model import Device
from accelkit.core.policy import Range, Selection

MEMORY = "memory"
"""The capacity that ``memory`` selects by."""


def matches(selection: Selection, device: Device, node: str) -> bool:
    """Whether every key of *selection* holds for *device*.

    A list holds if one of its globs does, in which ``*`` also crosses slashes. What a device does
    not have, no glob matches: not even ``*``. An empty selection holds for everything.

    Args:
        selection: The operator's words.
        device: As it was read.
        node: Name of the Kubernetes node.
    """
    return (
        all(_one_matches(globs, texts) for globs, texts in _words(selection, device, node))
        and selection.partition in {None, device.parent is not None}
        and _in_range(selection.memory, device.capacity.get(MEMORY))
        and (not selection.any or any(matches(s, device, node) for s in selection.any))
        and all(matches(s, device, node) for s in selection.all)
        and (selection.not_ is None or not matches(selection.not_, device, node))
    )


def select(selection: Selection, devices: Iterable[Device], node: str) -> tuple[Device, ...]:
    """Those of *devices* that match, in their order."""
    return tuple(d for d in devices if matches(selection, d, node))


def _words(
    selection: Selection, device: Device, node: str
) -> Iterator[tuple[tuple[str, ...], tuple[str | None, ...]]]:
    """Globs, and what one of them must match, for each key that was given."""
    pairs: tuple[tuple[tuple[str, ...], str | None], ...] = (
        (selection.vendor, device.id.vendor),
        (selection.kind, device.kind),
        (selection.product, device.product),
        (selection.name, device.id.name),
        (selection.pci, device.locality.pci_address),
        (selection.profile, device.profile),
        (selection.node, node),
    )
    for globs, text in pairs:
        if globs:
            yield globs, (text,)
    for name, globs in selection.attributes.items():
        if globs:
            value = device.attributes.get(name)
            yield globs, () if value is None else as_text(value)


def _one_matches(globs: Iterable[str], texts: Iterable[str | None]) -> bool:
    return any(fnmatchcase(t, glob) for t in texts if t is not None for glob in globs)


def _in_range(wanted: Range | None, amount: int | None) -> bool:
    if wanted is None:
        return True
    if amount is None:
        return False
    low = 0 if wanted.at_least is None else wanted.at_least
    return low <= amount and (wanted.at_most is None or amount <= wanted.at_most)
