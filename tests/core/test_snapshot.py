import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import (
    Device,
    DeviceId,
    DeviceNode,
    Group,
    Link,
    Locality,
    Problem,
    Snapshot,
    VendorReport,
)
from accelkit.core.policy import Expect, HealthPolicy, Offer, Selection
from accelkit.core.reading import HealthReading
from accelkit.core.snapshot import assemble, build_view
from accelkit.core.values import FrozenMap, GroupRule, Health, LinkKind, Standing
from accelkit.core.view import View
from tests.core.things import (
    BIG,
    DOMAINS,
    LATER,
    SMALL,
    START,
    cut,
    fatal,
    gpu,
    info,
    of,
    part,
    pod,
    policy,
    reading,
    report,
    seen,
    silent,
    view,
)

LOST = fatal("lost")
UNREAD = Problem(vendor="toy", subject="a", code="io-error")


def standings(snapshot: Snapshot) -> dict[str, Standing]:
    return {d.id.name: d.standing for d in snapshot.devices}


def codes(snapshot: Snapshot) -> list[tuple[str | None, str]]:
    return [(p.subject, p.code) for p in snapshot.problems]


# Absent, stale, lost.


def test_what_is_reported_is_present_with_its_conditions() -> None:
    snapshot = seen(
        report(gpu("a"), gpu("b"), software=FrozenMap({"driver": "1"})),
        readings=[reading(gpu("a"), gpu("b"), b=fatal())],
    )

    assert snapshot == Snapshot(
        node="node",
        devices=(gpu("a"), gpu("b", conditions=(fatal(),))),
        software=FrozenMap({"toy/driver": "1"}),
        answered=frozenset({"toy"}),
    )
    assert snapshot.taken_at == START


def test_what_is_not_reported_nor_held_is_gone() -> None:
    before = seen(report(gpu("a"), gpu("b")))

    assert standings(seen(report(gpu("b")), previous=before)) == {"b": Standing.PRESENT}


@pytest.mark.parametrize("word", ["a", "0000:41:00.0", "uuid-a"])
def test_a_device_that_a_problem_names_is_stale(word: str) -> None:
    device = gpu("a", locality=Locality(pci_address="0000:41:00.0"), aliases=("uuid-a",))
    before = seen(report(device))

    after = seen(report(problems=(attrs.evolve(UNREAD, subject=word),)), previous=before)

    assert after.devices == (attrs.evolve(device, standing=Standing.STALE),)
    assert codes(after) == [(word, "io-error")]


def test_partitions_of_a_device_that_cannot_be_read_are_stale_with_it() -> None:
    before = seen(report(cut("a"), part("a", 0)))

    after = seen(report(problems=(UNREAD,)), previous=before)

    assert set(standings(after).values()) == {Standing.STALE}


def test_a_partition_that_cannot_be_read_keeps_a_parent_that_is_not_reported() -> None:
    before = seen(report(cut("a"), part("a", 0), part("a", 1)))
    word = attrs.evolve(UNREAD, subject="a-1g-0")

    after = seen(report(problems=(word,)), previous=before)

    assert standings(after) == {"a": Standing.STALE, "a-1g-0": Standing.STALE}


def test_all_of_a_vendor_that_failed_is_stale_with_what_it_said_last() -> None:
    link = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT)
    ring = Group(kind="ring", name="0", members=(of("a"), of("b")))
    said = report(
        gpu("a"), gpu("b"), links=(link,), groups=(ring,), software=FrozenMap({"driver": "1"})
    )
    before = seen(said, report(gpu("c", vendor="other"), vendor="other"))

    after = seen(silent(), report(gpu("c", vendor="other"), vendor="other"), previous=before)

    assert after == attrs.evolve(
        before,
        devices=(
            gpu("c", vendor="other"),
            gpu("a", standing=Standing.STALE),
            gpu("b", standing=Standing.STALE),
        ),
        problems=(Problem(vendor="toy", code="driver-not-ready"),),
    )


def test_a_vendor_that_never_answered_has_not_answered() -> None:
    snapshot = seen(silent(), report(vendor="other"))

    assert snapshot.answered == {"other"}
    assert seen(silent(), silent("other"), previous=snapshot).answered == {"other"}


def test_a_device_that_comes_back_is_present_again() -> None:
    before = seen(silent(), previous=seen(report(gpu("a"))))

    assert seen(report(gpu("a")), previous=before) == seen(report(gpu("a")))


def test_a_held_device_that_is_gone_is_lost_until_nobody_holds_it() -> None:
    before = seen(report(gpu("a")))

    lost = seen(report(), previous=before, held=[of("a")])

    assert lost.devices == (gpu("a", standing=Standing.LOST, conditions=(LOST,)),)
    assert seen(report(), previous=lost, held=[of("a")]) == lost
    assert seen(report(), previous=lost).devices == ()


def test_a_lost_device_that_nobody_holds_is_gone_even_if_its_vendor_fails() -> None:
    lost = seen(report(), previous=seen(report(gpu("a"))), held=[of("a")])

    assert seen(silent(), previous=lost).devices == ()
    assert standings(seen(silent(), previous=lost, held=[of("a")])) == {"a": Standing.LOST}


def test_a_held_device_that_came_and_went_between_two_reports_is_lost() -> None:
    before = seen(report(cut("a")))
    brief = part("a", 0)

    lost = seen(report(cut("a")), previous=before, held=[brief.id], unseen=[brief])

    assert standings(lost) == {"a": Standing.PRESENT, "a-1g-0": Standing.LOST}
    assert seen(report(cut("a")), previous=lost, held=[brief.id]) == lost
    unread = report(cut("a"), problems=(UNREAD,))
    stale = seen(unread, previous=before, held=[brief.id], unseen=[brief])
    assert standings(stale) == {"a": Standing.PRESENT, "a-1g-0": Standing.STALE}


def test_parents_of_held_partitions_stay() -> None:
    before = seen(report(cut("a"), part("a", 0), part("a", 1)))

    after = seen(report(), previous=before, held=[of("a-1g-0")])

    assert standings(after) == {"a": Standing.LOST, "a-1g-0": Standing.LOST}


def test_held_devices_of_a_vendor_that_is_no_longer_asked_are_lost() -> None:
    before = seen(report(gpu("a"), gpu("b")))

    after = seen(report(vendor="other"), previous=before, held=[of("a")])

    assert standings(after) == {"a": Standing.LOST}
    assert after.answered == {"toy", "other"}


# Something else in a held device's place.


def test_what_took_the_place_of_a_held_partition_is_left_out() -> None:
    before = seen(report(cut("a"), part("a", 0), part("a", 1), part("a", 2)))

    after = seen(
        report(cut("a"), part("a", 0, BIG), part("a", 2)), previous=before, held=[of("a-1g-0")]
    )

    assert standings(after) == {
        "a": Standing.PRESENT,
        "a-1g-0": Standing.LOST,
        "a-1g-2": Standing.PRESENT,
    }
    assert codes(after) == [("a", "cut-while-held")]


def test_a_partition_that_cannot_be_read_gives_way_to_what_took_its_place() -> None:
    before = seen(report(cut("a"), part("a", 0)))
    word = attrs.evolve(UNREAD, subject="a-1g-0")

    after = seen(report(cut("a"), part("a", 0, BIG), problems=(word,)), previous=before)

    assert standings(after) == {"a": Standing.PRESENT, "a-2g-me-0": Standing.PRESENT}


def test_a_device_that_cannot_have_a_held_partition_any_more_stays_as_it_was() -> None:
    before = seen(report(cut("a"), part("a", 0), part("a", 1)))
    other = gpu("a", slots=4, profiles=(BIG,), product="turned")

    after = seen(report(other, part("a", 2, BIG)), previous=before, held=[of("a-1g-0")])

    assert after.devices == (
        cut("a", standing=Standing.STALE),
        part("a", 0, standing=Standing.LOST, conditions=(LOST,)),
    )
    assert codes(after) == [("a", "cut-while-held")]


def test_partitions_that_are_still_there_stay_beside_a_device_that_changed_too_much() -> None:
    before = seen(report(cut("a"), part("a", 0), part("a", 3)))
    moved = attrs.evolve(SMALL, starts=(1, 2, 3))
    other = gpu("a", slots=4, profiles=(moved,), usable=False)

    after = seen(report(other, part("a", 3), part("a", 1)), previous=before, held=[of("a-1g-0")])

    assert standings(after) == {
        "a": Standing.STALE,
        "a-1g-0": Standing.LOST,
        "a-1g-3": Standing.PRESENT,
    }


# A vendor that contradicts itself.


@pytest.mark.parametrize(
    "said",
    [
        report(gpu("a"), gpu("a")),
        report(gpu("a"), gpu("x", vendor="other")),
        report(links=(Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT),)),
    ],
)
def test_a_contradiction_costs_only_the_vendor_that_made_it(said: VendorReport) -> None:
    mine = report(gpu("x", vendor="other"), vendor="other")
    before = seen(report(gpu("a")), mine)

    after = seen(
        said, mine, readings=[reading(gpu("x", vendor="other"), vendor="other")], previous=before
    )

    assert standings(after) == {"a": Standing.STALE, "x": Standing.PRESENT}
    assert codes(after) == [(None, "plugin-bug")]


# Conditions.


def test_a_device_that_was_never_asked_about_is_stale_with_new_facts() -> None:
    before = seen(report(gpu("a"), gpu("b")))

    after = seen(
        report(gpu("a", product="new"), gpu("b")), readings=[reading(gpu("b"))], previous=before
    )

    assert after.devices == (gpu("a", product="new", standing=Standing.STALE), gpu("b"))


def test_a_device_that_could_not_be_asked_keeps_its_conditions_and_has_a_problem() -> None:
    before = seen(report(gpu("a")), readings=[reading(gpu("a"), a=fatal())])
    failed = HealthReading(vendor="toy", failed=FrozenMap({of("a"): UNREAD, of("b"): UNREAD}))

    after = seen(report(gpu("a")), readings=[failed], previous=before)

    assert after.devices == (gpu("a", standing=Standing.STALE, conditions=(fatal(),)),)
    assert codes(after) == [("a", "io-error")]


def test_a_stale_device_can_still_be_asked_about() -> None:
    before = seen(report(gpu("a")), readings=[reading(gpu("a"), a=fatal())])

    after = seen(silent(), readings=[reading(gpu("a"), a=info())], previous=before)

    assert after.devices == (gpu("a", standing=Standing.STALE, conditions=(info(),)),)


def test_devices_of_a_vendor_that_cannot_be_heard_are_stale_with_new_conditions() -> None:
    before = seen(report(gpu("a")), readings=[reading(gpu("a"))])
    unheard = attrs.evolve(reading(gpu("a"), a=info()), unheard=True)

    after = seen(report(gpu("a")), readings=[unheard], previous=before)

    assert after.devices == (gpu("a", standing=Standing.STALE, conditions=(info(),)),)


def test_a_missing_file_is_a_condition_beside_the_vendors_own() -> None:
    missing = fatal("node-missing")
    device = gpu("a", conditions=(missing,))

    after = seen(report(device), readings=[reading(device, a=info())])

    assert after.devices == (gpu("a", conditions=(missing, info())),)
    assert seen(report(gpu("a")), previous=after) == seen(report(gpu("a")))


def test_conditions_that_core_makes_are_there_once() -> None:
    before = seen(report(gpu("a")))

    after = seen(
        report(), readings=[reading(gpu("a"), a=info("lost"))], previous=before, held=[of("a")]
    )

    assert after.devices[0].conditions == (LOST,)


def test_conditions_and_problems_remember_since_when() -> None:
    first = seen(silent("other"), report(gpu("a")), readings=[reading(gpu("a"), a=fatal())])

    second = seen(
        silent("other"),
        silent("third"),
        report(gpu("a")),
        readings=[HealthReading(vendor="toy", conditions=FrozenMap({of("a"): (fatal(), info())}))],
        previous=first,
        now=LATER,
    )

    assert [(c.code, c.since) for c in second.devices[0].conditions] == [
        ("burnt", START),
        ("warm", LATER),
    ]
    assert [(p.vendor, p.since) for p in second.problems] == [("other", START), ("third", LATER)]


# Links, groups, software.


def test_links_of_a_stale_device_are_carried_over_and_others_are_new() -> None:
    ab = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT, count=4)
    bc = Link(a=of("b"), b=of("c"), kind=LinkKind.SWITCH)
    before = seen(report(gpu("a"), gpu("b"), gpu("c"), links=(ab, bc)))
    now = Link(a=of("b"), b=of("c"), kind=LinkKind.HOST)

    after = seen(report(gpu("b"), gpu("c"), links=(now,), problems=(UNREAD,)), previous=before)

    assert after.links == (ab, now)


def test_links_of_a_device_that_is_gone_go_with_it() -> None:
    ab = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT, count=4)
    before = seen(report(gpu("a"), gpu("b"), links=(ab,)))

    after = seen(report(gpu("b")), previous=before)

    assert after.links == ()


def test_a_group_with_a_stale_member_is_carried_over_whole() -> None:
    whole = Group(kind="set", name="0", members=(of("a"), of("b")), rule=GroupRule.LAW)
    half = Group(kind="set", name="0", members=(of("b"),), rule=GroupRule.LAW)
    before = seen(report(gpu("a"), gpu("b"), groups=(whole,)))

    stale = seen(report(gpu("b"), groups=(half,), problems=(UNREAD,)), previous=before)
    gone = seen(report(gpu("b"), groups=(half,)), previous=stale)

    assert stale.groups == (whole,)
    assert gone.groups == (half,)


def test_links_groups_and_software_that_could_not_be_read_are_the_last_ones() -> None:
    direct = Link(a=of("a"), b=of("b"), kind=LinkKind.DIRECT)
    switch = Link(a=of("a"), b=of("b"), kind=LinkKind.SWITCH)
    ring = Group(kind="ring", name="0", members=(of("a"), of("b")))
    gone = Group(kind="ring", name="1", members=(of("a"), of("c")))
    before = seen(
        report(
            gpu("a"),
            gpu("b"),
            gpu("c"),
            links=(direct, switch),
            groups=(ring, gone),
            software=FrozenMap({"driver": "1", "library": "2"}),
        )
    )
    derived = Link(a=of("a"), b=of("b"), kind=LinkKind.HOST)
    failed = [
        Problem(vendor="toy", subject=s, code="io-error") for s in ("links", "groups", "software")
    ]

    after = seen(
        report(
            gpu("a"),
            gpu("b"),
            links=(derived,),
            problems=failed,
            software=FrozenMap({"driver": "3"}),
        ),
        previous=before,
    )

    assert after.links == (direct, switch)
    assert after.groups == (ring,)
    assert after.software == {"toy/driver": "3", "toy/library": "2"}


# Any order of anything.


@st.composite
def reports(draw: st.DrawFn) -> VendorReport:
    """A whole device or three; the first may be cut, anything may be unreadable or fail."""
    if draw(st.integers(0, 9)) == 0:
        return silent()
    devices: list[Device] = []
    problems: list[Problem] = []
    for name in ("a", "b"):
        fate = draw(st.sampled_from(["there", "cut", "gone", "unread"]))
        if fate == "cut":
            profiles = draw(st.sampled_from([(SMALL, BIG), (BIG,)]))
            devices.append(attrs.evolve(cut(name), profiles=profiles))
            devices += draw(st.sampled_from(cuts(name, profiles)))
        elif fate == "there":
            devices.append(gpu(name))
        elif fate == "unread":
            problems.append(attrs.evolve(UNREAD, subject=name))
    if draw(st.booleans()) and {of("a"), of("b")} <= {d.id for d in devices}:
        links = (Link(a=of("a"), b=of("b"), kind=draw(st.sampled_from(LinkKind))),)
        group = Group(kind="ring", name="0", members=(of("a"), of("b")))
        return report(*devices, links=links, groups=(group,), problems=problems)
    return report(*devices, problems=problems)


def cuts(name: str, profiles: object) -> list[list[Device]]:
    big = [[], [part(name, 0, BIG)], [part(name, 0, BIG), part(name, 2, BIG)]]
    if profiles == (BIG,):
        return big
    return [*big, [part(name, 0), part(name, 1)], [part(name, 1), part(name, 2, BIG)]]


@st.composite
def told(draw: st.DrawFn, said: VendorReport) -> HealthReading:
    """Conditions of some of the devices."""
    bad = st.sampled_from([(), (fatal(),), (info(),)])
    return HealthReading(
        vendor="toy",
        conditions=FrozenMap((d.id, draw(bad)) for d in said.devices if draw(st.booleans())),
        failed=FrozenMap((d.id, UNREAD) for d in said.devices if draw(st.integers(0, 5)) == 0),
    )


@given(st.data())
def test_a_snapshot_made_again_is_the_same_and_held_devices_never_leave(
    data: st.DataObject,
) -> None:
    snapshot: Snapshot | None = None
    held: set[DeviceId] = set()
    for _ in range(4):
        said = data.draw(reports())
        readings = [data.draw(told(said))]
        before, snapshot = (
            snapshot,
            assemble("node", [said], readings, previous=snapshot, held=held, now=START),
        )

        again = assemble("node", [said], readings, previous=snapshot, held=held, now=LATER)
        assert again == snapshot
        if before is not None:
            assert held & before.by_id.keys() <= snapshot.by_id.keys()
        held = (
            set(data.draw(st.lists(st.sampled_from(sorted(snapshot.by_id)), max_size=3)))
            if snapshot.devices
            else set()
        )


@given(
    st.permutations(
        [report(gpu("a")), report(gpu("b", vendor="other"), vendor="other"), silent("third")]
    )
)
def test_the_order_of_reports_makes_no_difference(several: list[VendorReport]) -> None:
    assert hash(seen(*several)) == hash(seen(*reversed(several)))
    assert seen(*several) == seen(*sorted(several, key=lambda r: r.vendor))


# The view.


def test_a_view_has_a_verdict_and_an_assignment_for_every_device() -> None:
    judged = view(
        seen(report(gpu("a"), gpu("b")), readings=[reading(gpu("a"), gpu("b"), b=fatal())])
    )

    assert {i.name: v.health for i, v in judged.verdicts.items()} == {
        "a": Health.HEALTHY,
        "b": Health.UNHEALTHY,
    }
    assert {i.name: a.terms for i, a in judged.assignments.items()} == {
        "a": Offer(name="all"),
        "b": Offer(name="all"),
    }


def test_a_view_has_edits_of_offered_devices_only() -> None:
    edits = {of(name): ContainerEdits(nodes=(DeviceNode(path=f"/dev/{name}"),)) for name in "abc"}
    rules = policy(Offer(name="a", select=Selection(name=("a",))))

    made = build_view(
        seen(report(gpu("a"), gpu("b"))),
        rules,
        holdings=(pod(of("a")),),
        edits=edits,
        domains=DOMAINS,
        sets=["toy"],
        previous=None,
        now_s=0.0,
        now=START,
        boot="boot",
        revision="r1",
    )

    assert made.edits == {of("a"): edits[of("a")]}
    assert (made.boot, made.revision, made.sets, made.domains) == (
        "boot",
        "r1",
        frozenset({"toy"}),
        DOMAINS,
    )
    assert (made.held, made.offers) == (frozenset({of("a")}), rules.offers)


def test_what_policy_asks_for_in_vain_is_a_problem_of_the_view_with_its_time() -> None:
    rules = attrs.evolve(policy(), expect=(Expect(count=2),))
    first = view(seen(report(gpu("a"))), rules)

    second = build_view(
        seen(report(gpu("a")), previous=first.snapshot),
        rules,
        edits={},
        domains=DOMAINS,
        previous=first,
        now_s=1.0,
        now=LATER,
    )

    assert [(p.code, p.since) for p in second.snapshot.problems] == [("devices-missing", START)]


def test_a_view_remembers_verdicts_and_assignments_of_the_one_before() -> None:
    shared = Offer(name="shared")
    first = view(seen(report(gpu("a"))), policy(Offer(name="all")))

    second = view(
        seen(report(gpu("a"))), policy(shared), previous=first, holdings=[pod(of("a"))], now_s=9.0
    )

    assert second.assignments[of("a")].leaving
    assert second.verdicts[of("a")].since_s == 0.0


def test_a_view_says_which_conditions_may_move_pods() -> None:
    rules = policy(health=HealthPolicy(evict=("burnt",)))

    assert view(Snapshot(), rules).evict == {"burnt"}


def test_an_equal_node_gives_an_equal_view() -> None:
    def made(previous: View | None) -> View:
        return view(seen(report(gpu("a"), gpu("b"))), previous=previous)

    assert made(None) == made(made(None))
    assert hash(made(None)) == hash(made(made(None)))
