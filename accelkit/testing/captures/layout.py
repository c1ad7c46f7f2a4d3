"""Where a capture keeps what. Not here: how it comes there."""

from collections.abc import Mapping
from types import MappingProxyType

from accelkit.testing.hosts import CAPTURE

FORMAT = "capture/1"
UNFINISHED = "unfinished"
"""Format until all is kept, and masked if it shall be."""
NAME = CAPTURE
FILES, TAPE, COMMANDS = "files", "tape", "commands.jsonl"
MODULES, LOG = "modules", "kernel.log"

DENIED, UNREAD, FAILED = ".denied", ".unread", ".failed"
"""Ends of names in the tree: a file that might not be read; one whose name was listed and that
nobody read; one that could not be read, with the reason in it."""
MARKS = (DENIED, UNREAD, FAILED)
DEAD = ".dead"
"""The same of a name that was listed and leads nowhere."""

NOT_SUPPORTED: Mapping[str, int] = MappingProxyType({"libnvidia-ml.so.1": 3})
"""What a library answers where something is not there, by soname; else 1.

Source: nvml.h, NVML_ERROR_NOT_SUPPORTED.
"""
UNKNOWN = 1


def tape_of(soname: str) -> str:
    """File of a library's calls, below the capture."""
    return f"{TAPE}/{soname.replace('/', '_')}.jsonl"
