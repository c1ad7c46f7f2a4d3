from itertools import pairwise

import pytest

from accelkit.cli import layout
from accelkit.cli.layout import Branch, Level
from accelkit.core.model import Device, Link, Locality
from accelkit.core.values import LinkKind
from tests.core.things import gpu, of


def at(name: str, numa: int | None, root: str | None = None) -> Device:
    return gpu(name, locality=Locality(numa_node=numa, pcie_root=root))


def link(one: str, other: str, kind: LinkKind) -> Link:
    return Link.between(of(one), of(other), kind)


def shape(branches: tuple[Branch | Device, ...]) -> list[object]:
    """Names of devices, and of branches with what is inside."""
    return [
        one.id.name if isinstance(one, Device) else {one.label: shape(one.inside)}
        for one in branches
    ]


def test_devices_are_in_frames_of_numa_node_and_root() -> None:
    devices = [at("a", 0, "pci0000:00"), at("b", 0, "pci0000:10"), at("c", 1, "pci0000:20")]

    found = layout.branches_of(devices, [])

    assert shape(found) == [
        {"NUMA 0": [{"pci0000:00": ["a"]}, {"pci0000:10": ["b"]}]},
        {"NUMA 1": [{"pci0000:20": ["c"]}]},
    ]


def test_devices_keep_their_order_around_those_that_share_a_switch() -> None:
    devices = [at(name, None) for name in "abcd"]
    links = [
        link("c", "d", LinkKind.SWITCH),
        *(link(x, y, LinkKind.BRIDGE) for x in "ab" for y in "cd"),
        link("a", "b", LinkKind.BRIDGE),
    ]

    assert shape(layout.branches_of(devices, links)) == [
        {"switches": ["a", "b", {"switch": ["c", "d"]}]}
    ]


def test_one_switch_for_all_is_one_frame() -> None:
    devices = [at("a", 0), at("b", 0)]

    found = layout.branches_of(devices, [link("a", "b", LinkKind.SWITCH)])

    assert shape(found) == [{"NUMA 0": [{"switch": ["a", "b"]}]}]


def test_devices_of_which_nothing_is_known_have_no_frame() -> None:
    found = layout.branches_of([at("a", None), at("b", None)], [])

    assert shape(found) == ["a", "b"]
    assert layout.lines_of(found) == (found,)
    assert layout.lines_of(()) == ()


def test_several_numa_nodes_are_on_two_lines() -> None:
    found = layout.branches_of([at("a", 0), at("b", 1), at("c", 2)], [])

    assert [shape(line) for line in layout.lines_of(found)] == [
        [{"NUMA 0": ["a"]}, {"NUMA 1": ["b"]}],
        [{"NUMA 2": ["c"]}],
    ]


def test_mirrored_line_is_the_other_way_round_inside_too() -> None:
    found = layout.branches_of([at("a", 0), at("b", 0), at("c", 1)], [])

    assert shape(layout.mirrored(found)) == [{"NUMA 1": ["c"]}, {"NUMA 0": ["b", "a"]}]


@pytest.mark.parametrize("outward", [-1, 1])
def test_boxes_are_apart_and_inside_their_frames(outward: int) -> None:
    devices = [at(f"d{n}", n // 2, f"pci0000:{n}0") for n in range(4)]
    links = [link("d0", "d1", LinkKind.SWITCH)]

    line = layout.place(layout.branches_of(devices, links), 50, outward)
    boxes = sorted(line.boxes.values(), key=lambda box: box.x)

    assert all(a.right < b.x for a, b in pairwise(boxes))
    assert len({box.y for box in boxes}) == 1
    for frame in line.frames:
        inside = [b for b in boxes if frame.rect.x < b.middle < frame.rect.right]
        assert inside
        for box in inside:
            assert frame.rect.x < box.x
            assert box.right < frame.rect.right
            assert frame.rect.y < box.y
            assert box.bottom < frame.rect.bottom
    assert [frame.level for frame in line.frames][:2] == [Level.NUMA, Level.ROOT]
    assert line.rect.right == max(frame.rect.right for frame in line.frames)


def test_long_line_has_narrow_boxes() -> None:
    devices = [at(f"d{n}", None) for n in range(layout.FEW + 1)]

    line = layout.place(devices, 0, -1)

    assert {box.width for box in line.boxes.values()} == {layout.NARROW}
