"""What a claim may have, what it waits for, and what is refused at once."""

import asyncio
import json
from collections.abc import Callable

import attrs
import pytest

from accelkit.agent.keeper_means import PATIENCE_S
from accelkit.core.allocation import TOLERATES_ALL, Allocation
from accelkit.core.errors import (
    AccelkitError,
    AlreadyAllocated,
    ConflictingSetting,
    DeviceUnavailable,
    IllegalSet,
    MissingParts,
    SourceTimeout,
    UnknownDevice,
)
from accelkit.core.model import Condition, Device, Group, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, GroupRule, Health, Severity
from accelkit.core.view import Assignment, Verdict, View
from tests.agent.keeping.board import CUT, WHOLE, Board, ident
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import (
    CLAIMS,
    OFFER,
    Agent,
    World,
    allocation,
    soon,
    used,
    view_of,
)


def plain() -> World:
    return World(Board(plain=("a", "b")))


def cuttable() -> World:
    return World(Board(modes={"g": WHOLE, "h": WHOLE}))


def now() -> float:
    return asyncio.get_running_loop().time()


async def refused(agent: Agent, claim: Allocation, kind: type[AccelkitError]) -> tuple[str, float]:
    """Why *claim* is refused, and after how many seconds."""
    began = now()
    with pytest.raises(kind) as caught:
        await agent.keeper.prepare(claim)
    return str(caught.value), now() - began


@virtually
async def test_a_device_that_another_claim_has_is_refused_after_the_wait() -> None:
    agent = await plain().begun()
    await agent.keeper.prepare(allocation("1", "a"))

    why, waited = await refused(agent, allocation("2", "a", "b"), AlreadyAllocated)

    assert why == "toy/a is taken: the claim default/claim-1 is ready there"
    assert PATIENCE_S <= waited < PATIENCE_S + 1
    assert set(agent.keeper.entries) == {"1"}


@virtually
async def test_a_device_that_is_given_back_meanwhile_is_had_at_once() -> None:
    """After a force delete the old claim is released 2 to 3 s after the new one is asked for."""
    agent = await plain().begun()
    await agent.keeper.prepare(allocation("1", "a"))
    waiting = asyncio.create_task(agent.keeper.prepare(allocation("2", "a")))
    await soon(2.5)
    began = now()

    await agent.keeper.release("1")
    await waiting

    assert now() == began
    assert set(agent.keeper.entries) == {"2"}


@virtually
async def test_a_device_that_another_instance_gives_back_is_had_soon() -> None:
    world = plain()
    one, other = await world.begun(), await world.begun()
    await one.keeper.prepare(allocation("1", "a"))
    waiting = asyncio.create_task(other.keeper.prepare(allocation("2", "a")))
    await soon(2.5)
    began = now()

    await one.keeper.release("1")
    await waiting

    assert now() - began <= 1.0


@virtually
async def test_of_claims_that_race_for_a_device_one_has_it() -> None:
    world = plain()
    agents = [await world.begun(), await world.begun()]

    answers = await asyncio.gather(
        *(
            agent.keeper.prepare(allocation(f"{n}{m}", "a"))
            for n, agent in enumerate(agents)
            for m in range(8)
        ),
        return_exceptions=True,
    )

    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert {type(a) for a in answers if isinstance(a, BaseException)} == {AlreadyAllocated}


@pytest.mark.parametrize(
    "first, second",
    [("g", "g-half-0"), ("g-half-0", "g"), ("g-half-0", "g-quarter-1"), ("g", "g")],
)
def test_places_that_overlap_are_not_had_twice(first: str, second: str) -> None:
    @virtually
    async def main() -> None:
        world = cuttable()
        agent = await world.begun()
        await agent.keeper.prepare(allocation("1", first))
        world.look(agent)
        await refused(agent, allocation("2", second), AlreadyAllocated)

    main()


@virtually
async def test_places_beside_each_other_and_on_other_devices_are_had_by_several() -> None:
    world = cuttable()
    agent = await world.begun()
    for uid, name in (("1", "g-half-0"), ("2", "g-quarter-2"), ("3", "h"), ("4", "g-quarter-3")):
        await agent.keeper.prepare(allocation(uid, name))
        world.look(agent)

    assert set(world.board.parts) == {"g-half-0", "g-quarter-2", "g-quarter-3"}


@virtually
async def test_shares_of_one_device_are_had_by_several_claims_the_whole_by_none() -> None:
    agent = await plain().begun()
    await agent.keeper.prepare(allocation("1", used("a", share="s1")))
    await agent.keeper.prepare(allocation("2", used("a", share="s2"), used("a", "x", "s3")))

    await refused(agent, allocation("3", "a"), AlreadyAllocated)

    assert [a.share for a in agent.keeper.entries["2"].answer] == ["s2", "s3"]
    assert [a.cdi_ids[0].partition("=")[2] for a in agent.keeper.entries["2"].answer] == [
        "2-a-s2",
        "2-a-s3",
    ]


@virtually
async def test_admin_access_takes_nothing_and_is_had_whatever_the_device_is_like() -> None:
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))
    bad = Verdict(health=Health.UNHEALTHY)
    agent.view = view_of(
        world.board,
        verdicts=FrozenMap({ident("a"): bad, ident("b"): bad}),
        assignments=FrozenMap(
            (ident(n), Assignment(terms=OFFER, leaving=True)) for n in ("a", "b")
        ),
    )
    admin = allocation("2", used("a", admin=True), used("b", admin=True), config={"slice": "long"})

    prepared = await agent.keeper.prepare(admin)

    assert len(prepared.answers) == 2
    assert world.board.settings == {}
    assert {h.holder.uid for h in agent.keeper.holdings()} == {"1"}

    await agent.keeper.release("1")
    world.look(agent)
    await agent.keeper.prepare(allocation("3", "a"))


@virtually
async def test_devices_of_a_damaged_entry_are_not_given_away() -> None:
    world = cuttable()
    world.storage.add(f"{CLAIMS}/9.json", b'{"pieces": [{"device": "toy/g-half-0"}]')
    agent = await world.begun()

    why, _ = await refused(agent, allocation("1", "g"), AlreadyAllocated)

    assert why.startswith("toy/g-half-0 may be taken: the entry of claim 9 cannot be read")


def unhealthy(world: World) -> View:
    burnt = Condition(code="burnt", severity=Severity.FATAL)
    return view_of(
        world.board,
        verdicts=FrozenMap({ident("a"): Verdict(health=Health.UNHEALTHY, reasons=(burnt,))}),
    )


@pytest.mark.parametrize(
    "tolerates, had",
    [
        (("burnt",), True),
        ((TOLERATES_ALL,), True),
        (("burnt", "other"), True),
        (("other",), False),
        (("unhealthy",), False),
    ],
)
def test_ill_device_is_had_by_who_tolerates_all_that_is_wrong_with_it(
    tolerates: tuple[str, ...], *, had: bool
) -> None:
    @virtually
    async def main() -> None:
        world = plain()
        agent = await world.begun()
        agent.view = unhealthy(world)
        piece = attrs.evolve(used("a"), tolerates=tolerates)

        if had:
            assert (await agent.keeper.prepare(allocation("1", piece))).answers
            assert (await agent.keeper.prepare(allocation("1", "a"))).answers  # it is the same
        else:
            await refused(agent, allocation("1", piece), DeviceUnavailable)

    main()


@pytest.mark.parametrize(
    "verdict, code",
    [
        (None, "unknown"),
        (Verdict(health=Health.UNKNOWN, overdue=True), "unknown"),
        (Verdict(health=Health.UNHEALTHY), "unhealthy"),
    ],
)
def test_what_is_wrong_without_a_reason_is_tolerated_by_the_name_of_its_taint(
    verdict: Verdict | None, code: str
) -> None:
    @virtually
    async def main() -> None:
        world = plain()
        agent = await world.begun()
        verdicts = {} if verdict is None else {ident("a"): verdict}
        agent.view = view_of(world.board, verdicts=FrozenMap(verdicts))

        await refused(agent, allocation("1", "a"), DeviceUnavailable)
        await agent.keeper.prepare(allocation("1", attrs.evolve(used("a"), tolerates=(code,))))

    main()


def assigned(**fields: object) -> Callable[[World], View]:
    given = attrs.evolve(Assignment(terms=OFFER), **fields)  # type: ignore[arg-type]  # fields of it
    return lambda world: view_of(world.board, assignments=FrozenMap({ident("a"): given}))


def without_devices(world: World) -> View:
    return attrs.evolve(view_of(world.board), snapshot=Snapshot(answered=frozenset({"toy"})))


def unusable(world: World) -> View:
    devices = [attrs.evolve(d, usable=False) for d in world.board.devices()]
    snapshot = Snapshot(devices=devices, answered=frozenset({"toy"}))
    return view_of(world.board, snapshot=snapshot)


@pytest.mark.parametrize(
    "view, kind, text",
    [
        (unhealthy, DeviceUnavailable, "toy/a is unhealthy: burnt"),
        (assigned(leaving=True, why="so be it"), DeviceUnavailable, "leaves the offer all: so be"),
        (
            assigned(terms=Offer(name="k", through="kubelet")),
            DeviceUnavailable,
            "toy/a is offered through kubelet, not dra",
        ),
        (assigned(terms=None), UnknownDevice, "toy/a is not offered on this node"),
        (without_devices, UnknownDevice, "toy/a is not offered on this node"),
        (unusable, DeviceUnavailable, "toy/a cannot be used as it stands"),
    ],
)
def test_what_cannot_pass_is_refused_at_once(
    view: Callable[[World], View], kind: type[AccelkitError], text: str
) -> None:
    @virtually
    async def main() -> None:
        world = plain()
        agent = await world.begun()
        agent.view = view(world)

        why, waited = await refused(agent, allocation("1", "a"), kind)

        assert text in why
        assert waited == 0.0
        assert (agent.hardware.calls, dict(agent.keeper.entries)) == ([], {})

    main()


@virtually
async def test_a_partition_of_a_device_that_is_not_there_is_refused() -> None:
    world = cuttable()
    agent = await world.begun()
    agent.view = view_of(world.board, snapshot=Snapshot(answered=frozenset({"toy"})))

    why, _ = await refused(agent, allocation("1", "g-half-0"), UnknownDevice)

    assert why == "toy/g-half-0: toy/g, which it is cut out of, is not there"


@virtually
async def test_a_vendors_first_report_is_waited_for() -> None:
    world = plain()
    agent = await world.begun()
    agent.view = View()
    waiting = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon(10.0)
    assert not waiting.done()

    world.look(agent)
    await waiting

    assert now() < 11.0


@virtually
async def test_a_vendor_that_never_answers_is_not_waited_for_longer_than_the_kubelet_does() -> None:
    agent = await plain().begun()
    agent.view = View()

    _, waited = await refused(agent, allocation("1", "a"), UnknownDevice)

    assert PATIENCE_S <= waited < PATIENCE_S + 1


@virtually
async def test_a_view_that_is_older_than_our_own_work_is_not_believed() -> None:
    """The partition of the last claim is still in it, and its whole device as cut."""
    world = cuttable()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    world.look(agent)
    await agent.keeper.release("1")
    agent.view = view_of(world.board, offer=OFFER, assignments=FrozenMap(), made=())
    waiting = asyncio.create_task(agent.keeper.prepare(allocation("2", "g")))
    await soon(3.0)

    world.look(agent)
    await waiting

    assert (world.board.parts, world.board.modes["g"]) == ({}, WHOLE)


@pytest.mark.parametrize("error", [MissingParts("no node"), SourceTimeout("hangs")])
def test_what_may_pass_is_tried_again_until_it_does(error: AccelkitError) -> None:
    @virtually
    async def main() -> None:
        agent = await plain().begun()
        agent.hardware.errors["edits"] = error
        waiting = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
        await soon(5.0)
        assert not waiting.done()

        agent.hardware.errors.clear()
        await waiting

        assert now() < 6.0

    main()


@virtually
async def test_what_does_not_pass_fails_with_its_own_error_in_the_end() -> None:
    agent = await plain().begun()
    agent.hardware.errors["edits"] = MissingParts("/dev/a is not there")

    why, waited = await refused(agent, allocation("1", "a"), MissingParts)

    assert why == "/dev/a is not there"
    assert PATIENCE_S <= waited < PATIENCE_S + 2
    assert dict(agent.keeper.entries) == {}


def lawful(world: World) -> View:
    devices: list[Device] = list(world.board.devices())
    groups = [Group(kind="pair", name="1", members=[ident("a"), ident("b")], rule=GroupRule.LAW)]
    snapshot = Snapshot(devices=devices, groups=groups, answered=frozenset({"toy"}))
    return view_of(world.board, snapshot=snapshot)


@virtually
async def test_a_set_that_the_vendor_cannot_run_is_refused() -> None:
    world = plain()
    agent = await world.begun()
    agent.view = lawful(world)

    why, waited = await refused(agent, allocation("1", "a"), IllegalSet)
    await agent.keeper.prepare(allocation("2", "a", "b"))

    assert (why, waited) == ("toy cannot run a together: they are none of its groups", 0.0)


@virtually
async def test_what_is_only_looked_at_is_under_no_law() -> None:
    world = plain()
    agent = await world.begun()
    agent.view = lawful(world)

    await agent.keeper.prepare(allocation("1", used("a", admin=True)))


@virtually
async def test_a_claim_that_has_its_places_keeps_them_when_its_device_leaves_or_falls_ill() -> None:
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))
    working = json.loads(world.storage.contents()[f"{CLAIMS}/1.json"]) | {"state": "working"}
    world.storage.add(f"{CLAIMS}/1.json", json.dumps(working).encode())
    again = await world.begun()
    again.view = attrs.evolve(
        unhealthy(world), assignments=assigned(leaving=True)(world).assignments
    )

    prepared = await again.keeper.prepare(allocation("1", "a"))

    assert len(prepared.answers) == 1


@virtually
async def test_claims_that_need_other_modes_of_one_device_conflict() -> None:
    world = World(Board(modes={"g": CUT}))
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    (other,) = (d for d in world.board.devices() if d.id == ident("g"))
    odd = [attrs.evolve(p, mode="odd") if p.slug == "quarter" else p for p in other.profiles]
    root = attrs.evolve(
        other,
        profiles=tuple(odd),
        modes=[*other.modes, attrs.evolve(other.modes[0], name="odd")],
    )
    devices = [root, *(d for d in world.board.devices() if d.parent is not None)]
    agent.view = view_of(
        world.board, snapshot=Snapshot(devices=devices, answered=frozenset({"toy"}))
    )

    why, waited = await refused(agent, allocation("2", "g-quarter-3"), ConflictingSetting)

    assert why == "toy/g: the claim default/claim-1 needs mode cut, this one odd"
    assert waited == 0.0
