# ruff: noqa: ARG002 - toys need little of what they are told
"""What an instance knows before it has asked anybody, and what it makes of claims."""

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent import knowledge as knowledge_module
from accelkit.agent.admission import Pending
from accelkit.agent.holders import Holders, HoldingsReader
from accelkit.agent.knowledge import Claimed, Knowledge
from accelkit.agent.memory import MadeFor
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.core.allocation import ContainerEdits
from accelkit.core.clock import RealClock
from accelkit.core.errors import TransportError
from accelkit.core.host import Host
from accelkit.core.model import Device, Holder, Holding, Placement, Profile, Snapshot
from accelkit.core.policy import Offer, Partitioning, PartitioningHow, Policy
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap, Health, HolderKind, Standing
from accelkit.core.vendor import SupportsHolders
from accelkit.core.view import Assignment, Verdict, View
from tests.agent.toys import PATIENCE_S, Cutting, Toy, device

CLOCK = RealClock()
PLAIN = Policy()
OLD = Offer(name="old", resource="example.com/old")
EDITS = ContainerEdits(env=FrozenMap({"TOY": "as it was"}))


def toy(name: str) -> Device:
    return Device(id=device("toy", name), kind="toy")


def earlier(*names: str) -> tuple[View, list[MadeFor]]:
    """What an earlier instance kept: devices with their edits in an offer that is no more."""
    view = View(
        snapshot=Snapshot(node="n1", devices=tuple(toy(name) for name in names)),
        assignments=FrozenMap({toy(name).id: Assignment(terms=OLD) for name in names}),
    )
    return view, [MadeFor(device=toy(name).id, terms=OLD, edits=EDITS) for name in names]


def claim(name: str) -> Holding:
    holder = Holder(kind=HolderKind.CLAIM, namespace="ns", claim="c", uid="1")
    return Holding(device=device("toy", name), through="dra", holder=holder)


def knowing(
    tmp_path: Path, vendor: Toy, reader: HoldingsReader | None = None, policy: Policy = PLAIN
) -> tuple[Knowledge, Source]:
    source = Source(vendor, RealHost(str(tmp_path)), 1.0, CLOCK)
    holders = Holders(reader, Problems(CLOCK.now))
    return Knowledge("n1", "boot", policy, [source], Pending(CLOCK), CLOCK, holders), source


def standings(knowledge: Knowledge) -> dict[str, str]:
    return {d.id.name: d.standing.value for d in knowledge.store.view.snapshot.devices}


async def test_recalled_devices_are_stale_until_their_vendor_answers(tmp_path: Path) -> None:
    knowledge, source = knowing(tmp_path, Toy())
    knowledge.recall(*earlier("a"))
    before = knowledge.store.view
    answered = knowledge.answered.now
    await knowledge.learn(source)

    assert standings(knowledge) == {"a": "PRESENT", "b": "PRESENT"}
    assert (answered, knowledge.answered.now) == (False, True)
    assert [d.standing for d in before.snapshot.devices] == [Standing.STALE]
    assert before.verdicts[device("toy", "a")].health is Health.UNKNOWN


async def test_recalled_edits_serve_until_new_ones_are_made(tmp_path: Path) -> None:
    vendor = Toy()
    knowledge, source = knowing(tmp_path, vendor, policy=Policy(offers=(OLD,)))
    knowledge.recall(*earlier("a"))
    before = knowledge.store.view.edits
    await knowledge.learn(source)

    assert before == {device("toy", "a"): EDITS}
    assert vendor.asked == ["a", "b"]
    assert knowledge.store.view.edits[device("toy", "a")].env == {"TOY": "a"}


async def test_held_device_that_vanished_while_nobody_looked_is_lost_not_gone(
    tmp_path: Path,
) -> None:
    vendor = Toy()
    knowledge, source = knowing(tmp_path, vendor)
    knowledge.claimed = lambda: Claimed(holdings=(claim("gone"),))
    knowledge.recall(*earlier("a", "gone", "free"))
    await knowledge.learn(source)

    assert standings(knowledge) == {"a": "PRESENT", "b": "PRESENT", "gone": "LOST"}
    assert knowledge.store.view.assignments[device("toy", "gone")].terms == OLD


async def test_device_that_goes_while_its_claim_unmakes_it_is_gone_not_lost(
    tmp_path: Path,
) -> None:
    knowledge, source = knowing(tmp_path, Toy())
    unmade = frozenset({device("toy", "gone")})
    knowledge.claimed = lambda: Claimed(holdings=(claim("gone"),), made=unmade, unmade=unmade)
    knowledge.recall(*earlier("a", "gone"))
    await knowledge.learn(source)

    assert standings(knowledge) == {"a": "PRESENT", "b": "PRESENT"}


@pytest.mark.parametrize("part", [True, False])
async def test_partition_that_the_next_claim_has_not_made_yet_is_gone_not_lost(
    tmp_path: Path, part: bool
) -> None:
    """The one before has just unmade it; a whole device that goes is lost, whoever wants it."""
    knowledge, source = knowing(tmp_path, Toy())
    gone = device("toy", "a-half-0")
    knowledge.claimed = lambda: Claimed(holdings=(claim("a-half-0"),), awaited=frozenset({gone}))
    view, edits = earlier("a", "a-half-0")
    if part:
        whole, cut = view.snapshot.devices
        half = Profile(name="half", slug="half", size=1, starts=(0, 1))
        devices = (
            attrs.evolve(whole, slots=2, profiles=(half,)),
            attrs.evolve(
                cut, parent=whole.id, placement=Placement(profile="half", start=0, size=1)
            ),
        )
        view = attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, devices=devices))
    knowledge.recall(view, edits)
    await knowledge.learn(source)

    assert standings(knowledge).get("a-half-0") == (None if part else "LOST")


async def test_recalled_devices_stay_until_it_is_known_who_holds_them(tmp_path: Path) -> None:
    down = True

    async def read(_view: View) -> tuple[Holding, ...]:
        if down:
            raise TransportError("no kubelet")
        return ()

    knowledge, source = knowing(tmp_path, Toy(), read)
    knowledge.recall(*earlier("gone"))
    await knowledge.learn(source)
    unknown = standings(knowledge)
    down = False
    await knowledge.ask_holders()

    assert unknown == {"a": "PRESENT", "b": "PRESENT", "gone": "LOST"}
    assert standings(knowledge) == {"a": "PRESENT", "b": "PRESENT"}


async def test_terms_of_a_held_device_outlive_a_restart_with_another_policy(
    tmp_path: Path,
) -> None:
    knowledge, source = knowing(tmp_path, Toy())
    knowledge.claimed = lambda: Claimed(holdings=(claim("a"),))
    knowledge.recall(*earlier("a", "b"))
    await knowledge.learn(source)

    given = knowledge.store.view.assignments
    assert given[device("toy", "a")] == Assignment(terms=OLD, leaving=True)
    assert given[device("toy", "b")].terms == PLAIN.offers[0]


async def test_devices_of_a_vendor_that_is_asked_no_more_are_forgotten(tmp_path: Path) -> None:
    class Other(Toy):
        name = "other"

    knowledge, _ = knowing(tmp_path, Other())
    knowledge.recall(*earlier("a"))

    assert knowledge.store.view.snapshot.devices == ()


async def test_claims_hold_what_they_say_and_the_kubelet_names_their_pods(tmp_path: Path) -> None:
    async def read(_view: View) -> tuple[Holding, ...]:
        told = attrs.evolve(claim("a").holder, uid=None, pod="p", container="main")
        return (attrs.evolve(claim("a"), holder=told),)

    knowledge, source = knowing(tmp_path, Toy(), read)
    knowledge.claimed = lambda: Claimed(
        holdings=(claim("a"), claim("b")), made=frozenset({device("toy", "b")})
    )
    await knowledge.learn(source)

    view = knowledge.store.view
    assert [(h.device.name, h.holder.pod, h.holder.uid) for h in view.holdings] == [
        ("a", "p", "1"),
        ("b", None, "1"),
    ]
    assert view.made == {device("toy", "b")}


@pytest.mark.parametrize("name", ["a", "b"])
async def test_view_is_amended_before_anybody_sees_it(tmp_path: Path, name: str) -> None:
    def sick(view: View) -> View:
        verdicts = {i: v for i, v in view.verdicts.items() if i.name != name}
        bad = {i: Verdict(health=Health.UNHEALTHY) for i in view.verdicts if i.name == name}
        return attrs.evolve(view, verdicts=FrozenMap({**verdicts, **bad}))

    knowledge, source = knowing(tmp_path, Toy())
    knowledge.amend = sick
    await knowledge.learn(source)

    assert {i.name for i, v in knowledge.store.view.verdicts.items() if not v.good} == {name}


async def test_processes_are_asked_about_before_devices_change_hands(tmp_path: Path) -> None:
    class Used(Toy, SupportsHolders):
        pid: str | None = None

        def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
            for used in devices if self.pid else ():
                holder = Holder(kind=HolderKind.FOREIGN, uid=self.pid)
                yield Holding(device=used.id, through="process", holder=holder)

    vendor = Used()
    vendor.names = ("a",)
    knowledge, source = knowing(tmp_path, vendor, policy=Policy(offers=(OLD,)))
    await knowledge.learn(source)
    vendor.pid = "42"
    await knowledge.adopt(PLAIN)
    kept = knowledge.store.view.assignments[device("toy", "a")]
    vendor.pid = None
    await source.ask_holders(knowledge.store.view.snapshot.devices)
    knowledge.commit()

    assert kept == Assignment(terms=OLD, leaving=True)
    assert knowledge.store.view.assignments[device("toy", "a")].terms == PLAIN.offers[0]


async def test_vendor_that_is_slow_to_tell_processes_holds_no_policy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge_module, "TURN_S", 0.02)

    class Slow(Toy, SupportsHolders):
        go = threading.Event()

        def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
            self.go.wait(PATIENCE_S)
            return ()

    knowledge, source = knowing(tmp_path, Slow())
    await knowledge.learn(source)
    await knowledge.adopt(Policy(offers=(OLD,)))
    stuck = source.lanes.stuck
    Slow.go.set()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*knowledge._asking)

    assert knowledge.store.view.assignments[device("toy", "a")].terms == OLD
    assert stuck == 0


async def test_partition_that_a_claim_unmade_can_be_had_before_its_vendor_is_read_again(
    tmp_path: Path,
) -> None:
    """Else it would be somebody else's until then, and in the way of its whole device."""
    (tmp_path / "cut").mkdir()
    for name, text in (("mode", "cut"), ("half-0", "made"), ("half-1", "")):
        (tmp_path / "cut" / name).write_text(text)
    half = device("cutting", "a-half-0")
    dynamic = Partitioning(how=PartitioningHow.DYNAMIC)
    policy = Policy(partitioning=(dynamic,), offers=(Offer(name="all", through="dra"),))
    knowledge, source = knowing(tmp_path, Cutting(), policy=policy)
    knowledge.claimed = lambda: Claimed(made=frozenset({half}))
    await knowledge.learn(source)
    before = half in knowledge.store.view.devices

    knowledge.claimed = Claimed
    knowledge.commit()

    assert before
    assert half not in knowledge.store.view.devices
    assert half in {part.id for part in knowledge.store.view.potential}


async def test_process_that_was_seen_at_a_partition_keeps_nothing_of_it_once_it_is_gone(
    tmp_path: Path,
) -> None:
    """Processes are asked for every minute; until then its whole device could not be had."""

    class Used(Cutting, SupportsHolders):
        def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
            for used in (one for one in devices if one.parent is not None):
                holder = Holder(kind=HolderKind.FOREIGN, uid="42")
                yield Holding(device=used.id, through="process", holder=holder)

    (tmp_path / "cut").mkdir()
    for name, text in (("mode", "cut"), ("half-0", "made"), ("half-1", "")):
        (tmp_path / "cut" / name).write_text(text)
    half = device("cutting", "a-half-0")
    knowledge, source = knowing(tmp_path, Used())
    await knowledge.learn(source)
    await source.ask_holders(knowledge.store.view.snapshot.devices)
    knowledge.commit()
    before = {holding.device for holding in knowledge.store.view.holdings}

    (tmp_path / "cut" / "half-0").write_text("")
    await knowledge.learn(source)

    assert before == {half}
    assert half not in knowledge.store.view.devices
