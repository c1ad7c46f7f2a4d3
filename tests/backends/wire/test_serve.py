"""Servers and clients over real sockets."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest

from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import PATH_LIMIT, bind, check, dial, fresh_path
from accelkit.backends.wire.services import (
    ALLOCATE,
    GET_OPTIONS,
    LIST_AND_WATCH,
    REGISTER,
    Handler,
    call,
    stream,
    unary,
    watch,
)
from accelkit.core.errors import TransportError, UnknownDevice

CODE = grpc.StatusCode
MALFORMED = b"\xff\xff\xff"


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def options(_: dp.Empty) -> dp.DevicePluginOptions:
    return dp.DevicePluginOptions(pre_start_required=True)


async def lists(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
    yield dp.ListAndWatchResponse(devices=[dp.Device(ID="d0", health="Healthy")])
    await asyncio.Event().wait()


async def refusal_of(path: Path, handler: Handler) -> grpc.aio.AioRpcError:
    async with await bind(path, [handler]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, ALLOCATE, dp.AllocateRequest())
    return caught.value


async def test_call_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"

    async with await bind(path, [unary(GET_OPTIONS, options)]), dial(path) as channel:
        answer = await call(channel, GET_OPTIONS, dp.Empty())

    assert answer == dp.DevicePluginOptions(pre_start_required=True)


async def test_socket_is_for_its_owner_only_and_alone_in_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"

    async with await bind(path, []):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert names(tmp_path) == ["a.sock"]
    assert names(tmp_path) == []


async def test_unknown_method_is_unimplemented(tmp_path: Path) -> None:
    error = await refusal_of(tmp_path / "a.sock", unary(GET_OPTIONS, options))

    assert error.code() is CODE.UNIMPLEMENTED


async def test_error_of_ours_reaches_the_peer_with_its_code(tmp_path: Path) -> None:
    async def allocate(_: dp.AllocateRequest) -> dp.AllocateResponse:
        raise UnknownDevice("gpu-9 is not offered here")

    error = await refusal_of(tmp_path / "a.sock", unary(ALLOCATE, allocate))

    assert (error.code(), error.details()) == (CODE.NOT_FOUND, "gpu-9 is not offered here")


async def test_foreign_error_does_not_reach_the_peer(tmp_path: Path) -> None:
    async def allocate(_: dp.AllocateRequest) -> dp.AllocateResponse:
        raise ValueError("secret=abc")

    error = await refusal_of(tmp_path / "a.sock", unary(ALLOCATE, allocate))

    assert error.code() is CODE.INTERNAL
    assert "secret" not in str(error.details())


async def test_error_in_a_stream_does_not_reach_the_peer(tmp_path: Path) -> None:
    async def broken(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        yield dp.ListAndWatchResponse()
        raise ValueError("secret=abc")

    path = tmp_path / "a.sock"
    async with await bind(path, [stream(LIST_AND_WATCH, broken)]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [item async for item in watch(channel, LIST_AND_WATCH, dp.Empty())]

    assert caught.value.code() is CODE.INTERNAL
    assert "secret" not in str(caught.value.details())


async def test_malformed_request_is_an_invalid_argument(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    async with await bind(path, [unary(GET_OPTIONS, options)]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(GET_OPTIONS.path, request_serializer=bytes)(MALFORMED)

    assert caught.value.code() is CODE.INVALID_ARGUMENT
    assert caught.value.details() == f"{GET_OPTIONS.path}: the request is not a Empty"


async def test_text_that_is_not_utf_8_is_an_invalid_argument(tmp_path: Path) -> None:
    async def register(_: dp.RegisterRequest) -> dp.Empty:
        return dp.Empty()

    path = tmp_path / "a.sock"
    async with await bind(path, [unary(REGISTER, register)]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(REGISTER.path, request_serializer=bytes)(b"\n\x02\xff\xfe")

    assert caught.value.code() is CODE.INVALID_ARGUMENT


async def test_malformed_request_of_a_stream_is_an_invalid_argument(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    async with await bind(path, [stream(LIST_AND_WATCH, lists)]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_stream(LIST_AND_WATCH.path, request_serializer=bytes)(
                MALFORMED
            ).read()

    assert caught.value.code() is CODE.INVALID_ARGUMENT


def garbage(path: str, *, stream: bool = False) -> Handler:
    async def one(_: bytes) -> bytes:
        return MALFORMED

    async def many(_: bytes) -> AsyncGenerator[bytes, None]:
        yield MALFORMED

    return Handler(path, many=many) if stream else Handler(path, one=one)


async def test_malformed_answer_is_an_internal_error_for_the_caller(tmp_path: Path) -> None:
    error = await refusal_of(tmp_path / "a.sock", garbage(ALLOCATE.path))

    assert error.code() is CODE.INTERNAL
    assert error.details() == f"{ALLOCATE.path}: the answer is not a AllocateResponse"


async def test_malformed_answer_in_a_stream_is_an_internal_error(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    handler = garbage(LIST_AND_WATCH.path, stream=True)
    async with await bind(path, [handler]), dial(path) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="is not a ListAndWatchResponse"):
            await anext(watch(channel, LIST_AND_WATCH, dp.Empty()))


async def test_closing_ends_open_streams_quietly(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def tracked(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        try:
            yield dp.ListAndWatchResponse()
            await asyncio.Event().wait()
        finally:
            ended.set()

    path = tmp_path / "a.sock"
    server = await bind(path, [stream(LIST_AND_WATCH, tracked)])
    async with dial(path) as channel:
        seen = watch(channel, LIST_AND_WATCH, dp.Empty())
        await anext(seen)
        # The default grace is longer than a stream that had to be cut would be given here.
        await asyncio.wait_for(server.close(grace_s=15), timeout=10)

        assert [item async for item in seen] == []
    assert ended.is_set()


async def test_peer_that_leaves_ends_its_stream(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def tracked(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        try:
            yield dp.ListAndWatchResponse()
            await asyncio.Event().wait()
        finally:
            ended.set()

    path = tmp_path / "a.sock"
    async with await bind(path, [stream(LIST_AND_WATCH, tracked)]):
        async with dial(path) as channel:
            await anext(watch(channel, LIST_AND_WATCH, dp.Empty()))

        await asyncio.wait_for(ended.wait(), timeout=10)


async def test_running_call_is_answered_while_the_server_closes(tmp_path: Path) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    async def slow(_: dp.AllocateRequest) -> dp.AllocateResponse:
        running.set()
        await go.wait()
        return dp.AllocateResponse()

    path = tmp_path / "a.sock"
    server = await bind(path, [unary(ALLOCATE, slow)])
    async with dial(path) as channel:
        answer = asyncio.create_task(call(channel, ALLOCATE, dp.AllocateRequest()))
        await running.wait()
        closing = asyncio.create_task(server.close(grace_s=15))
        await asyncio.sleep(0)
        go.set()

        assert await answer == dp.AllocateResponse()
        await closing


@pytest.mark.slow
async def test_closing_waits_neither_for_answers_that_never_come_nor_for_peers_that_do_not_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.sock"
    begun, enough = asyncio.Semaphore(0), asyncio.Event()

    async def stubborn() -> None:
        begun.release()
        while not enough.is_set():
            with suppress(asyncio.CancelledError):
                await enough.wait()

    async def never(_: dp.Empty) -> dp.DevicePluginOptions:
        await stubborn()
        return dp.DevicePluginOptions()

    async def lists_once(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        yield dp.ListAndWatchResponse()
        await stubborn()

    async def without_end(_: dp.Empty) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        begun.release()
        while True:
            yield dp.ListAndWatchResponse(devices=[dp.Device(ID="d" * 100_000)])

    flood = stream(LIST_AND_WATCH, without_end)
    handlers = [unary(GET_OPTIONS, never), stream(LIST_AND_WATCH, lists_once)]
    server, other = await bind(path, handlers), await bind(tmp_path / "b.sock", [flood])
    async with dial(path) as channel, dial(tmp_path / "b.sock") as another:
        asking = asyncio.create_task(call(channel, GET_OPTIONS, dp.Empty()))
        streams = [watch(one, LIST_AND_WATCH, dp.Empty()) for one in (channel, another)]
        for one in streams:
            await anext(one)
        for _ in range(3):
            await begun.acquire()
        async with asyncio.timeout(30):
            await asyncio.gather(server.close(grace_s=0.1), other.close(grace_s=0.1))
    enough.set()

    assert names(tmp_path) == []
    await asyncio.gather(asking, return_exceptions=True)


async def test_cancellation_that_comes_while_a_server_closes_is_never_lost(tmp_path: Path) -> None:
    """Whenever it comes: between what gRPC waits for and its notice of that is but one step."""
    for steps in range(40):
        server = await bind(tmp_path / f"{steps}.sock", [])
        closing = asyncio.create_task(server.close())
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled = closing.cancel()
        await asyncio.wait([closing])

        assert closing.cancelled() == cancelled


async def test_closing_leaves_the_socket_of_a_successor(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    old = await bind(path, [])

    async with await bind(path, [unary(GET_OPTIONS, options)]) as new, dial(path) as channel:
        assert (old.in_place(), new.in_place()) == (False, True)
        await old.close()
        answer = await call(channel, GET_OPTIONS, dp.Empty())

    assert answer.pre_start_required


async def test_removed_socket_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"

    async with await bind(path, []) as server:
        path.unlink()
        assert not server.in_place()


async def test_kept_path_stays_as_a_socket_that_nobody_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    server = await bind(path, [])

    await server.close(keep_path=True)

    assert stat.S_ISSOCK(path.stat().st_mode)
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        client.connect(str(path))


async def test_path_that_is_too_long_is_refused_with_its_length(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * PATH_LIMIT)

    with pytest.raises(TransportError, match=f"has {len(os.fsencode(path))} bytes, at most 107"):
        await bind(path, [])


async def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="nowhere is not a directory"):
        await bind(tmp_path / "nowhere" / "a.sock", [])


async def test_regular_file_in_the_way_is_kept_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    path.write_text("mine")

    with pytest.raises(TransportError, match="exists and is not a socket"):
        await bind(path, [])
    assert path.read_text() == "mine"


def test_directory_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the kernel's answer is played."""
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(TransportError, match="cannot be written by uid"):
        check(tmp_path / "a.sock")


async def test_binding_that_fails_all_the_same_is_a_transport_error(tmp_path: Path) -> None:
    """The hidden name of the start is longer than this one, and does not fit."""
    room = PATH_LIMIT - len(os.fsencode(tmp_path)) - len("/") - len("/a")
    directory = tmp_path / ("d" * room)
    directory.mkdir()

    with pytest.raises(TransportError, match="could not be bound"):
        await bind(directory / "a", [])


def test_fresh_paths_differ_and_fit_a_socket() -> None:
    directory = Path("/var/lib/kubelet/device-plugins")

    one, two = (fresh_path(directory, "n" * 63) for _ in range(2))

    assert one != two
    assert one.suffix == ".sock"
    assert len(os.fsencode(one)) == PATH_LIMIT


def test_stems_that_are_cut_stay_apart() -> None:
    directory = Path("/" + "d" * 60)
    stems = [fresh_path(directory, f"{'n' * 62}{end}").name[:-14] for end in "ab"]

    assert stems[0] != stems[1]
    assert all(stem.startswith("nnnn") for stem in stems)


def test_fresh_path_begins_with_its_stem(tmp_path: Path) -> None:
    assert fresh_path(tmp_path, "acme").name.startswith("acme-")
