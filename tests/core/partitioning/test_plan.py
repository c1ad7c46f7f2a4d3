"""What devices shall be, and the steps to it."""

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.model import Device, DeviceId, Holder, Holding, Problem, Snapshot
from accelkit.core.partitioning import Plan, partitioning_of, plan, steps
from accelkit.core.policy import (
    Foreign,
    Partitioning,
    PartitioningHow,
    Policy,
    Selection,
    When,
)
from accelkit.core.values import HolderKind, Standing
from tests.core.partition.brute import everything, layout_of
from tests.core.partitioning.nodes import (
    COLD,
    LAYOUTS,
    at,
    carved,
    cut_by_mode,
    holdings_on,
    modal,
    node,
    nodes,
    plain,
    policies,
    taken,
)
from tests.core.things import gpu, of, pod, process

HOW = PartitioningHow


def wanting(**fields: object) -> Policy:
    """One rule for all devices."""
    return Policy(partitioning=(Partitioning(**fields),), layouts=LAYOUTS)  # type: ignore[arg-type]  # fields by name


def laid(layout: str, **fields: object) -> Policy:
    return wanting(how=HOW.LAYOUT, layout=layout, **fields)


def in_mode(mode: str, **fields: object) -> Policy:
    return wanting(how=HOW.MODE, mode=mode, **fields)


def told(snapshot: Snapshot, found: Plan) -> list[str]:
    return [str(step) for step in steps(snapshot, found)]


def asked(
    snapshot: Snapshot,
    policy: Policy,
    holdings: Iterable[Holding] = (),
    made: Iterable[DeviceId] = (),
    claimed: Iterable[DeviceId] = (),
) -> tuple[list[str], list[tuple[str | None, str, str]]]:
    """Steps and problems as people read them."""
    found = plan(snapshot, policy, holdings, made=frozenset(made), claimed=frozenset(claimed))
    return told(snapshot, found), [(p.subject, p.code, p.reason) for p in found.problems]


def ids(*devices: Device) -> set[DeviceId]:
    return {device.id for device in devices}


# Which rule.


def test_the_first_rule_that_selects_a_device_counts() -> None:
    first = Partitioning(select=Selection(name=("b",)), how=HOW.DYNAMIC)
    second = Partitioning(select=Selection(node=("node",)), how=HOW.MODE, mode="mig")
    policy = Policy(partitioning=(first, second), only=Selection(name=("a", "b")))

    found = [partitioning_of(gpu(name), policy, "node") for name in "abc"]

    assert found == [second, first, Partitioning()]


# Layouts.


def test_a_layout_sets_the_mode_and_makes_its_partitions() -> None:
    assert asked(node(carved("a"), carved("b", mode="mig")), laid("mixed")) == (
        [
            "set-mode toy/a mig",
            "create toy/a-2g-0",
            "create toy/a-1g-2",
            "create toy/b-2g-0",
            "create toy/b-1g-2",
        ],
        [],
    )


def test_partitions_that_are_in_the_layout_stay_where_they_are() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 1), at(device, "1g", 3)

    assert asked(node(device, *there), laid("mixed"), made=ids(*there)) == (
        ["destroy toy/a-1g-1", "create toy/a-2g-0"],
        [],
    )


def test_held_partitions_stay_and_others_make_room() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 1), at(device, "1g", 3)

    assert asked(node(device, *there), laid("mixed"), [pod(there[0].id)], ids(*there)) == (
        ["destroy toy/a-1g-3", "create toy/a-2g-2"],
        [],
    )


def test_a_held_partition_that_the_layout_does_not_have_is_told_with_its_holder() -> None:
    device = carved("a", mode="mig")
    there = at(device, "2g", 2)

    assert asked(node(device, there), laid("ones"), [pod(there.id)], ids(there)) == (
        [],
        [
            (
                "a",
                "unsatisfiable-layout",
                (
                    "toy/a cannot be cut so: 1 of 2g must stay, the layout has 0; "
                    "toy/a-2g-2 is held by pod trainer"
                ),
            )
        ],
    )


def test_what_somebody_else_made_is_kept_unless_the_rule_lets_it_be_destroyed() -> None:
    device = carved("a", mode="mig")
    there = at(device, "2g", 2)

    assert asked(node(device, there), laid("ones", foreign=Foreign.DESTROY)) == (
        ["destroy toy/a-2g-2", *(f"create toy/a-1g-{n}" for n in range(4))],
        [],
    )
    assert asked(node(device, there), laid("ones"))[1] == [
        (
            "a",
            "unsatisfiable-layout",
            (
                "toy/a cannot be cut so: 1 of 2g must stay, the layout has 0; "
                "toy/a-2g-2 was made by somebody else, and foreign is keep"
            ),
        )
    ]


def test_what_somebody_else_made_counts_for_the_layout() -> None:
    device = carved("a", mode="mig")

    assert asked(node(device, at(device, "2g", 2)), laid("mixed"))[0] == ["create toy/a-1g-0"]


def test_a_partition_that_was_begun_is_completed() -> None:
    device = carved("a", mode="mig")
    begun = attrs.evolve(at(device, "2g", 0), usable=False)
    snapshot = node(device, begun, at(device, "1g", 2))

    assert asked(snapshot, laid("mixed"), made=ids(*snapshot.devices))[0] == ["create toy/a-2g-0"]
    assert asked(snapshot, laid("mixed"), [pod(begun.id)], ids(*snapshot.devices)) == ([], [])
    assert asked(snapshot, in_mode("mig"), made=ids(*snapshot.devices)) == ([], [])


def test_a_whole_device_in_use_is_not_cut() -> None:
    assert asked(node(carved("a")), laid("ones"), [process(of("a"))]) == (
        [],
        [("a", "partitioning-waits", "toy/a is held by process 42")],
    )
    device = plain("a")
    assert asked(node(device), laid("mixed"), [pod(device.id)])[1] == [
        ("a", "partitioning-waits", "toy/a is held by pod trainer")
    ]


def test_a_layout_without_partitions_makes_the_device_whole() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 0)

    assert asked(node(device, there), laid("none"), made=ids(there))[0] == [
        "destroy toy/a-1g-0",
        "set-mode toy/a whole",
    ]
    assert asked(node(carved("a")), laid("none")) == ([], [])
    assert asked(node(plain("a")), laid("none")) == ([], [])


def test_a_layout_that_comes_with_a_mode_sets_it() -> None:
    assert asked(node(modal("a")), laid("halves")) == (["set-mode toy/a dpx"], [])
    cut = modal("a", mode="dpx")
    assert asked(node(cut, *cut_by_mode(cut)), laid("halves")) == ([], [])


def test_of_modes_with_the_same_cut_the_present_one_is_kept_else_the_least_disturbing() -> None:
    cpx = modal("a").modes[0]
    modes = (
        attrs.evolve(cpx, name="cpx-nps1"),
        attrs.evolve(cpx, name="cpx-nps4"),
        *modal("a").modes[1:],
    )
    assert cpx.name == "cpx"
    near = attrs.evolve(modes[1], disturbs=modal("a").modes[1].disturbs)
    profiles = tuple(attrs.evolve(p, mode=None) for p in modal("a").profiles)
    device = attrs.evolve(modal("a"), modes=(modes[0], near, *modes[2:]), profiles=profiles)
    there = attrs.evolve(device, mode="cpx-nps1")
    parts = [at(there, "cpx", n) for n in range(4)]

    assert asked(node(device), laid("quarters"))[0] == ["set-mode toy/a cpx-nps4"]
    assert asked(node(there, *parts), laid("quarters")) == ([], [])


@pytest.mark.parametrize(
    "layout,code,reason",
    [
        (
            "thirds",
            "unsatisfiable-layout",
            "toy/a cannot be cut so: it can be 4 of cpx, and nothing beside",
        ),
        (
            "odd",
            "unsatisfiable-layout",
            "toy/a cannot be cut so: it can be 2 of dpx, and nothing beside",
        ),
        ("mixed", "unsatisfiable-layout", "toy/a cannot be cut so: it has no profile '1g'; "),
        ("lost", "partition-failed", "toy/a: there is no layout 'lost'"),
    ],
)
def test_layouts_that_a_device_cannot_have_are_told(layout: str, code: str, reason: str) -> None:
    ((subject, found, said),) = asked(node(modal("a")), laid(layout))[1]

    assert (subject, found) == ("a", code)
    assert said.startswith(reason)


def test_a_layout_of_two_modes_is_told() -> None:
    device = carved("a")
    other = attrs.evolve(device.profiles[2], mode="other")
    modes = (*device.modes, attrs.evolve(device.modes[0], name="other"))
    device = attrs.evolve(device, profiles=(*device.profiles[:2], other), modes=modes)

    assert asked(node(device), laid("mixed"))[1] == [
        (
            "a",
            "unsatisfiable-layout",
            "toy/a cannot be cut so: its partitions need modes mig and other at once",
        )
    ]


def test_one_device_that_cannot_be_cut_so_stops_no_other() -> None:
    snapshot = node(gpu("a"), carved("b", mode="mig"))

    found = asked(snapshot, laid("mixed"))

    assert found[0] == ["create toy/b-2g-0", "create toy/b-1g-2"]
    assert [subject for subject, _, _ in found[1]] == ["a"]


# Modes.


def test_a_mode_is_set_once_nobody_is_there() -> None:
    device = modal("a")

    assert asked(node(device), in_mode("dpx"))[0] == ["set-mode toy/a dpx"]
    assert asked(node(device), in_mode("dpx"), [pod(device.id)]) == (
        [],
        [("a", "partitioning-waits", "toy/a is held by pod trainer")],
    )


def test_modes_that_disturb_the_vendor_wait_for_all_its_devices_and_come_first() -> None:
    one, other, strange = modal("a"), modal("b"), gpu("z", vendor="other")
    first = Partitioning(select=Selection(name=("b",)), how=HOW.MODE, mode="cpx")
    rest = Partitioning(how=HOW.MODE, mode="dpx", select=Selection(name=("a",)))
    policy = Policy(partitioning=(first, rest))
    snapshot = node(one, other, gpu("c"), strange)
    held = [pod(of("c")), pod(strange.id)]

    assert asked(snapshot, policy, [pod(strange.id)])[0] == [
        "set-mode toy/b cpx",
        "set-mode toy/a dpx",
    ]
    assert asked(snapshot, policy, held) == (
        ["set-mode toy/a dpx"],
        [("b", "partitioning-waits", "toy/c is held by pod trainer")],
    )


def test_leaving_a_mode_destroys_what_was_made_in_it_and_not_what_came_with_it() -> None:
    device, cut = carved("a", mode="mig"), modal("b", mode="dpx")
    there = at(device, "1g", 0)
    rules = (
        Partitioning(select=Selection(name=("a",)), how=HOW.MODE, mode="whole"),
        Partitioning(how=HOW.MODE, mode="spx"),
    )
    snapshot = node(device, there, cut, *cut_by_mode(cut))

    assert asked(snapshot, Policy(partitioning=rules), made=ids(there)) == (
        ["destroy toy/a-1g-0", "set-mode toy/a whole", "set-mode toy/b spx"],
        [],
    )


def test_a_mode_waits_for_partitions_that_must_stay() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 0), at(device, "1g", 1)

    assert asked(node(device, *there), in_mode("whole"), [pod(there[0].id)]) == (
        [],
        [
            (
                "a",
                "partitioning-waits",
                (
                    "toy/a-1g-0 is held by pod trainer; "
                    "toy/a-1g-1 was made by somebody else, and foreign is keep"
                ),
            )
        ],
    )


def test_in_the_right_mode_only_foreign_partitions_go_if_they_may() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 0), at(device, "1g", 1), at(device, "1g", 2)
    snapshot = node(device, *there)
    held, made = [pod(there[0].id)], ids(there[1])

    assert asked(snapshot, in_mode("mig"), held, made) == ([], [])
    assert asked(snapshot, in_mode("mig", foreign=Foreign.DESTROY), held, made) == (
        ["destroy toy/a-1g-2"],
        [("a", "partitioning-waits", "toy/a-1g-0 is held by pod trainer")],
    )


def test_an_unknown_mode_is_told_with_those_that_there_are() -> None:
    assert asked(node(modal("a"), gpu("b")), in_mode("cpx-nps1"))[1] == [
        ("a", "unknown-mode", "toy/a has no mode 'cpx-nps1'; there is cpx, dpx, spx"),
        ("b", "unknown-mode", "toy/b has no mode 'cpx-nps1'; there is none"),
    ]


# Everything else.


def test_dynamic_devices_are_left_alone_but_for_foreign_partitions_that_may_go() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 0), at(device, "1g", 1)
    snapshot = node(device, *there)

    assert asked(snapshot, wanting(how=HOW.DYNAMIC)) == ([], [])
    destroy = wanting(how=HOW.DYNAMIC, foreign=Foreign.DESTROY)
    ours = ids(there[1])
    assert asked(snapshot, destroy, made=ours, claimed=ours)[0] == ["destroy toy/a-1g-0"]
    held = [pod(part.id) for part in there]
    assert asked(snapshot, destroy, held, made=ours, claimed=ours) == (
        [],
        [("a", "partitioning-waits", "toy/a-1g-0 is held by pod trainer")],
    )


def test_partitions_of_an_earlier_layout_go_from_dynamic_devices_once_nobody_holds_them() -> None:
    device = carved("a", mode="mig")
    there = at(device, "1g", 0), at(device, "1g", 1), at(device, "1g", 2)
    snapshot, dynamic = node(device, *there), wanting(how=HOW.DYNAMIC)
    made, claimed = ids(*there), ids(there[2])

    assert asked(snapshot, dynamic, [pod(there[0].id)], made=made, claimed=claimed) == (
        ["destroy toy/a-1g-1"],
        [("a", "partitioning-waits", "toy/a-1g-0 is held by pod trainer")],
    )


def test_devices_without_a_rule_or_that_could_not_be_read_are_left_alone() -> None:
    device = carved("a", mode="mig")
    stale = attrs.evolve(device, standing=Standing.STALE)

    assert plan(node(device), wanting(how=HOW.NONE)) == Plan()
    assert plan(node(stale), laid("ones")) == Plan()


def test_a_plugin_that_cannot_make_partitions_is_asked_for_none() -> None:
    device = carved("a", mode="mig")

    found = plan(node(device), laid("ones"), makers=["other"])

    assert found == Plan(problems=(Problem(vendor="toy", subject="a", code="cannot-partition"),))
    assert plan(node(device), wanting(how=HOW.DYNAMIC), makers=["other"]) == found
    assert plan(node(gpu("a")), wanting(how=HOW.DYNAMIC), makers=["other"]).problems == ()
    full = node(device, *(at(device, "1g", n) for n in range(4)))
    assert plan(full, laid("ones"), makers=["other"]).problems == ()
    assert plan(node(device), laid("ones"), makers=["toy"]).problems == ()


def test_a_plan_says_when_it_is_for() -> None:
    found = plan(node(carved("a")), laid("ones", when=When.DRAINED))

    assert [wanted.when for wanted in found.wanted] == [When.DRAINED]


def test_a_device_that_is_gone_meanwhile_needs_no_steps() -> None:
    assert steps(node(), plan(node(carved("a")), laid("ones"))) == ()


@pytest.mark.parametrize(
    "holder,said",
    [
        (Holder(kind=HolderKind.POD, namespace="ml", pod="train"), "pod ml/train"),
        (Holder(kind=HolderKind.CLAIM, namespace="ml", claim="c1"), "claim ml/c1"),
        (Holder(kind=HolderKind.CLAIM, uid="22"), "claim 22"),
        (Holder(kind=HolderKind.POD), "pod somebody"),
        (Holder(kind=HolderKind.FOREIGN), "process of the host"),
    ],
)
def test_holders_are_told_by_name(holder: Holder, said: str) -> None:
    held = Holding(device=of("a"), through="dra", holder=holder)

    assert asked(node(carved("a")), laid("ones"), [held])[1] == [
        ("a", "partitioning-waits", f"toy/a is held by {said}")
    ]


def test_a_mode_that_needs_a_reset_is_planned_all_the_same() -> None:
    """Whether a reset is at hand, only the vendor can tell."""
    assert asked(node(carved("a", modes=COLD)), laid("ones"))[0][0] == "set-mode toy/a mig"


@given(st.data())
def test_taking_the_steps_reaches_the_plan_and_leaves_alone_what_must_stay(
    data: st.DataObject,
) -> None:
    snapshot = data.draw(nodes())
    policy = data.draw(policies)
    holdings = data.draw(holdings_on(snapshot))
    made = data.draw(st.sets(st.sampled_from([d.id for d in snapshot.devices])))

    found = plan(snapshot, policy, holdings, made=made)
    after = taken(snapshot, steps(snapshot, found))

    for wanted in found.wanted:
        if not wanted.waits:
            device = after.by_id[wanted.device]
            assert wanted.mode in {None, device.mode}
            parts = [d for d in after.devices if d.parent == device.id]
            assert sorted(p.placement for p in parts if p.placement) == [*wanted.places]
    for holding in holdings:
        assert after.by_id[holding.device] == snapshot.by_id[holding.device]
    mine = made | (after.by_id.keys() - snapshot.by_id.keys())
    again = plan(after, policy, holdings, made=mine)
    assert steps(after, again) == ()
    assert {w.device for w in again.wanted} == {w.device for w in found.wanted}


@given(st.data())
def test_another_layout_keeps_as_many_partitions_with_their_names_as_can_be(
    data: st.DataObject,
) -> None:
    device = carved("a", mode="mig")
    layouts = st.sampled_from(["ones", "mixed", "media"])
    before, after = data.draw(layouts), data.draw(layouts)
    first = taken(node(device), steps(node(device), plan(node(device), laid(before))))
    made = first.by_id.keys() - {device.id}

    second = taken(first, steps(first, plan(first, laid(after), made=made)))

    there = {part.placement for part in first.devices if part.placement}
    kept = [d for d in second.devices if d.parent and d == first.by_id.get(d.id)]
    assert len(kept) == max(
        len(some & there) for some in everything(device) if layout_of(some) == LAYOUTS[after]
    )
