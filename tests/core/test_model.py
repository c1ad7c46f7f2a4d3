import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import ModelError
from accelkit.core.model import (
    PART_NAME_LIMIT,
    WHOLE_NAME_LIMIT,
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Group,
    Link,
    Locality,
    Mode,
    Placement,
    Problem,
    Profile,
    Snapshot,
    contradictions,
    partition_name,
    sorted_nodes,
)
from accelkit.core.values import FrozenMap, LinkKind, Severity
from tests.core.things import BIG, LATER, SMALL, START, cut, fatal, gpu, info, of, part

# Devices.


def test_an_id_is_written_with_a_slash_and_read_back() -> None:
    assert str(of("gpu-0")) == "toy/gpu-0"
    assert DeviceId.parse("toy/gpu-0") == of("gpu-0")


@pytest.mark.parametrize("text", ["", "gpu-0", "/gpu-0", "toy/"])
def test_what_is_no_id_is_an_error(text: str) -> None:
    with pytest.raises(ModelError, match="is not a device id"):
        DeviceId.parse(text)


@pytest.mark.parametrize("name", ["", "GPU", "-a", "a.b", "a" * (WHOLE_NAME_LIMIT + 1)])
def test_the_name_of_a_device_is_a_short_dns_label(name: str) -> None:
    with pytest.raises(ModelError, match="must be a DNS label of at most 40") as caught:
        gpu(name)

    assert "dns_label" in caught.value.remedy


def test_the_name_of_a_partition_may_be_longer() -> None:
    place = Placement(profile="1g", start=0, size=1)

    def named(length: int) -> Device:
        return Device(id=of("a" * length), kind="slice", parent=of("a"), placement=place)

    assert named(PART_NAME_LIMIT).id.name == "a" * PART_NAME_LIMIT
    with pytest.raises(ModelError, match="at most 58"):
        named(PART_NAME_LIMIT + 1)


def test_parent_and_placement_come_together() -> None:
    with pytest.raises(ModelError, match="a whole neither"):
        gpu("a", parent=of("b"))
    with pytest.raises(ModelError, match="a whole neither"):
        gpu("a", placement=Placement(profile="1g", start=0, size=1))


def test_a_partition_knows_its_profile_and_its_whole_device() -> None:
    assert (gpu("a").profile, gpu("a").root) == (None, of("a"))
    assert (part("a", 1).profile, part("a", 1).root) == ("1g", of("a"))


def test_the_order_in_which_facts_are_read_makes_no_difference() -> None:
    nodes = [DeviceNode(path="/dev/b"), DeviceNode(path="/dev/a"), DeviceNode(path="/dev/b")]
    modes = [Mode(name="on"), Mode(name="off")]
    conditions = [info(), fatal(), Condition(code="a", severity=Severity.DEGRADED)]

    device = gpu("a", nodes=nodes, modes=modes, conditions=conditions)
    other = gpu("a", nodes=nodes[::-1], modes=modes[::-1], conditions=conditions[::-1])

    assert device == other
    assert hash(device) == hash(other)
    assert [n.path for n in device.nodes] == ["/dev/a", "/dev/b"]
    assert [c.code for c in device.conditions] == ["burnt", "a", "warm"]


def test_a_device_node_is_on_the_host_where_it_says() -> None:
    assert DeviceNode(path="/dev/a").on_host == "/dev/a"
    assert DeviceNode(path="/dev/a", host_path="/x/a").on_host == "/x/a"


def test_a_numa_node_that_the_firmware_does_not_name_is_not_known() -> None:
    assert Locality(numa_node=0).numa_node == 0
    with pytest.raises(ModelError, match="must be None"):
        Locality(numa_node=-1)


def test_legal_starts_are_in_order() -> None:
    assert Profile(name="p", slug="p", size=1, starts=(4, 0, 2)).starts == (0, 2, 4)


def test_texts_and_times_alone_do_not_make_conditions_and_problems_differ() -> None:
    told = attrs.evolve(fatal(), message="words", since=START)

    assert told == fatal()
    assert Problem(code="x", reason="a", remedy="b", since=START) == Problem(code="x", since=LATER)


# Links, groups and snapshots.


def test_a_link_is_the_same_in_both_directions() -> None:
    one = Link.between(of("a"), of("b"), LinkKind.DIRECT, count=2, bandwidth=9, up=False)

    assert one == Link.between(of("b"), of("a"), LinkKind.DIRECT, count=2, bandwidth=9, up=False)
    with pytest.raises(ModelError, match="a must sort before b"):
        Link(a=of("b"), b=of("a"), kind=LinkKind.DIRECT)


def test_no_device_is_linked_to_itself() -> None:
    with pytest.raises(ModelError, match="a must sort before b"):
        Link.between(of("a"), of("a"), LinkKind.DIRECT)


def test_a_group_has_each_member_once_in_order() -> None:
    assert Group(kind="k", name="n", members=(of("b"), of("a"), of("b"))).members == (
        of("a"),
        of("b"),
    )


@given(st.permutations([gpu("a"), gpu("b"), cut("c"), part("c", 0)]))
def test_equal_nodes_give_equal_snapshots(devices: list[Device]) -> None:
    links = [
        Link(a=of("a"), b=of("b"), kind=LinkKind.HOST),
        Link(a=of("b"), b=of("c"), kind=LinkKind.SOCKET),
    ]
    groups = [Group(kind="k", name=n, members=(of("a"),)) for n in "yx"]
    problems = [Problem(code="b"), Problem(vendor="toy", code="a"), Problem(code="a")]
    one = Snapshot(
        devices=tuple(devices),
        links=tuple(links),
        groups=tuple(groups),
        problems=tuple(problems),
        taken_at=START,
    )
    other = Snapshot(
        devices=tuple(devices[::-1]),
        links=tuple(links[::-1]),
        groups=tuple(groups[::-1]),
        problems=tuple(problems[::-1]),
        taken_at=LATER,
    )

    assert one == other
    assert hash(one) == hash(other)
    assert list(one.by_id) == [of("a"), of("b"), of("c"), of("c-1g-0")]


def test_a_snapshot_names_every_contradiction() -> None:
    stray = Group(kind="k", name="n", members=(of("x"),))

    with pytest.raises(ModelError, match=r"toy/a is reported 2 times; group k/n: toy/x is not"):
        Snapshot(devices=(gpu("a"), gpu("a")), groups=(stray,))


# Invariants.


def test_facts_that_fit_have_no_contradictions() -> None:
    devices = cut("a"), part("a", 0), part("a", 3), gpu("b")
    links = (
        Link(a=of("a"), b=of("b"), kind=LinkKind.ONDIE),
        Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT),
        Link(a=of("a"), b=of("b"), kind=LinkKind.FABRIC, bandwidth=0),
        Link(a=of("a"), b=of("b"), kind=LinkKind.SWITCH),
    )

    assert contradictions(devices, links, [Group(kind="k", name="n", members=(of("b"),))]) == ()


def test_the_name_of_a_partition_is_its_place() -> None:
    assert partition_name("gpu-0", "1g10gb-me", 3) == "gpu-0-1g10gb-me-3"


WIDE = Profile(name="wide", slug="wide", size=3, starts=(0, 2))


@pytest.mark.parametrize(
    "device,words",
    [
        (gpu("a", slots=129), "toy/a: it must have at most 128 slots, found 129"),
        (cut("a", profiles=(WIDE,)), "toy/a: profile wide does not lie in the 4 slots"),
        (
            cut("a", profiles=(attrs.evolve(SMALL, starts=(-1,)),)),
            "toy/a: profile 1g does not lie in the 4 slots",
        ),
        (
            cut("a", profiles=(attrs.evolve(SMALL, size=0),)),
            "toy/a: profile 1g does not lie in the 4 slots",
        ),
        (
            cut("a", profiles=(SMALL, attrs.evolve(SMALL, slug="x"))),
            "toy/a: two of its profiles are called 1g",
        ),
        (
            cut("a", profiles=(SMALL, attrs.evolve(BIG, slug="1g"))),
            "toy/a: two of its profiles are called 1g",
        ),
        (
            cut("a", profiles=(attrs.evolve(SMALL, slug="1.g"),)),
            "toy/a: profile 1g has the slug '1.g', which gives partitions no DNS label for a name",
        ),
        (cut("a", profiles=(attrs.evolve(SMALL, limit=0),)), "toy/a: profile 1g has the limit 0"),
        (
            cut("a", profiles=(attrs.evolve(SMALL, counters=FrozenMap({"ce": -1})),)),
            "toy/a: profile 1g needs less than nothing",
        ),
        (
            cut("a", profiles=(attrs.evolve(SMALL, mode="on"),)),
            "toy/a: profile 1g needs mode on: there is none",
        ),
        (
            cut("a", modes=(Mode(name="on", cut="1g", count=5),)),
            "toy/a: mode on cannot be 5 of 1g",
        ),
        (
            cut("a", modes=(Mode(name="on", cut="3g", count=1),)),
            "toy/a: mode on cannot be 1 of 3g",
        ),
    ],
)
def test_what_a_device_can_be_cut_to_makes_sense(device: Device, words: str) -> None:
    assert contradictions([device], (), ()) == (words,)


@pytest.mark.parametrize(
    "device",
    [
        cut("a", profiles=(attrs.evolve(SMALL, mode="on", limit=1),), modes=(Mode(name="on"),)),
        cut("a", modes=(Mode(name="on", cut="1g", count=4), Mode(name="off"))),
        gpu("a", slots=128),
    ],
)
def test_a_device_that_can_be_cut_is_fine(device: Device) -> None:
    assert contradictions([device], (), ()) == ()


@pytest.mark.parametrize(
    "devices,words",
    [
        ([part("a", 0)], "toy/a-1g-0: its parent toy/a is not there"),
        (
            [cut("a", vendor="other"), attrs.evolve(part("a", 0), parent=of("a", "other"))],
            "toy/a-1g-0: its parent other/a is another vendor's",
        ),
        (
            [
                cut("a"),
                part("a", 0),
                attrs.evolve(part("a", 1), id=of("a-1g-0-1g-1"), parent=of("a-1g-0")),
            ],
            "toy/a-1g-0-1g-1: its parent toy/a-1g-0 is a partition itself",
        ),
        ([cut("a"), part("a", 0, WIDE)], "toy/a-wide-0: toy/a has no profile wide"),
        ([cut("a"), part("a", 1, BIG)], "toy/a-2g-me-1: 2g+me cannot be at slot 1 of toy/a"),
        (
            [cut("a"), part("a", 0, placement=Placement(profile="1g", start=0, size=2))],
            "toy/a-1g-0: 1g cannot be at slot 0 of toy/a",
        ),
        (
            [cut("a"), part("a", 0, id=of("a-x"))],
            "toy/a-x: the name of a partition is its place",
        ),
    ],
)
def test_a_misplaced_partition_contradicts_its_parent(devices: list[Device], words: str) -> None:
    assert contradictions(devices, (), ()) == (words,)


def test_partitions_of_one_parent_do_not_overlap() -> None:
    wide = Profile(name="wide", slug="wide", size=2, starts=(0, 1))
    one, other = cut("a"), cut("b")
    devices = [
        attrs.evolve(one, profiles=(wide,)),
        attrs.evolve(other, profiles=(wide,)),
        part("a", 0, wide),
        part("a", 1, wide),
        part("b", 0, wide),
    ]

    assert contradictions(devices, (), ()) == (
        "toy/a-wide-1 and toy/a-wide-0 overlap in slot 1 of toy/a",
    )


AMOUNTS = "count must be at least 1 and bandwidth not negative"


def link(kind: LinkKind, *, count: int = 1, bandwidth: int | None = None) -> Link:
    return Link(a=of("a"), b=of("b"), kind=kind, count=count, bandwidth=bandwidth)


@pytest.mark.parametrize(
    "links,words",
    [
        ([link(LinkKind.DIRECT)] * 2, "the DIRECT link of toy/a and toy/b is reported twice"),
        (
            [link(LinkKind.SWITCH), link(LinkKind.HOST)],
            "the HOST link of toy/a and toy/b is reported twice",
        ),
        (
            [Link(a=of("a"), b=of("x"), kind=LinkKind.DIRECT)],
            "the DIRECT link of toy/a and toy/x: toy/x is not there",
        ),
        (
            [link(LinkKind.DIRECT, count=0)],
            f"the DIRECT link of toy/a and toy/b: {AMOUNTS}",
        ),
        (
            [link(LinkKind.DIRECT, bandwidth=-1)],
            f"the DIRECT link of toy/a and toy/b: {AMOUNTS}",
        ),
    ],
)
def test_links_that_cannot_be_are_contradictions(links: list[Link], words: str) -> None:
    assert contradictions([gpu("a"), gpu("b")], links, ()) == (words,)


def test_a_group_has_known_members_only() -> None:
    group = Group(kind="k", name="n", members=(of("a"), of("x")))

    assert contradictions([gpu("a")], (), [group]) == ("group k/n: toy/x is not there",)


def test_nodes_that_differ_in_any_field_have_one_order() -> None:
    """Of a set: with a key that leaves fields out, the order changed from process to process."""
    numbers = (None, 0, 1, 2, 3)
    nodes = [
        DeviceNode(path="/dev/a", host_path=path, kind=kind, major=major, minor=minor)
        for path in (None, "/dev/a", "/dev/b")
        for kind in ("b", "c")
        for major in numbers
        for minor in numbers
    ]

    orders = {sorted_nodes(nodes[n:] + nodes[:n]) for n in range(len(nodes))}

    (order,) = orders
    assert order == sorted_nodes(reversed(order))
    assert [n.minor for n in order if (n.host_path, n.kind, n.major) == (None, "b", None)] == [
        *numbers
    ]
