"""What a process takes, as Linux counts it."""

import os
from pathlib import Path

import attrs


@attrs.frozen
class Usage:
    files: int
    """Open file descriptors."""
    threads: int
    anonymous_mb: float
    """Resident memory that is nobody else's."""

    def __str__(self) -> str:
        return f"{self.files} files, {self.threads} threads, {self.anonymous_mb:.1f} MB"


def usage(pid: int) -> Usage:
    home = Path(f"/proc/{pid}")
    files, threads = (len([*(home / name).iterdir()]) for name in ("fd", "task"))
    return Usage(files, threads, memory_mb(pid, "RssAnon"))


def memory_mb(pid: int, key: str = "VmRSS") -> float:
    """Resident memory of a process in MB of 1 000 000 bytes. Source: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{key}:"))


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has had. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
