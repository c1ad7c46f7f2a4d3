"""Resources that come and go, streams, rivals, and what is said of it all."""

import asyncio
from contextlib import aclosing
from functools import partial
from pathlib import Path

import attrs

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import FrozenMap
from tests.backends.kubelet.world import (
    QUICK,
    RESOURCE,
    endpoints,
    gpu,
    health,
    holding,
    ident,
    listed,
    serving,
    sick,
    view_of,
    world,
)
from tests.conformance.sims.plugin import Plugin, device, devices, plugin_path, register

OLD = "acme.test/old"


def registered(sim: KubeletSim, times: int) -> bool:
    return len(endpoints(sim)) == times


async def test_nothing_is_registered_before_a_vendor_has_answered(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), answered=()))) as here:
        await asyncio.sleep(0.1)
        assert here.sockets() == set()
        here.node.publish(view_of(gpu("a")))

        await sim.wait_for(lambda: health(sim) == {"a": True})


async def test_what_is_known_is_registered_when_no_vendor_answers_for_long(
    tmp_path: Path, sim: KubeletSim
) -> None:
    patience = attrs.evolve(QUICK, first_view_s=0.1)
    async with serving(world(tmp_path, view_of(gpu("a"), answered=()), patience=patience)):
        await sim.wait_for(lambda: health(sim) == {"a": True})


async def test_node_without_devices_is_ready(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of())) as here:
        await sim.wait_for(lambda: here.node.statuses and here.node.statuses[-1].published)

        assert here.node.statuses[-1].detail == "0 of 0 resources connected"


async def test_last_device_that_goes_leaves_an_empty_list_and_the_registration(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True})
        here.node.publish(view_of())
        await sim.wait_for(lambda: listed(sim) == ())

        assert sim.amounts()[RESOURCE] == (0, 0)
        assert len(endpoints(sim)) == 1
        assert here.sockets()


async def test_literal_resource_without_devices_is_registered(
    tmp_path: Path, sim: KubeletSim
) -> None:
    offers = [Offer(name="all", resource="acme.test/rare")]
    async with serving(world(tmp_path, view_of(offers=offers))):
        await sim.wait_for(lambda: listed(sim, "acme.test/rare") == ())


async def test_resource_that_vanished_from_the_policy_is_emptied_and_its_pods_can_restart(
    tmp_path: Path, sim: KubeletSim
) -> None:
    before = view_of(gpu("a"), gpu("b"))
    renamed = [Offer(name="all", resource="acme.test/new")]
    async with serving(world(tmp_path, before)) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True, "b": True})
        pod = await sim.admit("p", {RESOURCE: 1})
        held = pod.ids()[0]
        leaving = view_of(gpu("a"), gpu("b"), offers=renamed, held=[holding(held)], previous=before)
        here.node.publish(leaving)
        await sim.wait_for(lambda: health(sim) == {held: False})
        free = {"a", "b"} - {held}
        await sim.wait_for(lambda: health(sim, "acme.test/new") == dict.fromkeys(free, True))
        sim.crash("p")
        assert (await sim.start_again("p")).running
        assert sim.device_health("p") == {held: "Unhealthy"}
        here.node.publish(view_of(gpu("a"), gpu("b"), offers=renamed, previous=leaving))
        await sim.wait_for(lambda: health(sim) == {})
        await sim.wait_for(lambda: health(sim, "acme.test/new") == {"a": True, "b": True})

        assert len(endpoints(sim)) == 1


async def test_resource_that_only_pods_from_earlier_know_is_registered_for_their_restarts(
    tmp_path: Path, sim: KubeletSim
) -> None:
    view = view_of(gpu("a"), held=[holding("a", resource=OLD)])
    async with serving(world(tmp_path, view)):
        await sim.wait_for(lambda: health(sim, OLD) == {"a": False})


async def test_resource_that_another_plugin_serves_is_left_to_it(
    tmp_path: Path, sim: KubeletSim
) -> None:
    other = Plugin(plugin_path(sim.plugins_dir), devices(1), resource=OLD)
    await other.serve()
    await register(sim, other)
    await sim.wait_for(lambda: health(sim, OLD))
    view = view_of(gpu("a"), gpu("b"), held=[holding("a", resource=OLD)])
    async with serving(world(tmp_path, view)) as here:
        await sim.wait_for(lambda: health(sim) == {"b": True})
        await asyncio.sleep(0.3)
        assert len(endpoints(sim, OLD)) == 1
        assert len(here.sockets()) == 2
        await other.close()

        await sim.wait_for(lambda: health(sim, OLD) == {"a": False})


async def test_too_many_ids_are_told_and_the_rest_is_offered(
    tmp_path: Path, sim: KubeletSim
) -> None:
    many = [gpu(f"g{number:02}") for number in range(17)]
    view = view_of(*many, offers=[Offer(name="all", sharing=Sharing(shares=128))])
    async with serving(world(tmp_path, view)) as here:
        await sim.wait_for(lambda: sim.amounts().get(RESOURCE) == (2048, 2048))
        assert ("too-many-ids", RESOURCE) in here.node.problems
        here.node.publish(view_of(gpu("a")))
        await sim.wait_for(lambda: health(sim) == {"a": True})

        assert here.node.problems == {}


async def test_every_stream_sends_the_list_at_once_and_every_change(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True})
        async with dial(Path(endpoints(sim)[0])) as one, dial(Path(endpoints(sim)[0])) as two:
            first = services.watch(one, services.LIST_AND_WATCH, dp.Empty())
            second = services.watch(two, services.LIST_AND_WATCH, dp.Empty())
            async with aclosing(first), aclosing(second):
                assert await anext(first) == await anext(second)
                here.node.publish(view_of(sick(gpu("a"))))
                heard = [await anext(first), await anext(second)]
                assert [[d.health for d in one.devices] for one in heard] == [["Unhealthy"]] * 2
        await sim.wait_for(lambda: health(sim) == {"a": False})
        streams = ("accelkit_streams", (RESOURCE,))
        await sim.wait_for(lambda: here.node.meter.values[streams] == 1)

        assert len(endpoints(sim)) == 1


async def test_equal_list_is_not_sent_again(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True})
        here.node.publish(view_of(gpu("a"), held=[holding("a")]))
        here.node.publish(view_of(sick(gpu("a")), held=[holding("a")]))
        await sim.wait_for(lambda: health(sim) == {"a": False})

    assert len(sim.seen(Listed)) == 2


async def test_device_on_a_numa_node_is_listed_with_it(tmp_path: Path, sim: KubeletSim) -> None:
    view = view_of(gpu("a", numa=1), gpu("b"))
    async with serving(world(tmp_path, view)):
        await sim.wait_for(lambda: listed(sim))

        assert {d.id: d.nodes for d in listed(sim) or ()} == {"a": (1,), "b": ()}


async def test_ids_are_the_same_after_a_restart_while_pods_run(
    tmp_path: Path, sim: KubeletSim
) -> None:
    view = view_of(gpu("a"), gpu("b"))
    async with serving(world(tmp_path, view)):
        await sim.wait_for(lambda: health(sim) == {"a": True, "b": True})
        pod = await sim.admit("p", {RESOURCE: 1})
    async with serving(world(tmp_path, attrs.evolve(view, holdings=(holding(*pod.ids()),)))):
        await sim.wait_for(lambda: sim.amounts()[RESOURCE] == (2, 2))
        other = await sim.admit("q", {RESOURCE: 1})

    assert {*pod.ids(), *other.ids()} == {"a", "b"}


async def test_somebody_else_who_lists_other_devices_is_told_and_answered(
    tmp_path: Path, sim: KubeletSim
) -> None:
    """Since 1.37 the kubelet keeps both, and the last list wins."""
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True})
        other = await Plugin(plugin_path(sim.plugins_dir), [device("x")]).serve()
        await register(sim, other)
        await sim.wait_for(lambda: ("foreign-writer", RESOURCE) in here.node.problems)
        reason, _ = here.node.problems["foreign-writer", RESOURCE]
        await sim.wait_for(lambda: health(sim) == {"a": True})
        ours = [path for path in endpoints(sim) if path != str(other.path)]
        assert len(set(ours)) == len(ours) >= 2
        await other.close()

        await sim.wait_for(lambda: here.node.problems == {})
    assert reason == (
        "the kubelet has x, which are not ours and lacks a of ours: "
        "somebody else registers acme.test/gpu"
    )


async def test_somebody_else_who_does_not_give_way_is_only_told_in_the_end(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True})
        other = await Plugin(plugin_path(sim.plugins_dir), [device("x")]).serve()
        await register(sim, other)
        for answers in (1, 2, 3):
            await sim.wait_for(partial(registered, sim, 2 + answers))
            await sim.wait_for(lambda: health(sim) == {"a": True})
            await other.send([device("x"), device(f"y{answers}")])
        await asyncio.sleep(4 * QUICK.rivals_s)

        assert len(endpoints(sim)) == 5
        assert ("foreign-writer", RESOURCE) in here.node.problems
        await other.close()


async def test_fault_of_ours_ends_the_backend_and_its_sockets(
    tmp_path: Path, sim: KubeletSim
) -> None:
    here = world(tmp_path, view_of(gpu("a")))
    task = asyncio.create_task(here.backend.serve(here.node))
    await sim.wait_for(lambda: health(sim) == {"a": True})
    broken = FrozenMap({ident("b"): None})
    here.node.publish(attrs.evolve(view_of(gpu("b")), assignments=broken))  # type: ignore[arg-type]  # a bug
    result = (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(result, ExceptionGroup)
    assert here.sockets() == set()


async def test_devices_whose_topology_cannot_be_made_are_offered_nevertheless(
    tmp_path: Path, sim: KubeletSim
) -> None:
    view = view_of(gpu("a"), gpu("b"))
    object.__setattr__(view.snapshot, "links", ("no link",))  # what no invariant lets pass
    async with serving(world(tmp_path, view)):
        await sim.wait_for(lambda: sim.amounts().get(RESOURCE) == (2, 2))
        pod = await sim.admit("p", {RESOURCE: 1})

    assert pod.ids() == ("a",)
