"""A collection that is kept up to date, whatever the server does."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from accelkit.backends.kube.faults import Closed, Silent
from accelkit.backends.kube.follow import LONGEST_PAUSE_S, REFUSED_PAUSE_S, Key, follow
from accelkit.backends.kube.objects import Objects
from accelkit.core.clock import RealClock
from accelkit.core.errors import ApiError, BackendError, TransportError
from accelkit.core.kube import SLICES, Json
from tests.backends.kube.clients import Clients
from tests.backends.kube.scripted import (
    Reply,
    Scripted,
    chunk,
    hang_up,
    head,
    kubeconfig,
    lines,
    metadata,
    raw,
    says,
    status,
    stream,
)


class Impatient(RealClock):
    """Keeps pauses and makes none."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Impatient:
    return Impatient()


def listed(version: int, **items: int) -> Reply:
    """A list of these names, each of a version."""
    found = [{"metadata": metadata(name, number)} for name, number in items.items()]
    return says({"metadata": {"resourceVersion": str(version)}, "items": found})


def change(kind: str, name: str, version: int) -> Json:
    return {"type": kind, "object": {"metadata": metadata(name, version)}}


def told(*changes: Json, end: bool = False) -> Reply:
    """A watch that brings these and, but for *end*, stays."""
    return stream(lines(*changes), end=end) if changes else stream(end=end)


def shown(held: Mapping[Key, Json]) -> dict[str, int]:
    """Names and versions."""
    found = {}
    for (_, name), item in held.items():
        meta = item["metadata"]
        assert isinstance(meta, dict)
        found[name] = int(meta["resourceVersion"])
    return found


async def first(count: int, maps: AsyncGenerator[Mapping[Key, Json], None]) -> list[dict[str, int]]:
    """So many maps of *maps*, which end then."""
    found = []
    async with aclosing(maps), asyncio.timeout(30):
        async for held in maps:
            found.append(shown(held))
            if len(found) == count:
                break
    return found


def versions(server: Scripted) -> list[str]:
    """What was asked for: list, or the version that a watch went on from."""
    found = []
    for asked in server.asked:
        parts = dict(part.partition("=")[::2] for part in asked.target.partition("?")[2].split("&"))
        found.append(parts["resourceVersion"] if "watch" in parts else "list")
    return found


async def test_a_collection_is_told_as_it_is_and_after_every_change(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    changes = [
        change("MODIFIED", "a", 6),
        change("BOOKMARK", "", 7),
        change("ADDED", "c", 8),
        change("DELETED", "b", 9),
        change("DELETED", "x", 10),
    ]
    server.answer(listed(5, a=1, b=2), told(*changes))

    found = await first(5, follow(kube, SLICES, clock=clock))

    assert found == [
        {"a": 1, "b": 2},
        {"a": 6, "b": 2},
        {"a": 6, "b": 2, "c": 8},
        {"a": 6, "c": 8},
        {"a": 6, "c": 8},
    ]
    assert versions(server) == ["list", "5"]


@pytest.mark.parametrize("cached", [False, True])
async def test_a_list_may_be_one_of_the_servers_cache(
    server: Scripted, kube: Objects, clock: Impatient, *, cached: bool
) -> None:
    server.answer(listed(5, a=1), told())

    await first(1, follow(kube, SLICES, cached=cached, clock=clock))

    assert ("resourceVersion=0" in server.asked[0].target) is cached


async def test_maps_that_were_given_stay_as_they_were(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(listed(5, a=1), told(change("ADDED", "b", 6)))
    async with aclosing(follow(kube, SLICES, clock=clock)) as maps:
        before = await anext(maps)
        await anext(maps)

    assert shown(before) == {"a": 1}


async def test_a_watch_that_ends_goes_on_where_it_was(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(
        listed(5, a=1),
        told(change("ADDED", "b", 6), change("BOOKMARK", "", 8), end=True),
        told(end=True),
        raw(
            head(Transfer_Encoding="chunked") + chunk(lines(change("ADDED", "c", 9))),
            then_close=True,
        ),
        told(change("ADDED", "d", 12)),
    )
    heard: list[BackendError | None] = []

    found = await first(4, follow(kube, SLICES, told=heard.append, clock=clock))

    assert found[-1] == {"a": 1, "b": 6, "c": 9, "d": 12}
    assert versions(server) == ["list", "5", "8", "8", "9"]
    assert heard == [None]


async def test_a_version_that_is_forgotten_begins_again_with_a_list(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    server.answer(
        listed(5, a=1), told(gone), listed(20, b=19), status(410), listed(30, c=29), told()
    )
    heard: list[BackendError | None] = []

    found = await first(3, follow(kube, SLICES, told=heard.append, clock=clock))

    assert found == [{"a": 1}, {"b": 19}, {"c": 29}]
    assert heard == [None, None, None]


async def test_a_server_that_is_away_is_told_of_and_asked_again_until_it_is_back(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(
        listed(5, a=1), told(end=True), *[hang_up] * 10, listed(20, b=19), told(end=False)
    )
    heard: list[BackendError | None] = []

    found = await first(2, follow(kube, SLICES, told=heard.append, clock=clock))

    assert found == [{"a": 1}, {"b": 19}]
    assert (heard[0], heard[-1]) == (None, None)
    assert {type(error) for error in heard[1:-1]} == {TransportError}
    assert all(pause <= LONGEST_PAUSE_S for pause in clock.pauses)
    assert len(set(clock.pauses)) == len(clock.pauses)


async def test_a_right_that_is_missing_is_told_of_and_asked_for_seldom(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(*[status(403)] * 20, listed(5, a=1))
    heard: list[BackendError | None] = []

    found = await first(1, follow(kube, SLICES, told=heard.append, clock=clock))

    assert found == [{"a": 1}]
    assert [type(error) for error in heard] == [*[ApiError] * 20, type(None)]
    assert LONGEST_PAUSE_S < max(clock.pauses) <= REFUSED_PAUSE_S


async def test_a_silent_server_is_left_and_listed_again(
    server: Scripted, clients: Clients, tmp_path: Path, clock: Impatient
) -> None:
    kube = clients.dial(kubeconfig(tmp_path, server.url), idle_s=0.3)
    server.answer(listed(5, a=1), told(), listed(20, b=19), told())
    heard: list[BackendError | None] = []

    found = await first(2, follow(kube, SLICES, told=heard.append, clock=clock))

    assert found == [{"a": 1}, {"b": 19}]
    assert [type(error) for error in heard] == [type(None), Silent, type(None)]


async def test_a_watch_that_always_ends_at_once_is_begun_ever_more_seldom(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(listed(5, a=1), *[told(end=True)] * 30, told(change("ADDED", "b", 6)))

    await first(2, follow(kube, SLICES, clock=clock))

    assert len(clock.pauses) == 30
    assert sum(clock.pauses[10:]) > 10


async def test_only_closing_ends_it(server: Scripted, kube: Objects, clock: Impatient) -> None:
    server.answer(listed(5, a=1), told())
    maps = follow(kube, SLICES, clock=clock)
    await anext(maps)
    waiting = asyncio.create_task(anext(maps))
    await asyncio.sleep(0)

    await kube.close()

    with pytest.raises(Closed):
        await waiting


async def test_a_reader_that_stops_ends_the_watch(
    server: Scripted, kube: Objects, clock: Impatient
) -> None:
    server.answer(listed(5, a=1), told(change("ADDED", "b", 6)))

    await first(2, follow(kube, SLICES, clock=clock))

    await kube.close()
    await server.all_closed()
