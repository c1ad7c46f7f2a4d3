import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accelkit.agent import http
from accelkit.agent.http import HttpServer, Post, Response, address
from tests.agent.toys import PATIENCE_S, get, until


def route(path: str) -> Response | None:
    if path == "/bug":
        raise ZeroDivisionError
    return Response.of(200, f"you asked {path}") if path == "/there" else None


async def post(path: str, body: bytes) -> Response | None:
    return Response.of(200, f"{path} got {body.decode()}") if path == "/there" else None


@contextlib.asynccontextmanager
async def serving(taking: Post | None = None) -> AsyncIterator[int]:
    server = HttpServer(route, taking)
    try:
        yield await server.listen("127.0.0.1", 0)
    finally:
        await server.close()


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def talk(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        writer.write(request)
        await writer.drain()
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return answer


async def test_get_is_answered_with_length_and_type() -> None:
    async with serving() as port:
        answer = await talk(port, b"GET /there?x=1 HTTP/1.1\r\nConnection: close\r\n\r\n")

    assert answer == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 17\r\n"
        b"Connection: close\r\n\r\nyou asked /there\n"
    )


async def test_head_is_answered_without_a_body() -> None:
    async with serving() as port:
        status, body = await get(port, "/there", "HEAD")

    assert (status, body) == (200, "")


@pytest.mark.parametrize(
    "request_, status",
    [
        (b"GET /not HTTP/1.1\r\nConnection: close\r\n\r\n", b"404 Not Found"),
        (b"GET /bug HTTP/1.1\r\nConnection: close\r\n\r\n", b"500 Internal Server Error"),
        (b"POST /there HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405 Method Not Allowed"),
        (b"rubbish\r\n\r\n", b"400 Bad Request"),
        (b"GET /there HTTP/2\r\n\r\n", b"400 Bad Request"),
        (b"GET there HTTP/1.1\r\n\r\n", b"400 Bad Request"),
        (b"\xff\xfe / HTTP/1.1\r\nConnection: close\r\n\r\n", b"405 Method Not Allowed"),
        (b"GET /" + b"x" * 20000, b"431 Request Header Fields Too Large"),
    ],
)
async def test_bad_request_is_answered_with_its_status(request_: bytes, status: bytes) -> None:
    async with serving() as port:
        answer = await talk(port, request_)

    assert answer.startswith(b"HTTP/1.1 " + status)


async def test_connection_is_kept_for_more_requests() -> None:
    async with serving() as port:
        answer = await talk(
            port, b"GET /there HTTP/1.1\r\n\r\nGET /there HTTP/1.1\r\nConnection: close\r\n\r\n"
        )

    assert answer.count(b"you asked /there") == 2


async def test_many_requests_on_one_connection_hold_up_nobody_else() -> None:
    """Sixty peers that each asked for all metrics fifty times kept a probe waiting for 12 s."""
    turns = 0
    served_in: list[int] = []

    def counting(_path: str) -> Response:
        served_in.append(turns)
        return Response.of(200, "here")

    server = HttpServer(counting)
    port = await server.listen("127.0.0.1", 0)
    _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n" * 50)
    async with asyncio.timeout(PATIENCE_S):
        while len(served_in) < 50:
            turns += 1
            await asyncio.sleep(0)
    writer.close()
    await server.close()

    assert len(set(served_in)) == 50


async def test_old_protocol_closes_after_one_answer() -> None:
    async with serving() as port:
        answer = await talk(port, b"GET /there HTTP/1.0\r\n\r\nGET /there HTTP/1.0\r\n\r\n")

    assert answer.count(b"you asked /there") == 1


async def test_what_follows_a_body_is_not_taken_for_a_request() -> None:
    smuggled = b"GET /there HTTP/1.1\r\n\r\n"
    head = f"GET /there HTTP/1.1\r\nContent-Length: {len(smuggled)}\r\n\r\n".encode()
    async with serving() as port:
        answer = await talk(port, head + smuggled)

    assert answer.count(b"you asked /there") == 1


async def test_what_is_posted_reaches_whoever_takes_it() -> None:
    request = b"POST /there HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    last = b"POST /there HTTP/1.0\r\nContent-Length: 0\r\n\r\n"
    async with serving(post) as port:
        answer = await talk(port, request + request + last)

    assert answer.count(b"/there got hello\n") == 2
    assert answer.endswith(b"/there got \n")


@pytest.mark.parametrize(
    "request_, status",
    [
        (b"POST /elsewhere HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", b"404 Not Found"),
        (b"POST /there HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411 Length Required"),
        (b"POST /there HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"411 Length Required"),
        (
            b"POST /there HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
            b"413 Content Too Large",
        ),
        (b"PUT /there HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", b"405 Method Not Allowed"),
    ],
)
async def test_what_cannot_be_posted_is_refused_and_the_connection_ends(
    request_: bytes, status: bytes
) -> None:
    async with serving(post) as port:
        answer = await talk(port, request_)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in answer


async def test_body_that_ends_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_S", 0.05)
    async with serving(post) as port:
        answer = await talk(port, b"POST /there HTTP/1.1\r\nContent-Length: 9\r\n\r\nhello")

    assert answer.startswith(b"HTTP/1.1 400 Bad Request")


async def test_idle_connection_is_told_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_S", 0.01)
    async with serving() as port:
        answer = await talk(port, b"")

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_oldest_connection_gives_way_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen: so many slow requests kept probes out, for which a kubelet ends the agent."""
    monkeypatch.setattr(http, "CONNECTIONS", 2)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /there HTTP/1.1\r\nSlow: ")
        newer, other = await asyncio.open_connection("127.0.0.1", port)
        other.write(b"GET /there HTTP/1.1\r\n\r\n")
        await newer.readuntil(b"/there\n")

        status, _ = await get(port, "/there")

        assert (status, await reader.read()) == (200, b"")
        other.write(b"GET /there HTTP/1.1\r\n\r\n")
        assert b"200 OK" in await newer.readuntil(b"/there\n")
        for one in (writer, other):
            one.close()


async def test_fewer_connections_are_kept_where_descriptors_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen: idle connections had all 64 descriptors of an agent, which then read nothing more."""
    monkeypatch.setattr(http, "getrlimit", lambda _which: (2 * http.DESCRIPTORS, 0))
    async with serving() as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]

        status, _ = await get(port, "/there")

        assert (status, await idle[0][0].read()) == (200, b"")
        for _, writer in idle:
            writer.close()


async def test_peer_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "SEND_S", 0.01)
    asked = asyncio.Event()

    def much(_path: str) -> Response:
        asked.set()
        return Response(200, bytes(2**24))

    server = HttpServer(much)
    port = await server.listen("127.0.0.1", 0)
    deaf = socket.create_connection(("127.0.0.1", port))
    deaf.sendall(b"GET / HTTP/1.1\r\n\r\n")
    await asked.wait()

    await until(lambda: len(server._connections) == 0)

    reader, writer = await asyncio.open_connection(sock=deaf)
    async with asyncio.timeout(PATIENCE_S):
        got = await reader.read()
    assert len(got) < 2**24
    writer.close()
    await server.close()


async def test_peer_that_vanishes_hurts_nobody() -> None:
    async with serving() as port:
        for _ in range(3):
            raw = socket.create_connection(("127.0.0.1", port))
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            raw.sendall(b"GET /th")
            raw.close()
        status, _ = await get(port, "/there")

    assert status == 200


async def test_close_ends_idle_connections() -> None:
    server = HttpServer(route)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /there HTTP/1.1\r\n\r\n")
    await reader.readuntil(b"/there\n")

    await server.close()

    assert await reader.read() == b""
    writer.close()


async def test_unix_socket_is_its_owners_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    server = HttpServer(route)
    await server.listen_unix(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["agent.sock"]
    assert (await get(path, "/there"))[0] == 200
    assert server.in_place
    await server.close()
    assert names(tmp_path) == []


async def test_socket_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = HttpServer(route)

    await server.listen_unix(path)

    assert (await get(path, "/there"))[0] == 200
    await server.close()


async def test_socket_that_another_server_has_bound_since_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    first, second = HttpServer(route), HttpServer(route)
    await first.listen_unix(path)
    await second.listen_unix(path)

    assert not first.in_place
    await first.close()

    assert (await get(path, "/there"))[0] == 200
    await second.close()


async def test_socket_that_cannot_have_its_name_leaves_nothing(tmp_path: Path) -> None:
    """Seen: a new file every half second."""
    path = tmp_path / "agent.sock"
    path.mkdir()
    server = HttpServer(route)

    with pytest.raises(IsADirectoryError):
        await server.listen_unix(path)

    assert names(tmp_path) == ["agent.sock"]
    await server.close()


async def test_server_without_a_socket_closes_quietly() -> None:
    server = HttpServer(route)

    await server.close()

    assert not server.in_place


@pytest.mark.parametrize(
    "text, found",
    [
        (":9445", (None, 9445)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_address_is_read(text: str, found: tuple[str | None, int]) -> None:
    assert address(text) == found


@pytest.mark.parametrize("text", ["9445", "host", "host:", ":x", ":65536", ":²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        address(text)


def test_reason_is_what_the_system_says() -> None:
    assert http.reason(OSError(13, "error while binding (..)")) == "Permission denied"
    assert http.reason(socket.gaierror(-2, "Name or service not known")) == (
        "Name or service not known"
    )
    assert http.reason(OSError("plain")) == "plain"


async def test_many_requests_at_once_are_all_answered() -> None:
    async with serving() as port:
        answers = await asyncio.gather(*(get(port, "/there") for _ in range(30)))

    assert {status for status, _ in answers} == {200}
