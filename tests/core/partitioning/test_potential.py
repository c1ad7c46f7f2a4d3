"""What claims may have though it is not there yet."""

from collections.abc import Iterable

import attrs
from hypothesis import given

from accelkit.core.model import Device, Profile, Snapshot
from accelkit.core.partition import counters
from accelkit.core.partitioning import potential, whole_again
from accelkit.core.places import can_be_set, mode_for
from accelkit.core.policy import Partitioning, PartitioningHow, Policy, Selection
from accelkit.core.values import FrozenMap, Scope
from accelkit.core.vendor import NoOptions
from tests.core.partitioning.nodes import (
    COLD,
    at,
    carved,
    modal,
    node,
    nodes,
    plain,
    policies,
)
from tests.core.test_vendor import Plain
from tests.core.things import gpu

DYNAMIC = PartitioningHow.DYNAMIC
ALL = Policy(partitioning=(Partitioning(how=DYNAMIC),))


def dynamic(*profiles: str, **fields: object) -> Policy:
    rule = Partitioning(how=DYNAMIC, profiles=profiles, **fields)  # type: ignore[arg-type]  # fields by name
    return Policy(partitioning=(rule,))


def names(devices: Iterable[Device]) -> list[str]:
    return [device.id.name for device in devices]


def profiles(devices: Iterable[Device]) -> set[str | None]:
    return {device.profile for device in devices}


def test_every_profile_at_every_place_that_is_free_of_it_could_be() -> None:
    device = carved("a", mode="mig")

    found = potential(node(device, at(device, "1g", 2)), ALL)

    assert names(found) == [
        *(f"a-1g-{n}" for n in (0, 1, 3)),
        *(f"a-1g-me-{n}" for n in range(4)),
        "a-2g-0",
        "a-2g-2",  # it would take the place of what is there
    ]


def test_a_partition_that_could_be_is_what_its_vendor_would_make() -> None:
    device = carved("a", mode="mig")
    profile = next(p for p in device.profiles if p.name == "2g")

    (found,) = (part for part in potential(node(device), ALL) if part.id.name == "a-2g-2")

    assert found == Plain(NoOptions()).partition(device, profile, 2)
    assert (found.kind, found.nodes, found.attributes) == ("mig", (), FrozenMap({"engines": 4}))


def test_only_what_the_rule_admits_could_be() -> None:
    device = carved("a", mode="mig")

    assert names(potential(node(device), dynamic("2g"))) == ["a-2g-0", "a-2g-2"]
    assert len(potential(node(device), dynamic("1g*", "2?"))) == 10
    assert potential(node(device), dynamic("3g")) == ()
    assert potential(node(device), Policy()) == ()
    assert potential(node(device), attrs.evolve(ALL, only=Selection(name=("b",)))) == ()


def test_a_mode_that_is_not_live_must_be_on_already() -> None:
    cold, on = carved("a", modes=COLD), carved("b", modes=COLD, mode="mig")
    snapshot = node(cold, on)

    assert {part.parent for part in potential(snapshot, ALL)} == {on.id}
    assert whole_again(snapshot, ALL) == frozenset()


def test_a_live_mode_follows_the_claims() -> None:
    off, on = carved("a"), carved("b", mode="mig")
    snapshot = node(off, on)

    assert {part.parent for part in potential(snapshot, ALL)} == {off.id, on.id}
    assert whole_again(snapshot, ALL) == {on.id}
    assert whole_again(snapshot, Policy()) == frozenset()


def test_a_live_mode_that_disturbs_others_does_not() -> None:
    modes = tuple(attrs.evolve(m, disturbs=Scope.VENDOR) for m in carved("a").modes)
    off, on = carved("a", modes=modes), carved("b", modes=modes, mode="mig")

    assert {part.parent for part in potential(node(off, on), ALL)} == {on.id}
    assert whole_again(node(off, on), ALL) == frozenset()


def test_what_comes_with_a_mode_is_not_made_for_claims() -> None:
    cut = modal("a", mode="dpx")

    assert potential(node(modal("b"), cut), ALL) == ()
    assert whole_again(node(cut, at(cut, "dpx", 0)), ALL) == frozenset()


def test_a_device_in_no_mode_is_whole_again_without_its_partitions() -> None:
    cut, odd = plain("a", usable=False), plain("b", usable=False)
    snapshot = node(cut, at(cut, "1g", 0), odd)

    assert whole_again(snapshot, ALL) == {cut.id}
    assert len(potential(snapshot, ALL)) == 11


def test_a_device_that_only_knows_fixed_cuts_is_never_whole_again() -> None:
    lnc = modal("a", mode="cpx")
    lnc = attrs.evolve(lnc, modes=tuple(m for m in lnc.modes if m.cut))

    assert whole_again(node(lnc, at(lnc, "cpx", 0)), ALL) == frozenset()


def test_profiles_of_two_modes_are_not_offered_together() -> None:
    """Counters know slots and engines, not modes."""
    device = carved("a")
    other = Profile(name="x", slug="x", size=1, starts=(0,), mode="extra")
    free = Profile(name="f", slug="f", size=1, starts=(0,))
    modes = (*device.modes, attrs.evolve(device.modes[0], name="extra"))
    both = attrs.evolve(device, profiles=(*device.profiles, other, free), modes=modes)

    on = attrs.evolve(both, mode="mig")

    assert profiles(potential(node(on), ALL)) == {"1g", "1g+me", "2g", "f"}
    assert profiles(potential(node(both), ALL)) == {"x", "f"}
    assert profiles(potential(node(both), dynamic("2g", "f"))) == {"2g", "f"}


def test_a_vendor_that_cannot_make_partitions_is_not_asked_for_any() -> None:
    snapshot = node(carved("a", mode="mig"))

    assert potential(snapshot, ALL, makers=["other"]) == ()
    assert whole_again(snapshot, ALL, makers=["other"]) == frozenset()
    assert potential(snapshot, ALL, makers=["toy"]) == potential(snapshot, ALL)


def test_a_device_that_cannot_be_cut_has_none() -> None:
    assert potential(node(gpu("a"), gpu("b", usable=False)), ALL) == ()
    assert whole_again(node(gpu("b", usable=False)), ALL) == frozenset()


@given(nodes(), policies)
def test_whatever_could_be_has_a_name_counters_and_a_mode_that_can_be(
    snapshot: Snapshot, policy: Policy
) -> None:
    found = potential(snapshot, policy)

    assert names(found) == sorted(names(found))
    assert not {part.id for part in found} & snapshot.by_id.keys()
    for part in found:
        assert part.parent is not None
        root = snapshot.by_id[part.parent]
        mode = mode_for(part, root)
        assert mode in {None, root.mode} or can_be_set(root, str(mode))
        assert counters(root).of(part)
