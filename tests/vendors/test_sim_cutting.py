"""Partitions, modes and settings of the simulated vendor, through its machine's files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accelkit.core.allocation import Grant, Granted, Setting
from accelkit.core.errors import (
    ConfigError,
    ModeBusy,
    NeedsReset,
    PartitionError,
    PartitionInUse,
    PlaceOccupied,
    SourceError,
)
from accelkit.core.host import Host
from accelkit.core.model import Device, Placement
from accelkit.core.policy import Divide, Sharing, Timeslice
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.vendor import NoOptions
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.sim.preparing import Level, SimClaim
from accelkit.vendors.sim.vendor import Sim, SimSet

GIB = 1 << 30


class Cut:
    """A machine of one product that can be cut, and its vendor."""

    def __init__(self, directory: Path, product: str, count: int = 1) -> None:
        self.directory = str(directory / product)
        simulate("sim", product, count, self.directory)
        self.host: Host = MachineHost(self.directory)
        self.vendor = Sim(NoOptions())

    def set(self, *words: str) -> None:
        set_state(self.directory, words)

    def devices(self) -> dict[str, Device]:
        found = self.vendor.discover(MachineHost(self.directory))
        return {d.id.name: d for d in found if isinstance(d, Device)}

    def whole(self, place: int = 0) -> Device:
        return self.devices()[f"s00-{place:04}"]

    def mode(self, mode: str) -> None:
        self.vendor.set_mode(self.host, self.whole(), mode)

    def make(self, profile: str, start: int) -> Device:
        size = {"1s": 1, "2s": 2}[profile]
        place = Placement(profile=profile, start=start, size=size)
        return self.vendor.create(self.host, self.whole(), place)

    def parts(self) -> list[str]:
        return [name for name, device in self.devices().items() if device.parent is not None]


@pytest.fixture
def cut(tmp_path: Path) -> Callable[[str], Cut]:
    return lambda product: Cut(tmp_path, product)


@pytest.fixture
def carved(cut: Callable[[str], Cut]) -> Cut:
    node = cut("carve")
    node.mode("carved")
    return node


def test_what_is_created_is_what_discovery_finds(carved: Cut) -> None:
    made = [carved.make("2s", 2), carved.make("1s", 0)]

    assert carved.devices() == {d.id.name: d for d in (carved.whole(), *made)}
    assert made[0].id.name == "s00-0000-2s-2"
    assert made[0].capacity == FrozenMap({"memory": 8 * GIB})
    assert not carved.whole().usable


def test_creating_what_is_there_returns_it(carved: Cut) -> None:
    assert carved.make("1s", 3) == carved.make("1s", 3)
    assert carved.parts() == ["s00-0000-1s-3"]


def test_an_occupied_place_is_refused_and_nothing_changes(carved: Cut) -> None:
    carved.make("1s", 1)

    with pytest.raises(PlaceOccupied, match="s00-0000-1s-1 is where 2s at 0 should be"):
        carved.make("2s", 0)
    assert carved.parts() == ["s00-0000-1s-1"]


def test_a_place_that_the_profile_does_not_have_is_refused(carved: Cut) -> None:
    with pytest.raises(PartitionError, match="has no 2s at 1"):
        carved.make("2s", 1)


def test_nothing_is_made_in_a_mode_without_partitions(cut: Callable[[str], Cut]) -> None:
    with pytest.raises(PlaceOccupied, match="Invalid argument"):
        cut("carve").make("1s", 0)


def test_destroying_twice_is_fine(carved: Cut) -> None:
    part = carved.make("1s", 0)

    carved.vendor.destroy(carved.host, part)
    carved.vendor.destroy(carved.host, part)
    assert carved.parts() == []


def test_a_partition_of_a_device_that_is_gone_counts_as_destroyed(carved: Cut) -> None:
    part = carved.make("1s", 0)
    carved.set("lose", "accel-0")

    carved.vendor.destroy(carved.host, part)
    carved.set("restore", "accel-0")
    assert carved.parts() == ["s00-0000-1s-0"]


def test_a_partition_in_use_stays(carved: Cut) -> None:
    part = carved.make("1s", 0)
    carved.set("hold", "accel-0", "42")

    with pytest.raises(PartitionInUse, match="busy"):
        carved.vendor.destroy(carved.host, part)
    assert carved.parts() == ["s00-0000-1s-0"]


def test_a_mode_changes_only_while_nothing_is_cut_or_used(carved: Cut) -> None:
    part = carved.make("1s", 0)
    with pytest.raises(ModeBusy, match="busy"):
        carved.mode("whole")

    carved.vendor.destroy(carved.host, part)
    carved.mode("whole")
    assert (carved.whole().mode, carved.whole().usable) == ("whole", True)


def test_a_mode_that_needs_a_reset_is_there_after_the_boot(cut: Callable[[str], Cut]) -> None:
    node = cut("reset")
    with pytest.raises(NeedsReset, match="only when the host boots"):
        node.mode("carved")
    assert node.whole().mode == "whole"

    node.set("reboot")
    assert node.whole().mode == "carved"


def test_a_boot_ends_partitions_and_settings_but_no_mode(carved: Cut) -> None:
    carved.make("1s", 0)
    setting = Setting(device=carved.whole().id, key="level", value="high")
    carved.vendor.apply(carved.host, setting)

    carved.set("reboot")

    assert (carved.parts(), carved.whole().mode, level_of(carved)) == ([], "carved", "")


def test_a_mode_that_cuts_brings_all_its_partitions_at_once(cut: Callable[[str], Cut]) -> None:
    node = cut("modal")

    node.mode("quad")

    assert node.parts() == [f"s00-0000-quarter-{n}" for n in range(4)]
    node.mode("single")
    assert (node.parts(), node.whole().usable) == ([], True)


def test_strangers_cut_with_their_own_tools(cut: Callable[[str], Cut]) -> None:
    node = cut("carve")
    node.set("mode", "accel-0", "carved")
    node.set("carve", "accel-0", "1s", "2")
    assert node.parts() == ["s00-0000-1s-2"]

    node.set("uncarve", "accel-0", "1s", "2")
    assert node.parts() == []
    with pytest.raises(ConfigError, match="Invalid argument"):
        node.set("carve", "accel-0", "2s", "1")


def level_of(node: Cut) -> str:
    address = node.whole().locality.pci_address
    return node.host.read(f"/sys/bus/pci/devices/{address}/level")


def test_settings_are_written_and_taken_back(carved: Cut) -> None:
    setting = Setting(device=carved.whole().id, key="level", value="high")

    carved.vendor.apply(carved.host, setting)
    carved.vendor.apply(carved.host, setting)
    assert level_of(carved) == "high"
    carved.vendor.revert(carved.host, setting)
    carved.vendor.revert(carved.host, setting)
    assert level_of(carved) == ""


def test_a_setting_of_a_device_that_is_gone_counts_as_reverted(carved: Cut) -> None:
    setting = Setting(device=carved.whole().id, key="level", value="high")
    carved.set("lose", "accel-0")

    carved.vendor.revert(carved.host, setting)
    with pytest.raises(SourceError, match="is not there"):
        carved.vendor.apply(carved.host, setting)


def test_needs_are_what_terms_and_claim_ask(carved: Cut) -> None:
    whole = carved.whole()
    grant = Grant(
        owner="claim",
        granted=(Granted(device=whole, share="a"), Granted(device=whole, share="b")),
        sharing=Sharing(shares=4, timeslice=Timeslice.LONG),
        config=SimClaim(level=Level.LOW),
    )

    assert list(carved.vendor.needs(carved.host, grant)) == [
        Setting(device=whole.id, key="timeslice", value="long"),
        Setting(device=whole.id, key="level", value="low"),
    ]


def test_limits_are_numbered_by_their_place_in_the_set(tmp_path: Path) -> None:
    node = Cut(tmp_path, "carve", 2)
    sharing = Sharing(shares=4, divide=Divide.EQUAL, enforce=Enforcement.LIBRARY)
    asked = Granted(device=node.whole(0), amounts=FrozenMap({"memory": 3 * GIB}))
    grant = Grant(owner="c", granted=(Granted(device=node.whole(1)), asked), sharing=sharing)

    assert node.vendor.edits(node.host, grant).whole.env == FrozenMap(
        {"SIM_MEMORY_LIMIT_0": str(3 * GIB), "SIM_MEMORY_LIMIT_1": str(4 * GIB)}
    )


def test_a_set_is_told_beside_its_limits(tmp_path: Path) -> None:
    directory = str(tmp_path / "set")
    simulate("simset", "basic", 1, directory)
    host, vendor = MachineHost(directory), SimSet(NoOptions())
    (device,) = (d for d in vendor.discover(host) if isinstance(d, Device))
    sharing = Sharing(shares=2, divide=Divide.EQUAL, enforce=Enforcement.LIBRARY)
    grant = Grant(owner="c", granted=(Granted(device=device),), sharing=sharing)

    assert vendor.edits(host, grant).whole.env == FrozenMap(
        {"SIM_MEMORY_LIMIT_0": str(8 * GIB), "SIM_SET": "s00-0000", "SIM_SET_SIZE": "1"}
    )


@pytest.mark.parametrize("call", ["create", "destroy", "set_mode", "needs", "apply", "revert"])
def test_work_fails_where_the_machine_says_so(carved: Cut, call: str) -> None:
    whole = carved.whole()
    setting = Setting(device=whole.id, key="level", value="high")
    part = carved.make("1s", 0)
    work: dict[str, Callable[[], object]] = {
        "create": lambda: carved.make("1s", 1),
        "destroy": lambda: carved.vendor.destroy(carved.host, part),
        "set_mode": lambda: carved.mode("whole"),
        "needs": lambda: carved.vendor.needs(carved.host, Grant(owner="c", granted=())),
        "apply": lambda: carved.vendor.apply(carved.host, setting),
        "revert": lambda: carved.vendor.revert(carved.host, setting),
    }
    carved.set("error", call)

    with pytest.raises(SourceError, match="was told to fail"):
        work[call]()
