"""What a process has of its host. Not here: how much it may have."""

import os
from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Footprint:
    """What a process has right now."""

    memory: int
    """Resident bytes."""
    files: int
    """Open ones."""
    threads: int
    cpu_s: float
    """Seconds of processors that it has used."""


def footprint_of(pid: int) -> Footprint:
    """What the process *pid* has.

    Source:
        Linux, Documentation/filesystems/proc.rst: status, stat, fd.

    Raises:
        OSError: There is no such process.
    """
    directory = Path(f"/proc/{pid}")
    lines = (directory / "status").read_text("utf-8", "replace").splitlines()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    # After the name, which may have anything in it.
    ticks = (directory / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[11:13]
    return Footprint(
        memory=int(told["VmRSS"].split()[0]) << 10,
        files=sum(1 for _ in (directory / "fd").iterdir()),
        threads=int(told["Threads"]),
        cpu_s=sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
    )
