"""What becomes of chips and cores where they are offered: names, preferences, laws."""

from collections.abc import Iterable

import pytest

from accelkit import Device, IllegalSet
from accelkit.agent.admission import check_law
from accelkit.backends.dra.document import render
from accelkit.backends.dra.pool import Dialect
from accelkit.backends.kubelet.document import catalog_of
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Snapshot
from accelkit.core.offers import resource_of
from accelkit.core.policy import DraPolicy, Offer, Policy, Selection, Sharing
from accelkit.core.preference import prefer
from accelkit.core.reading import read_inventory
from accelkit.core.snapshot import build_view
from accelkit.core.topology import legality_of, topology_of
from accelkit.core.view import View
from tests.vendors.neuron.bench import Bench, Make
from tests.vendors.opened import NOW

CHIPS = Offer(name="chips", select=Selection(kind=("neuron",)), resource="{domain}/{kind}")
CORES = Offer(name="cores", select=Selection(kind=("neuroncore",)), resource="{domain}/{kind}")


def view_of(made: Bench, *offers: Offer) -> View:
    report = read_inventory(made.vendor, made.host)
    return build_view(
        Snapshot(
            node="node-a",
            devices=report.devices,
            links=report.links,
            groups=report.groups,
            answered=frozenset({"neuron"}),
        ),
        Policy(offers=offers),
        holdings=(),
        edits={d.id: ContainerEdits() for d in report.devices},
        domains={"neuron": made.vendor.domain},
        previous=None,
        now_s=0.0,
        now=NOW,
    )


def preferred(view: View, offer: Offer, free: Iterable[Device], size: int) -> tuple[str, ...]:
    topology = topology_of(view, offer)
    legal = legality_of(view, offer, topology)
    choice = prefer(topology, [d.id.name for d in free], (), size, legal=legal)
    assert choice.legal
    return choice.ids


def names(*devices: Device) -> tuple[str, ...]:
    return tuple(sorted(d.id.name for d in devices))


def test_resources_are_called_as_those_of_the_makers_plugin(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()

    assert resource_of(CHIPS, chip, made.vendor.domain) == "aws.amazon.com/neuron"
    assert resource_of(CORES, made.cores()[0], made.vendor.domain) == "aws.amazon.com/neuroncore"


def test_chips_are_called_as_today_without_an_offer(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    offer = Offer(name="all")

    assert resource_of(offer, chip, made.vendor.domain) == "aws.amazon.com/neuron"
    cores = resource_of(offer, made.cores()[0], made.vendor.domain)
    assert cores == "aws.amazon.com/neuroncore-lnc2"


def test_kubelet_gets_either_chips_or_their_cores(bench: Make) -> None:
    """Both names are for the same silicon, and a kubelet knows no counters."""
    made = bench("inf2", 2)
    chips = catalog_of(view_of(made, CHIPS))
    both = catalog_of(view_of(made, CHIPS, CORES))

    assert {name: len(ids) for name, ids in chips.items()} == {"aws.amazon.com/neuron": 2}
    assert {name: len(ids) for name, ids in both.items() if ids} == {"aws.amazon.com/neuroncore": 4}


def test_neighbouring_cores_are_preferred(bench: Make) -> None:
    """Without it containers got cores that the runtime refuses, unless a scheduler knew better."""
    made = bench("trn2", 2)
    one, other = made.chips()
    view = view_of(made, CORES)
    mine, theirs = made.cores(one), made.cores(other)

    assert preferred(view, CORES, (mine[0], mine[2], mine[3], theirs[1]), 2) == names(
        mine[2], mine[3]
    )
    assert preferred(view, CORES, (*mine[:3], *theirs), 4) == names(*theirs)


def test_chips_of_one_row_are_preferred(bench: Make) -> None:
    made = bench("trn1", 16)
    chips = made.chips()
    free = [chips[n] for n in (1, 2, 3, 4, 5, 6, 7, 8, 12)]

    assert preferred(view_of(made, CHIPS), CHIPS, free, 4) == names(*chips[4:8])


def test_sets_that_the_runtime_cannot_run_are_refused(bench: Make) -> None:
    made = bench("trn1", 16)
    view, chips = view_of(made, CHIPS, CORES), made.chips()
    core = made.cores(chips[5])[0]

    check_law(view, {c.id for c in chips[4:8]})
    for wrong in (chips[3:7], chips[:2], (chips[0], core)):
        with pytest.raises(IllegalSet):
            check_law(view, {device.id for device in wrong})


def test_claims_may_have_a_chip_or_its_cores(bench: Make) -> None:
    """Counters keep both apart; nothing of them stands in the other's way."""
    made = bench("trn2", 1)
    view = view_of(made, Offer(name="all", through="dra"))
    (pool,) = render(view, DraPolicy(), Dialect(), {}).pools.values()
    devices = [device for one in pool.slices for device in one.devices]

    assert len(devices) == 5
    assert [device.taints for device in devices] == [()] * 5
    totals = {c.name: dict(c.counters) for one in pool.slices for c in one.counter_sets}
    (chip,) = made.chips()
    used = [dict(d.consumes[0].counters) for d in devices]
    assert used[0] == totals[chip.id.name]
    assert {key: sum(core[key] for core in used[1:]) for key in used[0]} == used[0]


def test_cores_are_never_shared(bench: Make) -> None:
    """A core belongs to a process until that ends: the second one would fail."""
    made = bench("trn2", 1)
    offer = Offer(name="cores", select=Selection(kind=("neuroncore",)), sharing=Sharing(shares=2))
    view = view_of(made, offer)
    given = {view.assignments[core.id].terms for core in made.cores()}

    assert {terms.sharing.shares for terms in given if terms is not None} == {1}
