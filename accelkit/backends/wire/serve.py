"""One server's life on one unix socket, and the way to call one. Not here: what is answered."""

import asyncio
import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from accelkit.backends.wire.services import Handler
from accelkit.backends.wire.status import status_of
from accelkit.core.errors import TransportError

Context = grpc.aio.ServicerContext[bytes, bytes]
One = Callable[[bytes], Awaitable[bytes]]
Many = Callable[[bytes], AsyncGenerator[bytes, None]]

PATH_LIMIT = 107
"""Bytes in the path of a unix socket: 108 in ``sockaddr_un``, of which gRPC keeps one for NUL."""

_STREAMS_S = 1.0
_SUFFIX = len("-01234567.sock")
_DIGEST = 8

# Channels of one process share connections otherwise, and a "new" one to a socket that is
# gone still answers through the old connection.
_CLIENT = (("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100))


def fresh_path(directory: Path, stem: str) -> Path:
    """Name a socket that nobody had before: ``<stem>-<8 hex>.sock`` in *directory*.

    Where the path would not fit a socket, *stem* is cut and ends with its hash. A name is never
    used twice, because a kubelet that sees one path registered twice loses track of it (seen on
    1.37.2).
    """
    room = PATH_LIMIT - len(os.fsencode(directory)) - 1 - _SUFFIX
    return directory / f"{_fitting(stem, room)}-{secrets.token_hex(4)}.sock"


def _fitting(stem: str, room: int) -> str:
    raw = os.fsencode(stem)
    if len(raw) <= room:
        return stem
    digest = hashlib.sha256(raw).hexdigest()[:_DIGEST]
    kept = raw[: max(room - _DIGEST - 1, 0)].decode(errors="ignore")
    return f"{kept}-{digest}" if kept else digest[: max(room, 1)]


def dial(path: Path, *, receive_bytes: int = 4 * 2**20) -> grpc.aio.Channel:
    """Make a channel to the socket at *path*; it connects when it is used.

    Args:
        path: The socket.
        receive_bytes: The largest message that is accepted; 4 MiB is what the kubelet accepts.
    """
    options = (*_CLIENT, ("grpc.max_receive_message_length", receive_bytes))
    return grpc.aio.insecure_channel(f"unix:{path}", options=options)


async def bind(path: Path, handlers: Sequence[Handler]) -> "Server":
    """Serve *handlers* at *path*; the socket appears there, mode 0600, when it answers.

    It is bound under a hidden name and renamed when the server has started. So no client
    meets a socket that does not listen yet, and gRPC, which unlinks the path that it bound
    whoever has bound it since, finds nothing to unlink when the server stops.
    A socket that is in the way is replaced.

    Raises:
        TransportError: The path is too long, its directory is missing or cannot be written,
            something else is in the way, or binding failed.
    """
    check(path)
    hidden = path.with_name(f".{secrets.token_hex(4)}")
    dispatch = _Dispatch(handlers)
    server = grpc.aio.server(handlers=[dispatch])
    try:
        server.add_insecure_port(f"unix:{hidden}")
        hidden.chmod(0o600)
        await server.start()
        hidden.rename(path)
    except (OSError, RuntimeError) as error:
        await _stop(server, None)
        raise TransportError(f"socket {path} could not be bound: {error}") from error
    except BaseException:  # cancelled: nobody else will stop it
        await _stop(server, None)
        raise
    return Server(path, server, dispatch)


def check(path: Path) -> None:
    """Find out beforehand why a socket could not be bound at *path*; gRPC only says that.

    Raises:
        TransportError: It could not.
    """
    size = len(os.fsencode(path))
    if size > PATH_LIMIT:
        raise TransportError(
            f"socket path {path} has {size} bytes, at most {PATH_LIMIT} are possible",
            remedy="choose a directory with a shorter path",
        )
    parent = path.parent
    if not parent.is_dir():
        raise TransportError(
            f"{parent} is not a directory", remedy="mount the kubelet's directory there"
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise TransportError(
            f"{parent} cannot be written by uid {os.geteuid()}",
            remedy="run as root, or mount the directory writable",
        )
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise TransportError(f"{path} exists and is not a socket", remedy="remove it")


class Server:
    """A server that answers until it is closed, and can be closed once."""

    path: Path

    def __init__(self, path: Path, server: grpc.aio.Server, dispatch: "_Dispatch") -> None:
        self.path = path
        self._server = server
        self._dispatch = dispatch
        self._identity = _identity(path)

    def in_place(self) -> bool:
        """Whether the socket at the path is still ours; a kubelet that starts removes it."""
        return self._identity is not None and _identity(self.path) == self._identity

    async def close(self, *, grace_s: float = 2.0, keep_path: bool = False) -> None:
        """End the streams, let running calls end, stop; remove the socket if it is still ours.

        The streams come first: with one open, stopping would wait for the whole grace.

        Args:
            grace_s: How long calls that run may take.
            keep_path: Leave the socket behind, as a process does that is killed.
        """
        if self.in_place() and not keep_path:
            self.path.unlink(missing_ok=True)
        self._dispatch.closing.set()
        try:
            if self._dispatch.streams:
                await asyncio.wait(self._dispatch.streams, timeout=_STREAMS_S)
        finally:
            await _stop(self._server, grace_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _stop(server: grpc.aio.Server, grace_s: float | None) -> None:
    """Stop *server*, and pass on a cancellation that comes meanwhile.

    gRPC waits by ``asyncio.wait_for``, which before Python 3.12 returns normally if a cancellation
    comes just when what it waits for is done.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    await server.stop(grace_s)
    if task.cancelling() > before:
        raise asyncio.CancelledError


class _Dispatch(grpc.GenericRpcHandler):
    """Finds the handler of a method, and keeps watch over the streams that are open."""

    def __init__(self, handlers: Sequence[Handler]) -> None:
        self.closing = asyncio.Event()
        self.streams: set[asyncio.Task[object]] = set()
        self._found = {handler.path: self._wrapped(handler) for handler in handlers}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        return self._found.get(handler_call_details.method)

    def _wrapped(self, handler: Handler) -> "grpc.RpcMethodHandler[bytes, bytes]":
        if handler.one is not None:
            return grpc.unary_unary_rpc_method_handler(_guarded_one(handler.one))
        assert handler.many is not None
        return grpc.unary_stream_rpc_method_handler(self._guarded_many(handler.many))

    def _guarded_many(self, many: Many) -> Callable[[bytes, Context], AsyncGenerator[bytes, None]]:
        async def run(raw: bytes, context: Context) -> AsyncGenerator[bytes, None]:
            task = asyncio.current_task()
            assert task is not None
            self.streams.add(task)
            try:
                async for message in _until(many(raw), self.closing):
                    yield message
            except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
                await context.abort(*status_of(error))
            finally:
                self.streams.discard(task)

        return run


def _guarded_one(one: One) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def run(raw: bytes, context: Context) -> bytes:
        try:
            return await one(raw)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
            await context.abort(*status_of(error))

    return run


async def _until(
    messages: AsyncGenerator[bytes, None], closing: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Pass *messages* on until they or the server end."""
    end = asyncio.create_task(closing.wait())
    coming = asyncio.create_task(_next(messages))
    try:
        while True:
            await asyncio.wait((coming, end), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done() or (message := coming.result()) is None:
                return
            yield message
            coming = asyncio.create_task(_next(messages))
    finally:
        end.cancel()
        coming.cancel()
        await asyncio.gather(end, coming, return_exceptions=True)
        await messages.aclose()


async def _next(messages: AsyncGenerator[bytes, None]) -> bytes | None:
    async for message in messages:
        return message
    return None


def _identity(path: Path) -> tuple[int, int, int] | None:
    # Inode numbers repeat at once on some file systems, the change time does not.
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
