"""Sets of chips and cores that the runtime can run, and links between chips."""

import pytest
from hypothesis import given, settings, strategies as st

from accelkit import AccessDenied, Device, DeviceId, FrozenMap, GroupRule, Link, LinkKind, Placement
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.sets import groups
from tests.vendors.neuron.bench import CHIPS, Bench, Make, Unprivileged


def numbered(made: Bench) -> dict[DeviceId, int]:
    return {chip.id: int(str(chip.attributes["deviceId"])) for chip in made.chips()}


def chip_sets(made: Bench) -> list[list[int]]:
    """Legal sets by the numbers of their chips, one chip left out."""
    numbers = numbered(made)
    found = (sorted(numbers[i] for i in members) for members in made.sets("chips"))
    return sorted(found, key=lambda some: (len(some), some))


def pairs(made: Bench) -> dict[tuple[int, int], int]:
    numbers = numbered(made)
    links = made.vendor.links(made.host, made.devices())
    ends = [(sorted((numbers[link.a], numbers[link.b])), link.count) for link in links]
    return {(a, b): count for (a, b), count in ends}


def rules(made: Bench) -> dict[str, set[GroupRule]]:
    found = made.groups()
    return {kind: {g.rule for g in found if g.kind == kind} for kind in ("chips", "cores")}


@pytest.mark.parametrize(
    "index, beside", [(0, (12, 3, 4, 1)), (15, (11, 14, 3, 12)), (5, (1, 4, 9, 6))]
)
def test_neighbours_in_a_torus_are_as_published(index: int, beside: tuple[int, ...]) -> None:
    assert facts.neighbours(index) == beside


@pytest.mark.parametrize("product", ["trn1", "trn2", "trn3"])
def test_chips_of_a_torus_run_in_aligned_blocks(bench: Make, product: str) -> None:
    found = chip_sets(bench(product, 16))

    assert [len(some) for some in found] == [1] * 16 + [4] * 4 + [8, 8, 16]
    assert found[16:20] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert found[20] == [*range(8)]


def test_torus_that_lacks_a_chip_has_no_set_with_it(bench: Make) -> None:
    made = bench("trn1", 16)
    made.do("lose neuron-15")

    assert [len(some) for some in chip_sets(made)] == [1] * 15 + [4] * 3 + [8]


def test_chips_of_a_ring_run_in_any_run_of_neighbours(bench: Make) -> None:
    found = chip_sets(bench("inf2", 6))

    assert [len(some) for some in found] == [n for n in range(1, 6) for _ in range(6)] + [6]
    assert [0, 5] in found
    assert [0, 1, 5] in found
    assert [0, 2] not in found


@pytest.mark.parametrize("verb", ["lose neuron-5", "remove neuron-5", "bind neuron-5 vfio-pci"])
def test_ring_that_lacks_its_last_chip_has_no_runs_over_the_gap(bench: Make, verb: str) -> None:
    """Numbers end at the last chip that is there, and that one is not linked with the first."""
    made = bench("inf2", 6)
    made.do(verb)

    assert [some for some in chip_sets(made) if len(some) == 2] == [[i, i + 1] for i in range(4)]
    assert set(pairs(made)) == {(i, i + 1) for i in range(4)}


def test_ring_that_lacks_another_chip_has_runs_over_its_ends(bench: Make) -> None:
    made = bench("inf2", 6)
    made.do("lose neuron-2")

    found = [some for some in chip_sets(made) if len(some) == 2]
    assert found == [[0, 1], [0, 5], [3, 4], [4, 5]]


@pytest.mark.parametrize("text", ["x\n", "\n"])
def test_chip_with_nonsense_for_links_costs_no_other_its_place(bench: Make, text: str) -> None:
    """Claims for a row match what all its chips have."""
    made = bench("trn2", 16)
    made.put(f"{CHIPS}/neuron3/connected_devices", text)

    assert {chip.attributes.get("topology") for chip in made.chips()} == {"torus"}
    assert all("topology4_id" in chip.attributes for chip in made.chips())


def test_chain_has_no_runs_over_its_ends(bench: Make) -> None:
    made = bench("inf2", 6, {"links": "chain"})

    assert {chip.attributes["topology"] for chip in made.chips()} == {"chain"}
    assert [0, 5] not in chip_sets(made)
    assert [len(some) for some in chip_sets(made)] == [1] * 6 + [2] * 5 + [3] * 4 + [4] * 3 + [
        5,
        5,
        6,
    ]


def test_ring_whose_links_are_not_known_has_no_runs_over_its_ends(bench: Make) -> None:
    made = bench("inf2", 4)
    made.host = Unprivileged(made.directory)

    assert [0, 3] not in chip_sets(made)
    assert [1, 2] in chip_sets(made)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_few_chips_are_preferred_in_blocks_and_others_are_not_refused(
    bench: Make, count: int
) -> None:
    """The maker says nothing of such hosts."""
    made = bench("trn3", count)
    found = chip_sets(made)

    assert [*range(count)] in found
    assert all(len(some) in {1, 2, 4} for some in found)
    assert rules(made) == {"chips": {GroupRule.HINT}, "cores": {GroupRule.LAW}}


@pytest.mark.parametrize("product, count", [("trn1", 16), ("inf2", 1), ("inf2", 6)])
def test_sets_that_the_maker_documents_are_laws(bench: Make, product: str, count: int) -> None:
    made = bench(product, count)

    assert rules(made) == {"chips": {GroupRule.LAW}, "cores": {GroupRule.LAW}}


def test_chips_of_an_unknown_sort_have_no_laws(bench: Make) -> None:
    made = bench("inf2", 2)
    for index in (0, 1):
        made.put(f"{CHIPS}/neuron{index}/info/architecture/device_name", "Graviton0\n")

    assert made.sets("chips") == set()


@pytest.mark.parametrize("lnc, cores", [("1", 8), ("2", 4)])
def test_cores_of_a_chip_run_in_any_run_of_neighbours(bench: Make, lnc: str, cores: int) -> None:
    made = bench("trn2", 1)
    made.do(f"lnc {lnc}")
    ids = [core.id for core in made.cores()]

    assert made.sets("cores") == {
        frozenset(ids[first : first + size])
        for size in range(1, cores + 1)
        for first in range(cores - size + 1)
    }


def test_cores_of_several_chips_run_as_their_whole_chips_do(bench: Make) -> None:
    made = bench("inf2", 4, {"links": "chain"})
    cores = {chip.id: {core.id for core in made.cores(chip)} for chip in made.chips()}
    several = {some for some in made.sets("cores") if len(some) > 2}

    assert several == {
        frozenset().union(*(cores[chip] for chip in some))
        for some in made.sets("chips")
        if len(some) > 1
    }


def test_sets_follow_the_chips_when_a_boot_numbers_them_anew(bench: Make) -> None:
    made = bench("trn2", 16)
    before = made.sets("chips")
    made.do("reboot")

    assert made.sets("chips") == before


def test_every_chip_of_a_torus_has_four_links(bench: Make) -> None:
    made = bench("trn2", 16)
    found = pairs(made)

    assert len(found) == 32
    assert {b for a, b in found if a == 0} == {1, 3, 4, 12}
    assert {link.kind for link in made.vendor.links(made.host, made.devices())} == {LinkKind.DIRECT}


def test_ring_is_closed_and_chain_is_not(bench: Make) -> None:
    assert pairs(bench("inf2", 3)) == {(0, 1): 1, (1, 2): 1, (0, 2): 1}
    assert pairs(bench("inf2", 3, {"links": "chain"})) == {(0, 1): 1, (1, 2): 1}
    assert pairs(bench("inf2", 1)) == {}


def test_of_ends_that_differ_the_lower_count_is_told(bench: Make) -> None:
    made = bench("inf2", 2)
    made.put(f"{CHIPS}/neuron0/connected_devices", "1, 1\n")

    assert pairs(made) == {(0, 1): 1}
    made.put(f"{CHIPS}/neuron1/connected_devices", "0, 0, 0\n")
    assert pairs(made) == {(0, 1): 2}


def test_one_end_suffices(bench: Make) -> None:
    """The driver answers nothing where its buffer is too small for the numbers."""
    made = bench("inf2", 2)
    made.put(f"{CHIPS}/neuron0/connected_devices", "")

    assert pairs(made) == {(0, 1): 1}


@pytest.mark.parametrize("text", ["x\n", "-1\n", "1;2\n", "9999\n", "1,,2\n", "²\n"])
def test_chip_with_nonsense_for_links_has_those_that_others_tell(bench: Make, text: str) -> None:
    made = bench("inf2", 3)
    made.put(f"{CHIPS}/neuron0/connected_devices", text)

    assert pairs(made) == {(0, 1): 1, (1, 2): 1, (0, 2): 1}
    assert len(made.chips()) == 3


def test_links_are_not_known_to_processes_that_are_not_root(bench: Make) -> None:
    """Then the last ones stay, with a problem that says why."""
    made = bench("inf2", 2)
    devices = made.devices()

    with pytest.raises(AccessDenied):
        list(made.vendor.links(Unprivileged(made.directory), devices))


def chip(index: int, product: str, topology: str | None) -> Device:
    attributes = {} if topology is None else {"topology": topology}
    return Device(
        id=DeviceId(vendor="neuron", name=f"neuron-{index:016x}"),
        kind="neuron",
        product=product,
        handle=f"neuron{index}",
        attributes=FrozenMap(attributes),
    )


def core(parent: Device, start: int) -> Device:
    return Device(
        id=DeviceId(vendor="neuron", name=f"{parent.id.name}-core-{start}"),
        kind="neuroncore",
        parent=parent.id,
        placement=Placement(profile="core", start=start, size=1),
        handle=parent.handle,
    )


@settings(max_examples=150, deadline=None)
@given(
    indices=st.sets(st.integers(0, 63), min_size=1, max_size=20),
    product=st.sampled_from([*facts.FAMILIES, "Other"]),
    topology=st.sampled_from([None, "torus", "ring", "chain"]),
    cut=st.booleans(),
)
def test_whatever_chips_are_there_each_alone_is_legal_and_no_set_comes_twice(
    indices: set[int], product: str, topology: str | None, *, cut: bool
) -> None:
    chips = [chip(index, product, topology) for index in sorted(indices)]
    cores = [core(one, start) for one in chips for start in range(2 if cut else 0)]
    found = list(groups((*chips, *cores)))
    wholes = [frozenset(g.members) for g in found if g.kind == "chips"]

    assert len(set(wholes)) == len(wholes)
    assert len({(g.kind, g.name) for g in found}) == len(found)
    if product != "Other":
        assert {frozenset({one.id}) for one in chips} <= set(wholes)


def test_links_of_a_torus_are_what_neighbours_say(bench: Make) -> None:
    made = bench("trn1", 16)
    numbers = numbered(made)
    links = list(made.vendor.links(made.host, made.devices()))

    assert {frozenset((numbers[k.a], numbers[k.b])) for k in links} == {
        frozenset((i, j)) for i in range(16) for j in facts.neighbours(i)
    }
    assert all(isinstance(link, Link) for link in links)
