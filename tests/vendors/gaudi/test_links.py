import pytest

from accelkit import GroupRule, LinkKind
from tests.vendors.gaudi.bench import Bench, Make


def groups(made: Bench) -> dict[str, list[object]]:
    """Module ids of each group, ascending."""
    found = made.devices()
    modules = {d.id: d.attributes["moduleId"] for d in found}
    return {
        g.name: sorted((modules[m] for m in g.members), key=str) for g in made.vendor.groups(found)
    }


@pytest.mark.parametrize(
    "product, ports, bandwidth",
    [("gaudi3", 3, 75_000_000_000), ("gaudi2", 3, 37_500_000_000), ("gaudi", 1, 12_500_000_000)],
)
def test_modules_of_a_board_are_wired_all_to_all(
    bench: Make, product: str, ports: int, bandwidth: int
) -> None:
    made = bench(product)
    links = list(made.vendor.links(made.host, made.devices()))

    assert len(links) == 28
    assert {(k.kind, k.count, k.bandwidth) for k in links} == {(LinkKind.DIRECT, ports, bandwidth)}


def test_pcie_cards_are_wired_in_fours(bench: Make) -> None:
    """Seen: programs for a whole board fail on cards of which two fours are not connected."""
    made = bench("gaudi2-pcie")
    devices = made.devices()
    modules = {d.id: d.attributes["moduleId"] for d in devices}
    pairs = [(modules[k.a], modules[k.b]) for k in made.vendor.links(made.host, devices)]

    assert len(pairs) == 12
    assert all(int(str(a)) // 4 == int(str(b)) // 4 for a, b in pairs)
    assert "8-0" not in groups(made)


def test_sets_are_made_of_modules_and_not_of_nodes(bench: Make) -> None:
    made = bench()

    assert groups(made) == {
        "2-0": [0, 1],
        "2-2": [2, 3],
        "2-4": [4, 5],
        "2-6": [6, 7],
        "4-0": [0, 1, 2, 3],
        "4-4": [4, 5, 6, 7],
        "8-0": [0, 1, 2, 3, 4, 5, 6, 7],
    }
    assert {g.rule for g in made.vendor.groups(made.devices())} == {GroupRule.HINT}


def test_set_that_is_not_whole_is_no_set(bench: Make) -> None:
    made = bench()
    made.do("remove gaudi-0")

    assert sorted(groups(made)) == ["2-2", "2-4", "2-6", "4-4"]


@pytest.mark.parametrize("said", ["7", "none"])
def test_two_cards_with_one_module_tell_nothing_of_wires(bench: Make, said: str) -> None:
    made = bench(count=2)
    made.do(f"module gaudi-0 {said}", f"module gaudi-1 {said}")

    assert list(made.vendor.links(made.host, made.devices())) == []
    assert list(made.vendor.groups(made.devices())) == []
