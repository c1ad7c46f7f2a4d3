"""Sockets that somebody may have left behind. Not here: those that we serve."""

import asyncio
import re
from pathlib import Path

_RANDOM = len("01234567.sock")


def alike(path: Path) -> tuple[Path, ...]:
    """Sockets beside *path* whose names differ from its in the random part alone, sorted."""
    form = re.compile(re.escape(path.name[:-_RANDOM]) + r"[0-9a-f]{8}\.sock")
    try:
        found = [p for p in path.parent.iterdir() if form.fullmatch(p.name) and p.is_socket()]
    except OSError:  # whoever binds a socket there says it better
        return ()
    return tuple(sorted(found))


async def listens(path: Path) -> bool:
    """Whether anybody answers at the socket: a process that was killed leaves it behind."""
    return not await _failure(path)


async def remove_dead(path: Path) -> None:
    """Remove sockets like *path* at which nobody listens.

    Nobody else does so in the plugin registry, and the kubelet would dial them for ever.
    """
    for old in alike(path):
        # Only what the kernel says outright: a process that is out of files cannot connect, too.
        if isinstance(await _failure(old), ConnectionRefusedError):
            old.unlink(missing_ok=True)


async def _failure(path: Path) -> OSError | None:
    """What connecting to *path* fails with; None: it does not."""
    try:
        _, writer = await asyncio.open_unix_connection(str(path))
    except OSError as error:
        return error
    writer.close()
    return None
