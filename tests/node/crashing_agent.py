"""The real agent, which ends like one that is killed, before one of its effects for claims.

It ends before the effect with the number that it is told, from 0, among those whose names begin
as it is told.
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import attrs

from accelkit.agent.disk import HostDisk
from accelkit.agent.process import run
from accelkit.cli.agent import compose
from accelkit.core.host import Door, Finished, Host
from accelkit.core.tables import FunctionTable

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
CHANGING = (
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstance",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlComputeInstanceDestroy",
    "nvmlGpuInstanceDestroy",
    "nvmlDeviceSetComputeMode",
)
"""How the names of functions begin that change GPUs."""


class Fuse:
    """Ends the process before the effect that it is told."""

    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._left = number
        self._counting = threading.Lock()

    def effect(self, name: str) -> None:
        """Something is about to be done for a claim."""
        with self._counting:
            if not name.startswith(self._name):
                return
            self._left -= 1
            if self._left < 0:
                sys.stderr.write(f"ends before: {name}\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGKILL)


class FusedDisk(HostDisk):
    """The real one; effects are those on files of claims, locks apart."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def write(self, path: Path, content: bytes, mode: int) -> None:
        self._effect("write", path)
        super().write(path, content, mode)

    def rename(self, old: Path, new: Path) -> None:
        self._effect("rename", new)
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        if self.mark(path) is not None:
            self._effect("remove", path)
        super().remove(path)

    def make(self, directory: Path, mode: int) -> None:
        self._effect("make", directory)
        super().make(directory, mode)

    def remove_tree(self, directory: Path) -> None:
        if directory.exists():
            self._effect("remove", directory)
        super().remove_tree(directory)

    def _effect(self, verb: str, path: Path) -> None:
        if UID.search(path.name) and not path.name.endswith(".lock"):
            kind = {"scratch": "scratch", "claims": "entry"}.get(path.parent.name, "cdi")
            self._fuse.effect(f"{verb} {kind}")


class FusedTable:
    """A library; calls of functions that change something are effects."""

    def __init__(self, table: FunctionTable, fuse: Fuse) -> None:
        self._table = table
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        function = getattr(self._table, name)
        if not name.startswith(CHANGING):
            return function

        @wraps(function)
        def call(*args: object) -> object:
            self._fuse.effect(name)
            return function(*args)

        return call


class FusedHost(Door):
    """A host on which programs and changing functions of libraries are effects."""

    def __init__(self, host: Host, fuse: Fuse) -> None:
        super().__init__(host)
        self._fuse = fuse

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        self._fuse.effect(f"run {Path(argv[0]).name}")
        return super().run(argv, timeout_s)

    def library(self, soname: str) -> FunctionTable:
        return FusedTable(super().library(soname), self._fuse)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="", help="how names of effects begin; default: all")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--host", required=True)
    asked = parser.parse_args()
    fuse = Fuse(asked.before, asked.number)
    parts = compose(asked.policy, asked.node, asked.host)
    run(attrs.evolve(parts, disk=FusedDisk(fuse), host=FusedHost(parts.host, fuse)))


if __name__ == "__main__":
    main()
