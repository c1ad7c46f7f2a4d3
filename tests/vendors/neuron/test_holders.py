"""Processes that have chips open."""

from accelkit import Holder, HolderKind, Holding
from tests.vendors.neuron.bench import Bench, Make


def holders(made: Bench) -> list[Holding]:
    return list(made.vendor.holders(made.host, made.devices()))


def test_process_with_a_chip_is_a_foreign_holder_of_it(bench: Make) -> None:
    made = bench("trn2", 2)
    made.do("hold neuron-1 4711", "hold neuron-1 12", "hold neuron-0 4711")
    one, other = made.chips()

    assert [(h.device, h.holder.uid) for h in holders(made) if h.device == one.id] == [
        (one.id, "4711")
    ]
    assert {h.holder.uid for h in holders(made) if h.device == other.id} == {"12", "4711"}
    assert holders(made)[0] == Holding(
        device=other.id, through="process", holder=Holder(kind=HolderKind.FOREIGN, uid="12")
    )


def test_process_that_is_dying_holds_its_chip_until_it_has_let_go(bench: Make) -> None:
    """Seen elsewhere: cores that were handed out again at once failed now and then."""
    made = bench("inf2", 1)
    made.do("hold neuron-0 99")
    assert len(holders(made)) == 1
    made.do("free neuron-0")
    assert holders(made) == []


def test_chip_without_its_file_has_no_holders(bench: Make) -> None:
    made = bench("inf2", 1)
    made.do("hold neuron-0 99", "no-node neuron-0")

    assert holders(made) == []
