from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import attrs
import pytest

from accelkit.core.answers import MOST_DEVICES
from accelkit.core.errors import (
    AccessDenied,
    DriverNotReady,
    PluginError,
    SourceTimeout,
)
from accelkit.core.host import Door, Host, ReadOnly, Stat
from accelkit.core.model import (
    Condition,
    Device,
    DeviceNode,
    Evidence,
    Group,
    Link,
    Locality,
    Problem,
    Profile,
    Unreadable,
    VendorReport,
)
from accelkit.core.reading import (
    MOST_LINKED,
    derived_links,
    read_conditions,
    read_inventory,
)
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap, LinkKind, Severity, Standing
from accelkit.core.vendor import SupportsGroups, SupportsHealth, SupportsLinks, Vendor
from tests.core.things import START, cut, fatal, gpu, info, of, part

HOST = RealHost()
NULL = DeviceNode(path="/dev/null")
GONE = DeviceNode(path="/dev/accelkit-is-not-there")
BUG = "report it to the author of the plugin for toy"


def told(answer: Any) -> Any:  # type: ignore[explicit-any]  # a plugin may answer anything
    if isinstance(answer, BaseException):
        raise answer
    return answer


class Toy(Vendor):
    """Says what it was given; an exception is raised."""

    name = "toy"
    domain = "toy.example"
    attributes: ClassVar[Mapping[str, type]] = {"colour": str}

    def __init__(self, *found: object) -> None:
        super().__init__(None)
        self.found = found
        self.versions: object = {}

    def discover(self, host: Host) -> Iterator[Device | Unreadable]:  # noqa: ARG002 - as vendors
        for one in self.found:
            if isinstance(one, BaseException):
                raise one
            yield one  # type: ignore[misc]  # what plugins yield is the question

    def software(self, host: Host) -> Mapping[str, str]:  # noqa: ARG002 - as vendors
        return told(self.versions)  # type: ignore[no-any-return]  # a plugin may answer anything


class Linked(Toy, SupportsLinks):
    said: object = ()

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:  # noqa: ARG002 - as vendors
        return told(self.said)  # type: ignore[no-any-return]  # a plugin may answer anything


class Grouped(Toy, SupportsGroups):
    said: object = ()

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:  # noqa: ARG002 - as vendors
        return told(self.said)  # type: ignore[no-any-return]  # a plugin may answer anything


class Felt(Toy, SupportsHealth):
    said: Mapping[str, object] = FrozenMap()
    heard: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()

    def conditions(
        self,
        host: Host,  # noqa: ARG002 - as vendors
        device: Device,
        evidence: tuple[Evidence, ...],
    ) -> Iterable[Condition]:
        self.heard += ((device.id.name, evidence),)
        return told(self.said.get(device.id.name, ()))  # type: ignore[no-any-return]  # as above


def linked(*devices: Device, said: object) -> Linked:
    vendor = Linked(*devices)
    vendor.said = said
    return vendor


def grouped(*devices: Device, said: object) -> Grouped:
    vendor = Grouped(*devices)
    vendor.said = said
    return vendor


def faults(report: VendorReport) -> list[tuple[str | None, str]]:
    return [(p.subject, p.code) for p in report.problems]


# Inventory.


def test_what_is_found_is_reported_with_software_in_order_of_ids() -> None:
    vendor = Toy(gpu("b", nodes=(NULL,)), gpu("a"))
    vendor.versions = {"driver": "580.65"}

    assert read_inventory(vendor, HOST) == VendorReport(
        vendor="toy",
        answered=True,
        devices=(gpu("a"), gpu("b", nodes=(NULL,))),
        software=FrozenMap({"driver": "580.65"}),
    )


def test_no_hardware_is_an_answer() -> None:
    assert read_inventory(Toy(), HOST) == VendorReport(vendor="toy", answered=True)


def test_an_unreadable_device_is_a_problem_and_costs_no_other() -> None:
    word = Unreadable(
        subject="gpu-1", code="access-denied", reason="no right", remedy="run as root"
    )

    report = read_inventory(Toy(gpu("gpu-0"), word), HOST)

    assert report.answered
    assert [d.id for d in report.devices] == [of("gpu-0")]
    assert [attrs.asdict(p) for p in report.problems] == [
        {
            "vendor": "toy",
            "subject": "gpu-1",
            "code": "access-denied",
            "reason": "no right",
            "remedy": "run as root",
            "since": None,
        }
    ]


def test_a_failed_read_is_no_answer_and_says_what_to_do() -> None:
    error = DriverNotReady("the driver is not loaded", remedy="load it")

    report = read_inventory(Toy(gpu("gpu-0"), error), HOST)

    assert report == VendorReport(
        vendor="toy",
        answered=False,
        problems=(Problem(vendor="toy", code="driver-not-ready"),),
    )
    assert (report.problems[0].reason, report.problems[0].remedy) == (
        "the driver is not loaded",
        "load it",
    )


@pytest.mark.parametrize("error", [KeyError("uuid"), SystemExit(3), PluginError("no")])
def test_any_other_exception_is_a_bug_of_the_plugin_and_says_where(error: BaseException) -> None:
    report = read_inventory(Toy(error), HOST)

    [problem] = report.problems
    assert (report.answered, problem.code, problem.remedy) == (False, "plugin-bug", BUG)
    assert type(error).__name__ in problem.reason
    assert "test_reading.py" in problem.reason


def test_the_host_that_reading_gets_is_the_one_given() -> None:
    class Writing(Toy):
        def discover(self, host: Host) -> Iterator[Device | Unreadable]:
            host.write("/proc/self/comm", "x")
            yield from ()

    report = read_inventory(Writing(), ReadOnly(HOST))

    assert faults(report) == [(None, AccessDenied.code)]


class Odd:
    pass


@pytest.mark.parametrize(
    "found,words",
    [
        ([Odd()], "discover yields a Odd"),
        ([Unreadable(subject="x", code="Not A Code", reason="")], "'Not A Code' is not a code"),
        ([gpu("a"), gpu("a")], "toy/a is reported 2 times"),
        ([gpu("a", vendor="other")], "it is not a device of toy"),
        ([gpu("a", kind="Big GPU")], "the kind 'Big GPU' is not a DNS label"),
        ([part("a", 0)], "its parent toy/a is not there"),
        ([gpu("a", attributes={"size": 3})], "attribute 'size' is not declared"),
        ([gpu("a", attributes={"colour": 3})], "attribute 'colour' is declared str, found 3"),
        (
            [
                gpu(
                    "a",
                    profiles=[
                        Profile(name="p", slug="p", size=1, starts=(), capacity=FrozenMap({"-": 1}))
                    ],
                )
            ],
            "capacity '-'",
        ),
    ],
)
def test_an_answer_that_cannot_be_true_is_no_answer(found: list[object], words: str) -> None:
    report = read_inventory(Toy(*found), HOST)

    assert not report.answered
    assert faults(report) == [(None, "plugin-bug")]
    assert words in report.problems[0].reason


def test_a_vendor_without_end_is_cut_short() -> None:
    class Endless(Toy):
        def discover(self, host: Host) -> Iterator[Device | Unreadable]:  # noqa: ARG002 - as vendors
            number = 0
            while True:
                yield gpu(f"gpu-{number}")
                number += 1

    report = read_inventory(Endless(), HOST)

    assert not report.answered
    assert f"more than {MOST_DEVICES} devices" in report.problems[0].reason


def test_conditions_and_standing_are_not_the_vendors_to_say() -> None:
    report = read_inventory(Toy(gpu("a", conditions=(fatal(),), standing=Standing.LOST)), HOST)

    assert report.devices == (gpu("a"),)


def test_a_missing_device_file_is_a_fatal_condition_of_that_device() -> None:
    moved = DeviceNode(path="/dev/null", host_path="/dev/accelkit-is-not-there")

    report = read_inventory(
        Toy(gpu("a", nodes=(NULL, GONE)), gpu("b", nodes=(moved,)), gpu("c", nodes=(NULL,))), HOST
    )

    missing = Condition(code="node-missing", severity=Severity.FATAL)
    assert [d.conditions for d in report.devices] == [(missing,), (missing,), ()]
    assert report.devices[0].conditions[0].message == f"{GONE.path} is not there"


def test_a_file_of_another_kind_is_no_device_file() -> None:
    block = DeviceNode(path="/dev/null", kind="b")

    report = read_inventory(Toy(gpu("a", nodes=(block,))), HOST)

    assert report.devices[0].conditions[0].message == "/dev/null is not a block device"


def test_a_device_file_that_cannot_be_looked_at_is_a_problem_of_its_device() -> None:
    class Closed(RealHost):
        def stat(self, path: str) -> Stat | None:
            raise AccessDenied(f"{path}: no right")

        def under(self, root: str) -> Self:  # noqa: ARG002 - everything below is closed, too
            return self

    report = read_inventory(Toy(gpu("a", nodes=(NULL,)), gpu("b")), Closed())

    assert report.answered
    assert faults(report) == [("a", "access-denied")]
    assert [d.conditions for d in report.devices] == [(), ()]


# Links, groups, software.


def test_links_are_the_vendors_and_those_that_follow_from_places() -> None:
    here = Locality(pcie_root="pci0000:40", numa_node=0)
    there = Locality(pcie_root="pci0000:80", numa_node=0)
    devices = (gpu("a", locality=here), gpu("b", locality=here), gpu("c", locality=there))
    direct = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT, count=4)
    switch = Link(a=of("a"), b=of("c"), kind=LinkKind.SWITCH)

    report = read_inventory(linked(*devices, said=[switch, direct]), HOST)

    assert set(report.links) == {
        direct,
        switch,
        Link(a=of("a"), b=of("b"), kind=LinkKind.HOST),
        Link(a=of("b"), b=of("c"), kind=LinkKind.SOCKET),
    }


def test_devices_of_which_no_place_is_known_have_no_links() -> None:
    assert derived_links([gpu("a"), gpu("b")], ()) == ()


def test_partitions_have_no_links_of_their_own() -> None:
    here = Locality(numa_node=0)

    assert derived_links([cut("a", locality=here), part("a", 0, locality=here)], ()) == ()


def test_links_do_not_follow_where_they_would_be_too_many() -> None:
    here = Locality(numa_node=0)
    many = [gpu(f"gpu-{n}", locality=here) for n in range(MOST_LINKED + 1)]

    assert derived_links(many, ()) == ()
    assert len(derived_links(many[:3], ())) == 3


def test_links_to_nowhere_are_no_answer() -> None:
    stray = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT)

    report = read_inventory(linked(gpu("a"), said=[stray]), HOST)

    assert faults(report) == [(None, "plugin-bug")]
    assert "toy/b is not there" in report.problems[0].reason


def test_groups_are_reported() -> None:
    ring = Group(kind="ring", name="0", members=(of("a"), of("b")))

    report = read_inventory(grouped(gpu("a"), gpu("b"), said=[ring]), HOST)

    assert report.groups == (ring,)


@pytest.mark.parametrize(
    "error,code", [(SourceTimeout("slow"), "source-timeout"), (ValueError("bad"), "plugin-bug")]
)
def test_links_groups_and_software_that_fail_cost_only_themselves(
    error: Exception, code: str
) -> None:
    tongue_tied = Toy(gpu("a"))
    tongue_tied.versions = error

    reports = [
        read_inventory(vendor, HOST)
        for vendor in (linked(gpu("a"), said=error), grouped(gpu("a"), said=error), tongue_tied)
    ]

    assert [r.answered for r in reports] == [True, True, True]
    assert [faults(r) for r in reports] == [
        [("links", code)],
        [("groups", code)],
        [("software", code)],
    ]


@pytest.mark.parametrize("vendor", [linked(gpu("a"), said=[1]), grouped(gpu("a"), said=["x"])])
def test_links_and_groups_must_be_what_they_are_called(vendor: Vendor) -> None:
    report = read_inventory(vendor, HOST)

    assert report.answered
    assert [p.code for p in report.problems] == ["plugin-bug"]


def test_a_version_that_is_no_text_is_a_bug_of_the_plugin() -> None:
    vendor = Toy()
    vendor.versions = {"driver": None}

    assert faults(read_inventory(vendor, HOST)) == [("software", "plugin-bug")]


# Conditions.


def test_devices_of_a_vendor_that_cannot_feel_are_unmonitored() -> None:
    reading = read_conditions(Toy(), HOST, [gpu("a")], ())

    unmonitored = Condition(code="unmonitored", severity=Severity.INFO)
    assert reading.conditions == {of("a"): (unmonitored,)}
    assert reading.failed == {}


def test_conditions_are_asked_device_by_device() -> None:
    vendor = Felt()
    vendor.said = {"b": [attrs.evolve(fatal(), since=START), info()], "c": AccessDenied("no right")}

    reading = read_conditions(vendor, HOST, [gpu("a"), gpu("b"), gpu("c")], ())

    assert reading.conditions == {of("a"): (), of("b"): (fatal(), info())}
    assert reading.conditions[of("b")][0].since is None
    assert reading.failed == {of("c"): Problem(vendor="toy", subject="c", code="access-denied")}


@pytest.mark.parametrize("said", [ZeroDivisionError(), [None], ["burnt"], [fatal("Not A Code")], 7])
def test_conditions_that_make_no_sense_are_a_bug_and_cost_one_device(said: object) -> None:
    vendor = Felt()
    vendor.said = {"a": said}

    reading = read_conditions(vendor, HOST, [gpu("a"), gpu("b")], ())

    assert reading.conditions == {of("b"): ()}
    assert reading.failed == {of("a"): Problem(vendor="toy", subject="a", code="plugin-bug")}


def test_of_two_conditions_with_one_code_the_first_counts() -> None:
    vendor = Felt()
    vendor.said = {"a": [fatal(), info("burnt")]}

    assert read_conditions(vendor, HOST, [gpu("a")], ()).conditions == {of("a"): (fatal(),)}


def test_a_partition_is_asked_about_with_the_evidence_of_its_parent() -> None:
    entry = Evidence(
        vendor="toy", subject="a", code="xid", source="s", count=1, first=START, last=START
    )
    vendor = Felt()

    read_conditions(vendor, HOST, [cut("a"), part("a", 0), gpu("b")], [entry])

    assert dict(vendor.heard) == {"a": (entry,), "a-1g-0": (entry,), "b": ()}


def test_numa_nodes_that_cannot_be_listed_are_none(tmp_path: Path) -> None:
    """A device on a node that is not known is on none: pods would be turned away for good."""

    class Closed(Door):
        def names(self, path: str) -> tuple[str, ...]:
            raise AccessDenied(f"{path}: no")

    toy = Toy(gpu("a", locality=Locality(numa_node=0, near_nodes=(0,))))

    report = read_inventory(toy, Closed(RealHost(str(tmp_path))))

    assert [d.locality for d in report.devices] == [Locality(numa_node=None, near_nodes=())]


def test_numa_nodes_that_the_host_does_not_list_are_left_out(tmp_path: Path) -> None:
    """A kubelet that aligns topology turns a pod away for good for such a node."""
    for node, cpus in (("node0", "0-3"), ("node7", "")):
        (tmp_path / "sys/devices/system/node" / node).mkdir(parents=True)
        (tmp_path / "sys/devices/system/node" / node / "cpulist").write_text(cpus + "\n")
    (tmp_path / "sys/devices/system/node/online").write_text("0,7\n")
    toy = Toy(gpu("a", locality=Locality(numa_node=7, near_nodes=(7, 0))))

    report = read_inventory(toy, RealHost(str(tmp_path)))

    assert [d.locality for d in report.devices] == [Locality(numa_node=None, near_nodes=(0,))]
