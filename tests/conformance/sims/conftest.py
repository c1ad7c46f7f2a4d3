"""Simulated kubelets and plugins that end with their test."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import pytest

from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import QUICK
from tests.conformance.sims.plugin import RESOURCE, Plugin, plugin_path, register


class Join(Protocol):
    """Serve a plugin, register it, and wait until its list is there."""

    async def __call__(
        self,
        listed: Sequence[dp.Device] = (),
        *,
        watcher: bool = False,
        resource: str = RESOURCE,
        options: dp.DevicePluginOptions | None = None,
    ) -> Plugin: ...


@pytest.fixture(params=["1.37"])
async def sim(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[KubeletSim, None]:
    async with KubeletSim(tmp_path / "k", release=request.param, timing=QUICK) as started:
        yield started


@pytest.fixture
async def join(sim: KubeletSim) -> AsyncGenerator[Join, None]:
    async with AsyncExitStack() as stack:

        async def joined(
            listed: Sequence[dp.Device] = (),
            *,
            watcher: bool = False,
            resource: str = RESOURCE,
            options: dp.DevicePluginOptions | None = None,
        ) -> Plugin:
            path = plugin_path(sim.registry_dir if watcher else sim.plugins_dir)
            plugin = await Plugin(path, listed, resource=resource, options=options).serve()
            stack.push_async_callback(plugin.close)
            if not watcher:
                await register(sim, plugin)
            await sim.wait_for(lambda: has_listed(sim, plugin))
            return plugin

        yield joined


def has_listed(sim: KubeletSim, plugin: Plugin) -> bool:
    return bool(sim.seen(Listed, endpoint=str(plugin.path)))
