from collections.abc import Iterable

from accelkit.core.model import (
    Device,
    DeviceId,
    Group,
    Link,
    Locality,
    Placement,
    Profile,
    Snapshot,
)
from accelkit.core.policy import Offer, Place, Sharing
from accelkit.core.preference import Family, Topology, prefer
from accelkit.core.topology import legality_of, topology_of, unit_of
from accelkit.core.values import FrozenMap, GroupRule, LinkKind
from accelkit.core.view import Assignment, View

ALL = Offer(name="all")
SMALL = Profile(name="1g", slug="1g", size=1, starts=(0, 1))


def of(name: str, vendor: str = "toy") -> DeviceId:
    return DeviceId(vendor=vendor, name=name)


def gpu(name: str, root: str | None = None, numa: int | None = None) -> Device:
    return Device(
        id=of(name),
        kind="gpu",
        locality=Locality(pcie_root=root, numa_node=numa),
    )


def cut(name: str, starts: Iterable[int]) -> tuple[Device, ...]:
    parent = of(name)
    whole = Device(id=parent, kind="gpu", usable=False, slots=2, profiles=(SMALL,))
    return whole, *(
        Device(
            id=of(f"{name}-1g-{start}"),
            kind="gpu",
            parent=parent,
            placement=Placement(profile="1g", start=start, size=1),
        )
        for start in starts
    )


def link(a: str, b: str, kind: LinkKind, *, count: int = 1, up: bool = True) -> Link:
    return Link.between(of(a), of(b), kind, count=count, up=up)


def view_of(
    devices: Iterable[Device],
    links: Iterable[Link] = (),
    groups: Iterable[Group] = (),
    terms: Offer = ALL,
) -> View:
    snapshot = Snapshot(devices=tuple(devices), links=tuple(links), groups=tuple(groups))
    assigned = {d.id: Assignment(terms=terms) for d in snapshot.devices if d.usable}
    return View(snapshot=snapshot, assignments=FrozenMap(assigned))


def group(names: str, rule: GroupRule) -> Group:
    return Group(kind="block", name=names, members=[of(n) for n in names], rule=rule)


def levels(topology: Topology, a: str, b: str) -> list[int]:
    one, other = (topology.groups[topology.rank[name]] for name in (a, b))
    return [level[one][other] for level in topology.levels]


def test_localities_stand_in_for_links_that_nobody_names() -> None:
    devices = [gpu("a", "r0", 0), gpu("b", "r0", 0), gpu("c", "r1", 0), gpu("d", "r2", 1), gpu("e")]

    topology = topology_of(view_of(devices), ALL)

    assert topology.ids == ("a", "b", "c", "d", "e")
    assert levels(topology, "a", "b") == [30, 30]
    assert levels(topology, "b", "c") == [20, 20]
    assert levels(topology, "c", "d") == levels(topology, "e", "a") == [10, 10]


def test_devices_without_a_known_locality_have_nothing_in_common() -> None:
    assert levels(topology_of(view_of([gpu("a"), gpu("b")]), ALL), "a", "b") == [10, 10]


def test_named_bus_counts_instead_of_the_derived_one() -> None:
    devices = [gpu(name, "r0", 0) for name in "abcd"]
    links = [
        link("a", "b", LinkKind.SWITCH),
        link("c", "b", LinkKind.BRIDGE),
        link("c", "d", LinkKind.SOCKET),
        link("a", "d", LinkKind.SWITCH, up=False),
    ]

    topology = topology_of(view_of(devices, links), ALL)

    assert levels(topology, "a", "b") == [50, 50]
    assert levels(topology, "b", "c") == [40, 40]
    assert levels(topology, "c", "d") == [20, 20]
    assert levels(topology, "a", "d") == [30, 30]


def test_links_that_are_up_decide_and_the_bus_breaks_ties() -> None:
    devices = [gpu(name, "r0") for name in "abcd"]
    links = [
        link("a", "b", LinkKind.DIRECT, count=2),
        link("a", "b", LinkKind.SWITCH),
        link("a", "c", LinkKind.FABRIC, count=4),
        link("b", "c", LinkKind.DIRECT, count=9, up=False),
        link("c", "d", LinkKind.ONDIE),
    ]

    topology = topology_of(view_of(devices, links), ALL)

    assert levels(topology, "a", "b") == [200, 50]
    assert levels(topology, "a", "c") == [400, 30]
    assert levels(topology, "b", "c") == [30, 30]
    assert levels(topology, "c", "d") == [500, 60]


def test_partitions_stand_for_their_parent_and_are_in_one_package() -> None:
    devices = [*cut("a", (0, 1)), *cut("b", (1,)), gpu("c")]
    links = [link("a", "b", LinkKind.FABRIC, count=3), link("c", "a-1g-0", LinkKind.DIRECT)]

    topology = topology_of(view_of(devices, links), ALL)

    assert topology.ids == ("a-1g-0", "a-1g-1", "b-1g-1", "c")
    assert levels(topology, "a-1g-0", "a-1g-1") == [400, 60]
    assert levels(topology, "a-1g-1", "b-1g-1") == [300, 10]
    assert levels(topology, "a-1g-1", "c") == [100, 10]


def test_only_devices_of_the_offer_are_in_the_topology() -> None:
    view = view_of([gpu("a"), gpu("b")])
    other = {**view.assignments, of("b"): Assignment(terms=Offer(name="other"))}
    gone = {**other, of("c"): Assignment(terms=ALL)}
    none = {**gone, of("d"): Assignment(terms=None)}

    topology = topology_of(View(snapshot=view.snapshot, assignments=FrozenMap(none)), ALL)

    assert topology.ids == ("a",)


def test_offer_without_devices_has_an_empty_topology() -> None:
    topology = topology_of(View(), ALL)

    assert topology.ids == ()
    assert prefer(topology, [], [], 1).ids == ()


def test_first_vendor_keeps_a_name_that_two_have() -> None:
    twin = Device(id=of("x", vendor="aaa"), kind="gpu", locality=Locality(pcie_root="r0"))

    topology = topology_of(view_of([gpu("x", "r1"), gpu("y", "r0"), twin]), ALL)

    assert topology.ids == ("x", "y")
    assert levels(topology, "x", "y") == [30, 30]


def test_shares_are_offered_by_number_and_weigh_by_place() -> None:
    terms = Offer(name="all", sharing=Sharing(shares=2, place=Place.PACKED))
    view = view_of([gpu("a", numa=0), gpu("b", numa=1), gpu("c", numa=0)], terms=terms)

    topology = topology_of(view, terms)

    assert topology.ids == ("a::0", "a::1", "b::0", "b::1", "c::0", "c::1")
    assert prefer(topology, topology.ids[1:], [], 3).ids == ("a::1", "c::0", "c::1")
    assert unit_of(view, terms, topology.ids) is None


def test_distributed_shares_go_to_the_device_that_is_used_least() -> None:
    terms = Offer(name="all", sharing=Sharing(shares=3, place=Place.DISTRIBUTED))
    view = view_of([gpu("a"), gpu("b")], terms=terms)
    topology = topology_of(view, terms)
    available = [name for name in topology.ids if name not in {"a::0", "a::1"}]

    unit = unit_of(view, terms, available)

    assert unit == (-5, -1)
    assert prefer(topology, available, [], 2, unit=unit).ids == ("b::0", "b::1")


def test_devices_that_are_not_shared_have_no_worth() -> None:
    assert unit_of(view_of([gpu("a")]), ALL, []) is None


def test_device_keeps_the_number_of_shares_that_it_was_taken_with() -> None:
    terms = Offer(name="all", sharing=Sharing(shares=2))
    view = view_of([gpu("a"), gpu("b")], terms=terms)
    mixed = {**view.assignments, of("a"): Assignment(terms=ALL)}

    topology = topology_of(View(snapshot=view.snapshot, assignments=FrozenMap(mixed)), terms)

    assert topology.ids == ("a", "b::0", "b::1")


def test_laws_of_the_vendor_count_before_its_hints() -> None:
    devices = [gpu(name) for name in "abcd"]
    groups = [
        group("ab", GroupRule.LAW),
        group("cd", GroupRule.LAW),
        group("bc", GroupRule.HINT),
    ]
    view = view_of(devices, groups=groups)

    legal = legality_of(view, ALL, topology_of(view, ALL))

    assert legal == Family(hard=True, masks=[0b0011, 0b1100])


def test_hints_are_not_hard_and_need_all_members_in_the_offer() -> None:
    groups = [group("ab", GroupRule.HINT), group("bc", GroupRule.HINT)]
    view = view_of([gpu(name) for name in "abc"], groups=groups)
    fewer = {name: view.assignments[name] for name in (of("a"), of("b"))}
    view = View(snapshot=view.snapshot, assignments=FrozenMap(fewer))

    assert legality_of(view, ALL, topology_of(view, ALL)) == Family(hard=False, masks=[0b11])


def test_without_groups_every_set_is_legal() -> None:
    view = view_of([gpu("a")])

    assert legality_of(view, ALL, topology_of(view, ALL)) is None


def test_shares_have_no_groups() -> None:
    terms = Offer(name="all", sharing=Sharing(shares=2))
    view = view_of([gpu("a"), gpu("b")], groups=[group("ab", GroupRule.LAW)], terms=terms)

    assert legality_of(view, terms, topology_of(view, terms)) is None
