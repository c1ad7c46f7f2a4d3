"""How a view offers what is there, and what a claim would have made first."""

from collections.abc import Iterable, Mapping

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.model import Device, DeviceId, Holder, Holding, Snapshot
from accelkit.core.partitioning import plan, steps
from accelkit.core.policy import (
    Offer,
    Partitioning,
    PartitioningHow,
    Policy,
    Selection,
    Sharing,
)
from accelkit.core.snapshot import build_view
from accelkit.core.values import FrozenMap, HolderKind
from accelkit.core.view import View
from tests.core.partitioning.nodes import (
    COLD,
    LAYOUTS,
    at,
    carved,
    holdings_on,
    modal,
    node,
    nodes,
    plain,
    policies,
    taken,
)
from tests.core.things import DOMAINS, START, of, pod

DYNAMIC = (Partitioning(how=PartitioningHow.DYNAMIC),)
DRA = Offer(name="dra", through="dra")
KUBELET = Offer(name="kubelet")
WHOLES = Selection(partition=False)
PARTS = Selection(partition=True)


def seen(
    snapshot: Snapshot,
    *offers: Offer,
    rules: Iterable[Partitioning] = DYNAMIC,
    holdings: Iterable[Holding] = (),
    previous: View | None = None,
    going: Mapping[DeviceId, str] = FrozenMap(),
    makers: Iterable[str] | None = None,
) -> View:
    return build_view(
        snapshot,
        Policy(offers=offers, partitioning=tuple(rules), layouts=LAYOUTS),
        holdings=holdings,
        edits={},
        domains=DOMAINS,
        previous=previous,
        now_s=0.0,
        now=START,
        going=going,
        makers=None if makers is None else frozenset(makers),
    )


def offers(view: View) -> dict[str, str]:
    """What is offered in which offer; a - before those that a device is leaving."""
    return {
        i.name: ("-" if given.leaving else "") + given.terms.name
        for i, given in view.assignments.items()
        if given.terms is not None
    }


def why(view: View, name: str) -> str:
    return view.assignments[of(name)].why


def claim(device: Device) -> Holding:
    holder = Holder(kind=HolderKind.CLAIM, claim="train")
    return Holding(device=device.id, through="dra", holder=holder)


def small(device: Device) -> Snapshot:
    """A node with *device* and few partitions that could be."""
    return node(attrs.evolve(device, profiles=device.profiles[2:]))


def test_partitions_that_could_be_are_offered_beside_what_is_there() -> None:
    device = attrs.evolve(carved("a", mode="mig"), profiles=carved("a").profiles[2:])

    view = seen(node(device, at(device, "2g", 0)), DRA)

    assert [part.id for part in view.potential] == [of("a-2g-2")]
    assert offers(view) == {"a": "dra", "a-2g-0": "dra", "a-2g-2": "dra"}
    assert [*view.offered] == [of("a"), of("a-2g-0"), of("a-2g-2")]
    assert view.offered[of("a-2g-2")] == at(device, "2g", 2)
    assert of("a-2g-2") not in view.devices
    assert of("a-2g-2") not in view.verdicts


def test_a_partition_is_offered_the_same_before_and_after_it_is_made() -> None:
    device = attrs.evolve(carved("a", mode="mig"), profiles=carved("a").profiles[2:])
    shared = Offer(name="shared", through="dra", select=PARTS, sharing=Sharing(shares=2))
    before = seen(node(device), shared, DRA)

    after = seen(node(device, at(device, "2g", 0)), shared, DRA, previous=before)

    assert after.assignments == before.assignments
    assert after.offered == before.offered


def test_without_dynamic_only_what_is_there_is_offered() -> None:
    device = carved("a", mode="mig")

    view = seen(node(device, at(device, "1g", 0)), DRA, rules=())

    assert (offers(view), view.potential) == ({"a-1g-0": "dra"}, ())
    assert why(view, "a") == "it cannot be handed out as it stands, only its partitions (mode mig)"


def test_through_the_kubelet_only_what_is_there_is_offered() -> None:
    device = attrs.evolve(carved("a", mode="mig"), profiles=carved("a").profiles[2:])

    view = seen(node(device, at(device, "2g", 0)), KUBELET)

    assert offers(view) == {"a-2g-0": "kubelet"}
    assert why(view, "a-2g-2") == why(view, "a") == "kubelet hands out only what is there already"


@pytest.mark.parametrize(
    "device,offered",
    [
        (carved("a"), ["a", "a-2g-0", "a-2g-2"]),
        (carved("a", mode="mig"), ["a", "a-2g-0", "a-2g-2"]),
        (carved("a", modes=COLD), ["a"]),
        (carved("a", modes=COLD, mode="mig"), ["a-2g-0", "a-2g-2"]),
    ],
    ids=["live, off", "live, on", "not live, off", "not live, on"],
)
def test_the_mode_follows_the_claims_only_where_it_is_live(
    device: Device, offered: list[str]
) -> None:
    assert [*offers(seen(small(device), DRA))] == offered


def test_a_device_that_its_plugin_cannot_cut_is_offered_as_it_stands() -> None:
    view = seen(small(carved("a")), DRA, makers=[])

    assert (offers(view), view.potential) == ({"a": "dra"}, ())


def test_a_family_stays_in_one_backend_that_of_what_could_be() -> None:
    wholes = Offer(name="wholes", select=WHOLES)

    view = seen(small(carved("a")), wholes, DRA)

    assert offers(view) == {"a-2g-0": "dra", "a-2g-2": "dra"}
    assert why(view, "a") == "its family is offered through dra"


def test_what_could_be_is_not_offered_while_a_pod_has_the_device_through_the_kubelet() -> None:
    before = seen(small(carved("a")), KUBELET, rules=())

    view = seen(small(carved("a")), DRA, previous=before, holdings=[pod(of("a"))])

    assert offers(view) == {"a": "-kubelet"}
    assert why(view, "a-2g-0") == "the device that it is a part of is held as a whole"


def test_what_could_be_stays_offered_while_a_claim_has_the_whole_device() -> None:
    snapshot = small(carved("a"))

    view = seen(snapshot, DRA, holdings=[claim(carved("a"))])

    assert [*offers(view)] == ["a", "a-2g-0", "a-2g-2"]


def test_a_claim_keeps_the_terms_of_a_place_where_nothing_is_yet() -> None:
    snapshot = small(carved("a", mode="mig"))
    held = [claim(at(carved("a"), "2g", 0))]
    before = seen(snapshot, DRA, holdings=held)
    other = Offer(name="other", through="dra")

    after = seen(snapshot, other, previous=before, holdings=held)

    assert offers(before)["a-2g-0"] == "dra"
    assert offers(after) == {"a": "other", "a-2g-0": "-dra", "a-2g-2": "other"}


def test_what_is_about_to_go_is_not_to_be_had() -> None:
    device = carved("a", mode="mig")
    parts = at(device, "1g", 0), at(device, "1g", 1)
    snapshot = node(device, *parts)
    before = seen(snapshot, KUBELET, rules=())
    going = {part.id: "the layout has no place for it" for part in parts}

    view = seen(
        snapshot, KUBELET, rules=(), previous=before, going=going, holdings=[pod(parts[0].id)]
    )

    assert offers(view) == {"a-1g-0": "-kubelet"}
    assert why(view, "a-1g-1") == "the layout has no place for it"
    nothing = {of("gone"): "it went"}
    assert seen(snapshot, KUBELET, rules=(), going=nothing).assignments == before.assignments


def test_a_view_carries_what_the_agent_knows_of_claims_and_names() -> None:
    view = build_view(
        node(plain("a")),
        Policy(),
        edits={},
        domains=DOMAINS,
        previous=None,
        now_s=0.0,
        now=START,
        made=[of("a-1g-0")],
        stuck=[of("a-1g-1")],
        dra_waits={"toy.example/gpu": "kubelet"},
        kubelet_waits={"toy.example/x": "claims"},
    )

    assert view.made == {of("a-1g-0")}
    assert view.stuck == {of("a-1g-1")}
    assert view.dra_waits == {"toy.example/gpu": "kubelet"}
    assert view.kubelet_waits == {"toy.example/x": "claims"}


def test_a_layout_is_offered_when_it_is_made() -> None:
    """The parent is in mode mig then, and not usable."""
    rule = Partitioning(how=PartitioningHow.LAYOUT, layout="mixed")
    snapshot = node(carved("a"))
    policy = Policy(partitioning=(rule,), layouts=LAYOUTS)

    after = taken(snapshot, steps(snapshot, plan(snapshot, policy)))
    device = attrs.evolve(after.by_id[of("a")], usable=False)
    view = seen(node(device, *(d for d in after.devices if d.parent)), KUBELET, rules=[rule])

    assert offers(view) == {"a-1g-2": "kubelet", "a-2g-0": "kubelet"}


def test_partitions_of_a_mode_are_offered_as_they_are() -> None:
    device = modal("a", mode="dpx")

    view = seen(node(device, at(device, "dpx", 0), at(device, "dpx", 2)), DRA)

    assert offers(view) == {"a-dpx-0": "dra", "a-dpx-2": "dra"}


some_offers = st.lists(
    st.builds(
        Offer,
        name=st.just(""),
        select=st.sampled_from([Selection(), WHOLES, PARTS, Selection(profile=("1g",))]),
        through=st.sampled_from(["kubelet", "dra"]),
        sharing=st.sampled_from([Sharing(), Sharing(shares=2)]),
    ),
    max_size=3,
).map(lambda some: [attrs.evolve(o, name=f"o{n}") for n, o in enumerate(some)])


@given(st.data())
def test_families_stay_in_one_backend_whatever_could_be(data: st.DataObject) -> None:
    snapshot = data.draw(nodes())
    rules = data.draw(policies).partitioning
    first, second = data.draw(some_offers), data.draw(some_offers)
    holdings = data.draw(holdings_on(snapshot))
    before = seen(snapshot, *first, rules=rules)

    after = seen(snapshot, *second, rules=rules, previous=before, holdings=holdings)

    again = seen(snapshot, *second, rules=rules, previous=after, holdings=holdings)
    assert again.assignments == after.assignments
    known = {**after.devices, **{part.id: part for part in after.potential}}
    assert after.assignments.keys() == known.keys()
    unmade = {part.id for part in after.potential}
    backends: dict[DeviceId, set[str]] = {}
    for i, device in after.offered.items():
        terms = after.assignments[i].terms
        assert terms is not None
        assert not (i in unmade and terms.through == "kubelet")
        backends.setdefault(device.root, set()).add(terms.through)
    if not holdings:
        assert all(len(some) == 1 for some in backends.values())
        for root, some in backends.items():
            parts = [i for i, d in after.offered.items() if d.parent == root]
            assert some != {"kubelet"} or not (parts and root in after.offered)
