from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Condition, Group, Holder, Holding, Link, Problem
from accelkit.core.policy import Offer, Selection
from accelkit.core.snapshot import diff
from accelkit.core.values import FrozenMap, Health, HolderKind, LinkKind, Severity, Standing
from accelkit.core.view import Assignment, Verdict, View
from tests.core.things import fatal, gpu, info, of, pod, policy, reading, report, seen, silent, view

A, B = gpu("a"), gpu("b")
NOTHING = View()
PLAIN = view(seen(report(A)))


def after(**fields: object) -> View:
    """PLAIN with other fields."""
    return attrs.evolve(PLAIN, **fields)  # type: ignore[arg-type]  # of View


def test_a_first_view_says_what_is_there() -> None:
    first = view(seen(report(gpu("a", product="Toy 9"), software=FrozenMap({"driver": "1"}))))

    assert diff(NOTHING, first) == (
        "toy/a is new: Toy 9; is HEALTHY; is offered in all",
        "software toy/driver is 1, was not known",
        "answered changed",
        "node changed",
        "offers changed",
        "domains changed",
    )


def test_a_device_that_is_gone_is_only_gone() -> None:
    assert diff(view(seen(report(A, B))), view(seen(report(A)))) == ("toy/b is gone",)


def test_a_failed_vendor_makes_its_devices_stale_and_unknown() -> None:
    stale = view(seen(silent(), previous=PLAIN.snapshot), previous=PLAIN)

    assert diff(PLAIN, stale) == (
        "toy/a is STALE, was PRESENT",
        "toy/a is UNKNOWN",
        "problem: toy driver-not-ready",
    )
    assert diff(stale, PLAIN) == (
        "toy/a is PRESENT, was STALE",
        "toy/a is HEALTHY",
        "solved: toy driver-not-ready",
    )


def test_conditions_come_and_go_with_their_message() -> None:
    sick = view(seen(report(A), readings=[reading(A, a=fatal(message="fell off the bus"))]))

    assert diff(PLAIN, sick) == (
        "toy/a has burnt (FATAL): fell off the bus",
        "toy/a is UNHEALTHY: burnt",
    )
    assert diff(sick, PLAIN) == ("toy/a has no burnt any more", "toy/a is HEALTHY")


def test_a_condition_that_changes_and_facts_are_named() -> None:
    before = view(seen(report(A), readings=[reading(A, a=info())]))
    worse = Condition(code="warm", severity=Severity.DEGRADED)
    moved = gpu("a", product="new", handle="7")
    later = view(seen(report(moved), readings=[reading(moved, a=worse)]))

    assert diff(before, later) == (
        "toy/a changed: product, handle, conditions",
        "toy/a is still HEALTHY: warm",
    )


def test_unknown_for_too_long_is_said() -> None:
    verdicts = FrozenMap({of("a"): Verdict(health=Health.UNKNOWN, overdue=True)})

    assert diff(PLAIN, after(verdicts=verdicts)) == ("toy/a is UNKNOWN for too long",)


@pytest.mark.parametrize(
    "assignment,words",
    [
        (Assignment(terms=None, why="no offer selects it"), "offered nowhere: no offer selects it"),
        (Assignment(terms=Offer(name="all"), leaving=True, why="held"), "leaving all: held"),
        (Assignment(terms=Offer(name="dra")), "offered in dra"),
    ],
)
def test_offers_that_change_are_said_with_the_reason(assignment: Assignment, words: str) -> None:
    new = after(assignments=FrozenMap({of("a"): assignment}))

    assert diff(PLAIN, new) == (f"toy/a is {words}",)


def test_edits_that_could_be_made_or_not_are_said() -> None:
    made = after(edits=FrozenMap({of("a"): ContainerEdits(env=FrozenMap({"X": "1"}))}))

    assert diff(PLAIN, made) == ("toy/a has new edits for containers",)
    assert diff(made, PLAIN) == ("toy/a has no edits for containers",)


def test_edits_of_a_device_that_is_offered_nowhere_do_not_matter() -> None:
    nowhere = view(seen(report(A)), policy(Offer(name="none", select=Selection(name=("x",)))))

    assert diff(nowhere, attrs.evolve(nowhere, edits=FrozenMap({of("a"): ContainerEdits()}))) == ()


def test_holders_are_named_as_well_as_they_can_be() -> None:
    claim = Holder(kind=HolderKind.CLAIM, claim="train", uid="u")
    process = Holder(kind=HolderKind.FOREIGN, uid="42")
    nobody = Holder(kind=HolderKind.POD)
    held = after(
        holdings=(
            pod(of("a")),
            *(Holding(device=of("a"), through="x", holder=h) for h in (claim, process, nobody)),
        )
    )

    assert set(diff(PLAIN, held)) == {
        f"toy/a is held by {who}" for who in ("trainer", "train", "42", "somebody")
    }
    assert set(diff(held, PLAIN)) == {
        f"toy/a is no longer held by {who}" for who in ("trainer", "train", "42", "somebody")
    }


def test_problems_are_said_with_their_reason_and_once() -> None:
    problem = Problem(vendor="toy", subject="b", code="io-error", reason="no answer")
    new = after(snapshot=attrs.evolve(PLAIN.snapshot, problems=(problem,)))

    assert diff(PLAIN, new) == ("problem: toy b io-error: no answer",)
    assert diff(new, new) == ()


@pytest.mark.parametrize(
    "what,fields",
    [
        ("links", {"links": (Link(a=of("a"), b=of("b"), kind=LinkKind.SOCKET),)}),
        ("groups", {"groups": (Group(kind="ring", name="0", members=(of("a"),)),)}),
        ("answered", {"answered": frozenset({"toy", "other"})}),
        ("node", {"node": "other"}),
    ],
)
def test_other_facts_that_change_are_named(what: str, fields: Mapping[str, object]) -> None:
    old = view(seen(report(A, B)))
    facts = attrs.evolve(old.snapshot, **fields)  # type: ignore[arg-type]  # of Snapshot
    new = attrs.evolve(old, snapshot=facts)

    assert diff(old, new) == (f"{what} changed",)


@pytest.mark.parametrize("what", ["revision", "boot"])
def test_a_new_policy_or_boot_is_named(what: str) -> None:
    assert diff(PLAIN, after(**{what: "other"})) == (f"{what} changed",)


def test_software_that_is_gone_is_said() -> None:
    old = view(seen(report(A, software=FrozenMap({"driver": "1"}))))

    assert diff(old, PLAIN) == ("software toy/driver is gone, was 1",)


some_views = st.builds(
    lambda devices, software, held, rules: view(
        seen(report(*devices, software=FrozenMap(software))),
        policy(*rules),
        holdings=[pod(d.id) for d in sorted(devices, key=lambda d: d.id) if held],
    ),
    st.sets(
        st.sampled_from(
            [A, B, gpu("c", product="x"), gpu("d", standing=Standing.PRESENT, handle="1")]
        )
    ),
    st.dictionaries(st.sampled_from(["driver", "library"]), st.sampled_from(["1", "2"])),
    st.booleans(),
    st.sampled_from([(), (Offer(name="one"),), (Offer(name="one", through="dra"),)]),
)


@given(some_views, some_views)
def test_views_are_equal_if_and_only_if_nothing_changed(old: View, new: View) -> None:
    assert diff(old, old) == ()
    assert (diff(old, new) == ()) == (old == new)
