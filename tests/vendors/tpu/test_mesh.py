from itertools import combinations

import pytest

from accelkit import GroupRule, LinkKind
from accelkit.vendors.tpu.vendor import Tpu
from tests.vendors.tpu.bench import Make

OF_FOUR = {(0,), (1,), (2,), (3,), (0, 1), (2, 3), (0, 1, 2, 3)}


def test_host_of_four_has_seven_legal_sets(bench: Make) -> None:
    assert bench("v5e", 4).legal() == OF_FOUR


def test_host_of_eight_has_aligned_blocks(bench: Make) -> None:
    legal = bench("v6e", 8).legal()

    assert len(legal) == 15
    assert {block for block in legal if len(block) > 2} == {
        (0, 1, 2, 3),
        (4, 5, 6, 7),
        tuple(range(8)),
    }


def test_every_legal_set_is_law(bench: Make) -> None:
    made = bench("v5e", 8)

    assert {g.rule for g in made.vendor.groups(made.devices())} == {GroupRule.LAW}


def test_worker_of_several_is_used_as_a_whole(bench: Make) -> None:
    assert bench("v5p", 4, topology="2x2x4").legal() == {(0, 1, 2, 3)}


def test_chip_without_driver_takes_its_blocks_along(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("bind tpu-2 none")
    found = made.devices()
    legal = {tuple(m.name for m in g.members) for g in made.vendor.groups(found)}

    names = [d.id.name for d in found]
    assert legal == {(n,) for n in names} | {(names[0], names[1])}


def test_places_are_not_guessed_when_a_chip_is_gone(bench: Make) -> None:
    """Which one is gone cannot be seen, so only single chips are left."""
    made = bench("v5e", 4)
    made.do("lose tpu-1")

    assert made.legal() == {(0,), (1,), (2,)}
    assert made.links() == set()


def test_worker_of_several_with_a_chip_gone_is_no_use(bench: Make) -> None:
    made = bench("v5e", 4, topology="4x4")
    made.do("lose tpu-1")

    assert made.legal() == set()


def test_worker_of_several_with_a_chip_without_driver_is_no_use(bench: Make) -> None:
    made = bench("v5e", 4, topology="4x4")
    made.do("bind tpu-1 none")

    assert made.legal() == set()


def test_chips_of_a_square_are_linked_to_their_neighbours(bench: Make) -> None:
    assert bench("v5e", 4).links() == {(0, 1), (2, 3), (0, 2), (1, 3)}


@pytest.mark.parametrize("product,count", [("v4", 4), ("v5e", 8), ("7x", 4)])
def test_members_of_a_legal_set_reach_each_other_inside_it(
    bench: Make, product: str, count: int
) -> None:
    made = bench(product, count)
    links = made.links()
    for block in made.legal():
        inside = {pair for pair in combinations(block, 2) if pair in links}
        reached = {block[0]}
        for _ in block:
            reached |= {end for pair in inside if {*pair} & reached for end in pair}

        assert reached == {*block}


def test_links_have_the_bandwidth_of_their_generation(bench: Make) -> None:
    found = {}
    for product in ("v5e", "v6e", "v4"):
        made = bench(product, 2)
        (link,) = made.vendor.links(made.host, made.devices())
        found[product] = (link.kind, link.bandwidth)

    assert found == {
        "v5e": (LinkKind.DIRECT, 50_000_000_000),
        "v6e": (LinkKind.DIRECT, 100_000_000_000),
        "v4": (LinkKind.DIRECT, None),
    }


def test_nothing_is_linked_to_what_is_not_asked_about(bench: Make) -> None:
    made = bench("v5e", 8)
    some = made.devices()[:3]

    assert {end for k in made.vendor.links(made.host, some) for end in (k.a, k.b)} == {
        d.id for d in some
    }
    assert list(made.vendor.groups(())) == []


@pytest.mark.parametrize("product, count", [("v6e", 8), ("v5e", 4), ("7x", 4), ("v5e", 2)])
def test_claims_can_ask_for_each_legal_part_of_a_host_by_an_attribute(
    bench: Make, product: str, count: int
) -> None:
    """The scheduler knows attributes, and no sets."""
    made = bench(product, count)
    devices = made.devices()
    for size in (2, 4):
        named = [d.attributes.get(f"block{size}") for d in devices]
        asked = {tuple(i for i, n in enumerate(named) if n == name) for name in {*named} - {None}}
        legal = {found for found in made.legal() if len(found) == size < count}

        assert asked == legal


def test_host_of_several_has_no_parts_to_ask_for(bench: Make) -> None:
    made = bench("v5e", 4, topology="4x4")

    assert "block2" not in made.devices()[0].attributes


def test_host_of_more_chips_than_are_made_has_declared_attributes_only(bench: Make) -> None:
    for device in bench("v6e", 16).devices():
        assert device.attributes.keys() <= Tpu.attributes.keys()
