"""Files of Intel GPUs, of which any may be missing or hold nonsense. Not here: what they mean."""

import re

from accelkit import AccessDenied, Host, NotThere, PciFunction, SourceError

_NUMBER = re.compile(r"-?[0-9]{1,18}")
"""Not larger than an amount may be, whatever the driver says."""
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def text_at(host: Host, path: str) -> str | None:
    """The text at *path*; None: this driver, or this GPU, has no such file.

    Raises:
        SourceError: It is there and cannot be read.
    """
    try:
        return host.read(path).strip()
    except NotThere:
        return None


def number_at(host: Host, path: str) -> int | None:
    """The number at *path*; None: there is none, or it is no number.

    Raises:
        SourceError: It is there and cannot be read.
    """
    text = text_at(host, path)
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def measured_at(host: Host, path: str) -> int | None:
    """The same of a sensor, which may have no data now (ENODATA): then there is none.

    Raises:
        AccessDenied: It may not be read.
    """
    try:
        return number_at(host, path)
    except AccessDenied:
        raise
    except SourceError:
        return None


def link_at(function: PciFunction, name: str) -> str | None:
    """The PCI address that the link *name* of a function leads to; None: it leads to none."""
    try:
        last = function.host.resolve(function.path(name)).rpartition("/")[2]
    except SourceError:  # there is no such link, or it leads to itself
        return None
    return last if _ADDRESS.fullmatch(last) and last != function.address else None
