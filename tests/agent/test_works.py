# ruff: noqa: ARG002 - toys need little of what they are told
import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from accelkit.agent.hardware import Hardware
from accelkit.agent.sources import Source
from accelkit.agent.works import Works
from accelkit.core.allocation import Grant, Granted, Setting
from accelkit.core.clock import RealClock
from accelkit.core.errors import (
    AccelkitError,
    AccessDenied,
    ConfigRefused,
    DriverNotReady,
    PartitionInUse,
    PluginError,
    SourceError,
    SourceTimeout,
)
from accelkit.core.host import Host
from accelkit.core.model import Device, Mode, Placement, Snapshot, Unreadable
from accelkit.core.policy import Sharing, Timeslice
from accelkit.core.values import Scope
from accelkit.core.vendor import NoClaimConfig
from accelkit.core.view import View
from accelkit.core.working import Needed
from tests.agent.toys import PATIENCE_S, Cutting, Toy, cut_host, device, until

HALF = Placement(profile="half", start=0, size=1)
OTHER = Placement(profile="half", start=1, size=1)


class Bench:
    """Works over one vendor, with what the agent would have around them."""

    def __init__(
        self, tmp_path: Path, vendor: Cutting, scale: float = 1.0, *, potential: bool = False
    ) -> None:
        self.host = cut_host(tmp_path)
        self.folder = tmp_path / "host" / "cut"
        self.vendor = vendor
        self.source = Source(vendor, self.host, scale, RealClock())
        self.whole = vendor.whole(self.host)
        halves = (vendor.partition(self.whole, vendor.half, start) for start in (0, 1))
        view = View(
            snapshot=Snapshot(devices=(self.whole,)), potential=tuple(halves) if potential else ()
        )
        self.works: Hardware = Works({vendor.name: self.source}, lambda: view)

    def grant(self, timeslice: Timeslice = Timeslice.LONG) -> Grant:
        return Grant(
            owner="claim",
            granted=(Granted(device=self.whole),),
            sharing=Sharing(timeslice=timeslice),
        )


async def test_vendor_that_sets_nothing_is_not_asked_what_it_needs(tmp_path: Path) -> None:
    calls: list[str] = []
    clock, host, toy = RealClock(), cut_host(tmp_path), Toy()
    source = Source(toy, host, 1.0, clock, lambda call, _outcome, _s: calls.append(call))
    works = Works({"toy": source}, View)
    grant = Grant(owner="claim", granted=(Granted(device=toy.device("a", kind="toy")),))

    assert await works.needs("toy", grant) == ()
    assert (await works.edits("toy", grant)).each.keys() == {device("toy", "a")}
    assert calls == ["edits"]


class Slow(Cutting):
    """A vendor whose reads wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.goes_on = threading.Event()

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:
        self.reads += 1
        assert self.goes_on.wait(PATIENCE_S)
        yield from super().discover(host)


async def test_claims_that_look_at_once_share_a_look_that_begins_after_all_of_them(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, vendor := Slow(), potential=True)
    first = asyncio.create_task(bench.works.find(bench.whole.id))
    await until(lambda: vendor.reads == 1)  # it may have seen anything by now
    halves = [device("cutting", f"a-half-{start}") for start in (0, 1)] * 20
    others = [asyncio.create_task(bench.works.find(half)) for half in halves]
    unwanted = asyncio.create_task(bench.works.find(bench.whole.id))
    await asyncio.sleep(0)
    unwanted.cancel()
    vendor.goes_on.set()

    assert await first is not None
    assert await asyncio.gather(*others) == [None] * len(halves)
    assert vendor.reads == 2
    assert await bench.works.find(bench.whole.id) is not None
    assert vendor.reads == 3


async def test_look_that_fails_fails_for_all_who_share_it_and_not_for_the_next(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, vendor := Slow())
    first = asyncio.create_task(bench.works.find(bench.whole.id))
    await until(lambda: vendor.reads == 1)
    shown = bench.folder.rename(bench.folder.with_name("gone"))
    others = [asyncio.create_task(bench.works.find(bench.whole.id)) for _ in range(3)]
    await asyncio.sleep(0)
    vendor.goes_on.set()
    errors = await asyncio.gather(first, *others, return_exceptions=True)
    shown.rename(bench.folder)

    assert {type(error) for error in errors[1:]} == {type(errors[1])}
    assert isinstance(errors[1], AccelkitError)
    assert await bench.works.find(bench.whole.id) is not None


async def test_partition_is_made_found_and_unmade(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    made = await bench.works.create(bench.whole, HALF)
    found = await bench.works.find(made.id)
    await bench.works.destroy(made)

    assert made.id == device("cutting", "a-half-0")
    assert found == made
    assert await bench.works.find(made.id) is None


async def test_reader_of_the_vendor_is_woken_by_every_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    bell = bench.source.inventory
    made = await bench.works.create(bench.whole, HALF)
    assert await bell.wait(RealClock(), 0.0)
    await bench.works.destroy(made)
    assert await bell.wait(RealClock(), 0.0)
    await bench.works.set_mode(bench.whole, "whole")
    assert await bell.wait(RealClock(), 0.0)

    assert (bench.folder / "mode").read_text() == "whole"


async def test_settings_are_said_applied_and_reverted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    (setting,) = await bench.works.needs("cutting", bench.grant())
    await bench.works.apply("cutting", setting)
    applied = (bench.folder / "switch").read_text()
    await bench.works.revert("cutting", setting)

    assert setting == Setting(device=bench.whole.id, key="switch", value="long")
    assert (applied, (bench.folder / "switch").read_text()) == ("long", "")
    assert await bench.works.needs("cutting", bench.grant(Timeslice.DEFAULT)) == ()


async def test_what_needs_nothing_set_takes_one_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    edits = await bench.works.edits("cutting", bench.grant(Timeslice.DEFAULT))

    assert await bench.works.needed("cutting", bench.grant()) == Needed(
        settings=await bench.works.needs("cutting", bench.grant())
    )
    assert await bench.works.needed("cutting", bench.grant(Timeslice.DEFAULT)) == Needed(
        edits=edits
    )


async def test_edits_of_a_grant_are_those_of_the_vendor(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())

    edits = await bench.works.edits("cutting", bench.grant())

    assert edits.each[bench.whole.id].env == {"TOY": "a"}


async def test_two_works_for_one_parent_never_overlap(tmp_path: Path) -> None:
    class Parallel(Cutting):
        parallel = 2

    bench = Bench(tmp_path, Parallel())
    bench.vendor.go.clear()
    first = asyncio.create_task(bench.works.create(bench.whole, HALF))
    await until(lambda: bench.vendor.works == ["create 0"])
    second = asyncio.create_task(bench.works.create(bench.whole, OTHER))
    other = attrs.evolve(bench.whole, id=device("cutting", "b"))
    beside = asyncio.create_task(bench.works.set_mode(other, "cut"))
    await until(lambda: len(bench.vendor.works) == 2)
    overlapping = list(bench.vendor.works)
    bench.vendor.go.set()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(first, second, beside)

    assert overlapping == ["create 0", "set mode cut"]
    assert bench.vendor.works == ["create 0", "set mode cut", "create 1"]


async def test_work_for_a_parent_where_an_earlier_one_hangs_is_refused(tmp_path: Path) -> None:
    class Parallel(Cutting):
        parallel = 2

    bench = Bench(tmp_path, Parallel(), scale=0.001)
    bench.vendor.go.clear()
    with pytest.raises(SourceTimeout, match=r"create got no answer: no answer in 0\.03 s"):
        await bench.works.create(bench.whole, HALF)

    with pytest.raises(SourceTimeout, match="destroy got no answer: an earlier call, create"):
        await bench.works.destroy(bench.vendor.partition(bench.whole, bench.vendor.half, 0))

    assert bench.vendor.works == ["create 0"]
    bench.vendor.go.set()
    await until(lambda: not bench.source.lanes.stuck)


async def test_nobody_is_told_what_is_there_while_work_at_it_hangs(tmp_path: Path) -> None:
    """A partition was taken for gone that a late call made after that, and nobody's it was."""
    bench = Bench(tmp_path, Cutting(), potential=True)
    made = bench.vendor.partition(bench.whole, bench.vendor.half, 0)
    bench.vendor.go.clear()
    bench.source.lanes.scale = 0.001
    with pytest.raises(SourceTimeout):
        await bench.works.create(bench.whole, HALF)
    bench.source.lanes.scale = 1.0

    with pytest.raises(SourceTimeout, match="inventory got no answer: an earlier call, create"):
        await bench.works.find(made.id)

    bench.vendor.go.set()
    await until(lambda: not bench.source.lanes.stuck)
    assert await bench.works.find(made.id) == made


async def test_mode_that_disturbs_all_devices_waits_for_all_of_them(tmp_path: Path) -> None:
    class Parallel(Cutting):
        parallel = 2

    bench = Bench(tmp_path, Parallel())
    other = attrs.evolve(
        bench.whole,
        id=device("cutting", "b"),
        modes=(Mode(name="wide", disturbs=Scope.VENDOR),),
    )
    bench.vendor.go.clear()
    first = asyncio.create_task(bench.works.create(bench.whole, HALF))
    await until(lambda: bench.vendor.works == ["create 0"])
    second = asyncio.create_task(bench.works.set_mode(other, "wide"))
    third = asyncio.create_task(
        bench.works.apply("cutting", Setting(device=None, key="switch", value="x"))
    )
    fourth = asyncio.create_task(bench.works.set_mode(other, "narrow"))
    await until(lambda: len(bench.vendor.works) == 2)
    overlapping = list(bench.vendor.works)
    bench.vendor.go.set()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(first, second, third, fourth)

    assert overlapping == ["create 0", "set mode narrow"]


async def test_errors_of_the_vendor_reach_who_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    bench.vendor.raising = PartitionInUse("pid 42 uses it")
    with pytest.raises(PartitionInUse, match="pid 42"):
        await bench.works.destroy(bench.vendor.partition(bench.whole, bench.vendor.half, 0))
    bench.vendor.raising = ValueError("oops")
    with pytest.raises(PluginError, match="create of cutting: ValueError: oops"):
        await bench.works.create(bench.whole, HALF)


async def test_what_is_undone_after_the_driver_went_counts_as_undone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    bench.vendor.raising = DriverNotReady("unloaded")
    await bench.works.destroy(bench.vendor.partition(bench.whole, bench.vendor.half, 0))
    await bench.works.revert("cutting", Setting(device=bench.whole.id, key="switch", value="long"))

    assert bench.vendor.works == ["destroy 0", "revert"]
    with pytest.raises(DriverNotReady):
        await bench.works.create(bench.whole, HALF)


async def test_only_works_that_change_hardware_may_write(tmp_path: Path) -> None:
    class Writing(Cutting):
        def needs(self, host: Host, grant: Grant) -> tuple[Setting, ...]:
            host.write("/cut/switch", "sneaky")
            return ()

    bench = Bench(tmp_path, Writing())
    with pytest.raises(AccessDenied):
        await bench.works.needs("cutting", bench.grant())

    assert (bench.folder / "switch").read_text() == ""


async def test_device_that_cannot_be_read_is_not_taken_for_gone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    (bench.folder / "mode").unlink()

    with pytest.raises(DriverNotReady):
        await bench.works.find(bench.whole.id)


async def test_vendor_that_is_not_there_is_a_passing_fault(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())
    stranger = Device(id=device("stranger", "a"), kind="toy")
    with pytest.raises(SourceError, match="vendor stranger is not asked on this node"):
        await bench.works.find(stranger.id)
    with pytest.raises(ConfigRefused, match="there is no vendor stranger"):
        bench.works.config("stranger", {})


async def test_block_of_a_claim_is_read_by_the_class_of_its_vendor(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Cutting())

    assert bench.works.config("cutting", {}) == NoClaimConfig()
    with pytest.raises(ConfigRefused, match=r"\$\.vendor\.mode: unknown key"):
        bench.works.config("cutting", {"mode": "x"})
