"""Which plugin was being loaded when a process ended. Not here: loading, and what to do then.

A breadcrumb is a file ``loading-<n>`` in the run directory whose writer holds a flock on it: the
kernel drops the lock with the process, however it ends.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from accelkit.core.errors import ConfigError

PREFIX = "loading-"


def left_behind(run: Path) -> Mapping[str, Sequence[Path]]:
    """What processes that are gone were loading, and the files that say so, one for each process.

    Breadcrumbs that name nothing are removed: their writer ended between two plugins.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(run.glob(f"{PREFIX}*")):
        try:
            crumb = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # gone since, or another user's
            continue
        try:
            if _lock(crumb):
                text = os.read(crumb, 1000).decode(errors="replace").strip()
                if text:
                    found.setdefault(text, []).append(path)
                else:
                    forget([path])
        except OSError:  # something else of that name
            continue
        finally:
            os.close(crumb)
    return found


def forget(crumbs: Iterable[Path]) -> None:
    """Remove *crumbs*; one that cannot be removed stays."""
    for path in crumbs:
        with contextlib.suppress(OSError):
            path.unlink()


@contextmanager
def breadcrumb(run: Path) -> Iterator[Callable[[str], None]]:
    """A breadcrumb of this process, and the function that writes what it loads now.

    Raises:
        ConfigError: *run* cannot be made or written.
    """
    try:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        crumb, path = _claim(run)
    except OSError as error:
        raise ConfigError(
            [("$.paths.run", f"{run} cannot be written: {error.strerror}")],
            remedy="name a directory that this process may write",
        ) from error

    def note(text: str) -> None:
        # A disk that is full keeps nobody from loading plugins.
        with contextlib.suppress(OSError):
            os.ftruncate(crumb, 0)
            os.pwrite(crumb, text.encode(), 0)

    try:
        yield note
    finally:
        forget([path])
        os.close(crumb)


def _claim(run: Path) -> tuple[int, Path]:
    """A new file; those that are there belong to others or to the dead."""
    crumb, unnamed = tempfile.mkstemp(prefix=".", dir=run)
    try:
        # Locked before it has its name: nobody can take it for a dead one's.
        _lock(crumb)
        for n in count():  # pragma: no branch - there is always a next one
            with contextlib.suppress(FileExistsError):
                os.link(unnamed, run / f"{PREFIX}{n}")
                break
    finally:
        Path(unnamed).unlink()
    return crumb, run / f"{PREFIX}{n}"


def _lock(crumb: int) -> bool:
    try:
        fcntl.flock(crumb, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
