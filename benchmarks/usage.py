"""What a process takes, as Linux counts it; and what others took meanwhile."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

MOST_MB = 1.0
"""Growth of anonymous memory after half of a life: allocators and gRPC keep some."""


LAST_LOOKS = 5


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


def growth(looks: Sequence[Usage]) -> Iterator[str]:
    """What a process takes at all the last of *looks* that it did not in the first half of them.

    A thread that reads a device for a moment is no growth.
    """
    if len(looks) < 2:
        return
    early, late = looks[: len(looks) // 2], looks[-LAST_LOOKS:]
    files, last_files = max(one.files for one in early), min(one.files for one in late)
    threads, last_threads = max(one.threads for one in early), min(one.threads for one in late)
    memory, last_mb = max(one.anonymous_mb for one in early), min(one.anonymous_mb for one in late)
    if last_files > files:
        yield f"open files grew from {files} to {last_files}"
    if last_threads > threads:
        yield f"threads grew from {threads} to {last_threads}"
    if last_mb > memory + MOST_MB:
        yield f"memory grew from {memory:.1f} to {last_mb:.1f} MB"


def memory_mb(pid: int, key: str = "VmRSS") -> float:
    """Resident memory of a process in MB of 1 000 000 bytes. Source: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{key}:"))


@attrs.frozen
class Ran:
    """What a thread has had of the processors."""

    seconds: float
    times: int
    """How often it was let run."""


def ran(pid: int) -> dict[str, Ran]:
    """Of each thread of a process. Source: Linux, Documentation/scheduler/sched-stats.rst."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        on_cpu_ns, _, times = (thread / "schedstat").read_text().split()
        found[thread.name] = Ran(int(on_cpu_ns) / 1e9, int(times))
    return found


def cpu_ms(pid: int) -> float:
    """What all threads of a process that live have had of the processors."""
    return sum(one.seconds for one in ran(pid).values()) * 1000


@attrs.frozen
class Busy:
    """What the processors have done since the machine started, in seconds of one."""

    all: float
    ours: float
    """For this process, and for those that it started and that have ended."""


def busy() -> Busy:
    """As of now. Source: proc_stat(5), the first line."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, *rest = map(int, fields)
    ticks = user + nice + system + sum(rest[:3])  # those of guests are in user
    took = os.times()
    ours = took.user + took.system + took.children_user + took.children_system
    return Busy(ticks / os.sysconf("SC_CLK_TCK"), ours)


def others(before: Busy, after: Busy, seconds: float) -> float:
    """How many processors others had on average, in so many *seconds*."""
    return max(0.0, after.all - before.all - (after.ours - before.ours)) / seconds


def spent(before: dict[str, Ran], after: dict[str, Ran]) -> dict[str, Ran]:
    """What each thread had between two looks."""
    none = Ran(0.0, 0)
    return {
        thread: Ran(
            seconds=now.seconds - before.get(thread, none).seconds,
            times=now.times - before.get(thread, none).times,
        )
        for thread, now in after.items()
    }
