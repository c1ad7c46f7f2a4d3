"""How JSON becomes what a server keeps. Not here: what is allowed in it.

A server reads an object into fields of fixed types: strange fields are dropped with a warning,
empty ones are left out, quantities and times are rewritten, and JSON of the wrong type is refused.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from attrs import define, field, frozen

from accelkit.conformance.sims.api.documents import RawJson, plain
from accelkit.conformance.sims.api.quantity import canonical
from accelkit.conformance.sims.api.schema import Field, structs

Object = dict[str, object]
Knows = Callable[[str, str], bool]
"""Whether a struct has a field in this release."""
_GO = {"int": "int64", "bool": "bool", "string": "string"}


class Undecodable(Exception):
    """JSON of the wrong type; the text is a server's."""


@frozen
class _Place:
    """Where a value stands."""

    path: str = ""
    go: str = ""
    """As Go's decoder names it: without indexes and keys."""
    struct: str = ""
    """The struct around it."""

    def field(self, name: str, struct: str) -> "_Place":
        path, go = (f"{text}.{name}" if text else name for text in (self.path, self.go))
        return _Place(path, go, struct)

    def item(self, index: int) -> "_Place":
        return _Place(f"{self.path}[{index}]", self.go, self.struct)

    def key(self, key: str) -> "_Place":
        return _Place(f"{self.path}.{key}", self.go, self.struct)

    def mismatch(self, tree: object, kind: str) -> Undecodable:
        names = {dict: "object", list: "array", str: "string", bool: "bool"}
        what = names.get(type(tree), "number")
        if what == "number" and kind == "int64":
            what = f"number {tree}"
        where = f"struct field {self.struct}.{self.go}" if self.go else "value"
        return Undecodable(f"json: cannot unmarshal {what} into Go {where} of type {kind}")


@define
class Decoder:
    """Reads one object."""

    knows: Knows
    unknown: list[str] = field(factory=list)
    """Paths of the fields that were dropped."""

    def read(self, struct: str, tree: object) -> Object:
        """*tree* as an object of that struct, its fields in a server's order.

        Raises:
            Undecodable: It cannot be one.
        """
        known = {"apiVersion", "kind"}
        trimmed = (
            {k: v for k, v in tree.items() if k not in known} if isinstance(tree, dict) else tree
        )
        return self._struct(struct, trimmed, _Place())

    def _struct(self, name: str, tree: object, place: _Place) -> Object:
        tree = {} if tree is None else tree
        if not isinstance(tree, dict):
            raise place.mismatch(tree, f"v1.{name}")
        fields = [known for known in structs()[name] if self.knows(name, known.name)]
        names = {known.name for known in fields}
        self.unknown += [place.field(key, name).path for key in tree if key not in names]
        made: Object = {}
        for known in fields:
            value = self._field(known, tree.get(known.name), place.field(known.name, name))
            if value is not None or known.keep:
                made[known.name] = value
        return made

    def _field(self, known: Field, tree: object, place: _Place) -> object:
        """The value of a field; None: it is left out."""
        if known.type != "raw" and isinstance(tree, RawJson):
            tree = tree.value
        if known.many == "list":
            return self._list(known, tree, place)
        if known.many == "map":
            return self._map(known, tree, place)
        if tree is None or (isinstance(tree, RawJson) and tree.value is None):
            return None if known.pointer else self._zero(known, place)
        made = self._one(known.type, tree, place)
        kept = known.pointer or known.keep or isinstance(made, dict)
        return made if made or kept else None

    def _list(self, known: Field, tree: object, place: _Place) -> object:
        if tree is None:
            return None
        if not isinstance(tree, list):
            raise place.mismatch(tree, f"[]{_GO.get(known.type, f'v1.{known.type}')}")
        return [self._one(known.type, t, place.item(i)) for i, t in enumerate(tree)]

    def _map(self, known: Field, tree: object, place: _Place) -> object:
        if tree is None:
            return None
        if not isinstance(tree, dict):
            raise place.mismatch(tree, f"map[string]{_GO.get(known.type, f'v1.{known.type}')}")
        return {key: self._one(known.type, tree[key], place.key(key)) for key in sorted(tree)}

    def _zero(self, known: Field, place: _Place) -> object:
        if known.type in structs():
            return self._struct(known.type, {}, place)
        if known.type in {"any", "quantity"}:
            return {} if known.type == "any" else "0"
        return {"string": "", "int": 0, "bool": False}.get(known.type) if known.keep else None

    def _one(self, kind: str, tree: object, place: _Place) -> object:
        if kind == "raw":
            return tree if isinstance(tree, RawJson) else RawJson.of(tree)
        if isinstance(tree, RawJson):
            tree = tree.value
        return self._struct(kind, tree, place) if kind in structs() else _SCALARS[kind](tree, place)


def _string(tree: object, place: _Place) -> object:
    if not isinstance(tree, str | None):
        raise place.mismatch(tree, "string")
    return tree or ""


def _bool(tree: object, place: _Place) -> object:
    if not isinstance(tree, bool):
        raise place.mismatch(tree, "bool")
    return tree


def _int(tree: object, place: _Place) -> object:
    if not isinstance(tree, int) or isinstance(tree, bool) or not -(2**63) <= tree < 2**63:
        raise place.mismatch(tree, "int64")
    return tree


def _quantity(tree: object, _place: _Place) -> object:
    try:
        return canonical("0" if tree is None else str(tree).strip())
    except ValueError as error:
        raise Undecodable(str(error)) from None


def _time(tree: object, _place: _Place) -> object:
    return None if tree is None else _moment(tree).strftime("%Y-%m-%dT%H:%M:%SZ")


def _microtime(tree: object, _place: _Place) -> object:
    return None if tree is None else _moment(tree).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(tree: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(tree))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Undecodable(
            f'parsing time "{tree}" as "2006-01-02T15:04:05Z07:00": cannot parse "{tree}" as "2006"'
        )
    return found.astimezone(UTC)


def _any(tree: object, _place: _Place) -> object:
    return plain(tree)


def _ignored(_tree: object, _place: _Place) -> object:
    return ""


_SCALARS: Mapping[str, Callable[[object, _Place], object]] = {
    "string": _string,
    "bool": _bool,
    "int": _int,
    "quantity": _quantity,
    "time": _time,
    "microtime": _microtime,
    "any": _any,
    "ignored": _ignored,
}
