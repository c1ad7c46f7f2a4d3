"""A maker's driver that is taken out and loaded anew, under an agent that runs."""

from pathlib import Path

import attrs

from accelkit.core.policy import HealthPolicy, Seconds
from accelkit.core.values import Standing
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.amd.vendor import Amd
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.agent.toys import codes_of, health_of, parts, policy, ready, running, until, view_of


async def test_gpus_are_not_ready_while_their_driver_is_loaded_anew_and_then_the_same(
    tmp_path: Path,
) -> None:
    directory = str(tmp_path / "machine")
    simulate("amd", "mi300x", 2, directory)
    at_once = attrs.evolve(policy(tmp_path), health=HealthPolicy(recover_after=Seconds(0)))
    made = attrs.evolve(parts(tmp_path, Amd(None), wanted=at_once), host=MachineHost(directory))
    async with running(made) as agent:
        await ready(agent)
        before = view_of(agent).snapshot.devices
        names = [str(device.id) for device in before]

        set_state(directory, ["unload"])
        await until(lambda: "driver-not-ready" in codes_of(agent))
        await until(lambda: "HEALTHY" not in health_of(agent).values())
        gone = view_of(agent).snapshot.devices
        set_state(directory, ["load"])
        await until(lambda: [*health_of(agent).values()] == ["HEALTHY"] * len(names))

        assert [(str(d.id), d.standing) for d in gone] == [(n, Standing.STALE) for n in names]
        assert view_of(agent).snapshot.devices == before
        assert "driver-not-ready" not in codes_of(agent)


async def test_nobody_gets_a_gpu_without_its_driver_by_what_its_files_were_called(
    tmp_path: Path,
) -> None:
    """A driver that is loaded anew may give these names to another GPU."""
    directory = str(tmp_path / "machine")
    simulate("intel", "arc-b580", 2, directory)
    made = attrs.evolve(parts(tmp_path, Intel(IntelOptions())), host=MachineHost(directory))
    async with running(made) as agent:
        await ready(agent)
        first, second = (edits.nodes for edits in view_of(agent).edits.values())

        set_state(directory, ["unload"])
        await until(lambda: not view_of(agent).edits)
        assert "missing-parts" in codes_of(agent)
        set_state(directory, ["load"])
        await until(lambda: len(view_of(agent).edits) == 2)

        assert [edits.nodes for edits in view_of(agent).edits.values()] == [second, first]
        assert "missing-parts" not in codes_of(agent)
