"""Processes that no signal reaches, as if they hung in a driver: frozen by a control group.

Only the freezer of version 1 keeps SIGKILL out (admin-guide/cgroup-v1/freezer-subsystem.rst); that
of version 2 lets it through.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

PATIENCE_S = 30.0


@contextmanager
def freezer() -> Iterator["Freezer"]:
    """A control group that freezes; skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("only root may freeze processes")
    with _hierarchy() as root:
        group = Path(mkdtemp(prefix="ak-", dir=root))
        try:
            yield Freezer(group)
        finally:
            Freezer(group).thaw()
            _remove(group)


class Freezer:
    """One control group."""

    def __init__(self, group: Path) -> None:
        self._group = group

    def freeze(self, pid: int) -> None:
        """Return when *pid* is frozen, with whatever else is in the group."""
        (self._group / "cgroup.procs").write_text(str(pid))
        self._set("FROZEN")

    def thaw(self) -> None:
        self._set("THAWED")

    def _set(self, state: str) -> None:
        file = self._group / "freezer.state"
        file.write_text(state)
        end = time.monotonic() + PATIENCE_S
        while file.read_text().strip() != state and time.monotonic() < end:
            time.sleep(0.01)
        assert file.read_text().strip() == state


@contextmanager
def _hierarchy() -> Iterator[Path]:
    """Where the freezer of version 1 is mounted, for now if nowhere else."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup" and "freezer" in options.split(","):
            yield Path(place)
            return
    place = mkdtemp(prefix="ak-freezer-")
    mount = ["mount", "-t", "cgroup", "-o", "freezer", "none", place]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        Path(place).rmdir()
        pytest.skip("the kernel has no freezer of control groups version 1")
    try:
        yield Path(place)
    finally:
        subprocess.run(["umount", place], check=True)
        Path(place).rmdir()


def _remove(group: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while (group / "cgroup.procs").read_text().strip() and time.monotonic() < end:
        time.sleep(0.01)  # what was killed ends now
    group.rmdir()
