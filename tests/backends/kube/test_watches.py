"""Watches: what is told, and every way in which one can end."""

import asyncio
import random
from contextlib import aclosing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from accelkit.backends.kube.faults import Closed, Silent
from accelkit.backends.kube.objects import Objects
from accelkit.backends.kube.reading import LINE_BYTES
from accelkit.core.errors import ApiError, TransportError
from accelkit.core.kube import CLASSES, SLICES, Change, ChangeKind, Json
from tests.backends.kube.clients import Clients
from tests.backends.kube.scripted import (
    Asked,
    Reply,
    Scripted,
    Writer,
    chunk,
    hang_up,
    head,
    kubeconfig,
    lines,
    metadata,
    named,
    nothing,
    raw,
    reset,
    says,
    slow,
    status,
    stream,
    until,
)


def line(kind: str, name: str, version: int = 1) -> Json:
    return {"type": kind, "object": {"metadata": metadata(name, version)}}


ADDED = line("ADDED", "a")


async def watched(kube: Objects, version: str = "5") -> list[Change]:
    """All of one watch."""
    return [change async for change in kube.watch(SLICES, version=version)]


async def test_a_watch_tells_every_change_until_the_server_ends_it(
    server: Scripted, kube: Objects
) -> None:
    told = [ADDED, line("MODIFIED", "a", 2), line("BOOKMARK", "", 9), line("DELETED", "a", 10)]
    server.answer(stream(*(lines(one) for one in told)))

    found = await watched(kube)

    assert [change.kind for change in found] == [
        ChangeKind.ADDED,
        ChangeKind.MODIFIED,
        ChangeKind.BOOKMARK,
        ChangeKind.DELETED,
    ]
    assert [change.item for change in found] == [one["object"] for one in told]


async def test_a_watch_asks_for_bookmarks_and_for_an_end_some_time(
    server: Scripted, kube: Objects
) -> None:
    server.answer(stream())

    async for _ in kube.watch(SLICES, version="5", fields="spec.nodeName=n", labels="a=b"):
        pass

    query = parse_qs(urlsplit(server.asked[0].target).query)
    assert 300 <= int(query.pop("timeoutSeconds")[0]) <= 600
    assert query == {
        "watch": ["true"],
        "allowWatchBookmarks": ["true"],
        "resourceVersion": ["5"],
        "fieldSelector": ["spec.nodeName=n"],
        "labelSelector": ["a=b"],
    }


@pytest.mark.parametrize("seed", range(5))
async def test_changes_come_whole_however_the_network_cuts_them(
    server: Scripted, kube: Objects, seed: int
) -> None:
    chance = random.Random(seed)
    told = [line("ADDED", f"{number}" * chance.randint(1, 400)) for number in range(30)]
    text = lines(*told)
    body = b""
    while text:
        size = chance.randint(1, 2000)
        body += chunk(text[:size])
        text = text[size:]
    body += b"0\r\n\r\n"

    async def cut(_asked: Asked, writer: Writer) -> None:
        rest = head(Transfer_Encoding="chunked") + body
        while rest:
            size = chance.randint(1, 3000)
            writer.write(rest[:size])
            await writer.drain()
            await asyncio.sleep(0)
            rest = rest[size:]

    server.answer(cut)

    assert [change.item for change in await watched(kube)] == [one["object"] for one in told]


async def test_a_watch_that_is_not_in_chunks_is_read_to_the_end_of_its_connection(
    server: Scripted, kube: Objects
) -> None:
    server.answer(raw(b"HTTP/1.0 200 OK\r\n\r\n" + lines(ADDED, ADDED), then_close=True))

    assert len(await watched(kube)) == 2


ENDS: dict[str, tuple[Reply, str]] = {
    "broken off": (
        raw(head(Transfer_Encoding="chunked") + chunk(lines(ADDED)), then_close=True),
        "broke off",
    ),
    "half a line": (stream(lines(ADDED), b'{"type":'), "broke off"),
    "half a chunk": (
        raw(head(Transfer_Encoding="chunked") + b"99\r\n{", then_close=True),
        "broke off",
    ),
    "no chunk": (
        raw(head(Transfer_Encoding="chunked") + b"what is this\r\n"),
        "no size of a chunk",
    ),
    "no JSON": (stream(b"nope\n"), "is not JSON"),
    "no object": (stream(b"[1]\n"), "is no object"),
    "no change": (
        stream(lines({"type": "LOOKED_AT", "object": {}})),
        "a line that tells no change",
    ),
    "no item": (stream(lines({"type": "ADDED"})), "a line that tells no change"),
    "endless line": (
        stream(*[bytes(2**20)] * (LINE_BYTES // 2**20 + 1), end=False),
        "a line of more than 8 MiB",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_watch_that_goes_wrong_is_an_error_and_its_connection_ends(
    server: Scripted, kube: Objects, end: str
) -> None:
    reply, text = ENDS[end]
    server.answer(reply)

    with pytest.raises(TransportError, match=text):
        await watched(kube)

    await server.all_closed()


async def test_a_reset_in_the_middle_of_a_watch_is_an_error(
    server: Scripted, kube: Objects
) -> None:
    async def resets(asked: Asked, writer: Writer) -> None:
        writer.write(head(Transfer_Encoding="chunked") + chunk(lines(ADDED)))
        await writer.drain()
        await reading.wait()
        await reset(asked, writer)

    reading = asyncio.Event()
    server.answer(resets)

    changes = kube.watch(SLICES, version="5")
    await anext(changes)
    reading.set()

    with pytest.raises(TransportError, match=r"ended the connection|broke off"):
        await anext(changes)


async def test_a_version_that_the_server_has_forgotten_is_gone(
    server: Scripted, kube: Objects
) -> None:
    gone = {"kind": "Status", "code": 410, "message": "too old resource version: 5 (99)"}
    server.answer(status(410, "too old"), stream(lines({"type": "ERROR", "object": gone})))

    with pytest.raises(ApiError, match="410 Gone: too old") as refused:
        await watched(kube)
    with pytest.raises(ApiError, match=r"410 Gone: too old resource version: 5 \(99\)") as told:
        await watched(kube)

    assert [refused.value.status, told.value.status] == [410, 410]


async def test_a_watch_on_a_busy_server_waits(server: Scripted, kube: Objects) -> None:
    server.answer(status(429, Retry_After="0"), stream(lines(ADDED)))

    assert len(await watched(kube)) == 1


async def test_a_watch_with_credentials_that_are_not_accepted_is_tried_once_more(
    server: Scripted, kube: Objects
) -> None:
    server.answer(status(401), stream(lines(ADDED)))

    assert len(await watched(kube)) == 1


@pytest.mark.parametrize("end", [hang_up, reset])
async def test_a_watch_that_cannot_begin_is_an_error(
    server: Scripted, kube: Objects, end: Reply
) -> None:
    server.answer(end)

    with pytest.raises(TransportError, match="ended the connection"):
        await watched(kube)

    await server.all_closed()


async def test_a_watch_that_does_not_begin_in_time_is_an_error(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    server.answer(nothing)
    kube = clients.dial(kubeconfig(tmp_path, server.url), timeout_s=0.3)

    with pytest.raises(TransportError, match="no answer in time"):
        await watched(kube)

    await server.all_closed()


@pytest.mark.slow
@pytest.mark.parametrize("drips", [False, True], ids=["and stops", "and drips"])
async def test_a_watch_that_falls_silent_is_an_error_and_its_connection_ends(
    server: Scripted, clients: Clients, tmp_path: Path, *, drips: bool
) -> None:
    begun = head(Transfer_Encoding="chunked") + chunk(lines(ADDED))
    server.answer(slow(begun, drips=drips))
    kube = clients.dial(kubeconfig(tmp_path, server.url), idle_s=2.0)
    changes = kube.watch(SLICES, version="5")
    await anext(changes)

    with pytest.raises(Silent):
        await anext(changes)

    await server.all_closed()


CALL_S = 4.0
"""Enough for loading the client, too."""


@pytest.mark.slow
async def test_a_watch_may_take_longer_than_a_call(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    async def late(_asked: Asked, writer: Writer) -> None:
        writer.write(head(Transfer_Encoding="chunked"))
        await asyncio.sleep(1.5 * CALL_S)
        writer.write(chunk(lines(ADDED)) + b"0\r\n\r\n")

    server.answer(late)
    kube = clients.dial(kubeconfig(tmp_path, server.url), timeout_s=CALL_S)

    assert len(await watched(kube)) == 1


async def test_whoever_stops_reading_ends_the_connection(server: Scripted, kube: Objects) -> None:
    server.answer(stream(lines(ADDED), end=False))

    async with aclosing(kube.watch(SLICES, version="5")) as changes:
        async for _ in changes:
            break

    await server.all_closed()


async def test_a_reader_that_is_cancelled_ends_the_connection(
    server: Scripted, kube: Objects
) -> None:
    server.answer(stream(end=False))
    reader = asyncio.create_task(watched(kube))
    await until(lambda: server.asked)

    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)

    assert reader.cancelled()
    await server.all_closed()


async def test_a_watch_that_is_cancelled_while_it_begins_ends_its_connection(
    server: Scripted, kube: Objects
) -> None:
    server.answer(nothing)
    reader = asyncio.create_task(watched(kube))
    await until(lambda: server.asked)

    reader.cancel()

    await server.all_closed()


async def test_watches_do_not_wait_for_each_other_nor_calls_for_them(
    server: Scripted, kube: Objects
) -> None:
    first, second = asyncio.Queue[Json](), asyncio.Queue[Json]()

    async def as_told(asked: Asked, writer: Writer) -> None:
        if "watch=true" not in asked.target:
            await says({"metadata": metadata("x")})(asked, writer)
            return
        queue = first if "resourceslices" in asked.target else second
        writer.write(head(Transfer_Encoding="chunked"))
        while True:
            await writer.drain()
            writer.write(chunk(lines(await queue.get())))

    server.answer(as_told)
    slices = kube.watch(SLICES, version="5")
    classes = kube.watch(CLASSES, version="5")
    for number in range(3):
        second.put_nowait(line("ADDED", f"class-{number}"))
        assert named((await anext(classes)).item) == [f"class-{number}"]
        await kube.get(SLICES, "x")
        first.put_nowait(line("ADDED", f"slice-{number}"))
        assert named((await anext(slices)).item) == [f"slice-{number}"]
    await slices.aclose()
    await classes.aclose()

    assert server.connections == 3
    await until(lambda: len(server.open) == 1)


async def test_a_reader_that_is_slow_holds_the_server_up_not_the_memory(
    server: Scripted, kube: Objects
) -> None:
    written = 0
    filling = {"type": "ADDED", "object": {"metadata": metadata("a"), "fill": "x" * 2**16}}

    async def floods(_asked: Asked, writer: Writer) -> None:
        nonlocal written
        writer.write(head(Transfer_Encoding="chunked"))
        while True:
            writer.write(chunk(lines(filling)))
            await writer.drain()
            written += 1

    server.answer(floods)
    async with aclosing(kube.watch(SLICES, version="5")) as changes:
        await anext(changes)
        before = -1
        while written != before:
            before = written
            await asyncio.sleep(0.3)
        got = [await anext(changes) for _ in range(written + 10)]

    assert before < 500  # 32 MB: what sockets hold is a few
    assert len(got) == before + 10


async def test_closing_ends_watches(server: Scripted, kube: Objects) -> None:
    server.answer(stream(lines(ADDED), end=False))
    changes = kube.watch(SLICES, version="5")
    await anext(changes)
    reading = asyncio.create_task(anext(changes))
    await asyncio.sleep(0)

    await kube.close()

    with pytest.raises(Closed):
        await reading
    await server.all_closed()


async def test_watches_are_counted(server: Scripted, kube: Objects, clients: Clients) -> None:
    server.answer(stream(), status(403))
    await watched(kube)
    with pytest.raises(ApiError):
        await watched(kube)

    assert clients.counted == {
        ("watch", "resourceslices", "200"): 1,
        ("watch", "resourceslices", "403"): 1,
    }
