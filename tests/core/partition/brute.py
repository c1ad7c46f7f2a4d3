"""Everything that can be on a device, from the wording of the rules alone, and devices to try."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st

from accelkit.core.model import Device, DeviceId, Placement, Profile
from accelkit.core.values import FrozenMap
from tests.vectors.partition import device_of
from tests.vectors.runner import read

Some: TypeAlias = frozenset[Placement]

PLACES, _ = read(Path(__file__).parents[2] / "vectors" / "partition-placement.json")
A30 = device_of(PLACES, "A30")
GRID = device_of(PLACES, "A100-40")
RTX = device_of(PLACES, "RTX-PRO-6000")
UNEVEN = device_of(PLACES, "S10")


def device(*profiles: Profile, slots: int, **totals: int) -> Device:
    return Device(
        id=DeviceId(vendor="toy", name="a"),
        kind="gpu",
        slots=slots,
        counters=FrozenMap(totals),
        profiles=profiles,
    )


def every_place(one: Device) -> list[Placement]:
    return [
        Placement(profile=p.name, start=start, size=p.size)
        for p in one.profiles
        for start in p.starts
    ]


def can_be(one: Device, some: Iterable[Placement]) -> bool:
    """Whether slots are disjoint, and limits and totals hold."""
    some = tuple(some)
    slots = [slot for place in some for slot in place.slots]
    profiles = {p.name: p for p in one.profiles}
    times = Counter(place.profile for place in some)
    return (
        len(slots) == len(set(slots))
        and all((limit := profiles[name].limit) is None or n <= limit for name, n in times.items())
        and all(
            sum(profiles[place.profile].counters.get(key, 0) for place in some) <= total
            for key, total in one.counters.items()
        )
    )


def everything(one: Device) -> list[Some]:
    """Every set of partitions that can be there together."""
    places = every_place(one)

    def deeper(first: int, some: Some) -> Iterator[Some]:
        yield some
        for n in range(first, len(places)):
            # What cannot be does not become possible by adding to it.
            if can_be(one, {*some, places[n]}):
                yield from deeper(n + 1, some | {places[n]})

    return [*deeper(0, frozenset())]


def layout_of(some: Iterable[Placement]) -> Mapping[str, int]:
    return dict(sorted(Counter(place.profile for place in some).items()))


def room_left(one: Device, some: Some, offered: Collection[str] | None = None) -> int:
    """The sizes of all that could be added, at each place."""
    return sum(
        place.size
        for place in every_place(one)
        if (offered is None or place.profile in offered)
        and place not in some
        and can_be(one, {*some, place})
    )


def rank(one: Device, some: Some, existing: Some) -> tuple[int, int, list[list[int]]]:
    """What of two arrangements of one layout is better, least first."""
    order = sorted(one.profiles, key=lambda p: (-p.size, len(p.starts), one.profiles.index(p)))
    starts = [sorted(p.start for p in some if p.profile == profile.name) for profile in order]
    return -len(some & existing), -room_left(one, some), starts


def largest(
    one: Device, sets: Iterable[Some], layout: Mapping[str, int], pinned: Some
) -> Mapping[str, int]:
    """The largest part of *layout* beside what is pinned."""

    def size(some: Iterable[Placement]) -> tuple[int, int, list[int]]:
        sizes = [place.size for place in some]
        times = layout_of(some)
        return len(sizes), sum(sizes), [times.get(p.name, 0) for p in one.profiles]

    must = layout_of(pinned)
    fitting = [
        some
        for some in sets
        if pinned <= some
        and all(n <= max(layout.get(k, 0), must.get(k, 0)) for k, n in layout_of(some).items())
    ]
    return layout_of(max(fitting, key=size))


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """Small devices with profiles of any size at any place."""
    slots = draw(st.integers(1, 6))
    profiles = [draw(_profiles(n, slots)) for n in range(draw(st.integers(1, 4)))]
    return device(*profiles, slots=slots, **draw(_TOTALS))


_TOTALS = st.dictionaries(st.sampled_from(["engines", "video"]), st.integers(1, 5))


@st.composite
def _profiles(draw: st.DrawFn, number: int, slots: int) -> Profile:
    size = draw(st.integers(1, slots))
    return Profile(
        name=f"{size}x+{number}",
        slug=f"{size}x-{number}",
        size=size,
        starts=draw(st.sets(st.integers(0, slots - size), min_size=1)),
        limit=draw(st.none() | st.integers(1, 3)),
        counters=FrozenMap(
            draw(st.dictionaries(st.sampled_from(["engines", "video"]), st.integers(0, 3)))
        ),
    )
