"""The thread behind calls and streams, whatever happens to the loop before it is done."""

import asyncio
import http.client
import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from accelkit.backends.kube.call import Call
from accelkit.backends.kube.reading import Stream
from accelkit.backends.kube.worker import Worker
from tests.backends.kube.scripted import until

PATIENCE_S = 20.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(PATIENCE_S)
        yield ours, theirs


def stream_of(
    pair: tuple[socket.socket, socket.socket], close: Callable[[], None] | None = None
) -> Stream:
    """A stream that has begun and brings nothing."""
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    response = http.client.HTTPResponse(ours)
    response.begin()
    return Stream(response, ours, close or ours.close)


async def test_a_worker_for_which_there_was_no_thread_has_one_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    worker = Worker("kube-test")
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(OSError, match="no thread can be started"):
            await worker.run(threading.current_thread, Call(PATIENCE_S))

    found = await worker.run(threading.current_thread, Call(PATIENCE_S))
    assert found.name == "kube-test"
    await worker.close()


async def test_a_stream_that_comes_when_nobody_waits_any_more_is_closed(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, begun, go = Worker("kube-test"), threading.Event(), threading.Event()

    def work() -> Stream:
        begun.set()
        go.wait(PATIENCE_S)
        return stream_of(pair)

    asking = asyncio.create_task(worker.run(work, Call(PATIENCE_S)))
    await until(begun.is_set)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    go.set()

    assert await asyncio.to_thread(pair[1].recv, 1) == b""
    await worker.close()


async def test_a_stream_that_comes_at_the_moment_of_a_cancellation_is_closed(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """The answer is there, and its reader is cancelled before it runs again."""
    worker = Worker("kube-test")
    asking = asyncio.create_task(worker.run(lambda: stream_of(pair), Call(PATIENCE_S)))
    while not asking.done():
        await asyncio.sleep(0)
        if _answered(asking):
            asking.cancel()

    assert asking.cancelled()
    assert await asyncio.to_thread(pair[1].recv, 1) == b""
    await worker.close()


def _answered(task: asyncio.Task[Stream]) -> bool:
    """Whether the future that *task* waits for is done."""
    waits = getattr(task, "_fut_waiter", None)
    return isinstance(waits, asyncio.Future) and waits.done()


def test_an_answer_for_a_loop_that_is_over_does_no_harm(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, begun, go = Worker("kube-test"), threading.Event(), threading.Event()

    def work() -> Stream:
        begun.set()
        go.wait(PATIENCE_S)
        return stream_of(pair)

    async def leaves() -> None:
        asyncio.get_running_loop().create_task(worker.run(work, Call(PATIENCE_S)))
        await until(begun.is_set)

    async def comes() -> int:
        found = await worker.run(lambda: 7, Call(PATIENCE_S))
        await worker.close()
        return found

    asyncio.run(leaves())
    go.set()

    assert pair[1].recv(1) == b""
    assert asyncio.run(comes()) == 7


async def test_a_stream_that_cannot_be_closed_harms_nobody_else(
    pair: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    def breaks() -> None:
        raise RuntimeError("cannot be closed")

    worker = Worker("kube-test")
    stream = await worker.run(lambda: stream_of(pair, breaks), Call(PATIENCE_S))

    with caplog.at_level(logging.ERROR):
        worker.drop(stream)
        assert await worker.run(lambda: 7, Call(PATIENCE_S)) == 7

    assert "cannot be closed" in caplog.text
    await worker.close()


async def test_closing_waits_for_no_work_that_hangs() -> None:
    worker, begun, go = Worker("kube-test"), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(PATIENCE_S)

    asking = asyncio.create_task(worker.run(work, Call(PATIENCE_S)))
    await until(begun.is_set)

    await worker.close()

    assert not go.is_set()
    go.set()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: all(one.name != "kube-test" for one in threading.enumerate()))
