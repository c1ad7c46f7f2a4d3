"""Devices that are handed out by the names that CDI files give them."""

from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio

from accelkit.conformance.sims.events import Answer
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.allocation import ContainerEdits, Edits, Piece
from accelkit.core.policy import Inject, Offer
from accelkit.core.values import FrozenMap
from tests.backends.kubelet.calls import asked, ready, refused
from tests.backends.kubelet.world import (
    gpu,
    health,
    ident,
    serving,
    view_of,
    world,
)

BY_NAME = Offer(name="all", inject=Inject.CDI)


async def test_name_in_a_cdi_file_is_given_when_the_offer_says_so(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))) as here:
        await ready(sim)
        on_disk = [path.name for path in here.cdi.iterdir()]
        answer = await asked(sim, ["a"])

    assert on_disk == ["acme.accelkit.dev-static.json"]
    assert Answer.of(answer.container_responses[0]) == Answer(
        cdi_devices=("acme.accelkit.dev/static=a",)
    )


async def test_device_whose_cdi_file_cannot_be_written_is_unhealthy_until_it_can(
    tmp_path: Path, sim: KubeletSim
) -> None:
    here = world(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))
    here.cdi.write_text("in the way")
    async with serving(here):
        await sim.wait_for(lambda: health(sim) == {"a": False})
        assert ("cdi-file", "acme") in here.node.problems
        code, _ = await refused(sim, ["a"])
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        here.cdi.unlink()
        await sim.wait_for(lambda: health(sim) == {"a": True})

        assert here.node.problems == {}


async def test_cdi_file_that_vanished_is_made_again(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))) as here:
        await ready(sim)
        file = here.cdi / "acme.accelkit.dev-static.json"
        file.unlink()

        await sim.wait_for(file.exists)


async def test_name_that_the_file_does_not_explain_is_never_given(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async def admit(_offer: str, _pieces: Sequence[Piece]) -> Edits:
        newer = ContainerEdits(env=FrozenMap({"NEWER": "1"}))
        return Edits(each=FrozenMap({ident("a"): newer}))

    async with serving(world(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))) as here:
        here.node.admitting = admit
        await ready(sim)
        code, text = await refused(sim, ["a"])

    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "its CDI file does not say what its container needs" in text
