"""Which files, programs and symbols a vendor asks for and gets. Not here: what it makes of them."""

import re
from collections.abc import Sequence
from typing import Any

from accelkit.conformance.intree import subject_of
from accelkit.core.host import Door, Finished, Host, ReadOnly, Stat
from accelkit.core.model import VendorReport
from accelkit.core.tables import FunctionTable
from accelkit.testing.captures.capturing import ask

_ADDRESS = re.compile(r".*[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?=/|$)")
_PORT = re.compile(r"/net/[^/]+")
_PCI_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")


def shape(path: str) -> str:
    """*path* without what differs from machine to machine: places and numbers."""
    path = _PORT.sub("/net/*", _PCI_ROOT.sub("ROOT", _ADDRESS.sub("PCI", path)))
    return re.sub(r"\d+", "N", path)


class Watched(Door):
    """Keeps what was asked and answered."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.read_: set[str] = set()

    def read(self, path: str, limit: int = 1 << 20) -> str:
        return self.read_bytes(path, limit).decode(errors="replace").removesuffix("\n")

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        found = super().read_bytes(path, limit)
        self.read_.add(shape(path))
        return found

    def names(self, path: str) -> tuple[str, ...]:
        found = super().names(path)
        if found:
            self.read_.add(shape(path))
        return found

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def stat(self, path: str) -> Stat | None:
        found = super().stat(path)
        if found is not None:
            self.read_.add(shape(path))
        return found

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        found = super().run(argv, timeout_s)
        self.read_.add(argv[0])
        return found

    def library(self, soname: str) -> FunctionTable:
        return Symbols(super().library(soname), self.read_)


class Symbols:
    """A library of which each symbol that is there is kept."""

    def __init__(self, table: FunctionTable, kept: set[str]) -> None:
        self._table = table
        self._kept = kept

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        found = getattr(self._table, name)
        self._kept.add(name)
        return found


def asked(vendor: str, host: Host) -> tuple[VendorReport, set[str]]:
    door = Watched(host)
    return ask(subject_of(vendor).make(), ReadOnly(door)), door.read_
