from datetime import UTC, datetime

import attrs
import pytest

from accelkit.agent.admission import PENDING_S, Pending, check
from accelkit.core.allocation import ContainerEdits, Piece
from accelkit.core.clock import RealClock
from accelkit.core.errors import (
    AllocationError,
    DeviceUnavailable,
    IllegalSet,
    MissingParts,
    UnknownDevice,
)
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Group,
    Holder,
    Holding,
    Snapshot,
)
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, GroupRule, Health, HolderKind, Severity
from accelkit.core.view import Assignment, Verdict, View

OFFER = Offer(name="all")
NAMES = ("a", "b", "c", "d")


def ident(name: str) -> DeviceId:
    return DeviceId(vendor="toy", name=name)


def piece(name: str, share: str | None = None) -> Piece:
    return Piece(device=ident(name), share=share)


def view(*groups: Group) -> View:
    """Four healthy devices, all of them offered."""
    ids = [ident(name) for name in NAMES]
    return View(
        snapshot=Snapshot(devices=[Device(id=i, kind="toy") for i in ids], groups=groups),
        verdicts=FrozenMap(dict.fromkeys(ids, Verdict(health=Health.HEALTHY))),
        assignments=FrozenMap(dict.fromkeys(ids, Assignment(terms=OFFER))),
        edits=FrozenMap(dict.fromkeys(ids, ContainerEdits())),
    )


def changed(field: str, name: str, value: object) -> View:
    """The view with another verdict or assignment of one device; None: without it."""
    whole = view()
    entries: dict[DeviceId, object] = {**getattr(whole, field)}
    if value is None:
        del entries[ident(name)]
    else:
        entries[ident(name)] = value
    return attrs.evolve(whole, **{field: entries})  # type: ignore[arg-type]  # the field's own type


def law(*names: str) -> Group:
    return Group(kind="host", name="-".join(names), members=map(ident, names), rule=GroupRule.LAW)


def test_healthy_offered_devices_are_granted_with_their_shares() -> None:
    terms, granted = check(view(), "kubelet", "all", [piece("a", "a::0"), piece("b")])

    assert terms == OFFER
    assert [(g.device.id.name, g.share) for g in granted] == [("a", "a::0"), ("b", None)]


def test_no_device_at_all_is_no_offer_at_all() -> None:
    assert check(view(), "kubelet", "all", []) == (None, ())


FATAL = Condition(code="on-fire", severity=Severity.FATAL)
LEAVING = Assignment(terms=OFFER, leaving=True, why="held, though it is now offered in rest")
OTHER = Assignment(terms=Offer(name="rest"))
ELSEWHERE = Assignment(terms=Offer(name="rest", through="dra"))


@pytest.mark.parametrize(
    "seen, error, text",
    [
        (changed("assignments", "a", None), UnknownDevice, "toy/a is not offered"),
        (changed("assignments", "a", Assignment(terms=None)), UnknownDevice, "is not offered"),
        (changed("assignments", "a", OTHER), UnknownDevice, "offered as rest, not as all"),
        (changed("assignments", "a", ELSEWHERE), DeviceUnavailable, "through dra, not kubelet"),
        (changed("assignments", "a", LEAVING), DeviceUnavailable, "leaves the offer all: held"),
        (changed("verdicts", "a", None), DeviceUnavailable, "not judged yet"),
        (
            changed("verdicts", "a", Verdict(health=Health.UNHEALTHY, reasons=[FATAL])),
            DeviceUnavailable,
            "toy/a is unhealthy: on-fire",
        ),
        (
            changed("verdicts", "a", Verdict(health=Health.UNKNOWN, overdue=True)),
            DeviceUnavailable,
            "toy/a is unknown",
        ),
        (changed("edits", "a", None), MissingParts, "could not be found"),
    ],
)
def test_device_that_is_not_to_be_had_is_refused(
    seen: View, error: type[AllocationError], text: str
) -> None:
    with pytest.raises(error, match=text):
        check(seen, "kubelet", "all", [piece("b"), piece("a")])


def test_device_that_is_not_there_is_unknown() -> None:
    with pytest.raises(UnknownDevice, match="toy/z is not offered"):
        check(view(), "kubelet", "all", [piece("z")])


def test_device_that_is_cut_is_refused() -> None:
    whole = view()
    cut = [attrs.evolve(d, usable=d.id.name != "a") for d in whole.snapshot.devices]
    seen = attrs.evolve(whole, snapshot=Snapshot(devices=cut))

    with pytest.raises(DeviceUnavailable, match="cut into partitions"):
        check(seen, "kubelet", "all", [piece("a")])


def test_device_that_is_unknown_within_its_grace_is_granted() -> None:
    seen = changed("verdicts", "a", Verdict(health=Health.UNKNOWN))

    assert check(seen, "kubelet", "all", [piece("a")])[1]


LAWS = (law("a"), law("b"), law("a", "b"), law("a", "b", "c", "d"))


@pytest.mark.parametrize("names", ["a", "ab", "abcd", "ba"])
def test_set_that_is_a_group_is_granted(names: str) -> None:
    assert check(view(*LAWS), "kubelet", "all", [piece(name) for name in names])[1]


@pytest.mark.parametrize("names", ["ac", "abc", "bcd"])
def test_set_that_is_no_group_is_refused(names: str) -> None:
    with pytest.raises(IllegalSet, match="toy cannot run") as found:
        check(view(*LAWS), "kubelet", "all", [piece(name) for name in names])
    assert found.value.remedy == "ask for one of the sizes 1, 2, 4"


def test_several_shares_of_a_device_count_as_the_device() -> None:
    seen = view(*LAWS)

    assert check(seen, "kubelet", "all", [piece("a", "a::0"), piece("a", "a::1")])[1]


def test_devices_that_no_law_names_are_free_of_it() -> None:
    assert check(view(law("a", "b")), "kubelet", "all", [piece("c"), piece("d")])[1]


def test_hints_bind_nobody() -> None:
    hint = Group(kind="host", name="x", members=[ident("a"), ident("b")])

    assert check(view(hint), "kubelet", "all", [piece("a"), piece("c")])[1]


class At(RealClock):
    """Stands at *at*."""

    at = 0.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> datetime:
        return datetime(2027, 1, 1, tzinfo=UTC)


def held(name: str, share: str | None = None, pod: str | None = None) -> Holding:
    return Holding(
        device=ident(name),
        share=share,
        through="kubelet",
        holder=Holder(kind=HolderKind.POD, pod=pod),
    )


def test_admission_is_a_holding_until_the_kubelet_reports_one() -> None:
    pending = Pending(At())
    pending.add("kubelet", [piece("a"), piece("b", "b::1"), piece("b", "b::0")])

    assert pending.besides(()) == (held("a"), held("b", "b::0"), held("b", "b::1"))
    seen = (held("a", pod="p"), held("b", "b::1", pod="p"))
    assert pending.besides(seen) == (held("b", "b::0"),)


def test_admission_that_became_no_holding_ends() -> None:
    clock = At()
    pending = Pending(clock)
    pending.add("kubelet", [piece("a")])

    clock.at = PENDING_S - 1
    assert pending.besides(()) == (held("a"),)
    clock.at = PENDING_S
    assert pending.besides(()) == ()


def test_device_that_is_admitted_again_is_pending_anew() -> None:
    clock = At()
    pending = Pending(clock)
    pending.add("kubelet", [piece("a")])
    clock.at = PENDING_S - 1
    pending.add("kubelet", [piece("a")])

    clock.at = PENDING_S + 1

    assert pending.besides(()) == (held("a"),)
