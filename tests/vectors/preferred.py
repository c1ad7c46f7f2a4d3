"""Asks for a preferred allocation as a vector says and compares the answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict, cast

from accelkit.core.policy import Place
from accelkit.core.preference import (
    Choice,
    Family,
    Topology,
    family,
    of_shares,
    prefer,
    used,
)


class GivenTopology(TypedDict):
    ids: list[str]
    levels: list[list[list[int]]]


class Document(TypedDict):
    topologies: dict[str, GivenTopology]
    legal: dict[str, dict[str, list[list[str]]]]


class Vector(TypedDict):
    id: str
    available: list[str]
    must: list[str]
    size: int
    topology: NotRequired[str]
    legal: NotRequired[str]
    policy: NotRequired[str]
    parents: NotRequired[dict[str, int]]
    expect: dict[str, object]


def check(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield each expectation that is not met."""
    request = cast("Vector", vector)
    choice = answer(cast("Document", document), request)
    for name, expected in request["expect"].items():
        actual, met = _compare(name, expected, choice)
        if not met:
            yield f"{name}: expected {expected!r}, got {actual!r}"


def answer(document: Document, vector: Vector) -> Choice:
    """Return the product's answer to the request of a vector."""
    if "policy" in vector:
        return _shares(vector)
    given = document["topologies"][vector["topology"]]
    topology = _topology(given["ids"], given["levels"])
    legal: Family | None = None
    if "legal" in vector:
        sets = [some for sized in document["legal"][vector["legal"]].values() for some in sized]
        legal = family(topology, sets, hard=True)
    return prefer(topology, vector["available"], vector["must"], vector["size"], legal=legal)


def _topology(ids: Sequence[str], levels: Sequence[Sequence[Sequence[int]]]) -> Topology:
    return Topology(ids=ids, groups=range(len(ids)), levels=levels)


def _shares(vector: Vector) -> Choice:
    place, parents = Place(vector["policy"]), vector["parents"]
    apart = [[0] * len(parents) for _ in parents]
    topology = of_shares(_topology(list(parents), [apart]), parents, place)
    unit = used(topology, {*vector["available"], *vector["must"]}, place)
    return prefer(topology, vector["available"], vector["must"], vector["size"], unit=unit)


def _compare(name: str, expected: object, choice: Choice) -> tuple[object, bool]:
    """Return what was answered, and whether it is what was expected."""
    actual: object
    match name, expected:
        case "ids", list():
            actual = list(choice.ids)
        case (("closeness" | "rest" | "legal" | "exact"), _):
            actual = getattr(choice, name)
        case "per_parent", dict():
            parents = [shared.split("::")[0] for shared in choice.ids]
            actual = {parent: parents.count(parent) for parent in parents}
        case "size", int():
            actual = len(choice.ids)
        case "contains", list():
            return choice.ids, set(expected) <= set(choice.ids)
        case "closeness_at_least", int():
            return choice.closeness, choice.closeness >= expected
        case (("upper_at_least" | "best_known"), int()):
            return choice.upper, choice.upper >= expected
        case _:
            return "nothing that is compared with it", False
    return actual, actual == expected
