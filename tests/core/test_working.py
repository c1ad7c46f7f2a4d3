# ruff: noqa: ARG002 - toys need little of what they are told
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs
import pytest

from accelkit.core.allocation import Grant, Granted, Setting
from accelkit.core.errors import (
    AccelkitError,
    ConfigRefused,
    DriverNotReady,
    PartitionError,
    PartitionInUse,
    PluginContractError,
    PluginError,
    SourceError,
)
from accelkit.core.host import Host
from accelkit.core.model import Device, Locality, Placement, Unreadable
from accelkit.core.reading import grant_edits
from accelkit.core.real_host import RealHost
from accelkit.core.vendor import NoOptions, SupportsPartitioning, SupportsPreparation, Vendor
from accelkit.core.working import (
    Needed,
    apply_setting,
    claim_config,
    create_partition,
    destroy_partition,
    look_for,
    needed,
    needed_settings,
    revert_setting,
    set_device_mode,
)
from tests.core.things import BIG, SMALL, cut, gpu, of, part

HOST = RealHost()
PLACE = Placement(profile=SMALL.name, start=1, size=1)
PARENT = cut("a")
SLICE = Setting(device=of("a"), key="timeslice", value="long")


class Plain(Vendor):
    """Neither cuts nor sets anything."""

    name = "toy"
    domain = "toy.example"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        return ()


@attrs.frozen(kw_only=True)
class Block:
    """What a claim may say to the toy."""

    level: int = 1
    name: str = ""


class Toy(Vendor, SupportsPartitioning, SupportsPreparation):
    """Answers every call with what the test says, and keeps what it was asked."""

    name = "toy"
    domain = "toy.example"
    claim_config: ClassVar[type] = Block

    def __init__(self, answer: Any = None) -> None:  # type: ignore[explicit-any]  # of any call
        super().__init__(NoOptions())
        self.answer = answer
        self.asked: list[tuple[object, ...]] = []

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        return self._told("discover")  # type: ignore[return-value]  # as the test says

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        return self._told("create", parent.id, placement)  # type: ignore[return-value]  # see above

    def destroy(self, host: Host, partition: Device) -> None:
        self._told("destroy", partition.id)

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        self._told("set_mode", device.id, mode)

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        return self._told("needs")  # type: ignore[return-value]  # see above

    def apply(self, host: Host, setting: Setting) -> None:
        self._told("apply", setting)

    def revert(self, host: Host, setting: Setting) -> None:
        self._told("revert", setting)

    def _told(self, *call: object) -> object:
        self.asked.append(call)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


GRANT = Grant(owner="claim", granted=(Granted(device=gpu("a")),))


def test_created_partition_is_what_discover_would_yield() -> None:
    odd = part("a", 1, locality=Locality(numa_node=999))

    made = create_partition(Toy(odd), HOST, PARENT, PLACE)

    assert made == part("a", 1)


@pytest.mark.parametrize(
    "answer, said",
    [
        (None, "a NoneType is no Device"),
        (gpu("a"), "create answers toy/a, which is not 1g at slot 1 of toy/a"),
        (part("a", 2), "create answers toy/a-1g-2, which is not 1g at slot 1 of toy/a"),
        (part("b", 1), "create answers toy/b-1g-1, which is not 1g at slot 1 of toy/a"),
        (attrs.evolve(part("a", 1), id=of("c")), "the name of a partition is its place"),
        (attrs.evolve(part("a", 1), id=of("a-1g-1", "other")), "it is not a device of toy"),
        (part("a", 0, BIG), "create answers toy/a-2g-me-0, which is not 1g at slot 1 of toy/a"),
    ],
)
def test_partition_other_than_the_one_asked_for_is_a_fault_of_the_plugin(
    answer: object, said: str
) -> None:
    with pytest.raises(PluginContractError) as caught:
        create_partition(Toy(answer), HOST, PARENT, PLACE)

    assert said in str(caught.value)


@pytest.mark.parametrize("raised", [PartitionInUse("busy"), DriverNotReady("not loaded")])
def test_errors_of_the_contract_reach_who_asks(raised: AccelkitError) -> None:
    toy = Toy(raised)
    with pytest.raises(type(raised)):
        create_partition(toy, HOST, PARENT, PLACE)
    with pytest.raises(type(raised)):
        destroy_partition(toy, HOST, part("a", 1))
    with pytest.raises(type(raised)):
        set_device_mode(toy, HOST, PARENT, "cut")
    with pytest.raises(type(raised)):
        needed_settings(toy, HOST, GRANT)
    with pytest.raises(type(raised)):
        apply_setting(toy, HOST, SLICE)
    with pytest.raises(type(raised)):
        revert_setting(toy, HOST, SLICE)
    with pytest.raises(type(raised)):
        look_for(toy, HOST, {of("a")}, ())


@pytest.mark.parametrize("raised", [KeyError("x"), SystemExit(3)])
def test_any_other_error_is_a_bug_of_the_plugin(raised: BaseException) -> None:
    with pytest.raises(PluginError, match="destroy of toy: ") as caught:
        destroy_partition(Toy(raised), HOST, part("a", 1))

    assert (caught.value.code, caught.value.plugin) == ("plugin-bug", "toy")
    assert caught.value.remedy


def test_work_calls_reach_the_vendor_once() -> None:
    toy = Toy()
    destroy_partition(toy, HOST, part("a", 1))
    set_device_mode(toy, HOST, PARENT, "cut")
    apply_setting(toy, HOST, SLICE)
    revert_setting(toy, HOST, SLICE)

    assert toy.asked == [
        ("destroy", of("a-1g-1")),
        ("set_mode", of("a"), "cut"),
        ("apply", SLICE),
        ("revert", SLICE),
    ]


def test_vendor_that_cannot_cut_says_so() -> None:
    with pytest.raises(PartitionError, match="toy/a: toy cannot cut devices"):
        create_partition(Plain(NoOptions()), HOST, PARENT, PLACE)


def test_vendor_that_sets_nothing_needs_nothing() -> None:
    plain = Plain(NoOptions())
    revert_setting(plain, HOST, SLICE)

    assert needed_settings(plain, HOST, GRANT) == ()
    with pytest.raises(SourceError, match="toy has no settings"):
        apply_setting(plain, HOST, SLICE)


def test_what_needs_nothing_set_is_told_at_once_what_its_containers_need() -> None:
    plain = Plain(NoOptions())

    assert needed(plain, HOST, GRANT) == Needed(edits=grant_edits(plain, HOST, GRANT))
    assert needed(Toy([SLICE]), HOST, GRANT) == Needed(settings=(SLICE,))


def test_settings_are_those_that_the_vendor_says_each_once() -> None:
    whole = Setting(device=None, key="mode", value="x")

    assert needed_settings(Toy([SLICE, whole, SLICE]), HOST, GRANT) == (SLICE, whole)


@pytest.mark.parametrize(
    "settings, said",
    [
        ([1], "a int is no Setting"),
        ([Setting(device=of("a", "other"), key="x", value="y")], "other/a is another vendor's"),
        ([Setting(device=of("a"), key="", value="y")], "a setting of toy/a has no key"),
        (None, "None is answered, where each Setting is to be yielded"),
    ],
)
def test_settings_that_are_none_are_a_fault_of_the_plugin(settings: object, said: str) -> None:
    with pytest.raises(PluginError) as caught:
        needed_settings(Toy(settings), HOST, GRANT)

    assert said in str(caught.value)


def test_device_is_found_as_the_hardware_shows_it_now() -> None:
    toy = Toy([gpu("b"), attrs.evolve(PARENT, mode="cut")])

    seen = look_for(toy, HOST, {of("a"), of("c")}, ())

    assert seen.devices == (attrs.evolve(PARENT, mode="cut"),)  # what nobody looks for is not told
    assert seen.find(of("a")) == attrs.evolve(PARENT, mode="cut")
    assert seen.find(of("c")) is None


@pytest.mark.parametrize(
    "subject, names", [("a-1g-1", ()), ("0000:01:00.0", ("a", "0000:01:00.0"))]
)
def test_device_that_cannot_be_read_is_not_taken_for_gone(
    subject: str, names: tuple[str, ...]
) -> None:
    missing = Unreadable(subject=subject, code="stuck", reason="it hangs", remedy="reset it")

    with pytest.raises(SourceError, match="toy/a-1g-1 cannot be read: it hangs") as caught:
        look_for(Toy([missing]), HOST, {of("a-1g-1")}, names).find(of("a-1g-1"), names)
    assert caught.value.remedy == "reset it"


def test_device_without_its_driver_says_so_when_it_is_looked_for() -> None:
    missing = Unreadable(subject="0000:01:00.0", code="driver-not-ready", reason="no driver")

    names = ("a", "0000:01:00.0")
    seen = look_for(Toy([missing]), HOST, {of("a-1g-1")}, names)

    with pytest.raises(DriverNotReady, match="toy/a-1g-1 cannot be read: no driver"):
        seen.find(of("a-1g-1"), names)


def test_another_device_that_cannot_be_read_is_nothing_to_this_one() -> None:
    missing = Unreadable(subject="0000:02:00.0", code="stuck", reason="it hangs")

    names = ("a", "0000:01:00.0")

    assert look_for(Toy([missing]), HOST, {of("a-1g-1")}, names).find(of("a-1g-1"), names) is None
    both = look_for(Toy([missing]), HOST, {of("a-1g-1"), of("b")}, (*names, "0000:02:00.0"))
    assert both.find(of("a-1g-1"), names) is None


def test_block_of_a_claim_is_read_as_the_class_of_the_vendor() -> None:
    assert claim_config(Toy, {"level": 3}) == Block(level=3)


def test_block_that_cannot_be_read_is_refused_with_every_path() -> None:
    block: Mapping[str, object] = {"level": "high", "names": "x"}

    with pytest.raises(ConfigRefused) as caught:
        claim_config(Toy, block)
    assert "$.vendor.level: " in str(caught.value)
    assert "$.vendor.names: unknown key, did you mean 'name'?" in str(caught.value)
    assert caught.value.remedy


def test_validator_of_a_vendor_that_ends_the_process_refuses_the_block() -> None:
    @attrs.frozen
    class Ends:
        value: int = attrs.field(default=0)

        @value.validator
        def _check(self, _attribute: object, _value: int) -> None:
            raise SystemExit("no")

    class Strange(Toy):
        claim_config = Ends

    with pytest.raises(ConfigRefused, match="SystemExit: no"):
        claim_config(Strange, {"value": 1})
