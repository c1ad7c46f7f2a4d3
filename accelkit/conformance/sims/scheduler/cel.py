"""Selectors of devices, in the few forms that classes of drivers have. Not here: the rest of CEL.

Understood: ``device.driver == "D"`` and ``device.attributes["D"].name == VALUE``, one or several
with ``&&`` between them. Whatever else there is, is refused: a simulation must not guess.
"""

import json
import re
from collections.abc import Mapping

from attrs import frozen

from accelkit.conformance.sims.api.values import parts, text
from accelkit.conformance.sims.scheduler.pools import Device

_DRIVER = re.compile(r"""device\.driver\s*==\s*(?P<value>"[^"]*"|'[^']*')""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(?P<domain>"[^"]*"|'[^']*')\]\.(?P<name>\w+)\s*==\s*"""
    r"""(?P<value>"[^"]*"|'[^']*'|-?\d+|true|false)"""
)


_ADVICE = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)


class UnsupportedCel(ValueError):
    """An expression that a real scheduler may understand, and this one does not."""


class CelError(Exception):
    """An expression that cannot be evaluated for a device: it ends the search for the pod."""


@frozen
class _Term:
    domain: str
    """Empty: the driver is compared."""
    name: str
    value: str | int | bool

    def holds(self, device: Device) -> bool:
        if not self.domain:
            return device.driver == self.value
        found = device.attribute(self.domain, self.name)
        if found is None:
            raise CelError(f"no such key: {self.name}. {_ADVICE}")
        # Values of different types are not equal.
        return type(found) is type(self.value) and found == self.value


def matches(expression: str, device: Device) -> bool:
    """Whether the expression holds for the device.

    Raises:
        UnsupportedCel: It has another form.
        CelError: It asks for an attribute that the device lacks.
    """
    return all(term.holds(device) for term in _terms(expression))


def _terms(expression: str) -> list[_Term]:
    return [_term(part.strip(), expression) for part in expression.split("&&")]


def _term(part: str, whole: str) -> _Term:
    if found := _DRIVER.fullmatch(part):
        return _Term("", "", _literal(found["value"]))
    if found := _ATTRIBUTE.fullmatch(part):
        return _Term(found["domain"][1:-1], found["name"], _literal(found["value"]))
    raise UnsupportedCel(
        f'{part!r} in {whole!r} is not simulated: write device.driver == "D" or '
        'device.attributes["D"].name == VALUE, with && between them'
    )


def _literal(text: str) -> str | int | bool:
    if text[0] in "\"'":
        return text[1:-1]
    read: int | bool = json.loads(text)
    return read


def selectors(item: Mapping[str, object]) -> tuple[str, ...]:
    """The expressions of a class or a request, all of which must hold."""
    return tuple(text(selector, "cel", "expression") for selector in parts(item, "selectors"))
