"""What an expression over a device says, in the few forms that classes of drivers have. Pure.

Not here: the rest of the Common Expression Language; what has another form is not evaluated.
"""

import json
import re
from collections.abc import Iterable

import attrs

from accelkit.backends.dra.explain_devices import Published

_TEXT = r'"[^"\\]*"'
_DRIVER = re.compile(rf"device\.driver\s*==\s*(?P<value>{_TEXT})")
_ATTRIBUTE = re.compile(
    rf"device\.attributes\[(?P<domain>{_TEXT})\]\.(?P<name>\w+)\s*==\s*"
    rf"(?P<value>{_TEXT}|-?\d+|true|false)"
)


@attrs.frozen
class Truth:
    """Whether an expression holds for a device."""

    holds: bool | None
    """None: it was not evaluated."""
    why: str = ""
    """Why not."""


def truth_of(expression: str, device: Published) -> Truth:
    """Whether *expression* holds for *device*.

    Understood are ``device.driver == "D"`` and ``device.attributes["D"].name == VALUE``, several
    of them with ``&&``, and several such in brackets with ``||``.
    """
    found = [_all_of(_bare(part), device) for part in expression.split("||")]
    if any(one.holds for one in found):
        return Truth(holds=True)
    unread = [one for one in found if one.holds is None]
    return unread[0] if unread else found[0]


def _all_of(conjunction: str, device: Published) -> Truth:
    found = [_term(part.strip(), device) for part in conjunction.split("&&")]
    return _first(found, holds=False) or _first(found, holds=None) or Truth(holds=True)


def _first(found: Iterable[Truth], *, holds: bool | None) -> Truth | None:
    return next((one for one in found if one.holds is holds), None)


def _bare(part: str) -> str:
    part = part.strip()
    return part[1:-1].strip() if part.startswith("(") and part.endswith(")") else part


def _term(term: str, device: Published) -> Truth:
    if found := _DRIVER.fullmatch(term):
        wanted = str(json.loads(found["value"]))
        same = device.driver == wanted
        return Truth(same, "" if same else f"its driver is not {wanted}")
    if not (found := _ATTRIBUTE.fullmatch(term)):
        return Truth(None, f"not evaluated: {term}")
    domain, name = str(json.loads(found["domain"])), found["name"]
    value: object = json.loads(found["value"])
    there = device.attribute(domain, name)
    if there is None:
        return Truth(False, f"it has no attribute {domain}/{name}: the scheduler stops at that")
    # Values of different types are not equal.
    same = type(there) is type(value) and there == value
    return Truth(same, "" if same else f"its {name} is not {found['value']}")
