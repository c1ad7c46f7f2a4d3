"""Which devices are preferred."""

from accelkit.backends.kubelet.document import Entry, catalog_of
from accelkit.backends.kubelet.preferred import Preference, choose, lowest, preference_of
from accelkit.core.model import Group
from accelkit.core.policy import Offer, Place, Sharing
from accelkit.core.values import GroupRule
from accelkit.core.view import View
from tests.backends.kubelet.world import RESOURCE, gpu, ident, sick, view_of


def entries(view: View) -> tuple[Entry, ...]:
    return catalog_of(view, ()).get(RESOURCE, ())


def preference(view: View) -> Preference:
    found = preference_of(view, entries(view), None)
    assert found is not None
    return found


def test_devices_of_one_numa_node_go_together() -> None:
    view = view_of(gpu("a", numa=0), gpu("b", numa=1), gpu("c", numa=0), gpu("d", numa=1))

    assert choose(preference(view), ["a", "b", "d"], [], 2) == ("b", "d")


def test_must_is_in_the_answer_though_another_set_is_closer() -> None:
    view = view_of(gpu("a", numa=0), gpu("b", numa=1), gpu("d", numa=1))

    assert choose(preference(view), ["a", "b", "d"], ["a"], 2) == ("a", "b")


def test_shares_are_spread_or_packed_as_the_offer_says() -> None:
    def chosen(place: Place) -> tuple[str, ...]:
        offer = Offer(name="all", sharing=Sharing(shares=2, place=place))
        view = view_of(gpu("a"), gpu("b"), offers=[offer])
        ids = ["a::0", "a::1", "b::0", "b::1"]
        return choose(preference(view), ids, [], 2)

    assert chosen(Place.PACKED) == ("a::0", "a::1")
    assert chosen(Place.SPREAD) == ("a::0", "b::0")


def test_sets_that_the_vendor_can_run_are_chosen_before_closer_ones() -> None:
    law = Group(kind="ring", name="r", members=(ident("a"), ident("b")), rule=GroupRule.LAW)
    view = view_of(gpu("a", numa=0), gpu("b", numa=1), gpu("c", numa=0), groups=[law])

    assert choose(preference(view), ["a", "b", "c"], [], 2) == ("a", "b")


def test_ids_that_nobody_knows_are_taken_only_where_others_do_not_suffice() -> None:
    view = view_of(gpu("a"), gpu("b"))

    assert choose(preference(view), ["zz", "b", "a"], [], 3) == ("a", "b", "zz")


def test_without_topology_the_lowest_ids_are_taken() -> None:
    assert choose(None, ["c", "a", "b"], ["b"], 2) == ("b", "a")


def test_no_devices_are_asked_for_and_none_answered() -> None:
    assert lowest(["a"], [], 0) == ()
    assert lowest(["a"], [], -1) == ()


def test_topology_is_kept_while_only_health_changes() -> None:
    before = view_of(gpu("a"), gpu("b"))
    kept = preference(before)
    after = view_of(sick(gpu("a")), gpu("b"))

    assert preference_of(before, entries(before), kept) is kept
    assert preference_of(after, entries(after), kept) is kept


def test_topology_is_made_anew_when_devices_come() -> None:
    before = preference(view_of(gpu("a")))
    view = view_of(gpu("a"), gpu("b"))

    after = preference_of(view, entries(view), before)

    assert after is not None
    assert after.topology.ids == ("a", "b")


def test_topology_stays_when_nothing_is_to_be_had() -> None:
    before = preference(view_of(gpu("a")))

    assert preference_of(view_of(), (), before) is before
