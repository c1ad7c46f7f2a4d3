"""Taking fields away that a gate turns off. Not here: which gates there are."""

from collections.abc import Iterator, Mapping

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.schema import Field, structs
from accelkit.conformance.sims.api.values import part
from accelkit.conformance.sims.gates import Dialect

_SPECS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ResourceSlice": {"slice": ("spec",)},
    "ResourceClaim": {"claim": ("spec", "devices"), "status": ("status",)},
    "ResourceClaimTemplate": {"claim": ("spec", "spec", "devices")},
    "DeviceClass": {"class": ("spec",)},
}
"""Where in a kind's objects a table of gates begins."""


def drop_disabled(kind: Kind, new: Object, old: Object | None, dialect: Dialect) -> None:
    """Take from *new* what a gate turns off, unless *old* has something of it already."""
    for where, names in _SPECS.get(kind.struct, {}).items():
        root, before = part(new, *names), part(old, *names) if old is not None else {}
        for paths in dialect.dropped(where).values():
            if not any(_used(before, path) for path in paths):
                for path in paths:
                    for holder, name in _holders(root, path):
                        holder.pop(name, None)


def _used(root: Object, path: str) -> bool:
    return any(name in holder for holder, name in _holders(root, path))


def _holders(root: Object, path: str) -> Iterator[tuple[Object, str]]:
    """Each object that may have the field at the end of *path*, and its name."""
    first, dot, rest = path.partition(".")
    if not dot:
        yield root, first
        return
    found = root.get(first.rstrip("[]{}"))
    if first.endswith("[]"):
        below = found if isinstance(found, list) else []
    elif first.endswith("{}"):
        below = list(found.values()) if isinstance(found, dict) else []
    else:
        below = [found]
    for each in below:
        if isinstance(each, dict):
            yield from _holders(each, rest)


def tidy(struct: str, item: Object) -> None:
    """Leave out empty lists and maps, as a server stores them."""
    for known in structs()[struct]:
        found = item.get(known.name)
        if found is not None and known.type != "any":
            for each in _inside(known, found):
                tidy(known.type, each)
        if known.many and found is not None and not found:
            if known.keep:
                item[known.name] = None
            else:
                del item[known.name]


def _inside(known: Field, found: object) -> list[Object]:
    if known.type not in structs():
        return []
    match known.many, found:
        case "list", list():
            return [each for each in found if isinstance(each, dict)]
        case "map", dict():
            return [each for each in found.values() if isinstance(each, dict)]
        case _, dict():
            return [found]
        case _:
            return []
