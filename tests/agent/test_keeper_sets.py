"""What a claim asks, what is one set of devices, and what its containers are given."""

from pathlib import Path

import attrs
import pytest

from accelkit.core.allocation import (
    AskedSharing,
    ClaimBody,
    ClaimConfig,
    ContainerEdits,
    Edits,
    Grant,
    SetOf,
)
from accelkit.core.errors import ConfigRefused, RenderError, SplitSet
from accelkit.core.model import DeviceId
from accelkit.core.policy import Sharing, Timeslice
from accelkit.core.values import Enforcement, FrozenMap, Source
from tests.agent.keeping.board import Board, MemoryHardware, ident
from tests.agent.keeping.virtual import virtually
from tests.agent.keeping.world import (
    BOOT,
    CDI,
    OFFER,
    RUN,
    World,
    allocation,
    library,
    moved,
    used,
    view_of,
)


def plain(*, sets: bool = False) -> World:
    return World(Board(plain=("a", "b", "c"), sets=sets))


def config(*requests: str, source: Source = Source.FROM_CLAIM, **body: object) -> ClaimConfig:
    made = ClaimBody(api_version="accelkit.dev/v1", kind="ClaimConfig")
    changed = attrs.evolve(made, **body)  # type: ignore[arg-type]  # fields of a body
    return ClaimConfig(source=source, requests=requests, body=changed)


def environments(world: World, uid: str) -> dict[str, list[str]]:
    """Variables of each device in a claim's CDI document."""
    document = world.cdi(uid)
    assert document is not None
    devices = document["devices"]
    assert isinstance(devices, list)
    return {d["name"]: d["containerEdits"]["env"] for d in devices}


@virtually
async def test_blocks_of_the_claim_win_over_those_of_its_class_and_later_over_earlier() -> None:
    world = plain()
    agent = await world.begun()
    claim = attrs.evolve(
        allocation("1", used("a", "main/sub"), used("b", "other")),
        configs=(
            config(source=Source.FROM_CLASS, vendor={"slice": "class", "level": 1}),
            config("main", vendor={"slice": "claim"}),
            config("other", vendor={"slice": "first"}),
            config("other", vendor={"slice": "last"}),
        ),
    )

    await agent.keeper.prepare(claim)

    assert world.board.settings == {
        ("a", "slice"): "claim",
        ("a", "level"): "1",
        ("b", "slice"): "last",
        ("b", "level"): "1",
    }


@virtually
async def test_a_block_that_the_vendor_cannot_read_is_refused_before_anything_is_written() -> None:
    world = plain()
    agent = await world.begun()
    before = world.storage.contents()

    with pytest.raises(ConfigRefused, match=r"^\$\.vendor\.bad: toy knows no such key$"):
        await agent.keeper.prepare(allocation("1", "a", config={"bad": 1}))

    assert (agent.hardware.calls, world.storage.contents()) == ([], before)


@virtually
async def test_the_vendor_sees_what_the_claim_asked_of_sharing() -> None:
    world = plain()
    agent = await world.begun()
    asked = AskedSharing(timeslice=Timeslice.LONG)

    await agent.keeper.prepare(attrs.evolve(allocation("1", "a"), configs=(config(sharing=asked),)))

    assert [grant.sharing.timeslice for grant in agent.hardware.grants] == [Timeslice.LONG]


@virtually
async def test_what_the_offer_does_not_let_claims_ask_is_refused_with_its_path() -> None:
    world = plain()
    agent = await world.begun()
    agent.view = view_of(world.board, offer=attrs.evolve(OFFER, sharing=Sharing()))
    asked = AskedSharing(enforce=Enforcement.LIBRARY)

    with pytest.raises(ConfigRefused, match=r"^\$\.sharing\.enforce: the offer all does not let"):
        await agent.keeper.prepare(
            attrs.evolve(allocation("1", "a"), configs=(config(sharing=asked),))
        )


@virtually
async def test_a_claim_is_one_grant_in_one_order() -> None:
    world = plain()
    agent = await world.begun()

    await agent.keeper.prepare(allocation("1", "c", "a", "b"))

    (grant,) = agent.hardware.grants
    assert [g.device.id.name for g in grant.granted] == ["a", "b", "c"]
    assert (grant.owner, grant.scratch) == ("claim/1", None)


@virtually
async def test_what_is_said_of_a_set_is_with_its_first_device_only() -> None:
    world = plain(sets=True)
    agent = await world.begun()

    await agent.keeper.prepare(allocation("1", used("b", "r/x"), used("a", "r/y")))

    assert environments(world, "1") == {"1-a": ["SET=a,b", "TOY=a"], "1-b": ["TOY=b"]}


@virtually
async def test_a_set_in_several_requests_is_refused_and_nothing_is_left() -> None:
    world = plain(sets=True)
    agent = await world.begun()

    with pytest.raises(SplitSet, match="this claim has several requests"):
        await agent.keeper.prepare(allocation("1", used("a", "x"), used("b", "y")))

    assert (dict(agent.keeper.entries), world.files(CDI)) == ({}, {})


@pytest.mark.parametrize(
    "which, expected",
    [
        (SetOf.REQUEST, {"1-a": ["SET=a", "TOY=a"], "1-b": ["SET=b", "TOY=b"]}),
        (SetOf.CLAIM, {"1-a": ["SET=a,b", "TOY=a"], "1-b": ["TOY=b"]}),
    ],
)
def test_a_claim_can_say_what_its_containers_name(
    which: SetOf, expected: dict[str, list[str]]
) -> None:
    @virtually
    async def main() -> None:
        world = plain(sets=True)
        agent = await world.begun()
        claim = attrs.evolve(
            allocation("1", used("a", "x"), used("b", "y")), configs=(config(set=which),)
        )

        await agent.keeper.prepare(claim)

        assert environments(world, "1") == expected

    main()


class Bare(MemoryHardware):
    async def edits(self, vendor: str, grant: Grant) -> Edits:  # noqa: ARG002 - as its base
        each = {
            g.device.id: ContainerEdits(env=FrozenMap({"A": "1"}), joined=FrozenMap({"L": "x"}))
            for g in grant.granted
            if g.device.id == ident("a")
        }
        return Edits(each=FrozenMap(each))


@virtually
async def test_devices_that_need_nothing_have_no_name_in_cdi_and_lists_are_left_out() -> None:
    world = plain()
    agent = await world.begun(hardware=Bare)

    prepared = await agent.keeper.prepare(allocation("1", "a", "b"))
    alone = await agent.keeper.prepare(allocation("2", "c"))

    assert [len(answer.cdi_ids) for answer in prepared.answers] == [1, 0]
    assert environments(world, "1") == {"1-a": ["A=1"]}
    assert (alone.answers[0].cdi_ids, world.cdi("2")) == ((), None)
    assert await agent.keeper.prepared(allocation("2", "c").claim) == alone

    await agent.keeper.release("2")


@virtually
async def test_a_library_gets_a_directory_of_its_claim_that_goes_with_it() -> None:
    world = plain()
    agent = await world.begun()
    agent.view = view_of(world.board, offer=library())
    scratch = f"{RUN}/{BOOT}/scratch/1"

    await agent.keeper.prepare(allocation("1", used("a", share="s")))

    assert [grant.scratch for grant in agent.hardware.grants] == [scratch]
    assert scratch in world.storage.folders()

    await agent.keeper.release("1")

    assert scratch not in world.storage.folders()
    assert str(Path(scratch).parent) in world.storage.folders()


@virtually
async def test_a_driver_that_cdi_cannot_name_fails_the_claim() -> None:
    world = plain()
    agent = await world.begun()
    claim = attrs.evolve(allocation("1", "a"), driver="3d.example.com")

    with pytest.raises(RenderError, match="is not a CDI kind"):
        await agent.keeper.prepare(claim)

    assert dict(agent.keeper.entries) == {}


@virtually
async def test_a_claim_may_have_devices_of_several_vendors() -> None:
    """The kubelet asks each driver; a claim is prepared as a whole."""
    world = plain(sets=True)
    agent = await world.begun()
    agent.view = moved(agent.view, "b", "zoo")
    other = attrs.evolve(used("b", "y"), device=DeviceId(vendor="zoo", name="b"))

    await agent.keeper.prepare(allocation("1", used("a", "x"), other))

    assert environments(world, "1") == {
        "1-a": ["SET=a", "TOY=a"],
        "1-b": ["SET=b", "TOY=b"],
    }
