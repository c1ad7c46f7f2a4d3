import asyncio
from pathlib import Path

import attrs

from accelkit.backends.kubelet.document import catalog_of
from accelkit.backends.kubelet.plugin import Plugin
from accelkit.backends.kubelet.preferred import preference_of
from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import bind, dial
from accelkit.core.policy import Offer, Paths, Sharing
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


async def asked(plugin: Plugin, *available: str) -> list[str]:
    """What *plugin* prefers of these, one of them."""
    one = dp.ContainerPreferredAllocationRequest(available_deviceIDs=available, allocation_size=1)
    request = dp.PreferredAllocationRequest(container_requests=[one])
    handlers = {handler.path: handler.one for handler in plugin.handlers(plugin.streams())}
    answer = handlers[services.GET_PREFERRED.path]
    assert answer is not None
    raw = await answer(request.SerializeToString())
    return list(dp.PreferredAllocationResponse.FromString(raw).container_responses[0].deviceIDs)


async def test_question_that_would_wait_for_too_long_is_answered_by_what_is_known() -> None:
    view = view_of(gpu("a"), gpu("b"))
    node = NodePortDouble(paths=Paths(), view=view)
    plugin = Plugin(RESOURCE, node, lambda _device, _edits: True, allocate_s=0.05)
    plugin.publish(catalog_of(view, ())[RESOURCE])

    assert await asked(plugin, "b", "a") == ["a"]


async def test_preference_that_cannot_be_found_is_the_lowest_ids() -> None:
    view = view_of(gpu("a"), gpu("b"), offers=[Offer(name="all", sharing=Sharing(shares=2))])
    entries = catalog_of(view, ())[RESOURCE]
    preference = preference_of(view, entries, None)
    assert preference is not None
    node = NodePortDouble(paths=Paths(), view=view)
    plugin = Plugin(RESOURCE, node, lambda _device, _edits: True, allocate_s=2.0)
    plugin.publish(entries)
    plugin.prefer(attrs.evolve(preference, topology=None))  # type: ignore[arg-type]  # a bug

    assert await asked(plugin, "b::0", "a::1") == ["a::1"]
    assert node.meter.observed["accelkit_preferred_seconds", (RESOURCE, "fallback")] == 1
