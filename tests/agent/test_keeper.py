from accelkit.core.allocation import Answer
from accelkit.core.claims import EntryState
from tests.agent.keeping.board import CUT, WHOLE, Board, ident
from tests.agent.keeping.virtual import run
from tests.agent.keeping.world import BOOT, CDI, DRIVER, RUN, World, allocation


def test_a_plain_claim_is_prepared_and_released() -> None:
    async def main() -> None:
        world = World(Board(plain=("a", "b")))
        agent = world.agent()
        await agent.keeper.load()

        prepared = await agent.keeper.prepare(allocation("1", "a"))

        assert prepared.answers == (
            Answer(device=ident("a"), requests=("r",), cdi_ids=(f"{DRIVER}/claim=1-a",)),
        )
        assert agent.keeper.entries["1"].state is EntryState.READY
        assert set(world.files(CDI)) == {f"{DRIVER}-claim_1.json"}

        await agent.keeper.release("1")

        assert world.files(CDI) == {}
        assert set(world.files(RUN)) == {f"{BOOT}/claims/.kept", "reserve.lock"}

    run(main())


def test_partitions_are_made_in_their_mode_and_unmade_in_reverse() -> None:
    async def main() -> None:
        world = World(Board(modes={"g": WHOLE}))
        agent = world.agent()
        await agent.keeper.load()

        await agent.keeper.prepare(allocation("1", "g-half-0", "g-half-2"))

        assert agent.keeper.made == {ident("g-half-0"), ident("g-half-2")}
        assert (world.board.modes, set(world.board.parts)) == ({"g": CUT}, {"g-half-0", "g-half-2"})

        await agent.keeper.release("1")

        destroyed = [call for call in agent.hardware.calls if call.startswith("destroy")]
        assert destroyed == ["destroy g-half-2", "destroy g-half-0"]
        assert (world.board.parts, agent.keeper.made) == ({}, frozenset())

    run(main())
