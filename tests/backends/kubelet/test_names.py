"""Devices that are handed out by the names that CDI files give them."""

import threading
from collections.abc import Sequence
from pathlib import Path

import attrs
import grpc
import grpc.aio
import pytest

from accelkit.conformance.sims.events import Answer
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.allocation import ContainerEdits, Edits, Piece
from accelkit.core.policy import Inject, Offer, Selection
from accelkit.core.values import FrozenMap
from tests.backends.kubelet.calls import asked, ready, refused
from tests.backends.kubelet.world import (
    QUICK,
    gpu,
    health,
    ident,
    serving,
    sick,
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


async def test_directory_that_hangs_holds_up_only_devices_that_it_describes(
    tmp_path: Path, sim: KubeletSim, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system whose server is gone: every call in it waits, and no time-out helps."""
    gate, replace = threading.Event(), Path.replace

    def hangs(path: Path, target: Path) -> Path:
        assert gate.wait(20)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", hangs)
    offers = [
        Offer(name="named", inject=Inject.CDI, select=Selection(name=("a",))),
        Offer(name="direct", resource="acme.test/direct"),
    ]
    patience = attrs.evolve(QUICK, files_s=0.05)
    view = view_of(gpu("a"), gpu("b"), offers=offers)
    try:
        async with serving(world(tmp_path, view, patience=patience)) as here:
            await sim.wait_for(lambda: health(sim, "acme.test/direct") == {"b": True})
            await sim.wait_for(lambda: health(sim) == {"a": False})
            reason, _ = here.node.problems["cdi-file", "acme"]
            assert "does not answer" in reason
            here.node.publish(view_of(gpu("a"), sick(gpu("b")), offers=offers))
            await sim.wait_for(lambda: health(sim, "acme.test/direct") == {"b": False})
            gate.set()

            await sim.wait_for(lambda: health(sim) == {"a": True})
            assert here.node.problems == {}
    finally:
        gate.set()
