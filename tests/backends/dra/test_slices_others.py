"""Slices that somebody else changes, or removes."""

from pathlib import Path

import attrs

from accelkit.core.kube import NODES, SLICES
from tests.backends.dra.slices_world import QUICK, SEVERAL, publishing, world
from tests.backends.dra.views import (
    DRIVER,
    NODE,
    gpu,
    sick,
    view_of,
)


async def test_slice_that_somebody_removed_comes_back(tmp_path: Path) -> None:
    """SL09."""
    async with world(tmp_path, view_of(*SEVERAL)) as here, publishing(here):
        await here.settled()
        here.sim.delete(SLICES, here.stored()[1].name)
        await here.until(lambda: len(here.stored()) == 2)
        await here.until(lambda: {one.generation for one in here.stored()} == {2})

        assert here.devices() == [d.id.name for d in SEVERAL]


async def test_slice_that_somebody_changed_is_put_right(tmp_path: Path) -> None:
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.until(lambda: here.devices() == ["a"])

        assert here.writes() == ["create", "update"]


async def test_change_of_our_own_does_not_wait_for_others_to_finish(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, repair_s=600.0)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.settled(view_of(gpu("b")))

        assert here.devices() == ["b"]


async def test_kubelet_that_was_started_again_has_removed_all_slices(tmp_path: Path) -> None:
    """After it registered us: written at once, they would be lost (seen on 1.34 to 1.37)."""
    patience = attrs.evolve(QUICK, repair_s=600.0)
    async with world(tmp_path, view_of(*SEVERAL), patience=patience) as here, publishing(here):
        await here.settled()
        here.register()
        here.wipe()
        await here.until(lambda: len(here.stored()) == 2)
        await here.settled()

        assert here.devices() == [d.id.name for d in SEVERAL]
        assert {one.generation for one in here.stored()} == {2}


async def test_slices_that_went_with_their_node_come_back_for_the_one_of_its_name(
    tmp_path: Path,
) -> None:
    """With the uid of the one before they would be collected again and again (seen on 1.37.2)."""
    async with world(tmp_path, view_of(gpu("a"))) as here, publishing(here):
        await here.settled()
        here.sim.delete(NODES, NODE)
        here.wipe()
        await here.until(lambda: ("slices-not-written", DRIVER) in here.node.problems)
        new = here.sim.create(NODES, {"metadata": {"name": NODE}})
        await here.until(here.stored)
        await here.settled()

        (stored,) = here.stored()
        assert stored.owners[0]["uid"] == new["metadata"]["uid"]  # type: ignore[index]  # JSON
        assert here.node.problems == {}


async def test_nothing_is_written_just_after_a_kubelet_was_started_again(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, wipe_s=600.0)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        here.register()
        here.node.publish(view_of(gpu("b")))
        await here.until(lambda: here.node.problems == {})
        here.sim.cut_watches()
        await here.watching()

        assert here.devices() == ["a"]


async def test_whoever_changes_slices_all_the_time_is_named_and_left_to_it(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, repair_s=0.01)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        for _ in range(2):
            here.edit(0, devices=[{"name": "mine"}])
            await here.until(lambda: here.devices() == ["a"])
            await here.settled()
        here.edit(0, devices=[{"name": "mine"}])
        await here.until(lambda: ("foreign-writer", DRIVER) in here.node.problems)

        assert here.devices() == ["mine"]
        assert not here.published()


async def test_first_write_that_changes_what_is_there_is_spread_over_the_fleet(
    tmp_path: Path,
) -> None:
    """SL17."""
    async with world(tmp_path, view_of(gpu("a"))) as here:
        async with publishing(here):
            await here.settled()
        here.node.publish(view_of(gpu("b")))
        here.patience = attrs.evolve(QUICK, jitter_s=1e6)
        async with publishing(here):
            await here.watching()
            here.sim.cut_watches()
            await here.watching()

        assert here.writes() == ["create"]


async def test_creating_what_is_missing_is_not_spread(tmp_path: Path) -> None:
    patience = attrs.evolve(QUICK, jitter_s=1e6)
    async with world(tmp_path, view_of(gpu("a")), patience=patience) as here, publishing(here):
        await here.settled()
        await here.settled(view_of(sick(gpu("a"))))

        assert here.taints() == {"a": ["burnt"]}
