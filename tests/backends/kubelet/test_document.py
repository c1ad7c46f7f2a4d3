"""What the kubelet sees of a view."""

import attrs
import pytest

from accelkit.backends.kubelet.backend import create
from accelkit.backends.kubelet.document import (
    Document,
    WireDevice,
    catalog_of,
    document,
    fit,
    is_former,
    overflow,
)
from accelkit.core.limits import DEVICE_ID_LIMIT, RESOURCE_IDS_LIMIT
from accelkit.core.policy import Offer, Policy, Selection, Sharing
from accelkit.core.values import Enforcement, FrozenMap, Health, HolderKind, Standing
from accelkit.core.view import Assignment, Verdict, View
from tests.backends.kubelet.world import (
    RESOURCE,
    gpu,
    holding,
    ident,
    lost,
    part,
    sick,
    view_of,
)

SHARED = Offer(name="all", sharing=Sharing(shares=3))


def wire(ident: str, *nodes: int, healthy: bool = True) -> WireDevice:
    return WireDevice(id=ident, healthy=healthy, numa_nodes=nodes)


def rendered(view: View) -> Document:
    return document(fit(catalog_of(view), view))


def why(view: View, resource: str = RESOURCE) -> dict[str, str]:
    return {entry.wire.id: entry.why for entry in catalog_of(view, ())[resource]}


def test_usable_devices_are_listed_under_their_names() -> None:
    assert rendered(view_of(gpu("b"), gpu("a"))) == {RESOURCE: (wire("a"), wire("b"))}


def test_document_is_the_same_for_equal_views_and_whoever_renders_it() -> None:
    devices = [gpu("a", numa=0), gpu("b", numa=0), sick(gpu("c"))]
    backend = create(Policy())

    assert backend.render(view_of(*devices)) == backend.render(view_of(*reversed(devices)))


def test_shares_of_a_device_have_ids_of_their_own() -> None:
    view = view_of(gpu("a"), offers=[SHARED])

    assert rendered(view) == {RESOURCE: (wire("a::0"), wire("a::1"), wire("a::2"))}


def test_device_whose_sharing_cannot_be_enforced_is_listed_exclusively() -> None:
    sharing = Sharing(shares=3, enforce=Enforcement.MPS)

    assert rendered(view_of(gpu("a"), offers=[Offer(name="all", sharing=sharing)])) == {
        RESOURCE: (wire("a"),)
    }


def test_numa_node_is_a_hint() -> None:
    view = view_of(gpu("a", numa=1), gpu("b"))

    assert rendered(view) == {RESOURCE: (wire("a", 1), wire("b"))}


def test_unhealthy_device_stays_in_the_list() -> None:
    view = view_of(sick(gpu("a")))

    assert rendered(view) == {RESOURCE: (wire("a", healthy=False),)}
    assert why(view) == {"a": "it is unhealthy: burnt"}


def test_all_shares_of_an_unhealthy_device_are_unhealthy() -> None:
    """Seen elsewhere: one share was, the wrong one or none."""
    view = view_of(sick(gpu("a")), gpu("b"), offers=[SHARED])

    listed = {device.id: device.healthy for device in rendered(view)[RESOURCE]}
    assert listed == {f"{name}::{share}": name == "b" for name in "ab" for share in range(3)}


@pytest.mark.parametrize("overdue, healthy", [(False, True), (True, False)])
def test_device_of_unknown_health_is_to_be_had_until_that_is_overdue(
    overdue: bool, healthy: bool
) -> None:
    verdict = Verdict(health=Health.UNKNOWN, overdue=overdue)
    view = attrs.evolve(view_of(gpu("a")), verdicts=FrozenMap({ident("a"): verdict}))

    assert rendered(view) == {RESOURCE: (wire("a", healthy=healthy),)}


def test_devices_of_a_name_with_claims_left_are_unhealthy_all_of_them() -> None:
    """The kubelet counts pods with those claims against the name, and ends others for them."""
    view = view_of(gpu("a"), gpu("b"), held=[holding("b")])
    waiting = attrs.evolve(view, kubelet_waits=FrozenMap({RESOURCE: "claims-left"}))
    elsewhere = attrs.evolve(view, kubelet_waits=FrozenMap({"other.test/x": "claims-left"}))

    assert why(waiting) == dict.fromkeys("ab", "claims made for its resource are left")
    assert rendered(waiting) == {RESOURCE: (wire("a", healthy=False), wire("b", healthy=False))}
    assert rendered(elsewhere) == rendered(view)


def test_device_without_verdict_is_unhealthy() -> None:
    view = attrs.evolve(view_of(gpu("a")), verdicts=FrozenMap())

    assert why(view) == {"a": "its health is not known yet"}


def test_device_without_edits_is_unhealthy() -> None:
    assert why(view_of(gpu("a"), without_edits=["a"])) == {
        "a": "what its container needs could not be found"
    }


def test_lost_device_that_is_held_stays_as_unhealthy() -> None:
    view = view_of(lost(gpu("a")), held=[holding("a")])

    assert rendered(view) == {RESOURCE: (wire("a", healthy=False),)}
    assert why(view) == {"a": "it is gone"}


def test_leaving_device_that_is_held_is_unhealthy_and_then_absent() -> None:
    before = view_of(gpu("a"))
    other = [Offer(name="other", through="dra")]
    leaving = view_of(gpu("a"), offers=other, held=[holding("a")], previous=before)
    gone = view_of(gpu("a"), offers=other, previous=leaving)

    assert rendered(leaving) == {RESOURCE: (wire("a", healthy=False),)}
    assert rendered(gone) == {}


def test_device_that_leaves_for_another_resource_is_in_its_old_one_alone() -> None:
    before = view_of(gpu("a"))
    renamed = [Offer(name="all", resource="acme.test/new-{kind}")]
    view = view_of(gpu("a"), offers=renamed, held=[holding("a")], previous=before)

    assert rendered(view) == {RESOURCE: (wire("a", healthy=False),)}


def test_partitions_are_listed_instead_of_their_parent() -> None:
    whole, piece = gpu("a"), part("a", 0)

    assert rendered(view_of(whole, piece)) == {"acme.test/part-1g": (wire("a-1g-0"),)}


def test_parent_is_left_out_even_if_a_view_offers_it_beside_its_partitions() -> None:
    view = view_of(gpu("a"), part("a", 0))
    offer = Offer(name="all")
    both = FrozenMap({device: Assignment(terms=offer) for device in view.devices})
    view = attrs.evolve(view, assignments=both, edits=FrozenMap())

    assert set(rendered(view)) == {"acme.test/part-1g"}


def test_parent_that_is_held_stays_as_unhealthy_beside_its_partitions() -> None:
    plain = view_of(gpu("a"), part("a", 0))
    assignments = FrozenMap({d: Assignment(terms=Offer(name="all")) for d in plain.devices})
    edits = view_of(gpu("a"), gpu("b")).edits
    view = attrs.evolve(plain, assignments=assignments, holdings=(holding("a"),), edits=edits)

    assert why(view) == {"a": "its partitions are offered"}


def test_parent_that_is_cut_is_not_to_be_had() -> None:
    view = view_of(gpu("a", usable=False), held=[holding("a")], previous=view_of(gpu("a")))

    assert rendered(view) == {RESOURCE: (wire("a", healthy=False),)}


def test_devices_offered_through_another_backend_are_not_listed() -> None:
    assert rendered(view_of(gpu("a"), offers=[Offer(name="all", through="dra")])) == {}


def test_literal_resource_without_devices_has_an_empty_list() -> None:
    offers = [Offer(name="all", resource="acme.test/rare")]

    assert rendered(view_of(offers=offers)) == {"acme.test/rare": ()}


@pytest.mark.parametrize(
    "offer",
    [
        Offer(name="template", resource="acme.test/{kind}"),
        Offer(name="default"),
        Offer(name="dra", resource="acme.test/rare", through="dra"),
        Offer(name="absent", resource="o.test/x", select=Selection(vendor=("other",))),
    ],
    ids=lambda offer: offer.name,
)
def test_resource_without_devices_is_absent_unless_named_for_a_vendor_that_is_here(
    offer: Offer,
) -> None:
    assert rendered(view_of(offers=[offer])) == {}


def test_literal_resource_is_absent_until_its_vendor_has_answered() -> None:
    offers = [Offer(name="all", resource="acme.test/rare")]

    assert rendered(view_of(offers=offers, answered=[])) == {}


def test_device_that_pods_hold_under_a_former_name_is_listed_there_as_unhealthy() -> None:
    view = view_of(gpu("a"), held=[holding("a", resource="acme.test/old")])

    assert rendered(view) == {"acme.test/old": (wire("a", healthy=False),)}
    assert is_former(catalog_of(view, ())["acme.test/old"])


def test_share_that_pods_hold_keeps_its_id_when_the_device_is_exclusive_by_now() -> None:
    view = view_of(gpu("a"), held=[holding("a", share="2")])

    assert why(view) == {
        "a": f"it is held through {RESOURCE}",
        "a::2": "it is no longer offered under this name",
    }


def test_device_that_another_plugin_gave_to_a_pod_is_not_to_be_had() -> None:
    held = [holding("a", through="foreign", resource="other.test/gpu")]
    view = view_of(gpu("a"), held=held, previous=view_of(gpu("a")))

    assert why(view) == {"a": "it is held through other.test/gpu"}


def test_device_that_a_foreign_process_uses_is_to_be_had() -> None:
    held = [holding("a", through="process", resource=None, kind=HolderKind.FOREIGN)]

    assert why(view_of(gpu("a"), held=held)) == {"a": ""}


def test_device_that_was_just_handed_out_stays_healthy() -> None:
    view = view_of(gpu("a"), held=[holding("a", resource=None)])

    assert why(view) == {"a": ""}


def test_more_ids_than_the_kubelet_can_take_are_left_out_but_not_held_ones() -> None:
    devices = [gpu(f"g{number:02}") for number in range(17)]
    offers = [Offer(name="all", sharing=Sharing(shares=128))]
    view = view_of(*devices, offers=offers, held=[holding("g16", share="0")])
    catalog = catalog_of(view, ())

    kept = {device.id for device in rendered(view)[RESOURCE]}
    assert len(kept) == RESOURCE_IDS_LIMIT
    assert "g16::127" in kept
    assert "g15::127" not in kept
    assert overflow(catalog) == {RESOURCE: f"{RESOURCE} has 2176 ids, 2048 are offered"}


def test_no_id_is_longer_than_a_device_name_may_be() -> None:
    sharing = Sharing(shares=128)
    longest = gpu("a" * 40)

    view = view_of(longest, offers=[Offer(name="all", sharing=sharing)])

    assert max(len(device.id) for device in rendered(view)[RESOURCE]) <= DEVICE_ID_LIMIT


def test_device_that_is_assigned_but_not_there_is_not_listed() -> None:
    view = view_of(gpu("a"))
    ghost = FrozenMap({ident("ghost"): Assignment(terms=Offer(name="all"))})

    assert rendered(attrs.evolve(view, assignments=ghost)) == {}


def test_stale_device_is_listed_as_its_verdict_says() -> None:
    view = view_of(gpu("a", standing=Standing.STALE))

    assert rendered(view) == {RESOURCE: (wire("a"),)}


def test_parent_that_is_cut_is_not_to_be_had_even_if_a_view_offers_it() -> None:
    view = attrs.evolve(
        view_of(gpu("a", usable=False)),
        assignments=FrozenMap({ident("a"): Assignment(terms=Offer(name="all"))}),
    )

    assert why(view) == {"a": "it is cut into partitions"}
