"""Ends of tasks, and tasks of code that is not asynchronous."""

import asyncio
import threading
from pathlib import Path

import pytest

from accelkit.conformance.sims.events import StatusChanged
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.tasks import cancel, do
from accelkit.conformance.sims.timing import QUICK
from tests.conformance.sims.plugin import RESOURCE, Plugin, devices, plugin_path, register


async def test_task_that_failed_is_not_cancelled_quietly() -> None:
    async def broken() -> None:
        raise ValueError("a bug")

    task = asyncio.create_task(broken())
    await asyncio.sleep(0)

    with pytest.raises(ValueError, match="a bug"):
        await cancel(task)


def test_kubelet_can_be_used_from_code_that_is_not_asynchronous(tmp_path: Path) -> None:
    sim = KubeletSim(tmp_path, timing=QUICK)
    do(sim.start())
    plugin = Plugin(plugin_path(sim.plugins_dir), devices(3))
    do(plugin.serve())
    do(register(sim, plugin))
    do(sim.wait_for(lambda: sim.seen(StatusChanged, resource=RESOURCE, allocatable="3")))

    pod = do(sim.admit("p", {RESOURCE: 3}))

    assert pod.ids() == ("d0", "d1", "d2")
    do(plugin.close())
    do(sim.kill())


def test_coroutine_that_takes_too_long_is_given_up_and_cancelled() -> None:
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        do(endless(), 0.01)

    assert ended.wait(10)
