from collections.abc import Iterable, Mapping

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.model import Device, DeviceId, Holder, Holding, Problem, Snapshot
from accelkit.core.offers import assign, check_offers, extended_of, resource_of
from accelkit.core.policy import Divide, Expect, Offer, Policy, Selection, Sharing, Timeslice
from accelkit.core.values import Enforcement, FrozenMap, HolderKind, Standing
from accelkit.core.view import Assignment
from tests.core.things import BIG, DOMAINS, cut, gpu, of, part, pod, policy, process

ALL = Offer(name="all")
DRA = Offer(name="dra", through="dra")
SHARED = Offer(name="shared", sharing=Sharing(shares=4))


def picking(name: str, *devices: str, **fields: object) -> Offer:
    return attrs.evolve(Offer(name=name, select=Selection(name=devices)), **fields)  # type: ignore[arg-type]  # of Offer


def given_to(
    devices: Iterable[Device],
    *offers: Offer,
    previous: Mapping[DeviceId, Assignment] = FrozenMap(),
    holdings: Iterable[Holding] = (),
    holders_known: bool = True,
    only: Selection = Selection(),  # noqa: B008 - a value
) -> FrozenMap[DeviceId, Assignment]:
    return assign(
        Snapshot(node="node", devices=tuple(devices)),
        Policy(offers=offers, only=only),
        previous,
        holdings,
        domains=DOMAINS,
        holders_known=holders_known,
    )


def names(assigned: Mapping[DeviceId, Assignment]) -> dict[str, str | None]:
    """Offers by device; a - before those that the device is leaving."""
    return {
        i.name: None if a.terms is None else ("-" if a.leaving else "") + a.terms.name
        for i, a in assigned.items()
    }


def problems(
    devices: Iterable[Device],
    rules: Policy,
    previous: Mapping[DeviceId, Assignment] = FrozenMap(),
    holdings: Iterable[Holding] = (),
) -> tuple[Problem, ...]:
    snapshot = Snapshot(node="node", devices=tuple(devices))
    assigned = assign(snapshot, rules, previous, holdings, domains=DOMAINS)
    return check_offers(snapshot, rules, assigned, DOMAINS)


def found(several: Iterable[Problem]) -> list[tuple[str | None, str, str]]:
    return [(p.subject, p.code, p.reason) for p in several]


# Names of resources.


@pytest.mark.parametrize(
    "template,device,resource",
    [
        ("", gpu("a"), "toy.example/gpu"),
        ("", part("a", 0), "toy.example/slice-1g"),
        ("", part("a", 0, BIG), "toy.example/slice-2g.me"),
        ("x.example/{kind}.shared", gpu("a"), "x.example/gpu.shared"),
        ("{domain}/{profile}", gpu("a"), "toy.example/whole"),
        ("{domain}/{profile}", part("a", 0, BIG), "toy.example/2g.me"),
        ("x.example/{other}", gpu("a"), "x.example/{other}"),
    ],
)
def test_resources_are_named_by_template_or_kind_and_profile(
    template: str, device: Device, resource: str
) -> None:
    assert resource_of(Offer(name="all", resource=template), device, "toy.example") == resource


def test_extended_resource_may_name_the_profile() -> None:
    template = Offer(name="all", through="dra", extended_resource="example.com/mig-{profile}")

    assert extended_of(template, part("a", 0, BIG)) == "example.com/mig-2g.me"
    assert extended_of(template, gpu("a")) == "example.com/mig-whole"
    assert extended_of(Offer(name="all", through="dra"), gpu("a")) == ""


# Who takes what.


def test_the_first_offer_that_selects_a_device_takes_it() -> None:
    offers = picking("one", "a"), picking("two", "a", "b", resource="x.example/two")

    assert names(given_to([gpu("a"), gpu("b"), gpu("c")], *offers)) == {
        "a": "one",
        "b": "two",
        "c": None,
    }


def test_devices_outside_only_are_not_offered() -> None:
    assigned = given_to([gpu("a"), gpu("b")], ALL, only=Selection(name=("a",)))

    assert names(assigned) == {"a": "all", "b": None}
    assert assigned[of("b")].why == "the policy's only leaves it out"


def test_devices_that_cannot_be_handed_out_are_not_offered() -> None:
    assert names(given_to([cut("a"), part("a", 0)], ALL)) == {"a": None, "a-1g-0": "all"}


def test_a_device_that_cannot_keep_the_promise_is_offered_exclusively() -> None:
    mps = Offer(name="mps", sharing=Sharing(shares=4, enforce=Enforcement.MPS))
    able = gpu("able", sharing=frozenset({Enforcement.MPS}))
    unable, never = gpu("unable"), gpu("never", sharing=frozenset())

    assigned = given_to([able, unable, never], mps)

    assert {i.name: a.terms and a.terms.sharing for i, a in assigned.items()} == {
        "able": mps.sharing,
        "unable": Sharing(),
        "never": Sharing(),
    }
    assert found(problems([able, unable], policy(mps))) == [
        (
            "unable",
            "sharing-refused",
            "mps asks for sharing by mps, which the device cannot do: it is offered exclusively",
        )
    ]


def test_a_device_that_cannot_be_shared_can_still_be_offered_exclusively() -> None:
    assert given_to([gpu("a", sharing=frozenset())], ALL) == {of("a"): Assignment(terms=ALL)}


# Who keeps what.


def test_a_held_device_keeps_its_offer_and_is_leaving() -> None:
    before = given_to([gpu("a"), gpu("b")], ALL)

    after = given_to([gpu("a"), gpu("b")], DRA, previous=before, holdings=[pod(of("a"))])

    assert after == {
        of("a"): Assignment(terms=ALL, leaving=True),
        of("b"): Assignment(terms=DRA),
    }
    assert after[of("a")].why == "held, though it is now offered in dra"
    assert names(given_to([gpu("a")], DRA, previous=after)) == {"a": "dra"}


def test_a_held_device_that_nobody_offers_any_more_is_leaving() -> None:
    before = given_to([gpu("a")], ALL)

    after = given_to([gpu("a")], previous=before, holdings=[process(of("a"))])

    assert names(after) == {"a": "-all"}
    assert after[of("a")].why == "held, though it is now offered nowhere"


def test_nothing_changes_hands_while_holders_are_not_known() -> None:
    before = given_to([gpu("a")], ALL)

    after = given_to([gpu("a"), gpu("b")], DRA, previous=before, holders_known=False)

    assert names(after) == {"a": "-all", "b": "dra"}


@pytest.mark.parametrize(
    "old,new,taken",
    [
        (SHARED, attrs.evolve(SHARED, select=Selection(kind=("gpu",))), True),
        (SHARED, attrs.evolve(SHARED, sharing=Sharing(shares=5)), True),
        (SHARED, attrs.evolve(SHARED, sharing=Sharing(shares=3)), False),
        (SHARED, attrs.evolve(SHARED, sharing=Sharing(shares=5, divide=Divide.EQUAL)), False),
        (
            SHARED,
            attrs.evolve(SHARED, sharing=Sharing(shares=5, timeslice=Timeslice.LONG)),
            False,
        ),
        (ALL, attrs.evolve(ALL, sharing=Sharing(shares=2)), False),
        (SHARED, attrs.evolve(SHARED, resource="x.example/gpu"), False),
    ],
)
def test_terms_change_under_a_holder_only_where_it_does_no_harm(
    old: Offer, new: Offer, taken: bool
) -> None:
    before = given_to([gpu("a")], old)

    after = given_to([gpu("a")], new, previous=before, holdings=[pod(of("a"))])

    assert after == {of("a"): Assignment(terms=new if taken else old, leaving=not taken)}


def test_a_holder_found_through_our_own_name_restores_the_offer() -> None:
    offers = picking("one", "a", resource="x.example/one"), Offer(name="two")

    after = given_to([gpu("a"), gpu("b")], *offers, holdings=[pod(of("a"), "toy.example/gpu")])

    assert names(after) == {"a": "-two", "b": "two"}


def test_a_holder_found_through_the_right_name_changes_nothing() -> None:
    after = given_to([gpu("a")], ALL, holdings=[pod(of("a"), "toy.example/gpu")])

    assert after == given_to([gpu("a")], ALL)


def test_a_holder_is_found_in_the_offer_that_has_the_device_before_others_of_that_name() -> None:
    """After a restart shares in use were listed as if they were held from elsewhere."""
    offers = picking("other", "b"), Offer(name="all", sharing=Sharing(shares=2))

    after = given_to([gpu("a")], *offers, holdings=[pod(of("a"), "toy.example/gpu")])

    assert names(after) == {"a": "all"}


def test_a_claim_restores_the_first_offer_of_its_backend() -> None:
    claim = Holding(
        device=of("a"), through="dra", holder=Holder(kind=HolderKind.CLAIM, claim="train")
    )

    assert names(given_to([gpu("a")], ALL, DRA, holdings=[claim])) == {"a": "-dra"}


def test_a_device_held_through_a_strangers_name_is_not_offered_until_it_is_free() -> None:
    stranger = pod(of("a"), "stranger.example/gpu")

    held = given_to([gpu("a")], ALL, holdings=[stranger])
    still = given_to([gpu("a")], ALL, previous=held, holdings=[stranger])

    assert names(held) == names(still) == {"a": None}
    assert held[of("a")].why == "held through stranger.example/gpu, which no offer has"
    assert names(given_to([gpu("a")], ALL, previous=still)) == {"a": "all"}


def test_a_foreign_process_on_a_device_that_nobody_was_given_holds_nothing_back() -> None:
    assert names(given_to([gpu("a")], ALL, holdings=[process(of("a"))])) == {"a": "all"}


def test_a_lost_device_keeps_the_offer_of_its_holder() -> None:
    before = given_to([gpu("a")], ALL)
    lost = gpu("a", standing=Standing.LOST)

    assert given_to([lost], ALL, previous=before, holdings=[pod(of("a"))]) == before


# Families.


def test_towards_the_kubelet_partitions_win_over_their_parent() -> None:
    family = cut("a", usable=True), part("a", 0), gpu("b")

    assigned = given_to(family, ALL)

    assert names(assigned) == {"a": None, "a-1g-0": "all", "b": "all"}
    assert assigned[of("a")].why == "its partitions are offered instead"


def test_a_backend_with_counters_gets_partitions_and_their_parent() -> None:
    assert names(given_to([cut("a", usable=True), part("a", 0)], DRA)) == {
        "a": "dra",
        "a-1g-0": "dra",
    }


def test_a_parent_whose_partitions_are_not_offered_is_offered() -> None:
    wholes = Offer(name="wholes", select=Selection(partition=False))

    assert names(given_to([cut("a", usable=True), part("a", 0)], wholes)) == {
        "a": "wholes",
        "a-1g-0": None,
    }


def test_a_family_has_one_backend_that_of_its_partitions() -> None:
    wholes = Offer(name="wholes", select=Selection(partition=False))
    offers = wholes, picking("odd", "a-1g-1", through="dra"), DRA

    assigned = given_to([cut("a", usable=True), part("a", 0), part("a", 1)], *offers)

    assert names(assigned) == {"a": None, "a-1g-0": "dra", "a-1g-1": "odd"}
    assert assigned[of("a")].why == "its family is offered through dra"


def test_a_held_member_decides_the_backend_of_its_family() -> None:
    family = cut("a", usable=True), part("a", 0), part("a", 1)
    before = given_to(family, ALL)

    after = given_to(family, DRA, previous=before, holdings=[pod(of("a-1g-1"))])

    assert names(after) == {"a": None, "a-1g-0": None, "a-1g-1": "-all"}
    assert after[of("a-1g-0")].why == "its family is offered through kubelet"


def test_partitions_wait_until_their_parent_is_free() -> None:
    wholes = Offer(name="wholes", select=Selection(partition=False))
    family = cut("a", usable=True), part("a", 0)
    before = given_to(family, wholes)

    after = given_to(family, ALL, previous=before, holdings=[pod(of("a"))])

    assert names(after) == {"a": "-wholes", "a-1g-0": None}
    assert names(given_to(family, ALL, previous=after)) == {"a": None, "a-1g-0": "all"}


@pytest.mark.parametrize(
    "held,left", [("a", {"a": None, "a-1g-0": None}), ("a-1g-0", {"a": None, "a-1g-0": None})]
)
def test_a_stranger_in_a_family_keeps_the_rest_from_being_offered(
    held: str, left: dict[str, str | None]
) -> None:
    family = cut("a", usable=True), part("a", 0)

    assert names(given_to(family, DRA, holdings=[pod(of(held), "x.example/y")])) == left


# Names that two want.


def test_a_resource_belongs_to_the_first_offer_in_which_it_occurs() -> None:
    offers = (
        picking("one", "b", resource="x.example/gpu"),
        Offer(name="two", resource="x.example/gpu"),
    )

    assigned = given_to([gpu("a"), gpu("b")], *offers)

    assert names(assigned) == {"a": None, "b": "one"}
    assert assigned[of("a")].why == "x.example/gpu belongs to one"
    assert found(problems([gpu("a"), gpu("b")], policy(*offers))) == [
        ("two", "resource-taken", "x.example/gpu belongs to one")
    ]


def test_a_held_device_whose_resource_is_taken_is_leaving() -> None:
    two = Offer(name="two", resource="x.example/gpu")
    before = given_to([gpu("a"), gpu("b")], two)
    offers = picking("one", "b", resource="x.example/gpu"), two

    after = given_to([gpu("a"), gpu("b")], *offers, previous=before, holdings=[pod(of("a"))])

    assert names(after) == {"a": "-two", "b": "one"}
    assert found(problems([gpu("a"), gpu("b")], policy(*offers), before, [pod(of("a"))])) == [
        ("two", "resource-taken", "x.example/gpu belongs to one")
    ]


def test_an_offer_that_is_gone_is_no_problem_for_its_last_holder() -> None:
    devices = [gpu("a"), gpu("b")]
    before = given_to(devices, Offer(name="old"))

    assert problems(devices, policy(ALL), before, [pod(of("a"))]) == ()


def test_in_one_resource_a_device_name_is_one_vendors() -> None:
    one = Offer(name="one", resource="x.example/gpu")
    devices = [gpu("a"), gpu("a", vendor="other")]

    assigned = given_to(devices, one)
    held = given_to(
        devices, one, previous={of("a"): Assignment(terms=one)}, holdings=[pod(of("a"))]
    )

    assert [a.terms for a in assigned.values()] == [one, None]
    assert assigned[of("a")].why == "x.example/gpu has another a, other/a"
    assert found(problems(devices, policy(one))) == [
        ("toy/a", "device-name-taken", "x.example/gpu has another device called a")
    ]
    assert [a.terms for a in held.values()] == [None, one]


def test_a_resource_that_kubernetes_refuses_is_not_offered() -> None:
    bad = Offer(name="bad", resource="no-domain")

    assert names(given_to([gpu("a")], bad)) == {"a": None}
    assert [(p.subject, p.code) for p in problems([gpu("a"), gpu("b")], policy(bad))] == [
        ("bad", "resource-name-invalid")
    ]


# What else is asked for in vain.


def test_a_policy_that_gets_all_it_asks_for_has_no_problems() -> None:
    rules = attrs.evolve(policy(ALL), expect=(Expect(count=1),))

    assert problems([gpu("a"), cut("b", usable=True), part("b", 0)], rules) == ()
    assert problems([gpu("a"), gpu("b")], policy(picking("one", "a", through="dra"))) == ()


def test_fewer_devices_than_expected_are_a_problem() -> None:
    expect = Expect(count=1), Expect(select=Selection(kind=("gpu",)), count=2)
    lost = gpu("b", standing=Standing.LOST)

    assert found(problems([gpu("a"), lost], attrs.evolve(policy(ALL), expect=expect))) == [
        ("expect[1]", "devices-missing", "1 of 2 expected devices are there")
    ]


def test_an_offer_behind_one_that_takes_all_it_selects_is_shadowed() -> None:
    rules = policy(picking("one", "a"), picking("two", "a"), ALL, picking("three", "b"))

    assert [(p.subject, p.code, p.remedy) for p in problems([], rules)] == [
        ("two", "offer-shadowed", "write two before one"),
        ("three", "offer-shadowed", "write three before all"),
    ]


# Any node, any policy.

DEVICES = [
    cut("a", usable=True),
    part("a", 0),
    part("a", 2, BIG),
    gpu("b"),
    gpu("b", vendor="other"),
    cut("c"),
]
devices = st.sets(st.integers(0, 5)).map(lambda some: [DEVICES[n] for n in {0, *some}])
some_offers = st.lists(
    st.builds(
        Offer,
        name=st.just(""),
        select=st.sampled_from(
            [
                Selection(),
                Selection(partition=False),
                Selection(kind=("slice",)),
                Selection(name=("a",)),
                Selection(vendor=("other",)),
            ]
        ),
        through=st.sampled_from(["kubelet", "dra"]),
        resource=st.sampled_from(["", "x.example/y", "bad"]),
        sharing=st.sampled_from([Sharing(), Sharing(shares=2), Sharing(enforce=Enforcement.MPS)]),
    ),
    max_size=3,
).map(lambda some: [attrs.evolve(o, name=f"o{n}") for n, o in enumerate(some)])
some_holdings = st.lists(
    st.sampled_from(
        [hold for d in DEVICES for hold in (pod(d.id), pod(d.id, "s.example/x"), process(d.id))]
    ),
    max_size=2,
)


@given(devices, some_offers, some_offers, some_holdings)
def test_assigning_again_changes_nothing_and_families_stay_together(
    there: list[Device], first: list[Offer], second: list[Offer], holdings: list[Holding]
) -> None:
    before = given_to(there, *first)
    after = given_to(there, *second, previous=before, holdings=holdings)

    assert given_to(there, *second, previous=after, holdings=holdings) == after
    held = {h.device for h in holdings}
    for i, assignment in after.items():
        if i in held and before[i].terms is not None:
            kept = assignment.terms
            assert kept is not None
            assert assignment.leaving or kept in second or kept.sharing == Sharing()
        else:
            assert i in held or not assignment.leaving
    backends = {a.terms.through for i, a in after.items() if a.terms and i.name.startswith("a")}
    if not held:
        assert len(backends) <= 1
        parts = any(after[i].terms for i in after if i.name.startswith("a-"))
        assert backends != {"kubelet"} or not (parts and after[of("a")].terms)
