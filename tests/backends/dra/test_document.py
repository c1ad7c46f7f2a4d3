"""Which devices are published, and why not to be had."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from accelkit.backends.dra.checking import check_pool
from accelkit.backends.dra.dialect import PLAIN, RELEASES
from accelkit.backends.dra.document import render, vendors_of
from accelkit.backends.dra.objects import pool_objects
from accelkit.backends.dra.packing import changed
from accelkit.backends.dra.pool import Dialect, Slice
from accelkit.backends.dra.stored import read_slice
from accelkit.backends.kubelet.document import catalog_of
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import SLICES
from accelkit.core.model import Binding, Device, Problem
from accelkit.core.policy import Divide, DraPolicy, Offer, Selection, Sharing
from accelkit.core.values import FrozenMap, Health, HolderKind, Severity, Standing
from accelkit.core.view import Verdict, View
from tests.backends.dra.views import (
    ALL,
    DRIVER,
    HALF,
    MEDIA,
    NODE,
    SMALL,
    cut,
    document,
    gpu,
    held,
    ident,
    listed,
    part,
    parts,
    pool_of,
    sick,
    tainted,
    view_of,
)

NO_TAINTS = Dialect(taints=False)
NO_COUNTERS = Dialect(counters=False)
SMALL_3 = "g0-1g10gb-3"


def dynamic(*names: str, **fields: Any) -> View:  # type: ignore[explicit-any]  # of a view
    """Devices that are offered whole and in every partition."""
    return view_of(
        *(cut(name) for name in names),
        potential=[d for name in names for d in parts(name)],
        **fields,
    )


def consumed(view: View) -> dict[str, dict[str, int]]:
    return {
        name: dict(taken.counters)
        for name, device in listed(view).items()
        for taken in device.consumes
    }


# Pools.


def test_every_vendor_has_a_pool_named_like_the_node() -> None:
    found = document(view_of(gpu("a"), gpu("b", vendor="other"), answered=("acme", "other")))

    assert {name: (pool.driver, pool.name) for name, pool in found.pools.items()} == {
        DRIVER: (DRIVER, NODE),
        "other.accelkit.dev": ("other.accelkit.dev", NODE),
    }


def test_policy_names_drivers() -> None:
    policy = DraPolicy(drivers=FrozenMap({"acme": "gpu.corp.example"}))

    assert list(render(view_of(gpu("a")), policy).pools) == ["gpu.corp.example"]


def test_vendor_without_devices_has_an_empty_slice_only_if_it_had_some() -> None:
    """An early empty pool counts as complete for whoever scales clusters."""
    assert document(view_of()).pools == {}
    assert pool_of(view_of(), previous=pool_of(view_of(gpu("a")))).slices == (Slice(),)


def test_vendor_that_has_not_answered_has_no_pool() -> None:
    assert document(view_of(gpu("a"), answered=())).pools == {}


def test_vendor_that_sees_hardware_and_no_device_has_no_pool_yet() -> None:
    """Its driver is not loaded: that is another outcome than no devices (D05)."""
    trouble = Problem(vendor="acme", subject="0000:41:00.0", code="driver-not-ready")
    views = [
        attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, problems=(trouble,)))
        for view in (view_of(), view_of(gpu("a")))
    ]

    assert [vendors_of(view) for view in views] == [(), ("acme",)]


def test_vendor_of_no_offer_has_no_pool() -> None:
    other = Offer(name="o", through="dra", select=Selection(vendor=("other-*",)))
    mine = Offer(name="o", through="dra", select=Selection(vendor=("ac*",)))

    assert [vendors_of(view_of(gpu("a"), offers=[offer])) for offer in (other, mine)] == [
        (),
        ("acme",),
    ]


def test_devices_of_other_backends_are_not_published() -> None:
    offers = [Offer(name="k", select=Selection(name=("a",))), ALL]

    assert list(listed(view_of(gpu("a"), gpu("b"), offers=offers))) == ["b"]


def test_device_that_is_held_is_published_for_as_long_as_it_is() -> None:
    """Even if the policy has no offer through this backend any more."""
    before = view_of(gpu("a"), gpu("b"), holdings=[held("a")])
    kubelet = [Offer(name="k")]
    after = view_of(gpu("a"), gpu("b"), offers=kubelet, holdings=[held("a")], previous=before)

    assert tainted(after) == {"a": ["leaving:NoSchedule"]}
    assert vendors_of(view_of(gpu("a"), offers=kubelet, previous=after)) == ()


# Partitions.


def test_whole_comes_first_then_the_largest_each_in_filling_order() -> None:
    """The scheduler takes the first that fits (SL21)."""
    names = list(listed(dynamic("g0")))

    assert names == [
        "g0",
        "g0-3g40gb-4",
        "g0-3g40gb-0",
        *(f"g0-1g10gb-{n}" for n in range(7)),
        *(f"g0-1g10gb-me-{n}" for n in range(7)),
    ]


def test_whole_takes_all_counters_and_partitions_their_part() -> None:
    found = consumed(dynamic("g0"))
    (sets, _) = pool_of(dynamic("g0")).slices

    assert found["g0"] == dict(sets.counter_sets[0].counters)
    assert found[SMALL_3] == {"slot-3": 1}
    assert found["g0-1g10gb-me-3"] == {"slot-3": 1, "ofa": 1}
    assert found["g0-3g40gb-4"] == {"slot-4": 1, "slot-5": 1, "slot-6": 1}


def test_devices_that_cannot_be_cut_have_no_counters() -> None:
    """An empty set would have the slice refused (P09)."""
    view = view_of(gpu("a"), cut("b"))

    assert [one.counter_sets for one in pool_of(view).slices] == [()]
    assert consumed(view) == {}


def test_partitions_that_are_there_for_good_have_no_counters() -> None:
    offers = [Offer(name="parts", through="dra", select=Selection(partition=True))]
    view = view_of(cut("g0"), part("g0", SMALL, 0), part("g0", SMALL, 1), offers=offers)

    assert consumed(view) == {}


def test_made_partition_is_the_one_that_could_be() -> None:
    """A claim that has it and one that could get it name the same device (I06)."""
    made = part("g0", SMALL, 3)
    free = dynamic("g0")
    taken = view_of(
        cut("g0"),
        made,
        potential=parts("g0"),
        holdings=[held(SMALL_3)],
        made=frozenset({made.id}),
    )

    assert pool_of(taken) == pool_of(free)


def test_health_never_alters_counters() -> None:
    """P13: the scheduler reads them again from the slice."""
    well = dynamic("g0")
    made = part("g0", SMALL, 0)
    ill = view_of(sick(cut("g0")), made, potential=parts("g0"), made=frozenset({made.id}))

    assert consumed(ill) == consumed(well)


def test_condition_of_a_parent_counts_for_partitions_that_do_not_exist() -> None:
    view = view_of(sick(cut("g0")), potential=parts("g0"))

    assert set(map(tuple, tainted(view).values())) == {("burnt:NoSchedule",)}


def test_neighbours_of_a_partition_that_nobody_explains_are_occupied() -> None:
    view = view_of(cut("g0"), part("g0", HALF, 4), potential=parts("g0"))

    occupied = [
        name for name, found in tainted(view).items() if "place-occupied:NoSchedule" in found
    ]

    assert occupied == [
        "g0",
        *(f"g0-1g10gb-{n}" for n in (4, 5, 6)),
        *(f"g0-1g10gb-me-{n}" for n in (4, 5, 6)),
    ]


def test_strangers_engine_is_in_the_way_too() -> None:
    view = view_of(cut("g0"), part("g0", MEDIA, 0), potential=parts("g0"))

    found = tainted(view)

    assert all("place-occupied:NoSchedule" in found[f"g0-1g10gb-me-{n}"] for n in range(1, 7))
    assert found["g0-1g10gb-1"] == []


def test_partition_of_a_claim_is_in_nobodys_way() -> None:
    """Its counters say it."""
    made = part("g0", SMALL, 3)
    view = view_of(
        cut("g0"),
        made,
        potential=parts("g0"),
        holdings=[held(SMALL_3)],
        made=frozenset({made.id}),
    )

    assert not any(tainted(view).values())


def test_partition_that_could_not_be_undone_is_stuck_and_in_the_way() -> None:
    made = part("g0", SMALL, 3)
    view = view_of(
        cut("g0"),
        made,
        potential=parts("g0"),
        made=frozenset({made.id}),
        stuck=frozenset({made.id}),
    )

    found = tainted(view)

    assert found[SMALL_3] == ["stuck:NoSchedule"]
    assert found["g0"] == found["g0-1g10gb-me-3"] == ["place-occupied:NoSchedule"]
    assert found["g0-1g10gb-0"] == []


def test_whole_that_could_not_be_undone_is_in_the_way_of_all_partitions() -> None:
    view = dynamic("g0", stuck=frozenset({ident("g0")}))

    assert tainted(view)["g0"] == ["stuck:NoSchedule"]
    assert tainted(view)[SMALL_3] == ["place-occupied:NoSchedule"]


def test_unit_has_room_for_all_partitions_that_there_can_be() -> None:
    """A layout of one partition becomes one of seven without moving anything."""
    offers = [Offer(name="parts", through="dra", select=Selection(partition=True))]
    names = [f"g{n}" for n in range(8)]
    few = view_of(*(cut(n) for n in names), *(part(n, SMALL, 0) for n in names), offers=offers)
    more = view_of(
        *(cut(n) for n in names),
        *(part(n, SMALL, s) for n in names for s in range(7 if n == "g3" else 1)),
        offers=offers,
    )

    before = pool_of(few)

    assert changed(pool_of(more, previous=before).slices, before.slices) == (0,)


# Why a device is not to be had.


@pytest.mark.parametrize(
    "severity,effect",
    [
        (Severity.FATAL, ["burnt:NoSchedule"]),
        (Severity.DEGRADED, ["burnt:None"]),
        (Severity.INFO, []),
    ],
)
def test_severity_decides_who_stays_away(severity: Severity, effect: list[str]) -> None:
    assert tainted(view_of(sick(gpu("a"), severity=severity))) == {"a": effect}


@pytest.mark.parametrize("severity", [Severity.FATAL, Severity.DEGRADED])
def test_policy_names_conditions_that_evict(severity: Severity) -> None:
    view = view_of(sick(gpu("a"), severity=severity), evict=frozenset({"burnt"}))

    assert tainted(view) == {"a": ["burnt:NoExecute"]}


def verdict(health: Health, *, overdue: bool = False) -> View:
    view = view_of(gpu("a"))
    found = Verdict(health=health, overdue=overdue)
    return attrs.evolve(view, verdicts=FrozenMap({ident("a"): found}))


def test_device_is_not_to_be_had_while_it_is_not_known_or_not_trusted() -> None:
    views = [
        verdict(Health.HEALTHY),
        verdict(Health.UNKNOWN),
        verdict(Health.UNKNOWN, overdue=True),
        verdict(Health.UNHEALTHY),
        attrs.evolve(view_of(gpu("a")), verdicts=FrozenMap()),
    ]

    assert [tainted(view)["a"] for view in views] == [
        [],
        [],
        ["unknown:NoSchedule"],
        ["unhealthy:NoSchedule"],
        ["unknown:NoSchedule"],
    ]


def test_lost_device_stays_with_its_counters() -> None:
    """SL12: what is removed gives its counters back while somebody uses them."""
    lost = attrs.evolve(cut("g0"), standing=Standing.LOST)
    view = view_of(lost, holdings=[held("g0")], potential=parts("g0"))

    assert tainted(view)["g0"] == ["lost:NoSchedule"]
    assert consumed(view)["g0"] == consumed(dynamic("g0"))["g0"]


def test_partition_that_was_just_made_needs_no_edits_yet() -> None:
    """It is a claim's, whose file has them; the slice need not change twice for each claim."""
    made = part("g0", SMALL, 3)
    view = view_of(cut("g0"), made, holdings=[held(SMALL_3)], made=frozenset({made.id}))
    bare = attrs.evolve(
        view, edits=FrozenMap((i, e) for i, e in view.edits.items() if i != made.id)
    )

    assert tainted(bare)[SMALL_3] == []


@pytest.mark.parametrize("share", [1, 3])
def test_as_many_devices_are_to_be_had_through_either_backend(share: int) -> None:
    """ER02: of an offer that is exclusive; shares are capacities here and ids there."""
    sharing = Sharing(shares=share)
    devices = [gpu("a"), sick(gpu("b")), cut("g0", usable=False), part("g0", SMALL, 0)]
    ours = view_of(*devices, offers=[Offer(name="all", through="dra", sharing=sharing)])
    kubelets = view_of(*devices, offers=[Offer(name="all", sharing=sharing)])

    entries = [e for several in catalog_of(kubelets).values() for e in several if e.wire.healthy]
    free = [name for name, why in tainted(ours).items() if not why]

    assert sorted(entry.device.name for entry in entries) == sorted(free * share)


def test_device_whose_container_needs_are_not_known_is_not_to_be_had() -> None:
    view = attrs.evolve(view_of(gpu("a")), edits=FrozenMap())

    assert tainted(view) == {"a": ["no-edits:NoSchedule"]}


def test_worst_taints_are_kept_where_there_is_no_room_for_all() -> None:
    conditions = [
        condition
        for n, severity in enumerate([Severity.DEGRADED, Severity.FATAL] * 10)
        for condition in sick(gpu("a"), f"c{n:02}", severity).conditions
    ]
    view = view_of(attrs.evolve(gpu("a"), conditions=conditions), evict=frozenset({"c10"}))

    assert tainted(view, Dialect(most_taints=4)) == {
        "a": ["c10:NoExecute", "c01:NoSchedule", "c03:NoSchedule", "c05:NoSchedule"]
    }
    assert len(tainted(view)["a"]) == 16


def test_code_is_told_once_with_its_worst_effect() -> None:
    lost = attrs.evolve(sick(gpu("a"), "lost"), standing=Standing.LOST)

    assert tainted(view_of(lost, evict=frozenset({"lost"}))) == {"a": ["lost:NoExecute"]}


# Extended resources.


def test_free_devices_wait_until_their_name_is_this_backends() -> None:
    offers = [Offer(name="all", through="dra", extended_resource="example.com/gpu")]
    view = view_of(
        gpu("a"),
        gpu("b"),
        offers=offers,
        holdings=[held("b")],
        dra_waits=FrozenMap({"example.com/gpu": "the kubelet still lists it"}),
    )

    assert list(listed(view)) == ["b"]


def test_name_of_an_extended_resource_may_be_that_of_a_profile() -> None:
    offers = [Offer(name="all", through="dra", extended_resource="example.com/mig-{profile}")]
    waits = FrozenMap({"example.com/mig-1g.10gb.me": "a claim is left"})
    view = view_of(
        cut("g0"),
        potential=[part("g0", MEDIA, 0), part("g0", SMALL, 0)],
        offers=offers,
        dra_waits=waits,
    )

    assert list(listed(view)) == ["g0", "g0-1g10gb-0"]


# Dialects.


def test_server_without_taints_gets_no_bad_device_unless_it_is_held() -> None:
    view = view_of(sick(gpu("a")), sick(gpu("b")), gpu("c"), holdings=[held("b")])

    assert tainted(view, NO_TAINTS) == {"b": [], "c": []}


def test_process_that_no_claim_explains_keeps_nothing_in_a_slice() -> None:
    view = view_of(sick(gpu("a")), holdings=[held("a", kind=HolderKind.FOREIGN)])

    assert tainted(view, NO_TAINTS) == {}


def test_server_without_the_effect_none_gets_no_advice() -> None:
    view = view_of(sick(gpu("a"), severity=Severity.DEGRADED))

    assert tainted(view, Dialect(effect_none=False)) == {"a": []}
    assert tainted(view, NO_TAINTS) == {"a": []}


def test_nobody_is_moved_where_the_server_keeps_no_taints_and_it_is_said() -> None:
    view = view_of(sick(gpu("a")), holdings=[held("a")], evict=frozenset({"burnt"}))

    (problem,) = document(view, NO_TAINTS).problems

    assert (problem.code, problem.subject) == ("evict-unsupported", DRIVER)
    assert problem.reason == "the API server keeps no taints: no pod is moved off a"
    assert document(view).problems == ()


def test_server_without_counters_gets_only_what_exists() -> None:
    """It would give overlapping devices away twice (SL23)."""
    assert list(listed(dynamic("g0"), NO_COUNTERS)) == ["g0"]
    assert pool_of(dynamic("g0"), NO_COUNTERS).slices[0].devices[0].consumes == ()


def test_partitions_go_before_their_parent_where_counters_are_not_kept() -> None:
    view = view_of(cut("g0"), part("g0", SMALL, 0), part("g0", HALF, 4), potential=parts("g0"))

    assert set(listed(view, NO_COUNTERS)) == {"g0-1g10gb-0", "g0-3g40gb-4"}


def test_held_whole_goes_before_its_partitions_where_counters_are_not_kept() -> None:
    view = view_of(cut("g0"), part("g0", SMALL, 0), holdings=[held("g0")])

    assert list(listed(view, NO_COUNTERS)) == ["g0"]


def test_place_that_a_claim_waits_for_is_published_where_counters_are_not_kept() -> None:
    assert list(listed(dynamic("g0", holdings=[held(SMALL_3)]), NO_COUNTERS)) == [SMALL_3]


def test_partition_that_is_bad_does_not_bring_its_parent_back() -> None:
    view = view_of(cut("g0"), sick(part("g0", SMALL, 0)))

    assert listed(view, PLAIN) == {}


def test_binding_conditions_are_published_where_they_are_kept() -> None:
    binding = Binding(conditions=("ready",), failures=("failed",))
    view = view_of(gpu("a", binding=binding), gpu("b", binding=binding), holdings=[held("b")])

    assert [d.binding for d in listed(view).values()] == [binding, binding]
    assert document(view).problems == ()
    bare = Dialect(bindings=False)
    assert {name: d.binding for name, d in listed(view, bare).items()} == {"b": None}
    assert [p.code for p in document(view, bare).problems] == ["binding-unsupported"] * 2


def test_binding_that_cannot_be_written_keeps_its_device_back_and_no_other() -> None:
    half = Binding(conditions=("ready",), failures=())
    view = view_of(gpu("a", binding=half), gpu("b"))

    assert list(listed(view)) == ["b"]
    (problem,) = document(view).problems
    assert problem.reason.startswith("its binding conditions cannot be written")


def test_problem_of_a_binding_is_none_of_other_backends() -> None:
    half = Binding(conditions=("ready",), failures=())
    view = view_of(gpu("a", binding=half), offers=[Offer(name="k"), ALL], holdings=())

    assert document(view).problems == ()


# Everything together.

NAMES = [f"g{n}" for n in range(5)]
CONDITIONS = st.sampled_from(["", "burnt", "warm", "odd"])


@st.composite
def views(draw: st.DrawFn) -> View:
    """Nodes of devices that are cut, or can be, in any state, with any holders."""
    devices: list[Device] = []
    potential: list[Device] = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        devices.append(_any_state(draw, cut(name)))
        possible = parts(name)
        start = draw(st.sampled_from([None, 0, 4]))
        if start is not None:
            devices.append(_any_state(draw, part(name, HALF, start)))
        if draw(st.booleans()):
            potential += possible
    ids = [d.id for d in (*devices, *potential)]
    some = st.lists(st.sampled_from(ids), max_size=4, unique=True) if ids else st.just([])
    sharing = Sharing(shares=draw(st.integers(1, 3)), divide=draw(st.sampled_from(Divide)))
    return view_of(
        *devices,
        potential=potential,
        offers=[attrs.evolve(ALL, sharing=sharing)],
        holdings=[held(i.name) for i in draw(some)],
        made=frozenset(draw(some)),
        stuck=frozenset(draw(some)),
        evict=frozenset(draw(st.lists(CONDITIONS))),
    )


def _any_state(draw: st.DrawFn, device: Device) -> Device:
    code = draw(CONDITIONS)
    severity = draw(st.sampled_from(Severity))
    standing = draw(st.sampled_from(Standing))
    return attrs.evolve(sick(device, code, severity) if code else device, standing=standing)


DIALECTS = st.sampled_from([*RELEASES.values(), NO_TAINTS, NO_COUNTERS, Dialect(most_taints=1)])


@given(views(), views(), DIALECTS)
def test_every_pool_obeys_the_limits_and_is_the_same_again(
    before: View, after: View, dialect: Dialect
) -> None:
    pool = pool_of(after, dialect, pool_of(before, dialect))

    assert check_pool(pool) == ()
    assert pool_of(after, dialect, pool) == pool


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@given(view=views())
@settings(max_examples=15)
def test_server_of_every_release_keeps_slices_to_the_letter(release: str, view: View) -> None:
    pool = pool_of(view, RELEASES[release])
    server = ApiSim(release)

    kept = [read_slice(server.create(SLICES, item)).slice for item in pool_objects(pool)]

    assert kept == [*pool.slices]


@given(views(), DIALECTS)
def test_everything_that_a_claim_holds_is_published_whatever_its_state(
    view: View, dialect: Dialect
) -> None:
    """SL12, SL18."""
    assert {h.device.name for h in view.holdings} <= set(listed(view, dialect))


@given(views())
def test_nothing_overlaps_where_counters_are_not_kept_but_what_claims_hold(view: View) -> None:
    free = [n for n in listed(view, NO_COUNTERS) if ident(n) not in view.held]
    everything = {d.id.name: d for d in (*view.snapshot.devices, *view.potential)}

    for name in free:
        family = [
            everything[other]
            for other in listed(view, NO_COUNTERS)
            if everything[other].root == everything[name].root and other != name
        ]
        assert all(_apart(everything[name], other) for other in family)


def _apart(one: Device, other: Device) -> bool:
    if one.placement is None or other.placement is None:
        return False
    return set(one.placement.slots).isdisjoint(other.placement.slots)
