import asyncio
import os
from pathlib import Path

import pytest

from accelkit.agent.signals import Bell, Seen, matching, seen
from accelkit.core.clock import RealClock
from accelkit.core.errors import AccessDenied
from accelkit.core.host import READ_LIMIT, Door, Stat
from accelkit.core.real_host import RealHost

CLOCK = RealClock()
NEVER = float("inf")


async def test_bell_rung_before_the_wait_is_not_lost() -> None:
    bell = Bell()

    bell.ring()

    await bell.wait(CLOCK, NEVER)


async def test_bell_wakes_a_wait() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait(CLOCK, NEVER))
    await asyncio.sleep(0)

    bell.ring()

    await waiting


async def test_rings_in_between_count_once() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    await bell.wait(CLOCK, NEVER)
    waiting = asyncio.create_task(bell.wait(CLOCK, NEVER))
    for _ in range(3):
        await asyncio.sleep(0)

    assert not waiting.done()
    waiting.cancel()


async def test_urgent_ring_is_not_held_back() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait(CLOCK, NEVER, debounce_s=NEVER))
    bell.ring()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()

    bell.ring(urgent=True)

    await waiting


async def test_period_ends_the_wait_without_a_ring() -> None:
    await Bell().wait(CLOCK, 0.001, debounce_s=NEVER)


def test_globs_match_paths_of_the_host_and_a_star_crosses_no_slash(tmp_path: Path) -> None:
    for name in ("dev/toy0", "dev/toy1", "dev/other", "dev/sub/toy2", "proc/driver/gpus/a/info"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    host = RealHost(str(tmp_path))

    found = matching(host, ("/dev/toy*", "/proc/driver/*/*/info", "/dev/other", "/no/such/*"))

    assert found == {"/dev/toy0", "/dev/toy1", "/dev/other", "/proc/driver/gpus/a/info"}


def test_what_is_seen_differs_once_content_or_kind_does(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path))
    file = tmp_path / "a"
    (tmp_path / "gone").symlink_to("nowhere")
    file.touch()
    file.chmod(0o644)
    empty = seen(host, ("/a", "/gone"))
    os.utime(file, ns=(1, 1))
    written = seen(host, ("/a",))
    file.unlink()
    file.mkdir()

    assert list(empty) == ["/a"]
    assert empty != written
    assert written == {"/a": (Stat(kind="f", mode=0o644), 1)}
    assert seen(host, ("/a",)) != written


@pytest.mark.parametrize("folder", ["sys/devices", "proc/driver"])
def test_file_of_the_kernel_differs_by_its_content_and_not_by_its_time(
    tmp_path: Path, folder: str
) -> None:
    """The kernel changes no time of its files: modes that others set were seen at the next read."""
    host = RealHost(str(tmp_path))
    file = tmp_path / folder / "generation_id"
    file.parent.mkdir(parents=True)

    def told(text: str, time: int) -> Seen:
        file.write_text(text)
        os.utime(file, ns=(time, time))
        return seen(host, (f"/{folder}/*",))

    assert told("1\n", 1) != told("2\n", 1)
    assert told("2\n", 1) == told("2\n", 2)


def test_file_of_the_kernel_that_may_not_be_read_is_there_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys" / "secret").touch()

    class Closed(Door):
        def read(self, path: str, limit: int = READ_LIMIT) -> str:
            raise AccessDenied(f"{path}: not to us: {limit}")

    assert list(seen(Closed(RealHost(str(tmp_path))), ("/sys/*",))) == ["/sys/secret"]
