import asyncio
import logging
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from socket import AF_UNIX, socket

import pytest

from accelkit.agent.unhandled import AGAIN_S, MOST_PLACES, Unhandled
from tests.agent.clocks import HeldClock
from tests.agent.toys import until

FULL = "[Errno 24] Too many open files"


async def tell(unhandled: Unhandled, error: Exception | None, message: str = "it failed") -> None:
    context: dict[str, object] = {"message": message}
    unhandled(asyncio.get_running_loop(), context | ({"exception": error} if error else {}))


async def test_same_failure_is_told_once_a_minute_with_how_often_it_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = HeldClock()
    unhandled = Unhandled(clock)
    for _ in range(3):
        await tell(unhandled, OSError(FULL))
    await clock.advance(AGAIN_S)
    await tell(unhandled, OSError(FULL))

    assert [getattr(record, "again", None) for record in caplog.records] == [None, 3]


async def test_failures_of_two_places_are_both_told(caplog: pytest.LogCaptureFixture) -> None:
    unhandled = Unhandled(HeldClock())
    for error in (OSError(FULL), ValueError(), None, None):
        await tell(unhandled, error, f"Task was destroyed: <Task at {id(error):#x}>")

    assert [bool(r.exc_info and r.exc_info[0]) for r in caplog.records] == [True, True, False]


async def test_what_is_kept_of_failures_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    unhandled = Unhandled(HeldClock())
    for number in range(MOST_PLACES + 1):
        await tell(unhandled, None, f"message {number}")

    assert len(unhandled._told) == 1
    assert len(caplog.records) == MOST_PLACES + 1


async def test_loop_without_descriptors_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen: 7,762 tracebacks in a minute."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(Unhandled())
    path = str(tmp_path / "a.sock")
    server = await asyncio.start_unix_server(lambda _reader, _writer: None, path)
    soft, hard = getrlimit(RLIMIT_NOFILE)
    with socket(AF_UNIX) as one:
        lowest = _lowest_free()
        setrlimit(RLIMIT_NOFILE, (lowest, hard))
        try:
            one.connect(path)
            await until(lambda: "callback failed" in caplog.text)
        finally:
            setrlimit(RLIMIT_NOFILE, (soft, hard))
    server.close()

    asyncio_s = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in asyncio_s] == ["callback failed"]


def _lowest_free() -> int:
    with socket(AF_UNIX) as probe:
        return probe.fileno()
