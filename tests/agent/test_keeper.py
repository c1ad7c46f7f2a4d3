import asyncio
import json
from pathlib import Path

import attrs
import pytest

from accelkit.core.allocation import Answer, ClaimRef, PodRef
from accelkit.core.claims import EntryState
from accelkit.core.clock import RealClock
from accelkit.core.errors import (
    ClaimMismatch,
    LedgerBusy,
    LedgerError,
    LedgerNewer,
    NoSpace,
    PartitionError,
    PrepareFailed,
)
from accelkit.core.model import Holder, Holding
from accelkit.core.values import HolderKind
from tests.agent.keeping.board import CUT, WHOLE, Board, ident
from tests.agent.keeping.storage import MemoryStorage, RealStorage
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import (
    BOOT,
    CDI,
    CLAIMS,
    DRIVER,
    RUN,
    World,
    allocation,
    soon,
    used,
)
from tests.core.cdi_rules import CHECKED

POD = PodRef(uid="p1", namespace="default", name="pod")
NOT_UIDS = ["", "..", "../../etc/passwd", "1/2", "UP", "a" * 65, "1.json"]


def plain() -> World:
    return World(Board(plain=("a", "b", "c")))


def filled(world: World, *, full: bool = True) -> None:
    """Let nothing be written any more, or again."""
    assert isinstance(world.storage, MemoryStorage)
    world.storage.full = full


@virtually
async def test_a_claim_is_answered_recorded_and_described_to_runtimes() -> None:
    world = plain()
    agent = await world.begun()
    claim = allocation("1", used("a", "main/x"), used("b", "other"), pods=[POD])

    prepared = await agent.keeper.prepare(claim)

    assert prepared.claim == claim.claim
    assert prepared.answers == (
        Answer(device=ident("a"), requests=("main",), cdi_ids=(f"{DRIVER}/claim=1-a",)),
        Answer(device=ident("b"), requests=("other",), cdi_ids=(f"{DRIVER}/claim=1-b",)),
    )
    document = world.cdi("1")
    CHECKED.validate(document)
    assert document == {
        "cdiVersion": "0.5.0",
        "kind": f"{DRIVER}/claim",
        "devices": [
            {
                "name": f"1-{name}",
                "containerEdits": {
                    "env": [f"TOY={name}"],
                    "deviceNodes": [{"path": f"/dev/{name}", "permissions": "rw"}],
                },
            }
            for name in "ab"
        ],
    }
    entry = agent.keeper.entries["1"]
    assert (entry.state, entry.pods, entry.answer) == (EntryState.READY, (POD,), prepared.answers)
    assert [piece.offer for piece in entry.pieces] == ["all", "all"]
    assert [step for step, _ in entry.trace] == ["reserve", "settings", "cdi"]
    assert agent.changes > 0


@virtually
async def test_a_released_claim_leaves_nothing() -> None:
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))

    await agent.keeper.release("1")

    assert world.files(CDI) == {}
    assert set(world.files(RUN)) == {f"{BOOT}/claims/.kept", "reserve.lock"}
    assert (dict(agent.keeper.entries), agent.keeper.holdings()) == ({}, ())


@virtually
async def test_the_same_again_gives_the_same_answer_and_asks_the_vendor_nothing() -> None:
    world = plain()
    agent = await world.begun()
    first = await agent.keeper.prepare(allocation("1", "a"))
    calls, files = list(agent.hardware.calls), world.storage.contents()

    for _ in range(10):
        assert await agent.keeper.prepare(allocation("1", "a")) == first
        assert await agent.keeper.prepared(allocation("1", "a").claim) == first

    assert (agent.hardware.calls, world.storage.contents()) == (calls, files)


@virtually
async def test_a_claim_that_is_not_prepared_has_no_answer() -> None:
    agent = await plain().begun()

    assert await agent.keeper.prepared(allocation("1", "a").claim) is None


@virtually
async def test_releasing_again_or_what_was_never_prepared_is_fine() -> None:
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))
    for uid in ["1"] * 10 + ["99"]:
        await agent.keeper.release(uid)

    assert set(world.files(RUN)) == {f"{BOOT}/claims/.kept", "reserve.lock"}


@virtually
async def test_another_process_answers_and_releases_what_one_prepared() -> None:
    world = plain()
    one, other = await world.begun(), await world.begun()
    first = await one.keeper.prepare(allocation("1", "a"))

    assert await other.keeper.prepared(allocation("1", "a").claim) == first
    assert await other.keeper.prepare(allocation("1", "a")) == first

    await other.keeper.release("1")

    assert await one.keeper.prepared(allocation("1", "a").claim) is None
    assert world.files(CDI) == {}


@pytest.mark.parametrize("uid", NOT_UIDS)
def test_what_is_no_uid_never_becomes_a_path(uid: str) -> None:
    @virtually
    async def main() -> None:
        world = plain()
        agent = await world.begun()
        claim = attrs.evolve(allocation("1", "a"), claim=ClaimRef(uid=uid, namespace="n", name="c"))
        before = world.storage.contents()
        with pytest.raises(ClaimMismatch, match="is no uid"):
            await agent.keeper.prepare(claim)
        with pytest.raises(ClaimMismatch, match="is no uid"):
            await agent.keeper.prepared(claim.claim)
        with pytest.raises(ClaimMismatch, match="is no uid"):
            await agent.keeper.release(uid)
        assert world.storage.contents() == before

    main()


@virtually
async def test_calls_for_one_claim_join_and_it_is_set_up_once() -> None:
    world = plain()
    agent = await world.begun()
    agent.hardware.slow["edits"] = 2.0

    answers = await asyncio.gather(*(agent.keeper.prepare(allocation("1", "a")) for _ in range(5)))

    assert len(set(answers)) == 1
    assert agent.hardware.calls == ["needs", "edits a"]


@virtually
async def test_a_call_for_other_devices_does_not_join() -> None:
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 2.0
    first = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon()

    with pytest.raises(ClaimMismatch, match="is being prepared with other devices"):
        await agent.keeper.prepare(allocation("1", "b"))

    assert (await first).answers[0].device == ident("a")


@virtually
async def test_a_claim_that_is_prepared_cannot_get_other_devices() -> None:
    """Its containers may run."""
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a"))

    with pytest.raises(ClaimMismatch, match="was prepared with other devices"):
        await agent.keeper.prepare(allocation("1", "b"))

    assert agent.keeper.entries["1"].state is EntryState.READY
    assert world.cdi("1") is not None


@virtually
async def test_what_was_left_of_a_claim_that_got_other_devices_is_undone_first() -> None:
    world = World(Board(modes={"g": WHOLE}))
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "g-half-0"))
    left = json.loads(world.storage.contents()[f"{CLAIMS}/1.json"])
    world.storage.add(f"{CLAIMS}/1.json", json.dumps({**left, "state": "working"}).encode())
    again = await world.begun()
    world.look(again)

    await again.keeper.prepare(allocation("1", "g-half-2"))

    assert set(world.board.parts) == {"g-half-2"}


@virtually
async def test_a_caller_that_gives_up_leaves_the_work_running_and_a_retry_joins_it() -> None:
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 5.0
    first = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    prepared = await agent.keeper.prepare(allocation("1", "a"))

    assert prepared.answers[0].device == ident("a")
    assert agent.hardware.calls.count("edits a") == 1


@virtually
async def test_a_call_whose_caller_is_gone_before_it_starts_does_not_start() -> None:
    world = plain()
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", "a", config={"slice": "long"}))
    agent.hardware.slow["revert"] = 5.0
    release = asyncio.create_task(agent.keeper.release("1"))
    await soon()
    late = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon()
    late.cancel()

    await release
    await soon(60.0)

    assert dict(agent.keeper.entries) == {}
    assert world.files(CDI) == {}


@virtually
async def test_a_call_that_takes_too_long_is_answered_and_the_work_goes_on() -> None:
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 50.0
    began = asyncio.get_running_loop().time()

    with pytest.raises(LedgerBusy, match="is still being prepared"):
        await agent.keeper.prepare(allocation("1", "a"))

    assert asyncio.get_running_loop().time() - began == pytest.approx(40.0)
    assert (await agent.keeper.prepare(allocation("1", "a"))).answers[0].device == ident("a")


@virtually
async def test_a_release_inside_a_preparation_waits_then_undoes_it() -> None:
    world = World(Board(modes={"g": WHOLE}))
    agent = await world.begun()
    agent.hardware.slow["create"] = 5.0
    prepare = asyncio.create_task(agent.keeper.prepare(allocation("1", "g-half-0")))
    await soon()

    await agent.keeper.release("1")

    assert prepare.done()
    assert (world.board.parts, dict(agent.keeper.entries), world.files(CDI)) == ({}, {}, {})


@virtually
async def test_a_release_ends_a_preparation_that_only_waits() -> None:
    agent = await plain().begun()
    await agent.keeper.prepare(allocation("1", "a"))
    waiting = asyncio.create_task(agent.keeper.prepare(allocation("2", "a")))
    await soon()
    began = asyncio.get_running_loop().time()

    await agent.keeper.release("2")

    assert asyncio.get_running_loop().time() - began < 1.0
    assert "is ready there" in str(waiting.exception())
    assert agent.told == []


@virtually
async def test_a_release_that_waits_too_long_is_answered_and_done_all_the_same() -> None:
    """The kubelet may never ask again."""
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 60.0
    prepare = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon()

    with pytest.raises(LedgerBusy, match="claim 1 is still being released"):
        await agent.keeper.release("1")

    await asyncio.gather(prepare, return_exceptions=True)
    await agent.keeper.settle()
    assert dict(agent.keeper.entries) == {}


@virtually
async def test_claims_of_other_devices_are_prepared_side_by_side() -> None:
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 5.0
    began = asyncio.get_running_loop().time()

    await asyncio.gather(
        *(agent.keeper.prepare(allocation(str(n), d)) for n, d in enumerate("abc"))
    )

    assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)


@virtually
async def test_one_claim_that_fails_does_not_fail_others() -> None:
    agent = await plain().begun()
    agent.hardware.errors["edits b"] = PartitionError("b is broken")

    first, second = await asyncio.gather(
        agent.keeper.prepare(allocation("1", "a")),
        agent.keeper.prepare(allocation("2", "b")),
        return_exceptions=True,
    )

    assert not isinstance(first, BaseException)
    assert isinstance(second, PartitionError)


@virtually
async def test_a_preparation_that_fails_leaves_nothing_and_is_told_on_its_pod() -> None:
    world = World(Board(modes={"g": WHOLE}))
    agent = await world.begun()
    before = set(world.storage.contents())
    agent.hardware.errors["edits g-half-0"] = PartitionError("no")

    with pytest.raises(PartitionError, match=r"^no$"):
        await agent.keeper.prepare(allocation("1", "g-half-0", pods=[POD]))

    assert set(world.storage.contents()) - before == {f"{RUN}/reserve.lock"}
    assert (world.board.parts, world.board.settings) == ({}, {})
    assert agent.told == [("PrepareFailed", "no")]
    assert ("accelkit_prepare_seconds", ("toy", "partition-failed")) in agent.seconds

    del agent.hardware.errors["edits g-half-0"]
    await agent.keeper.prepare(allocation("1", "g-half-0"))


@virtually
async def test_an_error_that_is_none_of_ours_is_told_as_a_failed_preparation() -> None:
    world = plain()
    agent = await world.begun()
    agent.hardware.errors["edits a"] = ZeroDivisionError("oh")  # type: ignore[assignment]  # that is the point

    with pytest.raises(PrepareFailed, match="preparing it broke: ZeroDivisionError: oh"):
        await agent.keeper.prepare(allocation("1", "a"))

    assert dict(agent.keeper.entries) == {}


@virtually
async def test_a_full_disk_refuses_before_hardware_is_touched() -> None:
    world = World(Board(modes={"g": WHOLE}))
    agent = await world.begun()
    filled(world)

    with pytest.raises(NoSpace):
        await agent.keeper.prepare(allocation("1", "g-half-0"))

    assert (agent.hardware.calls, world.board.modes) == ([], {"g": WHOLE})

    filled(world, full=False)
    await agent.keeper.prepare(allocation("1", "g-half-0"))


@virtually
async def test_an_entry_of_a_later_version_is_refused_and_its_devices_are_held() -> None:
    world = plain()
    later = {"format": "2.0", "writer": "9.0", "pieces": [{"device": "toy/a"}]}
    world.storage.add(f"{CLAIMS}/1.json", json.dumps(later).encode())
    agent = await world.begun()

    for ask in (
        agent.keeper.prepare(allocation("1", "a")),
        agent.keeper.prepared(allocation("1", "a").claim),
        agent.keeper.release("1"),
    ):
        with pytest.raises(LedgerNewer):
            await ask

    assert [(h.device.name, h.holder.uid) for h in agent.keeper.holdings()] == [("a", "1")]
    assert [p.code for p in agent.keeper.problems] == ["ledger-newer"]
    assert world.storage.contents()[f"{CLAIMS}/1.json"] == json.dumps(later).encode()


@virtually
async def test_a_damaged_entry_is_told_its_devices_are_held_and_its_claim_can_come_anew() -> None:
    world = plain()
    world.storage.add(f"{CLAIMS}/1.json", b'{"pieces": [{"device": "toy/a"')
    agent = await world.begun()

    assert [reason for reason, _ in agent.told] == ["LedgerEntryQuarantined"]
    assert [p.code for p in agent.keeper.problems] == ["ledger-entry"]
    assert [(h.device.name, h.holder.uid) for h in agent.keeper.holdings()] == [("a", "1")]

    await agent.keeper.prepare(allocation("1", "a"))
    await agent.keeper.release("1")
    await agent.keeper.mend()

    assert (agent.keeper.problems, agent.keeper.holdings()) == ((), ())
    assert set(world.files(RUN)) == {f"{BOOT}/claims/.kept", "reserve.lock"}


async def test_a_run_directory_that_cannot_be_read_keeps_the_keeper_from_starting(
    tmp_path: Path,
) -> None:
    storage = RealStorage(tmp_path)
    claims = storage.path(Path(CLAIMS))
    claims.parent.mkdir(parents=True)
    claims.write_text("not a directory")

    with pytest.raises(LedgerError):
        await World(Board(plain=("a",)), storage, RealClock()).begun()


@virtually
async def test_a_full_disk_does_not_keep_the_keeper_from_starting() -> None:
    world = plain()
    filled(world)
    agent = await world.begun()
    with pytest.raises(NoSpace):
        await agent.keeper.prepare(allocation("1", "a"))

    filled(world, full=False)

    await agent.keeper.prepare(allocation("1", "a"))

    assert set(agent.keeper.entries) == {"1"}


@virtually
async def test_holdings_are_those_of_every_state_with_their_claim() -> None:
    world = World(Board(plain=("a", "b"), modes={"g": CUT}, failures={"destroy g-half-0": 1}))
    agent = await world.begun()
    await agent.keeper.prepare(allocation("1", used("a", share="s1"), used("b", admin=True)))
    await agent.keeper.prepare(allocation("2", "g-half-0"))
    with pytest.raises(PartitionError):
        await agent.keeper.release("2")

    assert agent.keeper.entries["2"].state is EntryState.RELEASING
    assert agent.keeper.holdings() == tuple(
        Holding(
            device=ident(device),
            share=share,
            through="dra",
            holder=Holder(
                kind=HolderKind.CLAIM, namespace="default", claim=f"claim-{uid}", uid=uid
            ),
        )
        for device, share, uid in (("a", "s1", "1"), ("g-half-0", None, "2"))
    )
    assert agent.keeper.made == {ident("g-half-0")}
    assert agent.keeper.stuck == frozenset()


@virtually
async def test_the_keeper_settles_when_nothing_runs_any_more() -> None:
    agent = await plain().begun()
    agent.hardware.slow["edits"] = 3.0
    await agent.keeper.settle()
    task = asyncio.create_task(agent.keeper.prepare(allocation("1", "a")))
    await soon()

    await agent.keeper.settle()

    assert agent.keeper.entries["1"].state is EntryState.READY
    await task
