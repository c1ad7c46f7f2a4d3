"""What the simulated hardware does when its files are written. Not here: the files."""

from accelkit import SourceError
from accelkit.testing.machines import Json

NAMES = frozenset({"make", "unmake", "mode", "level", "timeslice"})
"""Files of a unit that do something when they are written."""
FIRST_MODES = {"carve": "whole", "reset": "whole", "modal": "single"}
"""The mode of each product that has modes, as it comes from the factory."""
_MODES = {
    "carve": ("whole", "carved"),
    "reset": ("whole", "carved"),
    "modal": ("single", "dual", "quad"),
}
_SIZES = {"2s": 2, "1s": 1}
_CUT_BY = {"dual": ("half 0", "half 2"), "quad": tuple(f"quarter {n}" for n in range(4))}
_SLOTS = 4
_BUSY = "Device or resource busy"

Own = dict[str, Json]
"""State of one unit."""


def cuts(product: str, own: Own) -> dict[str, str]:
    """The files of a unit that say how it is cut."""
    parts = _parts(own) if product != "modal" else list(_CUT_BY.get(_mode(product, own), ()))
    return {
        "mode": f"{_mode(product, own)}\n",
        "parts": "".join(f"{part}\n" for part in parts),
        "make": "",
        "unmake": "",
    }


def take(product: str, own: Own, name: str, text: str) -> None:
    """Do to a unit what *text* in the file *name* asks.

    Raises:
        SourceError: The driver refuses it.
    """
    if name in {"level", "timeslice"}:
        own[name] = text
    elif name == "mode":
        _set_mode(product, own, text)
    elif product == "modal" or _mode(product, own) != "carved":
        raise SourceError("Invalid argument")
    elif name == "make":
        _make(own, text)
    else:
        _unmake(own, text)


def _set_mode(product: str, own: Own, mode: str) -> None:
    if mode not in _MODES[product]:
        raise SourceError("Invalid argument")
    if own.get("holders") or _parts(own):
        raise SourceError(_BUSY)
    own["asked" if product == "reset" else "mode"] = mode


def _make(own: Own, text: str) -> None:
    name, _, start = text.partition(" ")
    if name not in _SIZES or not start.isdecimal():
        raise SourceError("Invalid argument")
    wanted = _places(text)
    if max(wanted) >= _SLOTS or min(wanted) % _SIZES[name]:
        raise SourceError("Invalid argument")
    if wanted & {slot for part in _parts(own) for slot in _places(part)}:
        raise SourceError("No space left on device")
    parts = sorted([*_parts(own), text], key=lambda part: min(_places(part)))
    own["parts"] = [*parts]


def _unmake(own: Own, text: str) -> None:
    if own.get("holders"):
        raise SourceError(_BUSY)
    own["parts"] = [part for part in _parts(own) if part != text]


def _places(part: str) -> set[int]:
    name, _, start = part.partition(" ")
    return set(range(int(start), int(start) + _SIZES[name]))


def _mode(product: str, own: Own) -> str:
    return str(own.get("mode", FIRST_MODES[product]))


def _parts(own: Own) -> list[str]:
    found = own.get("parts")
    return [str(part) for part in found] if isinstance(found, list) else []
