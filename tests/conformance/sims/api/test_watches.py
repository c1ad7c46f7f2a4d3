"""What a watch tells, and how it ends."""

import asyncio

import pytest

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import SLICES
from tests.conformance.sims.api.client import Client
from tests.conformance.sims.api.objects import slice_named

EVERYTHING = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def version(api: ApiSim) -> int:
    return api.store.version


def change(api: ApiSim, name: str, **labels: str | None) -> None:
    api.patch(SLICES, name, {"metadata": {"labels": labels}})


async def test_watch_from_a_version_tells_every_change_after_it(
    api: ApiSim, client: Client
) -> None:
    api.create(SLICES, slice_named("before"))
    begun = version(api)
    api.create(SLICES, slice_named("a"))
    change(api, "a", x="y")

    async with client.watch(f"resourceVersion={begun}") as stream:
        api.delete(SLICES, "a")
        told = await stream.told(3)

    assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_deletion_has_the_version_at_which_it_happened(api: ApiSim, client: Client) -> None:
    """A watch that goes on from it must not hear of it again."""
    made = api.create(SLICES, slice_named("a"))

    async with client.watch(f"resourceVersion={version(api)}") as stream:
        api.delete(SLICES, "a")
        line = await stream.line()

    assert line is not None
    assert line["object"]["metadata"]["resourceVersion"] == str(version(api))
    assert line["object"]["spec"] == made["spec"]


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
async def test_watch_from_anywhere_begins_with_what_is_there(
    api: ApiSim, client: Client, query: str
) -> None:
    for name in "ab":
        api.create(SLICES, slice_named(name))

    async with client.watch(query) as stream:
        told = await stream.told(2)
        api.create(SLICES, slice_named("c"))
        told += await stream.told(1)

    assert told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_initial_events_end_with_a_bookmark_that_says_so(api: ApiSim, client: Client) -> None:
    api.create(SLICES, slice_named("a"))

    async with client.watch(EVERYTHING) as stream:
        first, mark = await stream.line(), await stream.line()

    assert first is not None
    assert mark is not None
    assert first["type"] == "ADDED"
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "ResourceSlice"
    assert mark["object"]["metadata"] == {
        "resourceVersion": str(version(api)),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_object_that_leaves_the_selection_is_deleted_for_the_watch(
    api: ApiSim, client: Client
) -> None:
    begun = version(api)

    async with client.watch(f"resourceVersion={begun}&labelSelector=x%3Dy") as stream:
        api.create(SLICES, slice_named("a"))
        change(api, "a", x="y")
        change(api, "a", x="y", z="z")
        change(api, "a", x=None)
        change(api, "a", q="q")
        api.create(SLICES, slice_named("b", labels={"x": "y"}))
        told = await stream.told(4)

    assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_watch_of_a_node_hears_of_that_node_alone(api: ApiSim, client: Client) -> None:
    begun = version(api)

    async with client.watch(f"resourceVersion={begun}&fieldSelector=spec.nodeName%3Dn2") as stream:
        api.create(SLICES, slice_named("a", "n1"))
        api.create(SLICES, slice_named("b", "n2"))
        told = await stream.told(1)

    assert told == [("ADDED", "b")]


async def test_equal_write_is_no_change(api: ApiSim, client: Client) -> None:
    made = api.create(SLICES, slice_named("a"))

    async with client.watch(f"resourceVersion={version(api)}") as stream:
        again = api.replace(SLICES, made)
        api.delete(SLICES, "a")
        told = await stream.told(1)

    assert again == made
    assert told == [("DELETED", "a")]


async def test_bookmarks_come_in_between_if_asked_for() -> None:
    async with ApiSim(bookmark_s=0.02) as api:
        asked = Client(api.port).watch(f"resourceVersion={version(api)}&allowWatchBookmarks=true")
        async with asked as stream:
            told = await stream.told(2)

    assert told == [("BOOKMARK", ""), ("BOOKMARK", "")]


async def test_watch_ends_when_its_time_is_over(api: ApiSim, client: Client) -> None:
    api.create(SLICES, slice_named("a"))

    async with client.watch("timeoutSeconds=1") as stream:
        told = await stream.rest()

    assert told == [("ADDED", "a")]


async def test_watch_from_a_forgotten_version_is_told_so_and_ends() -> None:
    async with ApiSim(history=2) as api:
        begun = version(api)
        for name in "abc":
            api.create(SLICES, slice_named(name))

        async with Client(api.port).watch(f"resourceVersion={begun}") as stream:
            line, end = await stream.line(), await stream.line()

    assert line is not None
    assert line["type"] == "ERROR"
    assert line["object"]["code"] == 410
    assert line["object"]["reason"] == "Expired"
    assert line["object"]["message"].startswith(f"too old resource version: {begun} (")
    assert end is None


async def test_open_watch_is_told_when_everything_is_forgotten(api: ApiSim, client: Client) -> None:
    async with client.watch(f"resourceVersion={version(api)}") as stream:
        api.expire()
        line = await stream.line()

    assert line is not None
    assert line["object"]["reason"] == "Expired"


async def test_watch_that_is_cut_breaks_off(api: ApiSim, client: Client) -> None:
    async with client.watch("resourceVersion=0") as stream:
        await api.wait_for(lambda: api.watching("resourceslices"))
        cut = api.cut_watches("resourceslices")

        with pytest.raises((asyncio.IncompleteReadError, OSError)):
            await stream.line()

    assert cut == 1


async def test_only_watches_of_the_resource_are_cut(api: ApiSim, client: Client) -> None:
    async with client.watch("resourceVersion=0") as stream:
        await api.wait_for(lambda: api.watching("resourceslices"))
        cut = api.cut_watches("nodes")
        api.create(SLICES, slice_named("a"))
        told = await stream.told(1)

    assert cut == 0
    assert told == [("ADDED", "a")]


async def test_watch_whose_client_went_is_closed(api: ApiSim, client: Client) -> None:
    async with client.watch("resourceVersion=0"):
        await api.wait_for(lambda: api.watching() == 1)

    await api.wait_for(lambda: api.watching() == 0)


async def test_changes_while_nobody_reads_are_told_later(api: ApiSim, client: Client) -> None:
    async with client.watch(f"resourceVersion={version(api)}") as stream:
        await api.wait_for(api.watching)
        names = [f"s{i}" for i in range(200)]
        for name in names:
            api.create(SLICES, slice_named(name))
        told = await stream.told(200)

    assert told == [("ADDED", name) for name in names]
