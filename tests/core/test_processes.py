import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from accelkit.core.errors import AccessDenied, NotThere
from accelkit.core.host import Door, Stat
from accelkit.core.model import DeviceId, Holder, Holding
from accelkit.core.processes import holders_of
from accelkit.core.real_host import RealHost
from accelkit.core.values import HolderKind

ONE, TWO = DeviceId(vendor="acme", name="one"), DeviceId(vendor="acme", name="two")
NODES = {ONE: ["/dev/acme0", "/dev/acme-control"], TWO: ["/dev/acme1"]}
DEVICES = {
    "/dev/acme0": Stat(kind="c", major=240, minor=0),
    "/dev/acme1": Stat(kind="c", major=240, minor=1),
    "/dev/acme-control": Stat(kind="f"),
}


class Processes(Door):
    """A host whose processes have files open."""

    def __init__(self, files: Mapping[str, Stat | None]) -> None:
        super().__init__(RealHost())
        self._files = {**DEVICES, **files}

    def names(self, path: str) -> tuple[str, ...]:
        if path == "/proc/13/fd":
            raise AccessDenied("/proc/13/fd")
        below = (p.removeprefix(f"{path}/").split("/")[0] for p in self._files if path in p)
        return tuple(sorted({*below, *(("13", "self") if path == "/proc" else ())}))

    def stat(self, path: str) -> Stat | None:
        if path.endswith("/9"):
            raise NotThere(path)
        return self._files.get(path)


def held(device: DeviceId, pid: int) -> Holding:
    return Holding(
        device=device,
        through="process",
        holder=Holder(kind=HolderKind.FOREIGN, uid=str(pid)),
    )


@pytest.fixture
def busy() -> Processes:
    return Processes(
        {
            "/proc/7/fd/0": Stat(kind="s"),
            "/proc/7/fd/3": DEVICES["/dev/acme1"],
            "/proc/7/fd/4": DEVICES["/dev/acme1"],
            "/proc/7/fd/9": None,
            "/proc/100/fd/3": DEVICES["/dev/acme0"],
            "/proc/100/fd/4": DEVICES["/dev/acme1"],
            "/proc/100/fd/5": Stat(kind="c", major=1, minor=3),
            "/proc/12/fd/3": Stat(kind="c", major=1, minor=3),
            "/proc/11/fd/3": None,
        }
    )


def test_processes_hold_the_devices_whose_files_they_have_open(busy: Processes) -> None:
    """By number: a container may have another path for a file."""
    assert [*holders_of(busy, NODES)] == [held(TWO, 7), held(ONE, 100), held(TWO, 100)]


def test_devices_without_files_are_held_by_nobody(busy: Processes) -> None:
    assert [*holders_of(busy, {ONE: [], TWO: ["/dev/none"]})] == []


def test_a_real_process_holds_what_it_has_open() -> None:
    null = DeviceId(vendor="acme", name="null")
    with Path("/dev/null").open() as file:
        pids = {h.holder.uid for h in holders_of(RealHost(), {null: ["/dev/null"]})}
        assert file.fileno() > 0
    assert str(os.getpid()) in pids


def test_process_that_nobody_asks_about_is_passed_over(busy: Processes) -> None:
    assert list(holders_of(busy, NODES, among=lambda pid: pid == "7")) == [held(TWO, 7)]
