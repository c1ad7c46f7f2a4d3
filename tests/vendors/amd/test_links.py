from itertools import combinations

import pytest

from accelkit import Link, LinkKind
from tests.vendors.amd.bench import Bench, Make

NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes"


def links(made: Bench) -> dict[tuple[int, int], dict[LinkKind, Link]]:
    """Links by the positions of their ends."""
    wholes = made.wholes()
    found = list(made.vendor.links(made.host, made.devices()))
    return {
        (i, j): {k.kind: k for k in found if {k.a, k.b} == {wholes[i].id, wholes[j].id}}
        for i, j in combinations(range(len(wholes)), 2)
    }


def by_place(made: Bench) -> list[str]:
    return [d.locality.pci_address or "" for d in made.wholes()]


def test_gpus_of_a_hive_are_linked_all_to_all(bench: Make) -> None:
    made = bench("mi300x", 8)
    found = links(made)

    assert len(found) == 28
    for kinds in found.values():
        assert kinds[LinkKind.DIRECT].count == 1
        assert kinds[LinkKind.DIRECT].bandwidth == 64_000_000_000


def test_gpus_of_two_hives_are_linked_inside_each(bench: Make) -> None:
    made = bench("mi210", 8)
    direct = [pair for pair, kinds in links(made).items() if LinkKind.DIRECT in kinds]
    groups = list(made.vendor.groups(made.devices()))

    assert len(direct) == 2 * 6
    assert [len(g.members) for g in groups] == [4, 4]
    assert {g.kind for g in groups} == {"hive"}


def test_two_gpus_of_a_package_have_more_links(bench: Make) -> None:
    made = bench("mi250x", 4)
    counts = sorted(kinds[LinkKind.DIRECT].count for kinds in links(made).values())

    assert counts == [1, 1, 1, 1, 4, 4]


def test_links_of_gpus_that_are_cut_are_those_of_the_whole(bench: Make) -> None:
    made = bench("mi300x", 2)
    before = links(made)
    made.do("mode gpu-0 CPX", "mode gpu-1 CPX")
    after = links(made)

    assert after.keys() == before.keys()
    assert after[0, 1][LinkKind.DIRECT].count == 1
    assert after[0, 1][LinkKind.DIRECT].bandwidth is None


def test_gpus_below_one_switch_are_near(bench: Make) -> None:
    made = bench("rx7900", 4)
    places = by_place(made)
    pairs = {
        tuple(sorted((places[i], places[j])))
        for (i, j), kinds in links(made).items()
        if LinkKind.SWITCH in kinds
    }

    assert pairs == {("0000:03:00.0", "0000:04:00.0"), ("0000:13:00.0", "0000:14:00.0")}


def test_link_that_leads_nowhere_or_to_itself_is_none(bench: Make) -> None:
    made = bench("mi210", 2)
    for node, to in ((2, 2), (3, 99)):
        made.put(f"{NODES}/{node}/io_links/1/properties", f"type 11\nnode_to {to}\n")

    assert all(LinkKind.DIRECT not in kinds for kinds in links(made).values())


@pytest.mark.parametrize(
    "least,most,count",
    [(50000, 200000, 4), (0, 200000, 1), (50000, 0, 1), (3, 50000, 1), (1, 99999, 1)],
)
def test_number_of_links_is_that_of_their_bandwidth(
    bench: Make, least: int, most: int, count: int
) -> None:
    made = bench("mi210", 2)
    for node, to in ((2, 3), (3, 2)):
        text = f"type 11\nnode_to {to}\nmin_bandwidth {least}\nmax_bandwidth {most}\n"
        made.put(f"{NODES}/{node}/io_links/1/properties", text)

    assert links(made)[0, 1][LinkKind.DIRECT].count == count


def test_only_links_of_devices_that_are_asked_for_are_told(bench: Make) -> None:
    made = bench("mi300x", 3)
    first, second, _ = made.devices()
    found = list(made.vendor.links(made.host, (first, second)))

    assert {frozenset((k.a, k.b)) for k in found} == {frozenset((first.id, second.id))}
    assert list(made.vendor.links(made.host, ())) == []
