"""What of the kernel's log vendors would look at. Not here: what it means to them."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from accelkit.core.errors import SourceError
from accelkit.core.host import KMSG, Host
from accelkit.core.vendor import Vendor

_ROOM = 8192
"""Of a record (Linux, kernel/printk/printk.c, PRINTK_MESSAGE_MAX is less)."""
_MOST = 1 << 16
"""Records; the kernel's own buffer has room for fewer."""


def patterns_of(vendors: Iterable[Vendor]) -> tuple[str, ...]:
    """What *vendors* want to hear of the kernel's log; what is no pattern is left out."""
    return tuple(
        pattern for vendor in vendors for pattern in vendor.signals.kernel_log if _compiles(pattern)
    )


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def read_log(host: Host, patterns: Sequence[str]) -> bytes:
    """Records of this boot that fit one of *patterns*, each in a line, as the kernel tells them.

    Raises:
        SourceError: The log may not be read.
    """
    records = _heard() if host.live else host.read_bytes(KMSG).splitlines()
    wanted = re.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode())
    return b"".join(b"%s\n" % record for record in records if patterns and wanted.search(record))


def _heard() -> Iterator[bytes]:
    """Records of the running kernel, without those that it has dropped."""
    try:
        number = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SourceError(f"{KMSG}: cannot read it: {error.strerror}", operation="read") from error
    try:
        for _ in range(_MOST):
            # EPIPE: the next one was overwritten meanwhile; those after it are there.
            with contextlib.suppress(BrokenPipeError):
                # Further lines of a record repeat which device it is about.
                yield os.read(number, _ROOM).partition(b"\n")[0]
    except OSError:  # EAGAIN: there are no more
        return
    finally:
        os.close(number)
