"""Reading objects that a decoder has made. Not here: what they mean.

A decoder has given every known field its type, so these never find another one.
"""

from collections.abc import Iterator, Mapping, MutableMapping

from accelkit.conformance.sims.api.decoding import Object


def part(item: Mapping[str, object], *names: str) -> Object:
    """The object below *names*; an empty one if there is none."""
    found: object = item
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def parts(item: Mapping[str, object], *names: str) -> list[Object]:
    """The objects in a list below *names*; none if there is no list."""
    found = part(item, *names[:-1]).get(names[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts(item: Mapping[str, object], name: str) -> list[str]:
    """The strings in a list."""
    found = item.get(name)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def text(item: Mapping[str, object], *names: str) -> str:
    """A string; empty if there is none."""
    found = part(item, *names[:-1]).get(names[-1])
    return found if isinstance(found, str) else ""


def number(item: Mapping[str, object], *names: str) -> int:
    """A whole number; 0 if there is none."""
    found = part(item, *names[:-1]).get(names[-1])
    return found if isinstance(found, int) else 0


def entries(item: Mapping[str, object], name: str) -> Iterator[tuple[str, Object]]:
    """Keys and objects of a map."""
    found = part(item, name)
    return ((key, value) for key, value in found.items() if isinstance(value, dict))


def amounts(item: Mapping[str, object], name: str) -> dict[str, str]:
    """Keys and quantities of a map."""
    return {key: value for key, value in part(item, name).items() if isinstance(value, str)}


def names_of(item: Mapping[str, object]) -> tuple[str, str]:
    """Namespace and name."""
    return text(item, "metadata", "namespace"), text(item, "metadata", "name")


def put(item: MutableMapping[str, object], name: str, value: object) -> None:
    """Set a field, or take it away if *value* is None."""
    if value is None:
        item.pop(name, None)
    else:
        item[name] = value
