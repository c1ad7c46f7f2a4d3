"""What plugins and users said, in words that can be shown. Not here: who is told."""

import traceback

from accelkit.core.errors import AccelkitError, PluginError
from accelkit.core.values import is_dns_label

TEXT_LIMIT = 2000
"""Characters of a text that are kept."""
FRAMES = 3
"""Calls that are told of an error."""


def printable(text: str) -> str:
    """*text* without what would end a line, steer a terminal, or is no character at all."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def one_line(text: str) -> str:
    """*text* on one line, and printable."""
    return printable("; ".join(text.splitlines()))


def text_of(error: BaseException) -> str:
    """What *error* says; of what cannot be written as UTF-8 the rest."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a plugin's errors may raise anything, too
        return "(it cannot say what)"
    return text[:TEXT_LIMIT].encode(errors="replace").decode()


def in_words(error: BaseException) -> str:
    """What *error* is, and what it says."""
    return f"{type(error).__name__}: {text_of(error)}"


def with_way(error: BaseException) -> str:
    """What *error* is, in words, and the last few calls on the way to it."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ")  # how Python imports is nobody's fault
    ]
    way = ", ".join(
        f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames[-FRAMES:]
    )
    return in_words(error) + (f" (at {way})" if way else "")


def code_of(error: BaseException) -> str:
    """Its code; that of a plugin's bug if it has none that can be used."""
    code: object = error.code if isinstance(error, AccelkitError) else None
    return code if isinstance(code, str) and is_dns_label(code) else PluginError.code


def remedy_of(error: BaseException) -> str:
    """Its remedy; empty if it has none."""
    remedy: object = error.remedy if isinstance(error, AccelkitError) else ""
    return remedy if isinstance(remedy, str) else ""
