"""Counters of the driver. Not here: which of them mean what."""

from accelkit import Host, NotThere, SourceError
from accelkit.vendors.neuron import facts

_READ = 4096
MOST = 1 << 64
"""They have 64 bits."""


def read_counter(host: Host, path: str) -> int | None:
    """A counter that is a file or, in other drivers, a folder with its total; None: there is none.

    Raises:
        SourceError: It cannot be read, or is no number.
    """
    for file in (f"{path}/total", path):
        try:
            text = host.read(file, _READ).strip()
        except NotThere:
            continue
        if not (text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) < MOST):
            raise SourceError(f"{file}: {text[:40]!r} is no count", remedy=facts.KERNEL_LOG)
        return int(text)
    return None
