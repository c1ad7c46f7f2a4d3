"""What makes a reader look before its period is over: rung bells and files that changed."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from fnmatch import fnmatchcase

from accelkit.core.clock import Clock
from accelkit.core.errors import SourceError
from accelkit.core.host import Host, Stat


class Bell:
    """Wakes one loop; rings in between count once."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._urgent = asyncio.Event()

    def ring(self, *, urgent: bool = False) -> None:
        """Wake the loop; *urgent*: without waiting for more to come."""
        self._rung.set()
        if urgent:
            self._urgent.set()

    async def wait(self, clock: Clock, period_s: float, debounce_s: float = 0.0) -> bool:
        """Return after *period_s*, or *debounce_s* after a ring, or at once if it is urgent.

        Returns:
            Whether it was rung.
        """
        await within(clock, period_s, self._rung.wait())
        rung = self._rung.is_set()
        if rung and debounce_s and not self._urgent.is_set():
            await within(clock, debounce_s, self._urgent.wait())
        self._rung.clear()
        self._urgent.clear()
        return rung


async def within(clock: Clock, seconds: float, event: Awaitable[object]) -> None:
    """Return when *event* is there, at the latest after *seconds*."""
    waited = asyncio.ensure_future(event)
    end = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((waited, end), return_when=asyncio.FIRST_COMPLETED)
    finally:
        end.cancel()
        waited.cancel()
        if not waited.done():  # else it would cost each claim another turn of the loop
            await asyncio.gather(waited, return_exceptions=True)
        elif not waited.cancelled():
            waited.exception()  # nobody wants to know


Seen = Mapping[str, tuple[Stat | None, int | str]]
"""What is at each path, and what tells a file's content from an earlier one."""

_KERNELS_OWN = ("/sys/", "/proc/")
_ENOUGH = 4096


def seen(host: Host, globs: Iterable[str]) -> Seen:
    """What is on *host* at the paths that match any of *globs*."""
    found = {path: host.stat(path) for path in matching(host, globs)}
    return {path: (stat, _content(host, path, stat)) for path, stat in found.items()}


def _content(host: Host, path: str, stat: Stat | None) -> int | str:
    """What differs once the content of a file does; 0: not known, or it is no file."""
    if stat is None or stat.kind != "f" or not path.startswith(_KERNELS_OWN):
        return 0 if stat is None else stat.changed_ns
    # The kernel gives its own files no new time when they say something else.
    try:
        return host.read(path, _ENOUGH)
    except SourceError:
        return 0


def matching(host: Host, globs: Iterable[str]) -> frozenset[str]:
    """Paths on *host* that match any of *globs*; a star does not cross a slash."""
    found: set[str] = set()
    for glob in globs:
        paths = [""]
        for part in glob.strip("/").split("/"):
            paths = [f"{path}/{name}" for path in paths for name in _names(host, path, part)]
        found.update(paths)
    return frozenset(found)


def _names(host: Host, folder: str, part: str) -> Iterable[str]:
    if any(special in part for special in "*?["):
        return (name for name in host.names(folder or "/") if fnmatchcase(name, part))
    return (part,) if host.exists(f"{folder}/{part}") else ()
