# ruff: noqa: ARG002 - toys need little of what they are told
"""Devices that an agent cuts as its policy says: with files for hardware, and a real record."""

import asyncio
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from accelkit.agent import cutting
from accelkit.agent.agent import Parts
from accelkit.agent.cutting_steps import made_before
from accelkit.core.allocation import Allocation, ClaimRef, Piece
from accelkit.core.backend import BackendFactory
from accelkit.core.errors import NeedsReset, PartitionInUse, TransportError
from accelkit.core.host import Host
from accelkit.core.model import Device, Holder, Holding, Placement, Unreadable
from accelkit.core.policy import Foreign, Offer, Partitioning, PartitioningHow, When
from accelkit.core.values import FrozenMap, HolderKind, Standing
from accelkit.core.vendor import SupportsHolders
from accelkit.core.view import View
from tests.agent.toys import (
    BOOT,
    PATIENCE_S,
    Cutting,
    ToyBackend,
    codes_of,
    cut_host,
    device,
    get,
    parts,
    policy,
    ready,
    running,
    until,
    view_of,
)

A, HALF_0, HALF_1 = (device("cutting", name) for name in ("a", "a-half-0", "a-half-1"))
LAYOUTS = FrozenMap(
    {
        "one": FrozenMap({"half": 1}),
        "two": FrozenMap({"half": 2}),
        "whole": FrozenMap[str, int](),
    }
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "GOING_S", 0.05)
    monkeypatch.setattr(cutting, "TOGETHER_S", 0.02)


def cutter(  # type: ignore[explicit-any]  # of Partitioning
    tmp_path: Path, vendor: Cutting, layout: str = "two", *, through: str = "kubelet", **fields: Any
) -> Parts:
    rule = attrs.evolve(Partitioning(how=PartitioningHow.LAYOUT, layout=layout), **fields)
    wanted = attrs.evolve(
        policy(tmp_path),
        layouts=LAYOUTS,
        partitioning=(rule,),
        offers=(Offer(name="all", through=through),),
    )
    made = parts(tmp_path, vendor, wanted=wanted)
    backend = BackendFactory(name=through, create=ToyBackend)
    return attrs.evolve(made, backends={through: backend})


def state(tmp_path: Path) -> tuple[str, str, str]:
    folder = tmp_path / "host" / "cut"
    mode, zero, one = ((folder / name).read_text() for name in ("mode", "half-0", "half-1"))
    return mode, zero, one


def ours(tmp_path: Path) -> list[str]:
    found: list[str] = json.loads((tmp_path / "run" / BOOT / "partitions.json").read_text())
    return found


async def test_free_device_is_cut_as_the_policy_says_and_its_parts_are_offered(
    tmp_path: Path,
) -> None:
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    async with running(cutter(tmp_path, vendor)) as agent:
        await until(lambda: {HALF_0, HALF_1} <= view_of(agent).offered.keys())
        offered = set(view_of(agent).offered)
        problems = codes_of(agent)

    assert offered == {HALF_0, HALF_1}
    assert vendor.works == ["set mode cut", "create 0", "create 1"]
    assert state(tmp_path) == ("cut", "made", "made")
    assert ours(tmp_path) == ["cutting/a-half-0", "cutting/a-half-1"]
    assert problems == set()
    assert view_of(agent).made == frozenset()


async def test_what_is_as_it_should_be_is_left_alone(tmp_path: Path) -> None:
    cut_host(tmp_path, "cut", 0, 1)
    vendor = Cutting()
    async with running(cutter(tmp_path, vendor)) as agent:
        await until(lambda: {HALF_0, HALF_1} <= view_of(agent).offered.keys())
        applied = await agent._duties.cutting.apply(told=True)

    assert vendor.works == []
    assert applied == cutting.Applied()


async def test_partition_that_was_made_by_an_earlier_instance_is_unmade_for_another_layout(
    tmp_path: Path,
) -> None:
    cut_host(tmp_path, "whole")
    async with running(cutter(tmp_path, Cutting(), "two")):
        await until(lambda: state(tmp_path) == ("cut", "made", "made"))
    vendor = Cutting()
    async with running(cutter(tmp_path, vendor, "one")) as agent:
        await until(lambda: state(tmp_path) == ("cut", "made", ""))
        await until(lambda: view_of(agent).offered.keys() == {HALF_0})
        await until(lambda: ours(tmp_path) == ["cutting/a-half-0"])

    assert vendor.works == ["destroy 1"]


async def test_partition_of_a_stranger_stays_unless_the_policy_lets_it_be_destroyed(
    tmp_path: Path,
) -> None:
    cut_host(tmp_path, "cut", 1)
    async with running(cutter(tmp_path, Cutting(), "whole")) as agent:
        await until(lambda: codes_of(agent))
        kept = state(tmp_path)
    async with running(cutter(tmp_path, Cutting(), "whole", foreign=Foreign.DESTROY)) as agent:
        await until(lambda: state(tmp_path) == ("whole", "", ""))
        await until(lambda: view_of(agent).offered.keys() == {A})

    assert kept == ("cut", "", "made")
    assert state(tmp_path) == ("whole", "", "")


def wish(uid: str, name: str) -> Allocation:
    return Allocation(
        claim=ClaimRef(uid=uid, namespace="team", name=f"claim-{uid}"),
        driver="cutting.accelkit.dev",
        pieces=(Piece(device=device("cutting", name), request="gpu"),),
    )


async def test_device_that_a_claim_has_is_cut_when_the_claim_is_released(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    made = cutter(tmp_path, vendor, through="dra", when=When.DRAINED)
    async with running(made) as agent:
        await ready(agent)
        keeper = agent._duties.keeper
        await keeper.prepare(wish("1", "a"))
        await until(lambda: view_of(agent).held)
        applied = await agent._duties.cutting.apply(told=True)
        told = codes_of(agent)
        await keeper.release("1")
        await until(lambda: not view_of(agent).held)
        after = await agent._duties.cutting.apply(told=True)

    assert applied == cutting.Applied(left=("cutting/a: cutting/a is held by claim team/claim-1",))
    assert "partitioning-waits" in told
    assert after.done == (
        "set-mode cutting/a cut",
        "create cutting/a-half-0",
        "create cutting/a-half-1",
    )


async def test_claim_that_came_in_between_keeps_its_device(tmp_path: Path) -> None:
    """Another instance prepares it, from a view of its own, when all were asked already."""
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    async with running(cutter(tmp_path, vendor, through="dra", when=When.DRAINED)) as agent:
        await ready(agent)
        claimed: list[str] = []
        ask = agent._duties.cutting._ask

        async def ask_and_claim(vendors: Collection[str]) -> None:
            await ask(vendors)
            if not claimed:
                claimed.append("1")
                agent._knowledge.going = {}
                agent._knowledge.commit()
                await agent._duties.keeper.prepare(wish("1", "a"))

        agent._duties.cutting._ask = ask_and_claim  # type: ignore[method-assign]  # what comes between
        applied = await agent._duties.cutting.apply(told=True)

    assert vendor.works == []
    assert applied.done == ()
    assert state(tmp_path) == ("whole", "", "")


async def test_device_that_waits_to_be_told_is_cut_when_it_is(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    socket = tmp_path / "run" / "agent.sock"
    async with running(cutter(tmp_path, Cutting(), when=When.DRAINED)) as agent:
        await ready(agent)
        await until(lambda: "partitioning-waits" in codes_of(agent))
        before = state(tmp_path)
        status, body = await get(socket, "/apply", "POST")
        again = await get(socket, "/apply", "POST")
        problems = codes_of(agent)

    assert before == ("whole", "", "")
    assert (status, json.loads(body)) == (
        200,
        {
            "done": [
                "set-mode cutting/a cut",
                "create cutting/a-half-0",
                "create cutting/a-half-1",
            ],
            "failed": [],
            "left": [],
        },
    )
    assert json.loads(again[1]) == {"done": [], "failed": [], "left": []}
    assert problems == set()


class HeldCutting(Cutting, SupportsHolders):
    """Its device is used by a process."""

    pid: str | None = None

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        for used in devices if self.pid else ():
            holder = Holder(kind=HolderKind.FOREIGN, uid=self.pid)
            yield Holding(device=used.id, through="process", holder=holder)


async def test_process_that_uses_the_device_is_seen_before_it_is_cut(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    vendor = HeldCutting()
    async with running(cutter(tmp_path, vendor, when=When.DRAINED)) as agent:
        await ready(agent)
        vendor.pid = "42"
        applied = await agent._duties.cutting.apply(told=True)
        vendor.pid = None
        after = await agent._duties.cutting.apply(told=True)

    assert applied.done == ()
    assert applied.left == ("cutting/a: cutting/a is held by process 42",)
    assert len(after.done) == 3


async def test_nothing_is_cut_while_it_is_not_known_who_holds_what(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")

    async def read(_view: View) -> tuple[Holding, ...]:
        raise TransportError("no kubelet")

    vendor = Cutting()
    async with running(attrs.evolve(cutter(tmp_path, vendor), holdings=read)) as agent:
        await until(lambda: A in view_of(agent).offered)
        await until(lambda: "holders-unknown" in codes_of(agent))
        applied = await agent._duties.cutting.apply(told=True)

    assert applied.done == ()
    assert vendor.works == []


async def test_held_partition_keeps_its_place_and_the_rest_is_cut(tmp_path: Path) -> None:
    cut_host(tmp_path, "cut", 1)
    held = Holding(
        device=HALF_1,
        through="kubelet",
        holder=Holder(kind=HolderKind.POD, namespace="ns", pod="p"),
    )

    async def read(_view: View) -> tuple[Holding, ...]:
        return (held,)

    vendor = Cutting()
    async with running(attrs.evolve(cutter(tmp_path, vendor), holdings=read)) as agent:
        await until(lambda: {HALF_0, HALF_1} <= view_of(agent).offered.keys())

    assert vendor.works == ["create 0"]


@pytest.mark.parametrize(
    "error, code",
    [
        (NeedsReset("only a reset would do", remedy="reset it"), "needs-reset"),
        (PartitionInUse("busy"), "partition-in-use"),
    ],
)
async def test_step_that_fails_is_a_problem_with_a_remedy_and_tried_again_later(
    tmp_path: Path, error: Exception, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "AGAIN_S", 0.2)
    monkeypatch.setattr(cutting, "PERIOD_S", 0.05)
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    vendor.raising = error
    async with running(cutter(tmp_path, vendor)) as agent:
        await until(lambda: code in codes_of(agent))
        (problem,) = [p for p in agent.problems() if p.code == code]
        await until(lambda: vendor.works.count("set mode cut") > 1)
        offered = A in view_of(agent).devices
        vendor.raising = None
        await until(lambda: state(tmp_path) == ("cut", "made", "made"))
        await until(lambda: not codes_of(agent))

    assert problem.subject == "cutting/a"
    assert problem.reason == f"cutting/a: set-mode cutting/a cut: {error}"
    assert problem.remedy
    assert offered


class Lying(Cutting):
    """Says that it did what it did not do."""

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        self._work(f"create {placement.start}")
        return self.partition(parent, self.half, placement.start)

    def destroy(self, host: Host, partition: Device) -> None:
        self._work("destroy")

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        self._work(f"set mode {mode}")


@pytest.mark.parametrize(
    "mode, made, layout, said",
    [
        ("whole", (), "two", "set-mode cutting/a cut: cutting/a is in mode whole"),
        (
            "cut",
            (),
            "one",
            "create cutting/a-half-0: cutting/a-half-0 was made, says its plugin, and is not there",
        ),
        ("cut", (0, 1), "one", "destroy cutting/a-half-1: cutting/a-half-1 is still there"),
    ],
)
async def test_plugin_is_not_believed_but_read_again(
    tmp_path: Path, mode: str, made: tuple[int, ...], layout: str, said: str
) -> None:
    cut_host(tmp_path, mode, *made)
    wanted = cutter(tmp_path, Lying(), layout, foreign=Foreign.DESTROY, when=When.DRAINED)
    async with running(wanted) as agent:
        await ready(agent)
        applied = await agent._duties.cutting.apply(told=True)

    assert (applied.done, applied.failed) == ((), (said,))


async def test_device_that_is_cut_is_not_to_be_had_meanwhile(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    vendor.go.clear()
    async with running(cutter(tmp_path, vendor)) as agent:
        await until(lambda: vendor.works)
        given = view_of(agent).assignments[A]
        vendor.go.set()
        await until(lambda: {HALF_0, HALF_1} <= view_of(agent).offered.keys())

    assert given.terms is None
    assert given.why == "it is being cut as the policy says"


async def test_follower_cuts_nothing(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    async with running(parts(tmp_path, Cutting())) as first:
        await ready(first)
        vendor = Cutting()
        async with running(cutter(tmp_path, vendor)) as second:
            await until(lambda: A in view_of(second).devices)
            second._duties.cutting.ring()
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.sleep(0.2)

            assert vendor.works == []


async def test_mode_is_set_where_the_policy_names_it(tmp_path: Path) -> None:
    cut_host(tmp_path, "whole")
    vendor = Cutting()
    made = cutter(tmp_path, vendor, "", how=PartitioningHow.MODE, mode="cut")
    async with running(made):
        await until(lambda: state(tmp_path)[0] == "cut")

    assert vendor.works == ["set mode cut"]


async def test_agent_that_may_cut_nothing_answers_so(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Cutting())) as agent:
        await until(lambda: agent._backends.made)
        posted = await get(tmp_path / "run" / "agent.sock", "/apply", "POST")

    assert json.loads(posted[1]) == {"done": [], "failed": [], "left": []}


def test_file_of_made_partitions_that_cannot_be_read_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "partitions.json").write_text("rubbish")

    assert made_before(tmp_path) == frozenset()


class Leaving(Cutting):
    """Its device is away while there is ``/cut/away``; ``/cut/owner`` says whose halves are."""

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        found = tuple(super().discover(host))
        if host.exists("/cut/away"):
            return
        for one in found:
            if isinstance(one, Device) and one.parent is not None:
                yield attrs.evolve(one, handle=host.read("/cut/owner"))
            else:
                yield one


@pytest.mark.parametrize(
    "stranger, left", [("", ""), ("removes it", ""), ("takes its place", "made")]
)
async def test_partition_that_was_given_back_while_its_device_was_away_goes_when_that_is_back(
    tmp_path: Path, stranger: str, left: str
) -> None:
    cut_host(tmp_path, "whole")
    folder, vendor = tmp_path / "host" / "cut", Leaving()
    (folder / "owner").write_text("ours")
    made = cutter(tmp_path, vendor, through="dra", how=PartitioningHow.DYNAMIC, layout="")
    async with running(made) as agent:
        await ready(agent)
        keeper = agent._duties.keeper
        await keeper.prepare(wish("1", "a-half-0"))
        await until(lambda: HALF_0 in view_of(agent).devices)
        (folder / "away").touch()
        await until(lambda: view_of(agent).devices[HALF_0].standing is Standing.LOST)
        await keeper.release("1")
        await until(lambda: not view_of(agent).devices)
        kept = state(tmp_path)
        if stranger == "removes it":
            (folder / "half-0").write_text("")
        elif stranger:
            (folder / "owner").write_text("theirs")
        (folder / "away").unlink()
        await until(lambda: A in view_of(agent).devices)
        await agent._duties.cutting.apply(told=True)
        await until(lambda: not keeper._ledger.left.all())

    assert kept == ("cut", "made", "")
    assert state(tmp_path) == ("cut", left, "")
    assert ("destroy 0" in vendor.works) is not bool(stranger)
