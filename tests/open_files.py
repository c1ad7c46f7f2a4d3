"""What processes have open."""

from contextlib import suppress
from pathlib import Path


def open_files(pid: int | str | None) -> dict[int, str]:
    """Where its file descriptors lead."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # that of listing them
            found[int(fd.name)] = str(fd.readlink())
    return found
