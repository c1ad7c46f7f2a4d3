# ruff: noqa: ARG002 - toys need little of what they are told
import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent import sources
from accelkit.agent.sources import Source
from accelkit.core.allocation import Edits, Grant, Granted
from accelkit.core.clock import RealClock
from accelkit.core.errors import (
    AccessDenied,
    IllegalSet,
    MissingParts,
    PluginError,
    SourceTimeout,
)
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Evidence, Unreadable, VendorReport
from accelkit.core.policy import Offer
from accelkit.core.real_host import RealHost
from accelkit.core.values import Standing
from accelkit.core.vendor import SupportsHealth, Vendor
from tests.agent.toys import PATIENCE_S, Sets, Toy, until


def source(tmp_path: Path, vendor: Vendor, scale: float = 1.0) -> Source:
    return Source(vendor, RealHost(str(tmp_path)), scale, RealClock())


def grant(vendor: Toy) -> Grant:
    return Grant(owner="all", granted=(Granted(device=vendor.device("a", kind="toy")),))


class Writing(Toy):
    """Tries to change the host while it is read."""

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        host.write("/file", "changed")
        return ()


async def test_read_call_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("as it was")

    report = await source(tmp_path, Writing()).read()

    assert not report.answered
    assert [p.code for p in report.problems] == [AccessDenied.code]
    assert (tmp_path / "file").read_text() == "as it was"


async def test_call_that_is_a_bug_of_ours_is_told_as_one_of_the_plugin(tmp_path: Path) -> None:
    """What core.reading does not expect must not end the loop of the agent."""

    class Odd(Toy):
        @property
        def name(self) -> str:  # type: ignore[override]  # a fault that no check can foresee
            if threading.current_thread() is threading.main_thread():
                return "odd"
            raise OSError("strange")

    report = await source(tmp_path, Odd()).read()

    assert not report.answered
    assert [p.code for p in report.problems] == ["plugin-bug"]


class Slow(Toy, SupportsHealth):
    """Does not come back from conditions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        self.go.wait()
        return ()


async def test_health_that_overruns_fails_for_every_device_at_once(tmp_path: Path) -> None:
    slow = Slow()
    made = source(tmp_path, slow, 0.001)
    devices = [slow.device(name, kind="toy") for name in "ab"]

    reading = await made.assess(devices, ())
    slow.go.set()

    assert reading.conditions == {}
    assert {i.name: p.code for i, p in reading.failed.items()} == {
        "a": "source-timeout",
        "b": "source-timeout",
    }
    await until(lambda: not made.lanes.stuck)


async def test_only_devices_of_the_vendor_are_asked_about(tmp_path: Path) -> None:
    toy, sets = Toy(), Sets()
    devices = [toy.device("a", kind="toy"), sets.device("a", kind="toy")]

    reading = await source(tmp_path, toy).assess(devices, ())

    assert {str(i) for i in reading.conditions} == {"toy/a"}


class Moody(Toy):
    """Refuses edits once it is told how."""

    error: Exception | None = None

    def edits(self, host: Host, grant: Grant) -> Edits:
        if self.error is not None:
            raise self.error
        return super().edits(host, grant)


@pytest.mark.parametrize(
    "answered, error, kept",
    [
        (True, MissingParts("no driver"), False),
        (True, SourceTimeout("late"), True),
        (False, MissingParts("no driver"), True),
    ],
)
async def test_what_containers_needed_of_a_stale_device_holds_until_its_vendor_refuses_it(
    tmp_path: Path, *, answered: bool, error: Exception, kept: bool
) -> None:
    moody, terms = Moody(), Offer(name="all")
    made = source(tmp_path, moody)
    device = moody.device("a", kind="toy")
    await made.make_edits({device.id: (device, terms)}, VendorReport(vendor="toy", answered=True))

    moody.error = error
    stale = attrs.evolve(device, standing=Standing.STALE)
    report = VendorReport(vendor="toy", answered=answered)
    await made.make_edits({device.id: (stale, terms)}, report)

    assert (made.made.get(device.id, terms) is not None) is kept


async def test_refusal_of_a_set_reaches_who_asks(tmp_path: Path) -> None:
    class Strict(Sets):
        def edits(self, host: Host, grant: Grant) -> Edits:
            raise IllegalSet("not these")

    with pytest.raises(IllegalSet, match="not these"):
        await source(tmp_path, Strict()).set_edits(grant(Strict()))


async def test_bug_in_the_edits_of_a_set_is_one_of_the_plugin(tmp_path: Path) -> None:
    class Broken(Sets):
        def edits(self, host: Host, grant: Grant) -> Edits:
            raise ZeroDivisionError

    with pytest.raises(PluginError, match="ZeroDivisionError"):
        await source(tmp_path, Broken()).set_edits(grant(Broken()))


async def test_set_does_not_wait_for_a_busy_lane_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SET_S", 0.02)
    vendor = Sets()
    vendor.go.clear()
    made = source(tmp_path, vendor)
    device = vendor.device("a", kind="toy")
    report = await made.read()
    offer = Offer(name="all")
    busy = asyncio.create_task(made.make_edits({device.id: (device, offer)}, report))
    await until(lambda: any(lane.running for lane in made.lanes.all))

    with pytest.raises(SourceTimeout, match="no lane was free"):
        await made.set_edits(grant(vendor))
    vendor.go.set()
    async with asyncio.timeout(PATIENCE_S):
        await busy

    assert made.made.get(device.id, offer) is not None
    assert not made.lanes.stuck
