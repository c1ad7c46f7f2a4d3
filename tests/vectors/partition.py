"""Asks for places and counters as a vector says and compares the answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict, cast

from accelkit.core.errors import UnsatisfiableLayout
from accelkit.core.model import Device, DeviceId, Placement, Profile
from accelkit.core.partition import (
    Arrangement,
    Member,
    choose_start,
    counters,
    filling_order,
    place,
    place_group,
)
from accelkit.core.values import FrozenMap

Place = tuple[str, int]


class GivenProfile(TypedDict):
    name: str
    size: int
    starts: list[int]
    limit: int
    need: dict[str, int]


class Model(TypedDict):
    slots: int
    totals: dict[str, int]
    profiles: list[GivenProfile]


class Document(TypedDict):
    models: dict[str, Model]


class GivenMember(TypedDict):
    model: str
    existing: list[Place]
    pinned: list[Place]


class ExpectedCounters(TypedDict):
    counters_at_most: int
    smallest_possible: NotRequired[int]
    feasible_sets: int
    feasible: list[list[str]]
    infeasible: list[list[str]]


class Vector(TypedDict):
    id: str
    model: str
    layout: dict[str, int]
    existing: list[Place]
    pinned: list[Place]
    offered: NotRequired[list[str]]
    profile: str
    members: list[GivenMember]
    whole_device: bool
    expect: dict[str, object]


def check_place(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield each expectation of a layout on one device that is not met."""
    given = cast("Vector", vector)
    device = device_of(document, given["model"])
    existing = places(device, given["existing"])
    actual: dict[str, object]
    try:
        found = place(
            device,
            given["layout"],
            existing,
            places(device, given["pinned"]),
            offered=given.get("offered"),
        )
    except UnsatisfiableLayout as error:
        actual = {"unsatisfiable": str(error.why), "largest": dict(error.largest)}
    else:
        actual = {
            "kept": found.kept,
            "destroys": len(existing) - found.kept,
            "openings": found.openings,
            "partitions": [[p.profile, p.start] for p in found.places],
        }
    yield from _differences(given["expect"], actual)


def check_start(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    given = cast("Vector", vector)
    device = device_of(document, given["model"])
    existing = places(device, given["existing"])
    start = choose_start(device, existing, given["profile"], offered=given.get("offered"))
    yield from _differences(given["expect"], {"start": start})


def check_group(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield what is not met; the plan itself must be the layout, and feasible."""
    given = cast("Vector", vector)
    members = []
    for m in given["members"]:
        device = device_of(document, m["model"])
        existing, pinned = places(device, m["existing"]), places(device, m["pinned"])
        members.append(Member(device=device, existing=existing, pinned=pinned))
    try:
        found = place_group(members, given["layout"])
    except UnsatisfiableLayout:
        yield from _differences(given["expect"], {"satisfiable": False})
        return
    kept = sum(arrangement.kept for arrangement in found)
    yield from _differences(given["expect"], {"satisfiable": True, "kept": kept})
    yield from _infeasible(members, found, given["layout"])


def check_listing(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    given = cast("Vector", vector)
    order = filling_order(device_of(document, given["model"]), offered=given.get("offered"))
    yield from _differences(given["expect"], {name: [*starts] for name, starts in order.items()})


def check_counters(document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with the sets of partitions that the counters allow."""
    given = cast("Vector", vector)
    found = counters(device_of(document, given["model"]))
    takes: dict[str, Mapping[str, int]] = {f"{n}@{s}": t for (n, s), t in found.takes.items()}
    if given["whole_device"]:
        takes["whole@0"] = found.totals
    expect = cast("ExpectedCounters", given["expect"])
    if len(found.totals) > expect["counters_at_most"]:
        yield f"expected {expect['counters_at_most']} counters, got {', '.join(found.totals)}"
    if len(found.totals) < expect.get("smallest_possible", 0):
        yield f"{expect['smallest_possible']} was proved, got {', '.join(found.totals)}"
    if (sets := _sets(takes, found.totals)) != expect["feasible_sets"]:
        yield f"feasible_sets: expected {expect['feasible_sets']}, got {sets}"
    for some in expect["feasible"]:
        if not _fits([takes[part] for part in some], found.totals):
            yield f"does not fit: {some}"
    for some in expect["infeasible"]:
        if _fits([takes[part] for part in some], found.totals):
            yield f"fits: {some}"


def device_of(document: Mapping[str, object], model: str) -> Device:
    """A device of a model of the document."""
    given = cast("Document", document)["models"][model]
    return Device(
        id=DeviceId(vendor="vectors", name="device"),
        kind="gpu",
        product=model,
        slots=given["slots"],
        counters=FrozenMap(given["totals"]),
        profiles=tuple(
            Profile(
                name=profile["name"],
                slug=profile["name"].replace(".", "").replace("+", "-"),
                size=profile["size"],
                starts=profile["starts"],
                limit=profile["limit"],
                counters=FrozenMap(profile["need"]),
            )
            for profile in given["profiles"]
        ),
    )


def places(device: Device, given: Iterable[Place]) -> frozenset[Placement]:
    """Pairs of profile and first slot as placements."""
    sizes = {p.name: p.size for p in device.profiles}
    return frozenset(Placement(profile=n, start=s, size=sizes[n]) for n, s in given)


def _differences(expected: Mapping[str, object], actual: Mapping[str, object]) -> Iterator[str]:
    for name in {**expected, **actual}:
        wanted, got = expected.get(name), actual.get(name)
        if wanted != got:
            yield f"{name}: expected {wanted!r}, got {got!r}"


def _infeasible(
    members: Sequence[Member], found: Sequence[Arrangement], layout: Mapping[str, int]
) -> Iterator[str]:
    profiles = [place.profile for arrangement in found for place in arrangement.places]
    yield from _differences(layout, {name: profiles.count(name) for name in profiles})
    for member, arrangement in zip(members, found, strict=True):
        here = arrangement.places
        if not member.pinned <= {*here}:
            yield f"{sorted(member.pinned)} must stay"
        takes = [counters(member.device).takes[p.profile, p.start] for p in here]
        if not _fits(takes, counters(member.device).totals):
            yield f"{here} do not fit together"


def _fits(takes: Iterable[Mapping[str, int]], totals: Mapping[str, int]) -> bool:
    takes = tuple(takes)
    return all(sum(each.get(key, 0) for each in takes) <= most for key, most in totals.items())


def _sets(takes: Mapping[str, Mapping[str, int]], totals: Mapping[str, int]) -> int:
    """How many sets of parts the totals allow, the empty one among them."""
    parts = [*takes.values()]

    def deeper(first: int, left: Mapping[str, int]) -> int:
        count = 1
        for n in range(first, len(parts)):
            if all(left[key] >= amount for key, amount in parts[n].items()):
                rest = {key: most - parts[n].get(key, 0) for key, most in left.items()}
                count += deeper(n + 1, rest)
        return count

    return deeper(0, totals)
