import asyncio
from pathlib import Path

from accelkit.backends.kubelet.document import catalog_of
from accelkit.backends.kubelet.plugin import Plugin
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import bind, dial
from accelkit.core.policy import Paths
from accelkit.testing.node_port import NodePortDouble
from tests.backends.kubelet.world import RESOURCE, gpu, view_of


async def test_question_which_devices_go_together_waits_until_it_is_known(tmp_path: Path) -> None:
    """The list is there first: with hundreds of devices a topology takes its time."""
    view = view_of(gpu("a"), gpu("b"))
    node = NodePortDouble(paths=Paths(), view=view)
    plugin = Plugin(RESOURCE, node, lambda _device, _edits: True, allocate_s=2.0)
    plugin.publish(catalog_of(view, ())[RESOURCE])
    request = dp.PreferredAllocationRequest(
        container_requests=[
            dp.ContainerPreferredAllocationRequest(
                available_deviceIDs=["b", "a"], allocation_size=1
            )
        ]
    )
    async with (
        await bind(tmp_path / "s", plugin.handlers(plugin.streams())),
        dial(tmp_path / "s") as kubelet,
    ):
        asked = asyncio.create_task(services.call(kubelet, services.GET_PREFERRED, request))
        await services.call(kubelet, services.GET_OPTIONS, dp.Empty())
        waits = not asked.done()
        plugin.prefer(None)
        answer = await asked

    assert waits
    assert list(answer.container_responses[0].deviceIDs) == ["a"]
